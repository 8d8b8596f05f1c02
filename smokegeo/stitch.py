"""Join the results of overlapping tiles into one map, row by row of tiles, exactly.

Probabilities arrive as whole numbers (0 to FULL) and are weighted with whole numbers that sum to
the same everywhere, so the order of additions, the batch size and the number of threads or
machines cannot change the map, and a constant stays that constant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smokegeo.probability import NODATA, STEPS
from smokegeo.tiles import Grid, Tile

#: The whole number that stands for probability 1 in a tile: 256 parts of a stored step.
FULL = STEPS * 256
#: Weighted sums are FULL * WEIGHT * WEIGHT = 64000 * 2**16 at most, just below 2**32.
_SHIFT = 24
_HALF = np.uint32(1 << (_SHIFT - 1))


class Stitcher:
    """Takes the tiles of a grid in order, from `first_row` on, and gives out finished lines.

    Only the lines that tiles still to come may change are held: about one tile's height.
    """

    def __init__(self, grid: Grid, first_row: int = 0) -> None:
        self.grid = grid
        self.row = first_row
        self.top = grid.rows[first_row].used_start  # the scene line of the buffers' first line
        room = max(span.used_stop - span.used_start for span in grid.rows[first_row:])
        self.sums = np.zeros((room, grid.width), np.uint32)
        self.valid = np.zeros((room, grid.width), bool)

    def add(self, tile: Tile, smoke: NDArray[np.uint16] | None, valid: NDArray[np.bool_]) -> None:
        """Add a tile's result; None where nothing in it is valid."""
        if tile.row != self.row:
            raise ValueError(f"a tile of row {tile.row} came while row {self.row} is open")
        lines = slice(tile.y.used_start - self.top, tile.y.used_stop - self.top)
        columns = slice(tile.x.used_start, tile.x.used_stop)
        self.valid[lines, columns] |= valid[tile.y.inner, tile.x.inner]
        if smoke is not None:
            part = smoke[tile.y.inner, tile.x.inner].astype(np.uint32)
            part *= tile.x.weights
            part *= tile.y.weights[:, None]
            self.sums[lines, columns] += part

    def finish_row(self) -> tuple[int, NDArray[np.uint8]]:
        """Close the open row of tiles; return the first finished line and the stored values."""
        start, stop = self.top, self.grid.settled(self.row)
        count = stop - start
        done = self.sums[:count]
        done += _HALF
        done >>= _SHIFT
        stored = done.astype(np.uint8)
        stored[~self.valid[:count]] = NODATA
        still_open = self.grid.rows[self.row].used_stop - stop
        for lines in (self.sums, self.valid):
            lines[:still_open] = lines[count : count + still_open]
            lines[still_open:] = 0
        self.top = stop
        self.row += 1
        return start, stored
