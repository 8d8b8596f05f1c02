"""Layers: files (or arrays) of one grid each, read window by window as physical values.

A layer is a description that can be sent to another process; `open` gives a reader, which
threads may share. Reading returns float32 values and, apart from them, which pixels are usable.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rasterio.enums import MaskFlags
from rasterio.io import DatasetReader
from rasterio.windows import Window

from smokegeo.errors import InputError
from smokegeo.scene.rasters import READ_ERRORS, damaged, open_raster

Values = NDArray[np.float32]
Valid = NDArray[np.bool_]
log = logging.getLogger(__name__)

#: What GDAL counts for a block in its cache besides the pixels.
_BLOCK_EXTRA_BYTES = 256


@dataclass(frozen=True)
class Box:
    """A window in whole pixels."""

    column: int
    row: int
    width: int
    height: int


class LayerReader(Protocol):
    """An open layer, for any number of threads."""

    def read(self, box: Box, positions: Sequence[int]) -> tuple[Values, Valid]:
        """Return values (n, h, w) of the layer's bands at `positions`, and which are usable."""

    def block_bytes(self, height: int, width: int, bands: int) -> int:
        """Return the size of the decoded blocks that a window of so many bands touches at most."""


class Layer(Protocol):
    """A part of a scene with a grid of its own."""

    @property
    def dtype(self) -> str:
        """How the numbers are stored."""

    def as_read(self, position: int, stored: float) -> float | None:
        """Return what reading makes of a stored number, None if a band cannot hold it."""

    def open(self) -> AbstractContextManager[LayerReader]:
        """Open it for reading."""


@dataclass(frozen=True)
class RasterLayer:
    """Bands of one raster file.

    Values are scale * stored + offset. A pixel is usable where it is a number, differs from
    `nodata` in every band read, and the file's own mask or alpha band does not rule it out.
    """

    path: Path
    indexes: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    nodata: tuple[float | None, ...]
    alpha: int | None = None
    own_mask: bool = False
    skip_damaged: bool = False
    unread: set[Box] = field(default_factory=set, compare=False, repr=False)  # blocks given up

    @property
    def scaled(self) -> bool:
        """True if the file's tags turn stored numbers into physical ones."""
        return set(self.scales) != {1.0} or set(self.offsets) != {0.0}

    def as_read(self, position: int, stored: float) -> float | None:
        """Return what reading makes of a stored number, None if a band cannot hold it."""
        return physical(stored, self.dtype, self.scales[position], self.offsets[position])

    def open(self) -> _RasterReader:
        """Open the file anew."""
        return _RasterReader(self, open_raster(self.path))


def raster_layer(
    src: DatasetReader,
    indexes: tuple[int, ...],
    *,
    nodata: float | None = None,
    raw: bool = False,
    skip_damaged: bool = False,
) -> RasterLayer:
    """Describe bands of an open raster; `nodata` is the user's and goes before the file's."""
    alphas = [i for i, c in enumerate(src.colorinterp, 1) if c.name == "alpha" and i not in indexes]
    flags = src.mask_flag_enums[indexes[0] - 1]
    # A fourth band of data that is marked as alpha would rule out its own low values.
    own = MaskFlags.per_dataset in flags and MaskFlags.alpha not in flags
    scaling = [(1.0, 0.0) if raw else stored_scaling(src, i) for i in indexes]
    return RasterLayer(
        path=Path(src.name),
        indexes=indexes,
        dtype=np.result_type(*(src.dtypes[i - 1] for i in indexes)).name,
        scales=tuple(scale for scale, _ in scaling),
        offsets=tuple(offset for _, offset in scaling),
        nodata=tuple(src.nodatavals[i - 1] if nodata is None else nodata for i in indexes),
        alpha=alphas[0] if alphas else None,
        own_mask=own,
        skip_damaged=skip_damaged,
    )


def stored_scaling(src: DatasetReader, index: int) -> tuple[float, float]:
    """Return scale and offset of a band by its tags; refuse such as lead nowhere."""
    scale, offset = float(src.scales[index - 1]), float(src.offsets[index - 1])
    check_scaling(Path(src.name).name, scale, offset)
    return scale, offset


def check_scaling(name: str, scale: float, offset: float) -> None:
    """Refuse tags that make the same number, or none, of all pixels."""
    if not (math.isfinite(scale) and scale != 0 and math.isfinite(offset)):
        raise InputError(
            f"{name} has scale {scale:g} and offset {offset:g}, no usable numbers. "
            "Correct them: gdal_edit -scale S -offset O, or ignore all tags with --raw"
        )


