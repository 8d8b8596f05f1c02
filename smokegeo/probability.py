"""The probability raster: how likely each pixel of a scene is smoke, one byte a pixel, on disk.

A stored value of 0 to 250 is a probability in steps of 0.004; 255 is "not analysed", which is not
the same as "no smoke". What a user gets is a Cloud-Optimised GeoTIFF.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import NotGeoreferencedWarning
from rasterio.io import DatasetReader, DatasetWriter
from rasterio.shutil import copy
from rasterio.transform import Affine
from rasterio.windows import Window

from smokegeo.blockcache import block_cache
from smokegeo.errors import InputError, UsageError, deepest_cause
from smokegeo.labels import Place
from smokegeo.scene.rasters import open_raster

STEPS = 250
NODATA = 255
_BLOCK_PX = 512
#: For writing: a row of blocks of a wide map, and its overviews.
_WRITE_CACHE_BYTES = 64_000_000


def quantise(probability: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Return probabilities 0..1 as stored values; what is not a number becomes NODATA."""
    values = np.rint(np.clip(probability, 0, 1) * STEPS)
    return np.where(np.isfinite(values), values, NODATA).astype(np.uint8)


def first_smoke_value(threshold: float) -> int:
    """Return the smallest stored value that counts as smoke at this threshold."""
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold:g} is not above 0 and up to 1.")
    # The nearest step if the threshold is one in all but the last bits of a float32, else the
    # next one up.
    return max(1, math.ceil(float(threshold) * STEPS - 1e-4))


class Rows(Protocol):
    """Anything that holds a map of stored values and gives it out by lines."""

    @property
    def width(self) -> int:
        """Columns."""

    @property
    def height(self) -> int:
        """Lines."""

    def rows(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return lines start..stop-1."""


@dataclass(frozen=True)
class Part:
    """A part of a map, which may be larger."""

    raster: Rows
    column: int
    row: int
    width: int
    height: int

    def rows(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return lines start..stop-1 of the part."""
        lines = self.raster.rows(self.row + start, self.row + stop)
        return lines[:, self.column : self.column + self.width]


def analysed_share(raster: Rows) -> float:
    """Return the share of a map's pixels that were analysed."""
    count = 0
    for start in range(0, raster.height, _BLOCK_PX):
        lines = raster.rows(start, min(raster.height, start + _BLOCK_PX))
        count += int((lines != NODATA).sum())
    return count / (raster.width * raster.height)


@contextmanager
def create(
    path: Path, width: int, height: int, *, crs: CRS | None, transform: Affine | None
) -> Iterator[DatasetWriter]:
    """Yield a plain raster to write stored values into, all NODATA where nothing is written."""
    options: dict[str, Any] = {"tiled": True, "blockxsize": _BLOCK_PX, "blockysize": _BLOCK_PX}
    options |= {"bigtiff": "IF_SAFER", "sparse_ok": True}
    if crs is not None:
        options["crs"] = crs
    if transform is not None:
        options["transform"] = transform
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=width,
        height=height,
        count=1,
        dtype="uint8",
        nodata=NODATA,
        **options,
    ) as dst:
        dst.scales = (1 / STEPS,)
        dst.set_band_description(1, "smoke probability")
        yield dst


def finish(raster: Rows, target: Path, place: Place, tags: Mapping[str, str]) -> None:
    """Write a finished map as a Cloud-Optimised GeoTIFF; not atomic by itself."""
    plain = target.with_name(f"{target.stem}.plain.tif")
    located = {"crs": place.crs, "transform": None if place.crs is None else place.transform}
    try:
        with block_cache(_WRITE_CACHE_BYTES), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            with create(plain, raster.width, raster.height, **located) as dst:
                dst.update_tags(**tags)
                for start in range(0, raster.height, _BLOCK_PX):
                    stop = min(raster.height, start + _BLOCK_PX)
                    window = Window(0, start, raster.width, stop - start)
                    dst.write(raster.rows(start, stop), 1, window=window)
            copy(
                plain,
                target,
                driver="COG",
                compress="DEFLATE",
                level=6,
                bigtiff="IF_SAFER",
                overview_resampling="average",
                num_threads=1,  # the same bytes on every machine
            )
    finally:
        plain.unlink(missing_ok=True)


@dataclass(frozen=True)
class ProbabilityRaster:
    """An open probability raster, ours or one of floats 0..1, read as stored values by rows."""

    src: DatasetReader
    factor: float | None
    offset: float = 0.0

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.src.width)

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.src.height)

    def rows(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the stored values of rows start..stop-1."""
        window = Window(0, start, self.width, stop - start)
        try:
            values = self.src.read(1, window=window)
            if self.factor is None:
                return np.asarray(values)
            valid = self.src.read_masks(1, window=window) != 0
        except rasterio.errors.RasterioError as error:
            raise InputError(
                f"{self.src.name} is damaged in rows {start} to {stop} ({deepest_cause(error)})."
            ) from error
        scaled = values.astype(np.float32) * self.factor + self.offset
        probability = np.where(valid, scaled, np.nan)
        low, high = np.nanmin(probability, initial=0), np.nanmax(probability, initial=0)
        if high > 1.001 or low < -0.001:
            raise InputError(
                f"{self.src.name} holds {high if high > 1 else low:g}, which is no probability. "
                "Give a raster with values from 0 to 1, or what `predict --prob` wrote."
            )
        return quantise(probability)


@contextmanager
def open_probability(path: Path) -> Iterator[ProbabilityRaster]:
    """Open a raster of probabilities: stored values of ours, scaled integers, or floats 0..1."""
    src = open_raster(path)
    # One row of blocks is all that is read twice.
    row = src.block_shapes[0][0] * src.width * np.dtype(src.dtypes[0]).itemsize
    with src, block_cache(16_000_000 + 2 * row):
        if src.count != 1:
            raise InputError(f"{path} has {src.count} bands; a probability raster has one.")
        kind = np.dtype(src.dtypes[0]).kind
        if kind not in "uif":
            raise InputError(f"{path} holds {src.dtypes[0]} values, which are no probabilities.")
        ours = src.dtypes[0] == "uint8" and src.nodata == NODATA
        if ours and math.isclose(src.scales[0], 1 / STEPS, rel_tol=1e-9):
            yield ProbabilityRaster(src, None)
            return
        if kind != "f" and src.scales[0] == 1:
            raise InputError(
                f"{path} holds whole numbers without a scale tag, so they are no probabilities. "
                "Give the raster that `smokegeo predict --prob` wrote."
            )
        yield ProbabilityRaster(src, src.scales[0], src.offsets[0])
