"""Keep the results of the comparison: add trainings to docs/benchmark, fill in docs/benchmark.md.

    python scripts/benchmark_docs.py [RESULTS.json ...]

Each RESULTS.json is one that `smokegeo benchmark` wrote. Its trainings go to the kept file of its
dataset and length, docs/benchmark/DATASET-ITERATIONS.json, whose data and budget must be the same;
a training that is there already takes new costs only, and one of older code makes room. Then the
tables in docs/benchmark.md and the plots beside the kept files are made anew of all that is kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from smokegeo.benchmark.budget import Budget
from smokegeo.benchmark.plan import WHOLE, Entry, Plan
from smokegeo.benchmark.plot import draw
from smokegeo.benchmark.results import Results, Run
from smokegeo.benchmark.tables import tables
from smokegeo.files import atomic_file
from smokegeo.models.baselines.catalog import METHODS, VARIANTS
from smokegeo.models.config import ABLATION

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT, KEPT = ROOT / "docs" / "benchmark.md", ROOT / "docs" / "benchmark"
SPEED_PX = 512
_SAME = ("dataset", "simulated", "frames", "budget")


def main(words: list[str]) -> int:
    """Add what is named, then fill in the document."""
    for word in words:
        new = json.loads(Path(word).read_text("utf-8"))
        path = KEPT / f"{new['dataset']}-{new['budget']['iterations']}.json"
        old = json.loads(path.read_text("utf-8")) if path.is_file() else {**new, "runs": []}
        write(path, json.dumps(joined(old, new), indent=1) + "\n")
    write(DOCUMENT, filled(DOCUMENT.read_text("utf-8")))
    for path in sorted(KEPT.glob("*.json")):
        plot(path)
    return 0


def joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return kept results with new ones; a cost that was measured replaces an older one."""
    for name in _SAME:
        if old[name] != new[name]:
            raise SystemExit(f"{name} is not the same: {old[name]} and {new[name]}")
    runs = {(run["name"], run["seed"]): run for run in old["runs"]}
    for run in new["runs"]:
        same = runs.get((run["name"], run["seed"]), run)
        kept = same if same["key"] == run["key"] else run
        runs[run["name"], run["seed"]] = {**kept, "cost": run["cost"] or kept["cost"]}
    seeds = sorted({run["seed"] for run in runs.values()})
    ordered = sorted(runs.values(), key=lambda run: (run["seed"], *place(run)))
    return {**{name: old[name] for name in _SAME}, "seeds": seeds, "runs": ordered}


def place(run: dict[str, Any]) -> tuple[int, ...]:
    """Return where a training stands in the tables."""
    row = list(ABLATION).index(run["row"] or WHOLE)
    return VARIANTS.index(run["variant"]), list(METHODS).index(run["model"]), row


def results(facts: dict[str, Any]) -> Results:
    """Return kept results as `smokegeo benchmark` has them."""
    runs = [Run(**run) for run in sorted(facts["runs"], key=place)]
    entries = dict.fromkeys(Entry(run.model, run.variant, run.row) for run in runs)
    budget, seeds = Budget(**facts["budget"]), tuple(facts["seeds"])
    plan = Plan(facts["dataset"], Path(), tuple(entries), budget, seeds, SPEED_PX)
    return Results(plan, facts["frames"], facts["simulated"], runs, {})


def filled(document: str) -> str:
    """Return the document with the tables of each kept file between its markers."""
    for path in sorted(KEPT.glob("*.json")):
        start, end = f"<!-- tables of {path.name} -->", f"<!-- end of {path.name} -->"
        before, rest = document.split(start)
        _, after = rest.split(end)
        made = tables(results(json.loads(path.read_text("utf-8"))), level=4)
        document = f"{before}{start}\n\n{made}\n\n{end}{after}"
    return document


def plot(path: Path) -> None:
    """Draw accuracy against latency beside a kept file, if latencies were measured."""
    figure = draw(results(json.loads(path.read_text("utf-8"))))
    if figure is not None:
        with atomic_file(path.with_suffix(".png")) as part:
            figure.savefig(part, format="png", dpi=110)


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with atomic_file(path) as part:
        part.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
