"""Where simulated satellite frames and scenes lie on the Earth: cells of a grid in UTM zones."""

from __future__ import annotations

import numpy as np
from rasterio.crs import CRS
from rasterio.transform import Affine

from smokegeo.labels import Place

_PIXEL_SIZES_M = (10.0, 20.0, 30.0)
_ZONE_WIDTH_M = 500_000.0
_ZONE_HEIGHT_M = 6_000_000.0
_ZONE_LEFT_M = 250_000.0
_ZONE_BOTTOM_M = 1_000_000.0


def dataset_pixel_m(seed: int) -> float:
    """Return the pixel size of a dataset: one for all frames, so that none is resampled."""
    return _PIXEL_SIZES_M[int(_stream(seed).integers(len(_PIXEL_SIZES_M)))]


def frame_place(index: int, seed: int, size: tuple[int, int], pixel_m: float) -> Place:
    """Return the place of frame number `index`; no two frames of one dataset touch.

    Frames fill one northern UTM zone from its top left, three frame sides apart, then the next.
    """
    pitch = 3 * max(size) * pixel_m
    columns = max(1, int(_ZONE_WIDTH_M // pitch))
    rows = max(1, int(_ZONE_HEIGHT_M // pitch))
    zones, cell = divmod(index, columns * rows)
    row, column = divmod(cell, columns)
    first = int(_stream(seed).integers(1, 61, 2)[1])
    zone = (first - 1 + zones) % 60 + 1
    left = _ZONE_LEFT_M + column * pitch
    top = _ZONE_BOTTOM_M + _ZONE_HEIGHT_M - row * pitch
    crs = CRS.from_epsg(32600 + zone)
    return Place(crs, Affine(pixel_m, 0.0, left, 0.0, -pixel_m, top))


def _stream(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(9,)))
