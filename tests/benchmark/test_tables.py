"""The tables of a comparison: the right number in the right cell, and what it does not say."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

from smokegeo.benchmark.budget import Budget
from smokegeo.benchmark.paper import ABLATION_TOTALS, TOTALS
from smokegeo.benchmark.plan import Plan, choose
from smokegeo.benchmark.plot import draw
from smokegeo.benchmark.results import Results, Run, write_results
from smokegeo.benchmark.tables import csv_text, markdown
from smokegeo.models.baselines.catalog import METHODS, VARIANTS
from smokegeo.models.config import ABLATION

COST = {
    "gflops": 7.25, "size_px": 512, "threads": 2, "cpu_ms": 199.4, "cpu_mb": 310.0,
    "gpu": None, "gpu_ms": None, "gpu_mb": None, "measured_on": "2 cores of a test",
}  # fmt: skip


def score(f1, images=3):
    iou = None if f1 is None else f1 / 2
    return {
        "images": images, "f1_image": f1, "iou_image": iou, "f1_global": f1, "iou_global": iou,
    }  # fmt: skip


def made(entry, seed, total, cost=True):
    report = {
        "scales": {"small": score(0.1), "medium": score(None, 0), "large": score(0.5)},
        "total": score(total),
        "scenarios": {},
    }
    return Run(
        f"{entry.name}-{seed}", entry.name, entry.model, entry.variant, entry.row, seed, 600, 5.0,
        3_190_000, 0.5,
        "2026-11-16", "2 cores of a test", report, COST if cost else {},
    )  # fmt: skip


def results(models=("mop", "segformer"), variants=("realtime",), totals=(0.3,), **changes):
    seeds = tuple(range(len(totals)))
    facts = {"budget": Budget(iterations=600), "seeds": seeds, **changes}
    plan = Plan("hss", Path("/secret/place"), choose(models, variants), **facts)
    runs = [
        made(entry, seed, total, cost=seed == 0)
        for seed, total in zip(seeds, totals, strict=True)
        for entry in plan.entries
    ]
    return Results(plan, {"train": 6, "val": 2, "test": 6}, True, runs, {})


def line(text, start):
    (found,) = [row for row in text.splitlines() if row.startswith(start)]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_each_score_stands_in_its_column():
    text = markdown(results())
    head = line(text, "| method | kind")
    row = dict(zip(head, line(text, "| SegFormer | Transformer"), strict=True))
    assert row["encoder"] == "MiT-B0"
    assert row["small (3) F1"] == "10.00"
    assert row["small (3) mIoU"] == "5.00"
    assert row["medium (0) F1"] == "-"
    assert row["total (3) F1"] == "30.00"
    assert row["paper's total F1 / mIoU"] == "62.87 / 46.84"


def test_costs_stand_below():
    row = line(markdown(results()), "| MoP | 3.19")
    assert row == ["MoP", "3.19", "600", "5.0", "7.25", "199", "310", "-", "-"]


def test_costs_of_several_machines_are_told_apart():
    one = results()
    assert "on 2 cores of a test" in markdown(one)
    assert "measured on |" not in markdown(one)
    moved = replace(one.runs[0], cost={**COST, "measured_on": "a faster one"})
    two = replace(one, runs=[moved, *one.runs[1:]])
    text = markdown(two)
    letters = {row: line(text, f"| {row} | 3.19")[-1] for row in ("SegFormer", "MoP")}
    assert set(letters.values()) == {"A", "B"}
    assert f"{letters['MoP']} is 2 cores of a test" in text
    assert f"{letters['SegFormer']} is a faster one" in text
    assert "several machines" in draw(two).axes[0].get_xlabel()
    assert {r["measured_on"] for r in csv.DictReader(io.StringIO(csv_text(two)))} == {
        "a faster one",
        "2 cores of a test",
    }


def test_several_seeds_give_mean_and_range():
    text = markdown(results(totals=(0.3, 0.5)))
    assert "40.00 (30.00 to 50.00)" in text
    assert "mean over seeds" in text


def test_the_ablation_table_has_its_rows_in_order_and_the_papers_only_for_the_same_size():
    small = markdown(results(("ablation",)))
    rows = [r[2:4].strip() for r in small.split("## Ablation")[1].splitlines() if r[:2] == "| "]
    assert rows == ["ro", "--", *ABLATION]
    assert "73.63" not in small.split("## Ablation")[1]
    large = markdown(results(("ablation",), ("accuracy",)))
    assert line(large.split("## Ablation")[1], "| d |")[1:5] == ["x", "x", "x", ""]
    assert "72.91 / 58.46" in large
    assert "Ablation" not in markdown(results(("mop",)))


def test_it_says_what_cannot_be_compared():
    text = markdown(results())
    for fact in (
        "The frames are simulated",
        "The paper trains for 40000 iterations",
        "One seed",
        "All weights start at random",
        "SegFormer: timm's encoder",
    ):
        assert fact in text
    assert "One seed" not in markdown(results(totals=(0.1, 0.2)))
    assert "The paper trains" not in markdown(results(budget=Budget()))
    timed = markdown(results(budget=Budget(minutes=3.0)))
    assert "see more images" in timed
    assert "validating comes on top" in timed


def test_what_is_left_out_or_to_come_is_said():
    found = results(("mop", "segformer", "mask2former"))
    kept = [run for run in found.runs if run.model == "mop"]
    some = Results(found.plan, found.frames, True, kept, {("mask2former-realtime", 0): "none."})
    text = markdown(some)
    assert "mask2former-realtime with seed 0 is left out: none." in text
    assert "Not trained yet: segformer-realtime with seed 0." in text


def test_the_csv_has_a_line_for_each_training():
    rows = list(csv.DictReader(io.StringIO(csv_text(results(totals=(0.3, 0.5))))))
    assert len(rows) == 4
    assert {row["seed"] for row in rows} == {"0", "1"}
    assert float(rows[0]["total_f1_image"]) == 0.3
    assert rows[0]["medium_f1_image"] == ""
    assert rows[0]["cpu_ms"] == "199.4"


def test_the_plot_has_a_point_for_each_method_with_a_latency():
    labels = [text.get_text() for text in draw(results()).axes[0].texts]
    assert labels == ["SegFormer", "MoP"]
    found = results()
    bare = Results(found.plan, found.frames, True, [], {})
    assert draw(bare) is None


def test_the_files_name_no_path_of_the_machine(tmp_path):
    write_results(results(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"results.json", "benchmark.md", "benchmark.csv", "benchmark.png"}
    for name in names - {"benchmark.png"}:
        assert "secret" not in (tmp_path / name).read_text()


def test_the_papers_numbers_are_those_of_methods_it_has():
    for (_, variant), totals in TOTALS.items():
        assert set(totals) == {n for n, m in METHODS.items() if variant in m.in_paper}
        assert max(totals, key=totals.get) == "mop"
    assert {variant for _, variant in TOTALS} == set(VARIANTS)
    for dataset, rows in ABLATION_TOTALS.items():
        assert set(rows) == set(ABLATION)
        assert rows["e"] == TOTALS[dataset, "accuracy"]["mop"]
