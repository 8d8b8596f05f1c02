"""Tiny real model files, random but for their cards; and stand-ins for the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from random_networks import random_network

from smokegeo.bands import BandSet, match_bands
from smokegeo.datasets.statistics import BandStatistics
from smokegeo.engine import Effort
from smokegeo.fitting import Fit
from smokegeo.modelfile import Card, save_model
from smokegeo.models.mop import MoP
from smokegeo.radiometry import Scaling
from smokegeo.scene.scene import Scene
from smokegeo.sensors import sensor
from smokegeo.stitch import FULL
from smokegeo.sweep import Plan, sweep
from smokegeo.tiles import Grid
from smokegeo.views import Recipe, make_recipe

#: One branch alone is a quarter of the size and three times as fast as the whole.
ONE_BRANCH = {"dim": 24, "width_rule": "equal", "fusion": "spectral"}
WHOLE = {"dim": 24, "width_rule": "equal"}
#: What the random scenes of `toy_scenes` hold, so that their pixels arrive as about -2 to 2.
MEAN, STD, LOW, HIGH = 3000.0, 1500.0, 0.0, 10_000.0


@cache
def _network(count: int, seed: int, whole: bool) -> MoP:
    return random_network(seed, bands=count, **(WHOLE if whole else ONE_BRANCH))


def toy_card(bands: BandSet | str = "satellite", **changes: Any) -> Card:
    """Return a card for a MoP of these bands; `mean`, `std`, `low`, `high` are for all or each."""
    if isinstance(bands, str):
        bands = sensor(bands).bands
    count = len(bands)

    def each(name: str, default: float) -> tuple[float, ...]:
        value = changes.pop(name, default)
        return tuple(value) if isinstance(value, Sequence) else (float(value),) * count

    numbers = (each("mean", MEAN), each("std", STD), each("low", LOW), each("high", HIGH))
    facts: dict[str, Any] = {
        "name": "toy",
        "architecture": "mop",
        "options": ONE_BRANCH,
        "bands": bands,
        "statistics": BandStatistics(bands.names, *numbers, 100),
        "tile_px": 64,
        "overlap_px": 16,
        "input": {"dtype": changes.pop("dtype", "uint16")},
        "training": {"config": {"band_dropout": 0.5}},
    }
    return Card(**{**facts, **changes})


def save_toy(
    path: Path,
    bands: BandSet | str = "satellite",
    seed: int = 1,
    *,
    whole: bool = False,
    **changes: Any,
) -> Path:
    """Write a tiny MoP for these bands, its spectral branch or the whole; return its path."""
    facts = {"name": path.stem, "options": WHOLE if whole else ONE_BRANCH, **changes}
    card = toy_card(bands, **facts)
    save_model(path, card, _network(len(card.bands), seed, whole).state_dict())
    return path


class StubEngine:
    """Stands in for an `Engine`: any function of normalised tiles, and a note of every call."""

    def __init__(
        self,
        function: Callable[[NDArray[np.float32]], NDArray[Any]],
        card: Card,
        *,
        batch: int = 1,
        threads: int = 1,
        device: str = "cpu",
    ) -> None:
        self.function, self.card, self.looks, self.reduction = function, card, card.looks, 1
        self.effort = Effort(device=device, batch=batch, threads=threads)
        self.batches: list[NDArray[np.float32]] = []
        self.torch_threads: set[int] = set()

    def __call__(self, tiles: NDArray[np.float32]) -> NDArray[np.uint16]:
        self.batches.append(tiles.copy())
        self.torch_threads.add(torch.get_num_threads())
        return np.asarray(self.function(tiles)).astype(np.uint16)


def constant(value: int) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    """Return a network that says the same everywhere."""
    return lambda tiles: np.full((len(tiles), *tiles.shape[2:]), value)


def pixelwise(tiles: NDArray[np.float32]) -> NDArray[Any]:
    """Say something that depends on the pixel alone."""
    return np.rint(tiles.sum(axis=1) * 997) % (FULL + 1)


def stub_plan(scene: Scene, tile: int = 32, overlap: int = 8, bands: BandSet | None = None) -> Plan:
    """Return a plan whose normalising changes nothing, for a card of the scene's bands."""
    card = toy_card(bands or scene.bands, mean=0.0, std=1.0)
    fit = Fit(Path("none"), card, match_bands(scene.bands, card.bands))
    count = len(card.bands)
    scaling = Scaling((1.0,) * count, (0.0,) * count, "")
    grid = Grid(scene.width, scene.height, tile, overlap)
    return Plan(scene, fit, recipe_for(fit, scaling), grid)


def recipe_for(fit: Fit, scaling: Scaling) -> Recipe:
    """Return how a scene's numbers reach a network that sees them as measured."""
    unknown = np.full(len(fit.card.bands), np.nan)
    has = fit.matching.available
    return make_recipe(fit.card.views, has, scaling.normaliser(fit.card), unknown, unknown)


def swept(plan: Plan, engine: Any, *rows: int) -> NDArray[np.uint8]:
    """Return the stored map of a scene, swept in portions that end at these rows of tiles."""
    out = np.full((plan.grid.height, plan.grid.width), 77, np.uint8)
    edges = [0, *rows, len(plan.grid.rows)]
    for first, last in pairwise(edges):
        for row, start, lines in sweep(plan, engine, first, last):
            assert first <= row < last
            out[start : start + len(lines)] = lines
    return out
