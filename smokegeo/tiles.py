"""Which windows of a scene the network sees, and how their results are joined. Whole numbers only.

Along each axis tiles are laid out evenly, the first and last flush with the scene's border. Where
two neighbours overlap, a ramp hands over from one to the other in the middle of the overlap. The
weights of a pixel sum to exactly WEIGHT along each axis, are never 0 inside a tile's span, and are
all WEIGHT towards the border: a constant network gives that constant everywhere, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from smokegeo.errors import UsageError

#: What the weights of a pixel sum to along one axis.
WEIGHT = 256


@dataclass(frozen=True)
class Span:
    """One tile along one axis: the pixels it sees, and those of them it helps to decide."""

    start: int
    stop: int
    used_start: int
    used_stop: int
    weights: NDArray[np.uint32]  # one per used pixel

    @property
    def inner(self) -> slice:
        """The used pixels, counted from the tile's start."""
        return slice(self.used_start - self.start, self.used_stop - self.start)


@dataclass(frozen=True)
class Tile:
    """One window of a scene; row and column are its place in the grid."""

    row: int
    column: int
    y: Span
    x: Span


@dataclass(frozen=True)
class Grid:
    """The tiles of a scene: every row of tiles crossed with every column."""

    width: int
    height: int
    tile_px: int
    overlap_px: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise UsageError(f"a scene of {self.width} x {self.height} pixels has no tiles.")
        if self.tile_px < 1:
            raise UsageError(f"tiles of {self.tile_px} pixels are too small.")
        if not 0 <= self.overlap_px < self.tile_px:
            raise UsageError(
                f"tiles of {self.tile_px} pixels cannot overlap by {self.overlap_px}. "
                "Choose an --overlap below --tile."
            )

    @cached_property
    def rows(self) -> tuple[Span, ...]:
        """The tiles from top to bottom."""
        return spans(self.height, self.tile_px, self.overlap_px)

    @cached_property
    def columns(self) -> tuple[Span, ...]:
        """The tiles from left to right."""
        return spans(self.width, self.tile_px, self.overlap_px)

    def __len__(self) -> int:
        return len(self.rows) * len(self.columns)

    def row_tiles(self, row: int) -> Iterator[Tile]:
        """Yield the tiles of one row, from left to right."""
        for column, x in enumerate(self.columns):
            yield Tile(row, column, self.rows[row], x)

    def settled(self, row: int) -> int:
        """Return the first line of the scene that tiles of later rows still help to decide."""
        return self.rows[row + 1].used_start if row + 1 < len(self.rows) else self.height


def spans(length: int, tile_px: int, overlap_px: int) -> tuple[Span, ...]:
    """Cover `length` pixels with tiles that overlap by at least `overlap_px`."""
    if length <= tile_px:
        return (Span(0, length, 0, length, np.full(length, WEIGHT, np.uint32)),)
    count = math.ceil((length - overlap_px) / (tile_px - overlap_px))
    starts = [i * (length - tile_px) // (count - 1) for i in range(count)]
    ramp = min(overlap_px, WEIGHT - 1)
    if count > 2:  # ramps of neighbouring pairs must not meet, so that at most two share a pixel
        ramp = min(ramp, *(b - a for a, b in pairwise(starts)))
    rising = WEIGHT * np.arange(1, ramp + 1, dtype=np.uint32) // np.uint32(ramp + 1)
    out = []
    for i, start in enumerate(starts):
        first = 0 if i == 0 else _handover(starts[i - 1], start, tile_px, ramp)
        last = length if i == count - 1 else _handover(start, starts[i + 1], tile_px, ramp) + ramp
        weights = np.full(last - first, WEIGHT, np.uint32)
        if i > 0 and ramp:
            weights[:ramp] = rising
        if i < count - 1 and ramp:
            weights[-ramp:] = WEIGHT - rising
        out.append(Span(start, start + tile_px, first, last, weights))
    return tuple(out)


def _handover(left: int, right: int, tile_px: int, ramp: int) -> int:
    """Return where the ramp between two tiles begins: in the middle of what both see."""
    return (left + tile_px + right - ramp) // 2
