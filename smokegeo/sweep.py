"""Sweep a scene with the network, row of tiles by row of tiles, and give out finished lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import rasterio
from numpy.typing import NDArray

from smokegeo.engine import Engine
from smokegeo.fitting import Fit
from smokegeo.infer import Loader, smoke_tiles
from smokegeo.scene.scene import Scene
from smokegeo.stitch import Stitcher
from smokegeo.tiles import Grid, Tile
from smokegeo.views import Recipe

#: Rows of blocks that the tiles of one row touch, at most, for blocks of up to 512 lines.
_BLOCK_ROWS = 1024
_MAX_CACHE_MB = 512


@dataclass(frozen=True)
class Plan:
    """All that decides the map of a scene; can be sent to another process."""

    scene: Scene
    fit: Fit
    recipe: Recipe
    grid: Grid


def sweep(
    plan: Plan,
    engine: Engine,
    first_row: int,
    last_row: int,
    watch: Callable[[Iterable[Tile]], Iterable[Tile]] = iter,
) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """Yield (row of tiles, first line, stored lines) for rows first_row..last_row-1 of tiles.

    The row before the first is swept too, because it shares lines with it: parts of a scene done
    at other times or on other machines join exactly.
    """
    begin = max(0, first_row - 1)
    stitcher = Stitcher(plan.grid, begin)
    with (
        rasterio.Env(GDAL_CACHEMAX=cache_mb(plan)),
        Loader(plan.scene, plan.fit, plan.recipe) as loader,
    ):
        tiles = watch(_tiles(plan.grid, begin, last_row))
        for tile, smoke, valid in smoke_tiles(loader, engine, tiles):
            stitcher.add(tile, smoke, valid)
            if tile.column == len(plan.grid.columns) - 1:
                start, lines = stitcher.finish_row()
                if tile.row >= first_row:
                    yield tile.row, start, lines


def cache_mb(plan: Plan) -> int:
    """Return a size for GDAL's cache, which is 5 % of the machine's memory unless told otherwise.

    One row of blocks is read again and again by the tiles over it; more is of no use.
    """
    row_bytes = plan.scene.width * _BLOCK_ROWS * len(plan.fit.used)
    row_bytes *= np.dtype(plan.scene.dtype).itemsize
    return int(min(_MAX_CACHE_MB, 32 + row_bytes / 1e6))


def _tiles(grid: Grid, first_row: int, last_row: int) -> Iterator[Tile]:
    for row in range(first_row, last_row):
        yield from grid.row_tiles(row)
