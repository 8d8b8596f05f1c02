"""Take raw frames of a snapshot camera apart into bands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet
from smokegeo.prepare.faults import SampleFault
from smokegeo.sensors import Mosaic, Sensor


def split_mosaic(raw: NDArray[Any], camera: Sensor) -> tuple[NDArray[Any], BandSet]:
    """Turn a raw (y, x) frame into (band, y / n, x / n), bands sorted by wavelength.

    Every band keeps the pixels measured under its filter; nothing is interpolated.
    """
    mosaic = _mosaic(camera)
    blocks = _blocks(raw, mosaic)
    height, rows, width, columns = blocks.shape
    values = np.empty((rows * columns, height, width), raw.dtype)
    for i, row in enumerate(mosaic.rank):
        for j, band in enumerate(row):
            values[band] = blocks[:, i, :, j]
    order = sorted(range(len(camera.bands)), key=lambda k: camera.bands[k].wavelength_nm or 0.0)
    bands = BandSet(tuple(camera.bands[k] for k in order), camera.bands.sensor)
    return values[order], bands


def whole_blocks(valid: NDArray[np.bool_], camera: Sensor) -> NDArray[np.bool_]:
    """Return (y / n, x / n), True where all raw pixels of a block have data."""
    return np.asarray(_blocks(valid, _mosaic(camera)).all(axis=(1, 3)))


def _mosaic(camera: Sensor) -> Mosaic:
    if camera.mosaic is None:
        raise SampleFault("no mosaic", f"{camera.name} has none")
    return camera.mosaic


def _blocks(raw: NDArray[Any], mosaic: Mosaic) -> NDArray[Any]:
    """Return a raw frame as (y, row in the block, x, column in the block), whole blocks only."""
    rows, columns = len(mosaic.rank), len(mosaic.rank[0])
    inner = raw[mosaic.skip_rows :, mosaic.skip_columns :]
    height, width = inner.shape[0] // rows, inner.shape[1] // columns
    if height < 1 or width < 1:
        raise SampleFault(
            "wrong band count", f"one band, and {raw.shape[1]}x{raw.shape[0]} is no mosaic"
        )
    return inner[: height * rows, : width * columns].reshape(height, rows, width, columns)
