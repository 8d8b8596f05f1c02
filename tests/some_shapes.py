"""Polygons in pixel coordinates for tests, and a few places on Earth to put them."""

from __future__ import annotations

import numpy as np
import shapely
from rasterio.crs import CRS
from rasterio.transform import Affine

from smokegeo.outlines.vectorize import Shapes

UTM = CRS.from_epsg(32647)
UTM_20M = Affine(20, 0, 250_000, 0, -20, 7_000_000)
#: Astride the antimeridian at 63 degrees north.
UTM_1 = CRS.from_epsg(32601)
UTM_1_20M = Affine(20, 0, 347_000, 0, -20, 6_990_000)
DEGREES = CRS.from_epsg(4326)


def box(column, row, width, height=None):
    return shapely.box(column, row, column + width, row + (height or width))


def ring(column, row, width, hole):
    """A square with a square hole in the middle."""
    inner = box(column + (width - hole) / 2, row + (width - hole) / 2, hole)
    return shapely.Polygon(box(column, row, width).exterior, [inner.exterior])


def some_shapes(*outlines, mean_prob=None, max_prob=None, edge=(), nodata=()):
    """Shapes of these outlines; attributes are plain unless given."""
    count = len(outlines)
    array = np.empty(count, dtype=object)
    array[:] = outlines
    return Shapes(
        outlines=array,
        pixels=np.array([max(1, round(outline.area)) for outline in outlines], dtype=np.int64),
        mean_prob=np.array(mean_prob or [0.75] * count, dtype=float),
        max_prob=np.array(max_prob or [0.9] * count, dtype=float),
        touches_edge=np.isin(np.arange(count), edge),
        touches_nodata=np.isin(np.arange(count), nodata),
    )


def blobs(count, seed=0, size=1000):
    """Round polygons of many sizes, some with a hole."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        radius = rng.uniform(1, 12)
        disc = shapely.Point(*rng.uniform(0, size, 2)).buffer(radius, quad_segs=8)
        if radius > 6:
            disc = shapely.difference(disc, disc.centroid.buffer(radius / 3))
        found.append(disc)
    return some_shapes(*found, mean_prob=rng.uniform(0.5, 1, count).tolist())