@dataclass(frozen=True)
class _RasterReader:
    """An open file. One thread decodes at a time, so that each block is decoded once for all."""

    layer: RasterLayer
    src: DatasetReader
    lock: Lock = field(default_factory=Lock)

    def __enter__(self) -> _RasterReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.src.close()

    def read(self, box: Box, positions: Sequence[int]) -> tuple[Values, Valid]:
        layer, src = self.layer, self.src
        window = Window(box.column, box.row, box.width, box.height)
        indexes = [layer.indexes[p] for p in positions]
        valid = np.ones((box.height, box.width), bool)
        try:
            with self.lock:
                stored = src.read(indexes, window=window)
                if layer.own_mask:
                    valid &= src.read_masks(indexes[0], window=window) != 0
                if layer.alpha is not None:
                    valid &= src.read(layer.alpha, window=window) != 0
        except READ_ERRORS as error:
            if not layer.skip_damaged or isinstance(error, MemoryError):
                raise damaged(layer.path.name, box.row, box.column, error) from error
            return self._in_blocks(box, positions)
        for band, position in zip(stored, positions, strict=True):
            valid &= usable(band, layer.nodata[position])
        with np.errstate(over="ignore", invalid="ignore"):
            values = stored.astype(np.float32)
            for band, position in zip(values, positions, strict=True):
                if (layer.scales[position], layer.offsets[position]) != (1.0, 0.0):
                    band *= layer.scales[position]
                    band += layer.offsets[position]
        if stored.dtype == np.float64 or layer.scaled:  # beyond float32
            valid &= np.isfinite(values).all(axis=0)
        return values, valid

    def block_bytes(self, height: int, width: int, bands: int) -> int:
        (rows, columns), src = self.src.block_shapes[0], self.src
        if str(src.interleaving or "").lower().endswith("pixel"):
            bands = src.count  # decoded together
        high = min(-(-height // rows) + 1, -(-src.height // rows))
        wide = min(-(-width // columns) + 1, -(-src.width // columns))
        each = rows * columns * np.dtype(self.layer.dtype).itemsize + _BLOCK_EXTRA_BYTES
        return int(high * wide * bands * each)

    def _in_blocks(self, box: Box, positions: Sequence[int]) -> tuple[Values, Valid]:
        """Read what can be read, in ever smaller parts; what cannot is not usable."""
        values = np.zeros((len(positions), box.height, box.width), np.float32)
        valid = np.zeros((box.height, box.width), bool)
        block = self.src.block_shapes[0]
        if box.height <= block[0] and box.width <= block[1]:
            aligned = box.row % block[0] + box.height <= block[0]
            if aligned and box.column % block[1] + box.width <= block[1]:
                row, column = box.row // block[0], box.column // block[1]
                self._give_up(Box(column * block[1], row * block[0], block[1], block[0]))
                return values, valid
        for part in _blocks(box, block):
            rows = slice(part.row - box.row, part.row - box.row + part.height)
            columns = slice(part.column - box.column, part.column - box.column + part.width)
            values[:, rows, columns], valid[rows, columns] = self.read(part, positions)
        return values, valid

    def _give_up(self, box: Box) -> None:
        """Note a block that cannot be read, and say so the first time, for all threads."""
        if not self.layer.unread:
            log.warning(
                "%s cannot be read at row %d, column %d, and perhaps elsewhere; such parts are "
                "not analysed",
                self.layer.path.name,
                box.row,
                box.column,
            )
        self.layer.unread.add(box)


def _blocks(box: Box, block: tuple[int, int]) -> list[Box]:
    """Cut a box along the block borders of a file."""
    height, width = block
    rows = _cuts(box.row, box.height, height)
    columns = _cuts(box.column, box.width, width)
    return [Box(c0, r0, c1 - c0, r1 - r0) for r0, r1 in rows for c0, c1 in columns]


def _cuts(start: int, length: int, step: int) -> list[tuple[int, int]]:
    inner = range(start - start % step + step, start + length, step)
    edges = [start, *inner, start + length]
    return list(pairwise(edges))


def physical(stored: float, dtype: str, scale: float, offset: float) -> float | None:
    """Return scale * stored + offset as float32 arrays compute it; None if `dtype` lacks it."""
    if not _fits(stored, np.dtype(dtype)):
        return None
    return float(np.float32(stored) * np.float32(scale) + np.float32(offset))


def usable(band: NDArray[Any], nodata: float | None) -> Valid:
    """Return where a stored band holds a number that does not mean "nothing here"."""
    valid = np.isfinite(band) if band.dtype.kind == "f" else np.ones(band.shape, bool)
    if nodata is not None and np.isfinite(nodata):
        # In the band's own type: -3.4e38 as a double is not the float32 of the same name.
        same = np.asarray(nodata).astype(band.dtype) if _fits(nodata, band.dtype) else None
        if same is not None:
            valid &= band != same
    elif nodata is not None and np.isinf(nodata):
        valid &= band != nodata
    return np.asarray(valid)


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return True
    if dtype.kind == "b":
        return value in (0, 1)
    info = np.iinfo(dtype)
    return float(value).is_integer() and info.min <= value <= info.max
