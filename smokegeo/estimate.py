"""What a scene will cost, before it is paid: time, disk and memory."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from smokegeo.engine import Engine
from smokegeo.errors import InputError
from smokegeo.progress import duration
from smokegeo.scene.scene import Scene
from smokegeo.tiles import Grid

#: Work that takes longer than this needs the user's word.
_LONG_S = 12 * 3600.0
#: torch (built for CUDA, without using it), GDAL, pandas and the rest, without any scene.
_BASE_BYTES = 750_000_000
#: What a network holds for each pixel of a tile while it works on it, in one thread.
_NETWORK_BYTES = 600
#: A tile of this side fits everywhere, and can be timed.
_USUAL_PX = 512
#: Decoded blocks are kept for the next row of tiles up to this much.
_BLOCKS_BYTES = 300_000_000


@dataclass(frozen=True)
class Estimate:
    """Rough numbers, of the right order."""

    tiles: int
    seconds: float
    disk_bytes: int
    memory_bytes: int

    def words(self) -> str:
        """Return the estimate as people would say it."""
        tiles = "1 tile" if self.tiles == 1 else f"{self.tiles} tiles"
        return (
            f"{tiles}, about {duration(self.seconds)}, "
            f"{_size(self.disk_bytes)} of disk and {_size(self.memory_bytes)} of memory"
        )


def disk_bytes(scene: Scene) -> int:
    """Return the room that a scene's map takes while it grows and is written."""
    return 2 * scene.width * scene.height


def estimate(scene: Scene, grid: Grid, engine: Engine) -> Estimate:
    """Time one empty tile, and add up."""
    threads = engine.effort.threads or 1
    height = grid.rows[0].stop - grid.rows[0].start
    width = grid.columns[0].stop - grid.columns[0].start
    # Tiles larger than usual may not fit into memory, which is yet to be found out.
    rows, columns = (min(side, max(engine.card.tile_px, _USUAL_PX)) for side in (height, width))
    blank = np.zeros((1, engine.card.channels, rows, columns), np.float32)
    larger = height * width / (rows * columns)
    seconds = _seconds(engine, blank) * larger * len(grid) / threads
    pixels, channels = height * width * (engine.effort.batch or 1), engine.card.channels
    # Tiles in the network, and those read ahead as well: stored, as numbers, normalised.
    seen = int(pixels * max(engine.looks.all) ** 2) // engine.reduction**2
    running = min(threads, len(grid)) * seen * _NETWORK_BYTES
    loaded = min(threads + 2, len(grid)) * pixels * channels * 12
    lines = scene.width * height * 8
    stored = min(channels, len(scene.bands)) * np.dtype(scene.dtype).itemsize
    blocks = min(_BLOCKS_BYTES, 2 * scene.width * height * stored)
    return Estimate(
        len(grid),
        seconds,
        disk_bytes(scene),
        _BASE_BYTES + running + loaded + lines + blocks,
    )


def _seconds(engine: Engine, tile: NDArray[np.float32]) -> float:
    """Return the time of one tile in one thread, which is how tiles are run."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        engine(tile)  # the first run prepares kernels
        start = time.perf_counter()
        engine(tile)
        return time.perf_counter() - start
    finally:
        torch.set_num_threads(before)


def refuse_unpayable(scene: Scene, cost: Estimate) -> None:
    """Refuse a scene that would run for half a day or more, or not fit into memory."""
    memory = _physical_memory()
    if cost.seconds <= _LONG_S and (memory is None or cost.memory_bytes < 0.9 * memory):
        return
    raise InputError(
        f"{scene.name} is {scene.width} x {scene.height} pixels: {cost.words()}. "
        "Take a part with --bbox or --window, or say --yes."
    )


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _size(count: int) -> str:
    if count < 1e9:
        return f"{max(1, round(count / 1e6))} MB"
    return f"{count / 1e9:.1f} GB" if count < 1e12 else f"{count / 1e12:.1f} TB"
