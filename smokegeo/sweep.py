"""Sweep a scene with the network, row of tiles by row of tiles, and give out finished lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smokegeo.blockcache import block_cache
from smokegeo.engine import Engine
from smokegeo.fitting import Fit
from smokegeo.infer import Loader, smoke_tiles
from smokegeo.scene.layers import Box
from smokegeo.scene.scene import Scene
from smokegeo.stitch import Stitcher
from smokegeo.tiles import Grid, Tile
from smokegeo.views import Recipe


@dataclass(frozen=True)
class Plan:
    """All that decides the map of a scene; can be sent to another process.

    `scene` may be larger than the part of it that is wanted, so that the part's edges are seen with
    what lies around them. `units` are what its numbers were taken for, `warnings` what was said of
    it on the way: whoever gets the result should know both. Tiles are seen at one part in
    `reduction` of their size.
    """

    scene: Scene
    fit: Fit
    recipe: Recipe
    grid: Grid
    wanted: Box | None = None
    units: str = ""
    warnings: tuple[str, ...] = ()
    reduction: int = 1

    @property
    def part(self) -> Scene:
        """What is wanted of the scene."""
        return self.scene if self.wanted is None else self.scene.crop(self.wanted)


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
        Loader(plan.scene, plan.fit, plan.recipe) as loader,
        block_cache(loader.cache_bytes(plan.grid.tile_px)),
    ):
        tiles = watch(_tiles(plan.grid, begin, last_row))
        for tile, smoke, valid in smoke_tiles(loader, engine, tiles):
            stitcher.add(tile, smoke, valid)
            if tile.column == len(plan.grid.columns) - 1:
                start, lines = stitcher.finish_row()
                if tile.row >= first_row:
                    yield tile.row, start, lines


def _tiles(grid: Grid, first_row: int, last_row: int) -> Iterator[Tile]:
    for row in range(first_row, last_row):
        yield from grid.row_tiles(row)
