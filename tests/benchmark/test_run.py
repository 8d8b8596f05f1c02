"""A whole comparison: finished work is kept, interrupted work goes on, a failure costs itself."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest
from filelock import FileLock

from smokegeo.benchmark import run as module
from smokegeo.benchmark.budget import Budget
from smokegeo.benchmark.measure import Cost
from smokegeo.benchmark.plan import Plan, choose
from smokegeo.benchmark.results import read_runs
from smokegeo.benchmark.run import benchmark
from smokegeo.datasets.layout import load_layout
from smokegeo.errors import InputError, ModelError, Terminated, UsageError
from smokegeo.models.baselines.catalog import METHODS
from smokegeo.models.config import MoPConfig
from smokegeo.task import MoPSegmentationTask
from smokegeo.train import Machine

CPU = Machine(accelerator="cpu", devices="1")
TINY = Budget(iterations=2, batch=2, crop=32)


@pytest.fixture
def plan(make_dataset):
    root = make_dataset(10, "mss").root
    return Plan("mss", root, choose(["segformer"], ["realtime"]), TINY, speed_px=0)


@pytest.fixture
def trained(monkeypatch):
    """Note which trainings really happen, and whether they resume."""
    calls = []
    real = module.train

    def note(config, out, machine, *, resume=False):
        calls.append((config.model, config.seed, resume))
        return real(config, out, machine, resume=resume)

    monkeypatch.setattr(module, "train", note)
    return calls


def test_tables_are_written_and_a_second_call_trains_nothing(plan, tmp_path, trained):
    first = benchmark(plan, tmp_path / "out", CPU)
    assert trained == [("segformer", 0, False)]
    text = (tmp_path / "out" / "benchmark.md").read_text()
    assert "| SegFormer |" in text
    second = benchmark(plan, tmp_path / "out", CPU)
    assert len(trained) == 1
    assert second.runs == first.runs
    assert (tmp_path / "out" / "benchmark.md").read_text() == text


def test_another_budget_or_seed_never_takes_old_results(plan, tmp_path, trained):
    benchmark(plan, tmp_path / "out", CPU)
    other = Plan(plan.dataset, plan.root, plan.entries, TINY, seeds=(1,), speed_px=0)
    benchmark(other, tmp_path / "out", CPU)
    longer = Budget(iterations=3, batch=2, crop=32)
    (run,) = benchmark(
        Plan(plan.dataset, plan.root, plan.entries, longer, speed_px=0), tmp_path / "out", CPU
    ).runs
    assert [seed for _, seed, _ in trained] == [0, 1, 0]
    assert run.iterations == 3


def test_an_interrupted_training_is_resumed(plan, tmp_path, trained, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("smokegeo"), "propagate", True)  # the CLI turns it off
    caplog.set_level("INFO", logger="smokegeo")

    def stop(self, *args):
        raise Terminated

    plan = replace(plan, budget=replace(TINY, iterations=6))  # validated after two steps
    with monkeypatch.context() as patch:
        patch.setattr(MoPSegmentationTask, "on_train_batch_end", stop)
        with pytest.raises(Terminated):
            benchmark(plan, tmp_path / "out", CPU)
    assert "the same command goes on from here" in caplog.text
    assert not (tmp_path / "out" / "benchmark.md").exists()
    results = benchmark(plan, tmp_path / "out", CPU)
    assert trained == [("segformer", 0, False), ("segformer", 0, True)]
    assert results.runs[0].iterations == 6


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelError("pspnet needs a package. Install it."), "pspnet needs a package"),
        (RuntimeError("CUDA out of memory"), "RuntimeError, CUDA out of memory"),
    ],
)
def test_a_method_that_fails_is_left_out_and_the_rest_goes_on(
    error, told, plan, tmp_path, monkeypatch
):
    real = module.train

    def fail(config, out, machine, *, resume=False):
        if config.model == "pspnet":
            raise error
        return real(config, out, machine, resume=resume)

    monkeypatch.setattr(module, "train", fail)
    entries = choose(["pspnet", "segformer"], ["realtime"])
    both = Plan(plan.dataset, plan.root, entries, TINY, speed_px=0)
    results = benchmark(both, tmp_path / "out", CPU)
    assert [run.model for run in results.runs] == ["segformer"]
    text = (tmp_path / "out" / "benchmark.md").read_text()
    assert f"pspnet-realtime with seed 0 is left out: {told}" in text
    alone = Plan(plan.dataset, plan.root, entries[:1], TINY, speed_px=0)
    with pytest.raises(type(error), match=str(error)):
        benchmark(alone, tmp_path / "alone", CPU)


def test_another_precision_or_other_masks_are_another_training(plan, tmp_path):
    def mark(machine=CPU):
        job = module._job(plan, plan.entries[0], 0, load_layout(plan.root), tmp_path, machine)
        return job.folder.name

    single = mark()
    assert mark(Machine("cpu", "1", "auto", "bf16-mixed", 0)) != single
    assert mark(Machine("cpu", "1", "auto", "32-true", 2)) == single
    (plan.root / "checksums.sha256").unlink()
    unlisted = mark()
    assert mark() == unlisted
    (plan.root / "statistics").mkdir()
    (plan.root / "statistics" / "of_a_training.json").write_text("{}")
    assert mark() == unlisted
    changed = next((plan.root / "masks").iterdir())
    changed.write_bytes(changed.read_bytes() + b" ")
    assert mark() != unlisted


@pytest.mark.parametrize("model", ["mop", "segformer"])
def test_a_repaired_method_and_other_defaults_are_another_training(
    plan, tmp_path, monkeypatch, model
):
    (entry,) = choose([model], ["realtime"])

    def mark():
        return module._job(plan, entry, 0, load_layout(plan.root), tmp_path, CPU).folder.name

    old = mark()
    assert len(old) < 40
    assert mark() == old
    with monkeypatch.context() as patch:
        repaired = replace(METHODS[model], revision=METHODS[model].revision + 1)
        patch.setitem(METHODS, model, repaired)
        assert mark() != old
    assert mark() == old
    if model == "mop":
        changed = replace(MoPConfig(), variant="realtime", dropout=0.2, bands=4, momentum=0.999)
        monkeypatch.setattr(MoPConfig, "from_dict", lambda given: changed)
    else:
        monkeypatch.setattr(module, "checked_options", lambda name, given: {**given, "width": 3})
    assert mark() != old


def test_a_cost_that_cannot_be_measured_leaves_the_scores(plan, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("smokegeo"), "propagate", True)  # the CLI turns it off

    def broken(*network):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(module, "measure_apart", broken)
    (run,) = benchmark(replace(plan, speed_px=48), tmp_path / "out", CPU).runs
    assert run.cost == {}
    assert run.report["total"]["images"] == 1
    assert "could not be measured: RuntimeError, out of memory" in caplog.text


def test_minutes_become_steps_once(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "steps_within", lambda *args: 3)
    timed = Budget(minutes=1.0, batch=2, crop=32)
    one = Plan(plan.dataset, plan.root, plan.entries, timed, speed_px=0)
    (run,) = benchmark(one, tmp_path / "out", CPU).runs
    assert run.iterations == 3
    (steps,) = (tmp_path / "out" / "runs").glob("*/steps.json")
    assert json.loads(steps.read_text()) == 3


def test_costs_are_measured_for_the_first_seed_and_kept(plan, tmp_path, monkeypatch):
    from smokegeo.benchmark.measure import measure

    sizes = []

    def here(name, bands, options, size):
        sizes.append(size)
        return measure(name, bands, options, size, repeats=1)

    monkeypatch.setattr(module, "measure_apart", here)
    monkeypatch.setattr("smokegeo.benchmark.measure.keep_nothing", lambda: None)
    two = Plan(plan.dataset, plan.root, plan.entries, TINY, seeds=(0, 1), speed_px=48)
    for _ in range(2):
        results = benchmark(two, tmp_path / "out", CPU)
    assert sizes == [48]
    assert [bool(run.cost) for run in results.runs] == [True, False]
    assert (tmp_path / "out" / "benchmark.png").is_file()
    repaired = replace(METHODS["segformer"], revision=METHODS["segformer"].revision + 1)
    monkeypatch.setattr(module, "METHODS", {**METHODS, "segformer": repaired})
    benchmark(two, tmp_path / "out", CPU)
    assert sizes == [48, 48]  # another network


def test_two_benchmarks_do_not_share_a_folder(plan, tmp_path):
    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".lock"), pytest.raises(UsageError, match="at work there"):
        benchmark(plan, tmp_path / "out", CPU)


def test_what_was_trained_elsewhere_is_not_trained_again(plan, tmp_path, trained):
    first = benchmark(plan, tmp_path / "there", CPU)
    known = read_runs(tmp_path / "there" / "results.json")
    two = Plan(plan.dataset, plan.root, plan.entries, TINY, seeds=(0, 1), speed_px=0)
    both = benchmark(two, tmp_path / "here", CPU, known)
    assert [seed for _, seed, _ in trained] == [0, 1]
    assert both.runs[0] == first.runs[0]
    longer = Budget(iterations=3, batch=2, crop=32)
    other = Plan(plan.dataset, plan.root, plan.entries, longer, speed_px=0)
    benchmark(other, tmp_path / "here", CPU, known)
    assert len(trained) == 3  # another budget is another training


def test_costs_from_elsewhere_count_if_of_the_same_size_and_are_measured_if_not(
    plan, tmp_path, trained, monkeypatch
):
    def here(name, bands, options, size):
        return Cost(1, 1.0, size, 1, 2.0, None, "this machine")

    monkeypatch.setattr(module, "measure_apart", here)
    benchmark(plan, tmp_path / "there", CPU)
    known = {
        key: replace(run, cost={"size_px": 48, "cpu_ms": 1.0, "threads": 1})
        for key, run in read_runs(tmp_path / "there" / "results.json").items()
    }
    for size, took in ((48, 1.0), (64, 2.0), (0, None)):
        sized = Plan(plan.dataset, plan.root, plan.entries, TINY, speed_px=size)
        (run,) = benchmark(sized, tmp_path / f"here{size}", CPU, known).runs
        assert run.cost.get("cpu_ms") == took
    assert len(trained) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"runs": [{"name": "mop"}]}', '{"runs": 3}'])
def test_a_file_that_is_no_results_is_refused_in_one_line(text, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(InputError, match="that `smokegeo benchmark` wrote") as refusal:
        read_runs(path)
    assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match="cannot be read"):
        read_runs(tmp_path / "nowhere.json")
