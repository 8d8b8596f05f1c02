"""Which trainings make up a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smokegeo.benchmark.budget import Budget, with_steps
from smokegeo.errors import UsageError
from smokegeo.models.baselines.catalog import METHODS, VARIANTS
from smokegeo.models.build import ARCHITECTURES
from smokegeo.models.config import ABLATION
from smokegeo.train import TrainConfig

#: Stand for several trainings in a list of models.
ALL, ROWS = "all", "ablation"
#: MoP with all its parts is the last row of the ablation table.
WHOLE = "e"


@dataclass(frozen=True)
class Entry:
    """A line of a table: a method in one size, or a row of the ablation table."""

    model: str
    variant: str
    row: str | None = None

    @property
    def name(self) -> str:
        """A short name for folders and files."""
        part = "" if self.row in (None, WHOLE) else f"-{self.row}"
        return f"{self.model.replace('+', 'plus')}-{self.variant}{part}"

    def options(self, momentum: float) -> dict[str, Any]:
        """Return the options of its network."""
        chosen: dict[str, Any] = {"variant": self.variant}
        if self.row is not None:
            chosen |= ABLATION[self.row]
        if self.model == "protoseg" or (self.model == "mop" and chosen.get("psr", True)):
            chosen["momentum"] = momentum
        return chosen


@dataclass(frozen=True)
class Plan:
    """A comparison: which methods, on which data, under which budget."""

    dataset: str
    root: Path
    entries: tuple[Entry, ...]
    budget: Budget = field(default_factory=Budget)
    seeds: tuple[int, ...] = (0,)
    speed_px: int = 512

    def __post_init__(self) -> None:
        if not self.entries or not self.seeds:
            raise UsageError("nothing to compare: name a model and a seed at least.")

    def config(self, entry: Entry, seed: int) -> TrainConfig:
        """Return the training of an entry: all but the network is the same for all."""
        budget = self.budget
        config = TrainConfig(
            dataset=self.dataset,
            root=str(self.root),
            model=entry.model,
            options=entry.options(budget.momentum),
            batch_size=budget.batch,
            crop_px=budget.crop,
            lr=budget.lr,
            warmup=budget.warmup,
            seed=seed,
        )
        return with_steps(config, budget.iterations)


def choose(models: Sequence[str], variants: Sequence[str]) -> tuple[Entry, ...]:
    """Return the entries a list of models stands for, each once, in the order of the paper.

    `all` is what the paper's tables have; `ablation` the rows of its ablation table, in the
    accuracy variant as there, unless only realtime is wanted.
    """
    known = (*METHODS, ALL, ROWS)
    for name in models:
        if name not in known:
            other = " (it has no variants)" if name in ARCHITECTURES else ""
            raise UsageError(f"model {name!r}{other} is not one of {', '.join(known)}.")
    for variant in variants:
        if variant not in VARIANTS:
            raise UsageError(f"variant {variant!r} is not one of {', '.join(VARIANTS)}.")
    found = [
        Entry(name, variant, WHOLE if name == "mop" else None)
        for variant in variants
        for name, method in METHODS.items()
        if name in models or (ALL in models and variant in method.in_paper)
    ]
    if ALL in models or ROWS in models:
        variant = "accuracy" if "accuracy" in variants else "realtime"
        found += [Entry("mop", variant, row) for row in ABLATION]
    return tuple(_once(found))


def _once(entries: Iterable[Entry]) -> list[Entry]:
    return list(dict.fromkeys(entries))
