"""A scene: everything known about a raster to search, and how to read windows of it.

A `Scene` is a description that can be sent to another process. Its pixels come from layers, each
on a grid of its own; coarser layers (20 m beside 10 m) are repeated to the finest grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
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


@dataclass(frozen=True)
class Source:
    """Where one band of a scene comes from: a band of a layer, `factor` times coarser."""

    layer: int
    position: int
    factor: int = 1


@dataclass(frozen=True)
class Scene:
    """A raster to search.

    `physical` says that scale and offset have been applied, so that values are reflectances (or
    kelvins). `offset` is the first column and row of what is looked at, in the whole grid. A pixel
    that holds one of `sentinels` in any band is not usable, nor is one that is 0 in every band if
    `zero_is_blank`.
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
    offset: tuple[int, int] = (0, 0)
    paths: tuple[str, ...] = ()
    sentinels: tuple[float, ...] = ()
    zero_is_blank: bool = False

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
        return np.result_type(*(layer.dtype for layer in self.layers)).name

    @property
    def damaged_blocks(self) -> int:
        """How many blocks could not be read so far, and were left out."""
        return sum(len(getattr(layer, "unread", ())) for layer in self.layers)

    @property
    def whole(self) -> Box:
        """All of it."""
        return Box(0, 0, self.width, self.height)

    def open(self) -> SceneReader:
        """Open all layers for one thread."""
        return SceneReader(self)

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
        )


class SceneReader:
    """An open scene; one thread reads from it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._stack = ExitStack()
        self._readers: dict[int, LayerReader] = {}

    def __enter__(self) -> SceneReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def read(self, box: Box, bands: Sequence[int]) -> tuple[Values, Valid]:
        """Return values (n, h, w) of the scene's bands, and where all of them are usable."""
        column, row = self.scene.offset
        box = Box(box.column + column, box.row + row, box.width, box.height)
        values = np.empty((len(bands), box.height, box.width), np.float32)
        valid = np.ones((box.height, box.width), bool)
        groups: dict[tuple[int, int], list[int]] = {}
        for i, band in enumerate(bands):
            source = self.scene.sources[band]
            groups.setdefault((source.layer, source.factor), []).append(i)
        for (layer, factor), members in groups.items():
            positions = [self.scene.sources[bands[i]].position for i in members]
            values[members], usable = self._read_layer(layer, factor, box, positions)
            valid &= usable
        for sentinel in self.scene.sentinels:
            valid &= (values != np.float32(sentinel)).all(axis=0)
        if self.scene.zero_is_blank:
            valid &= (values != 0).any(axis=0)
        return values, valid

    def _read_layer(
        self, layer: int, factor: int, box: Box, positions: list[int]
    ) -> tuple[Values, Valid]:
        if layer not in self._readers:  # only those bands that a model wants
            opened = self.scene.layers[layer].open()
            self._readers[layer] = self._stack.enter_context(opened)
        reader = self._readers[layer]
        if factor == 1:
            return reader.read(box, positions)
        top, left = box.row // factor, box.column // factor
        bottom = -(-(box.row + box.height) // factor)
        right = -(-(box.column + box.width) // factor)
        values, valid = reader.read(Box(left, top, right - left, bottom - top), positions)
        rows = np.arange(box.row, box.row + box.height) // factor - top
        columns = np.arange(box.column, box.column + box.width) // factor - left
        return values[:, rows[:, None], columns], valid[rows[:, None], columns]
