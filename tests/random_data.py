"""Random samples, the same for the same number."""

from __future__ import annotations

import numpy as np

from smokegeo.cubes import make_cube
from smokegeo.datasets.layout import Frame
from smokegeo.sensors import sensor


def random_frame(number: int, kind: str = "hss", size: tuple[int, int] = (24, 40)) -> Frame:
    """Return a frame of random pixels; the same for the same number."""
    rng = np.random.default_rng(number)
    bands = sensor(kind).bands
    values = rng.integers(0, 1024, (len(bands), *size)).astype(np.uint16)
    mask = (rng.random(size) < 0.2).astype(np.uint8)
    return Frame(
        f"frame_{number:03d}",
        make_cube(values, bands),
        mask,
        scene=f"scene_{number // 3}",
        scenarios=("cloud_interference", "early_stage"),
    )
