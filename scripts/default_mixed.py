"""Plumes of real smoke: a scene on a clear day into which its own smoke of another day is drawn.

Rondonia lies all under smoke on one date and under none on another. Where a pixel is mixed of the
two, in the shape of a simulated plume, smoke has an edge and its light is the real one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from default_judges import Picture
from default_wildfire import drifting_smoke

from smokegeo.sensors import sensor
from smokegeo.simulate.stage import build_stage

_BANDS = sensor("satellite").bands
#: Where this share of the smoke or more is drawn in, it is labelled; below that share it is not.
_LABELLED, _UNLABELLED = 0.5, 0.1
_SEED = 78


def mixed_plumes(clear: Picture, smoky: Picture, count: int = 24, side: int = 400) -> list[Picture]:
    """Return parts of a scene with plumes of its own smoke, the same ones every time."""
    made = []
    height, width = clear.valid.shape
    for number in range(count):
        rng = np.random.default_rng([_SEED, number])
        top, left = int(rng.integers(height - side + 1)), int(rng.integers(width - side + 1))
        part = np.s_[top : top + side, left : left + side]
        bands = (slice(None), *part)
        stage = build_stage("satellite", (side, side), _BANDS, "complex_background", rng)
        _, layer = drifting_smoke(stage, rng)
        share = layer.tau / max(1e-6, float(np.quantile(layer.tau, 0.97)))
        share = np.clip(share, 0, 1).astype(np.float32)
        without, under = (p.values[bands].astype(np.float32) for p in (clear, smoky))
        labels = np.full((side, side), 255, np.uint8)
        labels[share >= _LABELLED], labels[share < _UNLABELLED] = 1, 0
        values = np.rint(without + share * (under - without)).astype(np.uint16)
        valid = clear.valid[part] & smoky.valid[part]
        mixed = replace(clear, name=f"mixed-{number}", values=values, valid=valid)
        made.append(replace(mixed, labels=np.where(valid, labels, 255).astype(np.uint8)))
    return made


def as_8_bits(picture: Picture) -> Picture:
    """Return reflectances as a viewer shows them: 2 to 98 % of each band on 8 bits."""
    values = picture.values.astype(np.float32)
    low, high = np.percentile(values[:, picture.valid], (2, 98), axis=1)[..., None, None]
    shown = np.clip((values - low) / np.maximum(high - low, 1), 0, 1)
    return replace(
        picture,
        name=f"{picture.name}, 8 bits",  # judges remember pictures by their names
        values=np.rint(255 * shown).astype(np.uint8),
        measured=False,
    )
