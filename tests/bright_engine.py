"""A stand-in for the network: smoke is where the model's first band is brighter than its mean.

Predict then gives polygons in known places, at once. It takes the place of `smokegeo.engine.Engine`
in `smokegeo.pipeline`; the model file is used for its card alone.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from smokegeo.datasets.statistics import BandStatistics
from smokegeo.engine import Effort
from smokegeo.fitting import Fit
from smokegeo.looks import ONCE
from smokegeo.modelfile import Card, save_model
from smokegeo.sensors import sensor
from smokegeo.stitch import FULL

NAMES = ("red", "green", "blue", "nir")
DARK, MEAN, BRIGHT = 900, 4500, 8000


class BrightEngine:
    """Same interface as the real engine."""

    seconds_per_tile: ClassVar[float] = 0.0
    started: ClassVar[Path | None] = None  # made when the second tile begins: work is under way

    def __init__(
        self, fit: Fit, effort: Effort, available: object = None, reduction: int = 1
    ) -> None:
        self.effort, self.card, self.looks, self.reduction = effort, fit.card, ONCE, reduction
        self.calls = 0

    def __call__(self, tiles: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return smoke (B, H, W): all of it or none."""
        assert np.isfinite(tiles).all(), "a network must never see what is not a number"
        self.calls += 1
        if self.started is not None and self.calls > 3:  # two are the estimate's
            self.started.touch()
        time.sleep(self.seconds_per_tile)
        return np.where(tiles[:, 0] > 0, FULL, 0).astype(np.uint16)


def bright_card(**changes) -> Card:
    """Return the card of a model for red, green, blue and near infrared in counts up to 10000."""
    facts = {
        "name": "bright",
        "architecture": "mop",
        "options": {"dim": 40, "width_rule": "equal"},
        "bands": sensor("naip").bands,
        "statistics": BandStatistics(
            sensor("naip").bands.names, (MEAN,) * 4, (1000.0,) * 4, (0.0,) * 4, (10_000.0,) * 4, 100
        ),
        "tile_px": 64,
        "overlap_px": 16,
        "input": {"dtype": "uint16", "minimum": 0, "maximum": 10_000},
        "training": {"config": {"band_dropout": 0.5}},
    }
    return Card(**{**facts, **changes})


def save_bright_model(path: Path) -> Path:
    """Write a real model file, random weights and all."""
    from random_networks import random_network

    save_model(path, bright_card(), random_network(bands=4).state_dict())
    return path
