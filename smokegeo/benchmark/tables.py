"""The paper's tables, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from smokegeo.benchmark.notes import heading, lettered, notes
from smokegeo.benchmark.paper import ABLATION_TOTALS, TOTALS, Pair
from smokegeo.benchmark.plan import Entry
from smokegeo.benchmark.results import Results, Run, mean_and_range, measuring_machine
from smokegeo.metrics import SCALES
from smokegeo.models.baselines.catalog import METHODS, VARIANTS

TITLES = {"realtime": "Real-time", "accuracy": "Accuracy-oriented"}
COLUMNS = (*SCALES, "total")
#: Row of the ablation table -> whether it has band split, PSR, F-Router, P-Router.
PARTS = {"bl": "    ", "a": "x   ", "b": "xx  ", "c": "x x ", "d": "xxx ", "e": "xxxx"}
_COST = {
    "GFLOPs": ("gflops", "{:.2f}"),
    "CPU ms": ("cpu_ms", "{:.0f}"),
    "CPU MB": ("cpu_mb", "{:.0f}"),
    "GPU ms": ("gpu_ms", "{:.1f}"),
    "GPU MB": ("gpu_mb", "{:.0f}"),
}


def markdown(results: Results) -> str:
    """Return all tables, with what was done above them and what it does not say below."""
    said = "\n".join(f"- {note}" for note in notes(results))
    parts = [heading(results), tables(results), "## What not to conclude", said]
    return "\n\n".join(parts) + "\n"


def tables(results: Results, level: int = 2) -> str:
    """Return all tables under headings of a level."""
    parts, mark = [], "#" * level
    for variant in VARIANTS:
        if entries := results.entries(variant):
            parts.append(f"{mark} {TITLES[variant]}")
            parts += [_scores(results, entries), _costs(results, entries)]
    if rows := results.rows():
        parts.append(f"{mark} Ablation ({TITLES[rows[0].variant].lower()})")
        parts.append(_ablation(results, rows))
    return "\n\n".join(parts)


def _scores(results: Results, entries: list[Entry]) -> str:
    """Return small, medium, large and total, F1 and mIoU each, and the paper's total."""
    images = {name: row["images"] for name, row in _columns(results.of(entries[0])[0]).items()}
    head = ["method", "kind", "encoder"]
    head += [f"{name} ({images[name]}) {score}" for name in COLUMNS for score in ("F1", "mIoU")]
    totals = TOTALS.get((results.plan.dataset, entries[0].variant), {})
    if totals:
        head.append("paper's total F1 / mIoU")
    lines = []
    for entry in entries:
        method = METHODS[entry.model]
        line = [method.title, method.family, method.encoders[VARIANTS.index(entry.variant)]]
        line += _cells(results.of(entry))
        if totals:
            line.append(_pair(totals.get(entry.model)))
        lines.append(line)
    return _table(head, lines, 3)


def _costs(results: Results, entries: list[Entry]) -> str:
    """Return parameters, training, and what one image costs; on which machine if on several."""
    head = ["method", "M parameters", "iterations", "minutes of training", *_COST]
    letters = {name: letter for letter, name in lettered(results.measured_on()).items()}
    if len(letters) > 1:
        head.append("measured on")
    lines = []
    for entry in entries:
        runs, cost = results.of(entry), results.cost(entry)
        line = [METHODS[entry.model].title, f"{runs[0].parameters / 1e6:.2f}"]
        line += [_mean([run.iterations for run in runs], "{:.0f}")]
        line += [_mean([run.minutes for run in runs], "{:.1f}")]
        line += [_number(cost.get(key), form) for key, form in _COST.values()]
        if len(letters) > 1:
            line.append(letters[measuring_machine(cost)] if cost else "-")
        lines.append(line)
    return _table(head, lines, 1)


def _ablation(results: Results, rows: list[Entry]) -> str:
    # The paper's rows are of the larger network.
    papers = rows[0].variant == "accuracy"
    totals = ABLATION_TOTALS.get(results.plan.dataset, {}) if papers else {}
    head = ["row", "BS", "PSR", "F-Router", "P-Router", "F1", "mIoU", "M parameters"]
    lines = []
    for entry in rows:
        runs = results.of(entry)
        line = [entry.row or "", *PARTS[entry.row or "e"], *_cells(runs)[-2:]]
        line.append(f"{runs[0].parameters / 1e6:.2f}")
        lines.append([*line, _pair(totals.get(entry.row or ""))] if totals else line)
    return _table([*head, "paper's F1 / mIoU"] if totals else head, lines, 5)


def csv_text(results: Results) -> str:
    """Return one line per training, with every number the tables are made of."""
    scores = ("images", "f1_image", "iou_image", "f1_global", "iou_global")
    costs = ["gflops", "size_px", "threads", "cpu_ms", "cpu_mb", "gpu", "gpu_ms", "gpu_mb"]
    costs += ["measured_on"]
    facts = ["name", "model", "variant", "row", "seed", "iterations", "minutes", "parameters"]
    facts += ["threshold", "date", "machine"]
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow([*facts, *(f"{c}_{s}" for c in COLUMNS for s in scores), *costs])
    for run in results.runs:
        columns = _columns(run)
        line = [getattr(run, name) for name in facts]
        line += [columns[c][s] for c in COLUMNS for s in scores]
        table.writerow([*line, *(run.cost.get(name) for name in costs)])
    return buffer.getvalue()


def _columns(run: Run) -> Mapping[str, Any]:
    return {**run.report["scales"], "total": run.report["total"]}


def _cells(runs: list[Run]) -> list[str]:
    """Return F1 and mIoU of each column: the mean over seeds, and their range if several."""
    cells = []
    for name in COLUMNS:
        for key in ("f1_image", "iou_image"):
            found = mean_and_range([_columns(run)[name][key] for run in runs])
            if found is None:
                cells.append("-")
                continue
            mean, low, high = (f"{100 * value:.2f}" for value in found)
            cells.append(mean if len(runs) == 1 else f"{mean} ({low} to {high})")
    return cells


def _pair(total: Pair | None) -> str:
    return "-" if total is None else f"{total[0]:.2f} / {total[1]:.2f}"


def _mean(values: list[float], form: str) -> str:
    return form.format(sum(values) / len(values))


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _table(head: list[str], lines: Iterable[list[str]], words: int) -> str:
    """Return a Markdown table whose first columns are words and the rest numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))
