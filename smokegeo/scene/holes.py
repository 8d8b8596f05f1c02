"""Blocks of a scene's files that were never written, or may hold nothing but zeros.

GDAL reads a missing block of a sparse GeoTIFF as 0. One may lie between any samples, but a TIFF
says how many bytes each of its blocks takes: none, or hardly any, is told without decoding it.
"""

from __future__ import annotations

import numpy as np

from smokegeo.scene.layers import Box, RasterLayer
from smokegeo.scene.rasters import open_raster
from smokegeo.scene.scene import Scene

#: Any compression makes zeros smaller by this much, and hardly ever anything that was measured.
_SHRUNK = 50
#: Blocks asked for, about a microsecond each; of more, every second or third.
_MOST_ASKED = 250_000


def hollow_blocks(scene: Scene, band: int) -> list[Box]:
    """Return the blocks under a band that are missing or may be all zeros, in the scene's pixels.

    Only a GeoTIFF tells; of a part of a scene, those of all of it.
    """
    source = scene.sources[band]
    layer, factor = scene.layers[source.layer], source.factor
    if not isinstance(layer, RasterLayer):
        return []
    index = layer.indexes[source.position]
    with open_raster(layer.path) as src:
        if src.driver != "GTiff":
            return []
        height, width = src.block_shapes[index - 1]
        together = src.count if str(src.interleaving or "").lower().endswith("pixel") else 1
        raw = height * width * together * np.dtype(layer.dtype).itemsize
        rows, columns = -(-src.height // height), -(-src.width // width)
        hollow = []
        for number in range(0, rows * columns, -(-rows * columns // _MOST_ASKED)):
            row, column = divmod(number, columns)
            size = src.get_tag_item(f"BLOCK_SIZE_{column}_{row}", "TIFF", bidx=index)
            if int(size or 0) * _SHRUNK <= raw:
                wide = min(width, src.width - column * width)
                high = min(height, src.height - row * height)
                hollow.append((column * width, row * height, wide, high))
    return [_inside(Box(*(factor * number for number in block)), scene) for block in hollow]


def _inside(box: Box, scene: Scene) -> Box:
    """Return what of a box lies in the scene: coarser layers may reach a pixel beyond it."""
    wide = min(box.width, scene.width - box.column)
    return Box(box.column, box.row, wide, min(box.height, scene.height - box.row))
