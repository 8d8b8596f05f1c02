"""What a comparison found, as values and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from smokegeo.benchmark.plan import WHOLE, Entry, Plan
from smokegeo.errors import InputError
from smokegeo.files import atomic_file
from smokegeo.models.baselines.catalog import VARIANTS
from smokegeo.models.config import ABLATION


@dataclass(frozen=True)
class Run:
    """One training and its scores; `report` is that of `smokegeo.metrics`, as plain values.

    `key` is the same for trainings on the same data with the same settings, wherever they ran.
    """

    key: str
    name: str
    model: str
    variant: str
    row: str | None
    seed: int
    iterations: int
    minutes: float
    parameters: int
    threshold: float
    date: str
    machine: str
    report: Mapping[str, Any]
    cost: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """All of a comparison so far; `left_out` says why a method has no result with a seed."""

    plan: Plan
    frames: Mapping[str, int]
    simulated: bool
    runs: list[Run]
    left_out: dict[tuple[str, int], str]

    def of(self, entry: Entry) -> list[Run]:
        """Return the runs of an entry, one per seed."""
        return [run for run in self.runs if run.name == entry.name]

    def cost(self, entry: Entry) -> Mapping[str, Any]:
        """Return what an image costs with an entry; empty if it was not measured."""
        return next((run.cost for run in self.of(entry) if run.cost), {})

    def measured_on(self) -> list[str]:
        """Return the machines the costs in the tables were measured on, each once."""
        shown = [self.cost(entry) for v in VARIANTS for entry in self.entries(v)]
        return list(dict.fromkeys(measuring_machine(cost) for cost in shown if cost))

    def entries(self, variant: str) -> list[Entry]:
        """Return the methods of one of the two main tables that have a result."""
        return [
            entry
            for entry in self.plan.entries
            if entry.variant == variant and entry.row in (None, WHOLE) and self.of(entry)
        ]

    def rows(self) -> list[Entry]:
        """Return the rows of the ablation table that have a result, in its order."""
        rows = [e for e in self.plan.entries if e.row is not None]
        # MoP alone is the last row too, but no table.
        variants = {e.variant for e in rows if e.row != WHOLE}
        found = [e for e in rows if e.variant in variants and self.of(e)]
        return sorted(found, key=lambda e: list(ABLATION).index(e.row or WHOLE))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without the path of the data: it is of one machine only."""
        return {
            "dataset": self.plan.dataset,
            "simulated": self.simulated,
            "frames": dict(self.frames),
            "budget": asdict(self.plan.budget),
            "seeds": list(self.plan.seeds),
            "runs": [asdict(run) for run in self.runs],
            "left_out": [
                {"name": name, "seed": seed, "why": why}
                for (name, seed), why in self.left_out.items()
            ],
        }


def read_runs(path: Path) -> dict[str, Run]:
    """Return the trainings in a results.json by their keys."""
    try:
        found = [Run(**run) for run in json.loads(path.read_text("utf-8"))["runs"]]
        return {run.key: run for run in found if run.report["total"] is not None}
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path}: is not the results.json of this version's benchmark. "
            "Name a file that `smokegeo benchmark` wrote."
        ) from error


def measuring_machine(cost: Mapping[str, Any]) -> str:
    """Return the machine a cost was measured on."""
    return str(cost.get("measured_on", "a machine without a name"))


def mean_and_range(values: list[float | None]) -> tuple[float, float, float] | None:
    """Return mean, least and largest of the numbers that are known; None if none is."""
    known = [value for value in values if value is not None]
    return (sum(known) / len(known), min(known), max(known)) if known else None


def write_results(results: Results, out: Path) -> None:
    """Write results.json, benchmark.md, benchmark.csv and, with latencies, benchmark.png."""
    from smokegeo.benchmark.plot import draw
    from smokegeo.benchmark.tables import csv_text, markdown

    texts = {
        "results.json": json.dumps(results.to_dict(), indent=2) + "\n",
        "benchmark.md": markdown(results),
        "benchmark.csv": csv_text(results),
    }
    for name, text in texts.items():
        with atomic_file(out / name) as part:
            part.write_text(text, "utf-8")
    if (figure := draw(results)) is not None:
        with atomic_file(out / "benchmark.png") as part:
            figure.savefig(part, dpi=120)
