"""Tiles in, smoke probabilities out: reading ahead, and several tiles at a time.

On a CPU several tiles run side by side, each in one thread, rather than one tile in many: as fast,
and the result does not depend on how many cores there are. On a graphics card tiles are batched
while others are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from smokegeo.blanks import fill_blanks
from smokegeo.engine import Engine, torch_threads
from smokegeo.fitting import Fit
from smokegeo.scene.layers import Box
from smokegeo.scene.scene import Scene
from smokegeo.tiles import Tile
from smokegeo.views import Recipe

#: Spreads from the mean that no measurement is away (an undeclared 3.4e38 is); the network would
#: overflow there, and spoil all pixels around.
_BEYOND = 1e9


class Loader:
    """Reads tiles of a scene and normalises them; threads share it, and so its decoded blocks."""

    def __init__(self, scene: Scene, fit: Fit, recipe: Recipe) -> None:
        self.scene, self.fit, self.recipe = scene, fit, recipe
        self._stack = ExitStack()
        self._reader = self._stack.enter_context(scene.open())

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def cache_bytes(self, tile_px: int) -> int:
        """Return how much of decoded blocks to keep while reading such tiles, row by row."""
        return self._reader.cache_bytes(tile_px, self.fit.used)

    def __call__(self, tile: Tile) -> Loaded:
        """Return the tile (bands, H, W) for the network, None if none of it is valid, and valid."""
        box = Box(
            tile.x.start, tile.y.start, tile.x.stop - tile.x.start, tile.y.stop - tile.y.start
        )
        values, valid = self._reader.read(box, self.fit.used)
        if not valid.any():
            return None, valid
        channels = self.recipe.channels(values, valid, self.fit.places)
        within = np.abs(channels) < _BEYOND
        if not within.all():
            beyond = ~within.all(axis=0)
            valid &= ~beyond
            if not valid.any():
                return None, valid
        fill_blanks(channels, valid)
        return self.recipe.cut(channels), valid


Loaded = tuple[NDArray[np.float32] | None, NDArray[np.bool_]]
Result = tuple[Tile, NDArray[np.uint16] | None, NDArray[np.bool_]]


def smoke_tiles(loader: Loader, engine: Engine, tiles: Iterable[Tile]) -> Iterator[Result]:
    """Yield every tile with its smoke (None where nothing is valid) and validity, in order.

    A few tiles are in flight at any time, so memory does not grow with the scene.
    """
    threads, size = engine.effort.threads or 1, engine.effort.batch or 1

    def forward(group: Sequence[tuple[Tile, Future[Loaded]]]) -> list[Result]:
        loaded = [(tile, *future.result()) for tile, future in group]
        smoke = _smoke(engine, [x for _, x, _ in loaded if x is not None])
        return [(tile, None if x is None else next(smoke), valid) for tile, x, valid in loaded]

    source = iter(tiles)
    flying: deque[Future[list[Result]]] = deque()
    with (
        torch_threads(torch.get_num_threads()),  # leaves them as they were found
        ThreadPoolExecutor(max(2, threads), "read") as readers,
        ThreadPoolExecutor(threads, "infer", lambda: torch.set_num_threads(1)) as runners,
    ):
        try:
            while True:
                while len(flying) < threads + 2 and (group := list(islice(source, size))):
                    loads = [(tile, readers.submit(loader, tile)) for tile in group]
                    flying.append(runners.submit(forward, loads))
                if not flying:
                    return
                yield from flying.popleft().result()
        finally:
            for future in flying:
                future.cancel()


def _smoke(engine: Engine, tiles: Sequence[NDArray[np.float32]]) -> Iterator[NDArray[np.uint16]]:
    """Yield the smoke of each tile; on a CPU they go one by one, whatever the batch.

    There the last bit of a matrix product depends on how many tiles it is made for.
    """
    if engine.effort.device == "cpu":
        for tile in tiles:
            yield engine(tile[None])[0]
    elif tiles:
        yield from engine(np.stack(tiles))
