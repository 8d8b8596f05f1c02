"""A small picture of a scene, for the map: every n-th line and column, stretched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rasterio.transform import Affine

from smokegeo.composite import composite_indexes, has_true_colour, stretch
from smokegeo.scene.layers import Box
from smokegeo.scene.scene import Scene
from smokegeo.writing.mappicture import Quicklook

_SIDE_PX = 1200
#: A strip keeps this many pixels across, if it has them, however long it is.
_LEAST_PX = 64
#: Beside clouds, all else would be nearly black; this lightens it and keeps smoke from being white.
_GAMMA = 0.6
#: Colours of 8 bits whose bright parts reach this are a picture; darker ones are measurements.
_BRIGHT = 128


def quicklook(scene: Scene, side_px: int = _SIDE_PX) -> Quicklook:
    """Return the picture of a scene.

    Lines are read one by one at full resolution: overviews are what a stranger's file could lie in.
    """
    step = max(1, -(-max(scene.width, scene.height) // side_px))
    across, down = (min(step, max(1, side // _LEAST_PX)) for side in (scene.width, scene.height))
    chosen = composite_indexes(scene.bands)
    columns, rows = range(across // 2, scene.width, across), range(down // 2, scene.height, down)
    values = np.zeros((3, len(rows), len(columns)), np.float32)
    valid = np.zeros((len(rows), len(columns)), bool)
    with scene.open() as reader:
        for i, row in enumerate(rows):
            line, usable = reader.read(Box(0, row, scene.width, 1), chosen)
            values[:, i], valid[i] = line[:, 0, columns], usable[0, columns]
    values[:, ~valid] = np.nan
    if _is_picture(scene, chosen, values):
        shown = np.nan_to_num(np.moveaxis(values, 0, -1))
    else:
        shown = 255 * stretch(values, together=has_true_colour(scene.bands)) ** _GAMMA
    rgba = np.zeros((*valid.shape, 4), np.uint8)
    rgba[..., :3] = np.rint(shown)
    rgba[..., 3] = 255 * valid
    return Quicklook(rgba, scene.transform @ Affine.scale(across, down), scene.crs)


def _is_picture(scene: Scene, chosen: Sequence[int], values: NDArray[np.float32]) -> bool:
    """Tell whether somebody made these colours to be looked at, so that they need no stretch."""
    if scene.dtype_of(chosen) != "uint8" or not has_true_colour(scene.bands):
        return False
    known = values[np.isfinite(values)]
    return bool(known.size) and float(np.percentile(known, 98)) >= _BRIGHT
