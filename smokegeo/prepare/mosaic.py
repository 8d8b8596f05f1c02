"""Take raw frames of a snapshot camera apart into bands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet
from smokegeo.prepare.faults import SampleFault
from smokegeo.sensors import Sensor


def split_mosaic(raw: NDArray[Any], camera: Sensor) -> tuple[NDArray[Any], BandSet]:
    """Turn a raw (y, x) frame into (band, y / n, x / n), bands sorted by wavelength.

    Every band keeps the pixels measured under its filter; nothing is interpolated.
    """
    mosaic = camera.mosaic
    if mosaic is None:
        raise SampleFault("no mosaic", f"{camera.name} has none")
    rows, columns = len(mosaic.rank), len(mosaic.rank[0])
    inner = raw[mosaic.skip_rows :, mosaic.skip_columns :]
    height, width = inner.shape[0] // rows, inner.shape[1] // columns
    if height < 1 or width < 1:
        raise SampleFault(
            "wrong band count", f"one band, and {raw.shape[1]}x{raw.shape[0]} is no mosaic"
        )
    inner = inner[: height * rows, : width * columns]
    values = np.empty((rows * columns, height, width), raw.dtype)
    for i, row in enumerate(mosaic.rank):
        for j, band in enumerate(row):
            values[band] = inner[i::rows, j::columns]
    order = sorted(range(len(camera.bands)), key=lambda k: camera.bands[k].wavelength_nm or 0.0)
    bands = BandSet(tuple(camera.bands[k] for k in order), camera.bands.sensor)
    return values[order], bands
