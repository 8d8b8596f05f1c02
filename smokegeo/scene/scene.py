"""A scene: everything known about a raster to search, and how to read windows of it.

A `Scene` is a description that can be sent to another process. Its pixels come from layers, each
on a grid of its own; coarser layers (20 m beside 10 m) are repeated to the finest grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from rasterio.crs import CRS
from rasterio.transform import Affine

from smokegeo.bands import BandSet
from smokegeo.labels import Place
from smokegeo.scene.layers import Box, Layer, LayerReader, Valid, Values

if TYPE_CHECKING:
    from types import TracebackType

#: Numbers that no sensor measures and that files hold where there is nothing, declared or not.
SENTINELS = (-9999.0, -32768.0, -99999.0, float(np.finfo(np.float32).min))

#: Decoded blocks to keep: those of a row of tiles up to this much, and never more than that.
_ROW_CACHE_BYTES = 300_000_000
_MAX_CACHE_BYTES = 512_000_000


@dataclass(frozen=True)
class Source:
    """Where one band of a scene comes from: a band of a layer, `factor` times coarser."""

    layer: int
    position: int
    factor: int = 1


@dataclass(frozen=True)
class Coding:
    """How reflectances are stored, by a name or tag: reflectance = scale * stored + offset.

    Names and tags outlive what people do to pixels. If the darkest of them are below `least`,
    they were converted already. `why` says where it is known from.
    """

    scale: float
    offset: float
    least: float
    why: str


@dataclass(frozen=True)
class Scene:
    """A raster to search.

    `physical` says that scale and offset have been applied, so that values are reflectances (or
    kelvins); `coding` how that is to be done if the pixels bear it out, `radiance` that it cannot
    be done by what the scene says. `offset` is the first
    column and row of what is looked at, in the whole grid; a part knows the scene that it is
    `within`. A pixel for which one of `sentinels` is stored in any band is not usable, nor is one
    for which one of `blanks` is stored in every band.
    """

    name: str
    width: int
    height: int
    place: Place
    bands: BandSet
    layers: tuple[Layer, ...]
    sources: tuple[Source, ...]
    acquired: datetime | None = None
    bands_from: str = ""
    physical: bool = False
    coding: Coding | None = None
    radiance: bool = False
    offset: tuple[int, int] = (0, 0)
    paths: tuple[str, ...] = ()
    sentinels: tuple[float, ...] = ()
    blanks: tuple[float, ...] = ()
    within: Scene | None = None

    @property
    def crs(self) -> CRS | None:
        """The coordinate system, if the scene is placed."""
        return self.place.crs

    @property
    def transform(self) -> Affine:
        """From pixels (column, row) to coordinates."""
        return self.place.transform

    @property
    def dtype(self) -> str:
        """How the numbers are stored."""
        return self.dtype_of(range(len(self.sources)))

    def dtype_of(self, bands: Sequence[int]) -> str:
        """Return how the numbers of some bands are stored."""
        layers = {self.sources[band].layer for band in bands}
        return np.result_type(*(self.layers[layer].dtype for layer in layers)).name

    @property
    def damaged(self) -> frozenset[tuple[int, Box]]:
        """The blocks that could not be read so far and were left out, each with its layer."""
        return frozenset(
            (number, box)
            for number, layer in enumerate(self.layers)
            for box in getattr(layer, "unread", ())
        )

    @property
    def whole(self) -> Box:
        """All of it."""
        return Box(0, 0, self.width, self.height)

    def as_read(self, band: int, stored: float) -> float | None:
        """Return what reading makes of a number stored in a band, None if it cannot be there."""
        source = self.sources[band]
        return self.layers[source.layer].as_read(source.position, stored)

    def open(self) -> SceneReader:
        """Open the scene for reading."""
        return SceneReader(self)

    @property
    def entire(self) -> Scene:
        """The scene of which this one is a part, or this one."""
        if self.within is None:
            return self
        return replace(self.within, sentinels=self.sentinels, blanks=self.blanks)

    def grown(self, margin: int) -> tuple[Scene, Box]:
        """Return the scene with as much around it as there is, and where it lies in that."""
        whole, (column, row) = self.entire, self.offset
        left, top = max(0, column - margin), max(0, row - margin)
        right = min(whole.width, column + self.width + margin)
        bottom = min(whole.height, row + self.height + margin)
        around = whole.crop(Box(left, top, right - left, bottom - top))
        return around, Box(column - left, row - top, self.width, self.height)

    def crop(self, box: Box) -> Scene:
        """Return the part of the scene inside a box, which must lie within it."""
        column, row = self.offset
        return replace(
            self,
            width=box.width,
            height=box.height,
            place=Place(
                self.place.crs, self.place.transform @ Affine.translation(box.column, box.row)
            ),
            offset=(column + box.column, row + box.row),
            within=self.within or self,
        )


class SceneReader:
    """An open scene, for any number of threads."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._stack = ExitStack()
        self._readers: dict[int, LayerReader] = {}
        self._opening = Lock()

    def __enter__(self) -> SceneReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def cache_bytes(self, tile_px: int, bands: Sequence[int]) -> int:
        """Return how much of decoded blocks to keep while reading tiles row by row.

        Blocks under one tile are shared with the next in its row, and those under all of a row
        with the next row. GDAL drops what was used longest ago: if the cache is a little too small
        for a row, it has dropped each block just before it is needed again. Then a row is as good
        as nothing, and only two tiles are kept.
        """
        tile = row = 0
        for (layer, factor), members in self._groups(bands).items():
            reader, side = self._open(layer), -(-tile_px // factor)
            tile += reader.block_bytes(side, side, len(members))
            row += reader.block_bytes(side, -(-self.scene.width // factor), len(members))
        # The tile beyond the row is for threads that read ahead.
        return min(row + tile if row <= _ROW_CACHE_BYTES else 2 * tile, _MAX_CACHE_BYTES)

    def read(self, box: Box, bands: Sequence[int]) -> tuple[Values, Valid]:
        """Return values (n, h, w) of the scene's bands, and where all of them are usable."""
        column, row = self.scene.offset
        box = Box(box.column + column, box.row + row, box.width, box.height)
        groups = self._groups(bands)
        parts = []
        for (layer, factor), members in groups.items():
            positions = [self.scene.sources[bands[i]].position for i in members]
            parts.append(self._read_layer(layer, factor, box, positions))
        values, valid = parts[0]
        if len(parts) > 1:
            values = np.empty((len(bands), box.height, box.width), np.float32)
            for members, (part, usable) in zip(groups.values(), parts, strict=True):
                values[members] = part
                valid &= usable
        self._leave_out(values, valid, bands)
        return values, valid

    def _leave_out(self, values: Values, valid: Valid, bands: Sequence[int]) -> None:
        """Take out of `valid` what the scene says means "nothing here" though no file does."""
        for sentinel in self.scene.sentinels:
            for value, band in zip(values, bands, strict=True):
                read = self.scene.as_read(band, sentinel)
                if read is not None:
                    valid &= value != np.float32(read)
        for blank in self.scene.blanks:
            nothing = [self.scene.as_read(band, blank) for band in bands]
            valid &= (values != np.array(nothing, np.float32)[:, None, None]).any(axis=0)

    def _groups(self, bands: Sequence[int]) -> dict[tuple[int, int], list[int]]:
        """Return which of the bands asked for come from each layer, with its factor."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i, band in enumerate(bands):
            source = self.scene.sources[band]
            groups.setdefault((source.layer, source.factor), []).append(i)
        return groups

    def _open(self, layer: int) -> LayerReader:
        """Return the reader of a layer; only those are opened that a model wants."""
        with self._opening:
            if layer not in self._readers:
                opened = self.scene.layers[layer].open()
                self._readers[layer] = self._stack.enter_context(opened)
            return self._readers[layer]

    def _read_layer(
        self, layer: int, factor: int, box: Box, positions: list[int]
    ) -> tuple[Values, Valid]:
        reader = self._open(layer)
        if factor == 1:
            return reader.read(box, positions)
        top, left = box.row // factor, box.column // factor
        bottom = -(-(box.row + box.height) // factor)
        right = -(-(box.column + box.width) // factor)
        values, valid = reader.read(Box(left, top, right - left, bottom - top), positions)
        rows = np.arange(box.row, box.row + box.height) // factor - top
        columns = np.arange(box.column, box.column + box.width) // factor - left
        return values[:, rows[:, None], columns], valid[rows[:, None], columns]
