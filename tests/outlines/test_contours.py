"""Outlines against two independent programs: contourpy for smooth edges, GDAL for pixel edges."""

from __future__ import annotations

import contourpy
import numpy as np
import pytest
import rasterio.features
import shapely
from hypothesis import given, settings
from stored_rasters import is_smoke, rasters, shapes_of, smooth_field

from smokegeo.outlines.contours import trace


def contourpy_polygons(values, level):
    height, width = values.shape
    generator = contourpy.contour_generator(
        np.arange(width) + 0.5,
        np.arange(height) + 0.5,
        values.astype(float),
        name="serial",
        fill_type=contourpy.FillType.OuterOffset,
    )
    points, offsets = generator.filled(level, 1000)
    return [
        shapely.Polygon(rings[0], rings[1:])
        for rings in (np.split(p, o[1:-1]) for p, o in zip(points, offsets, strict=True))
    ]


def same_areas(ours, theirs):
    """Pair polygons by their bounds and compare them as sets of points."""

    def key(polygon):
        return (*np.round(polygon.bounds, 9), round(polygon.area, 9))

    ours, theirs = sorted(ours, key=key), sorted(theirs, key=key)
    assert len(ours) == len(theirs)
    assert shapely.area(shapely.symmetric_difference(ours, theirs)).sum() < 1e-9
    assert shapely.get_num_interior_rings(ours).tolist() == [len(t.interiors) for t in theirs]


@settings(max_examples=60, deadline=None)
@given(values=rasters(max_side=9, nodata=False))
def test_smooth_edges_are_those_of_contourpy(values):
    values = np.pad(values, 1)  # contourpy leaves the border out
    same_areas(shapes_of(values).outlines, contourpy_polygons(values, 124.5))


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_smooth_edges_of_a_field_are_those_of_contourpy(threshold):
    values = np.pad(smooth_field(200, sigma=2.0), 1)
    ours = shapes_of(values, threshold, strip_rows=50).outlines
    same_areas(ours, contourpy_polygons(values, threshold * 250 - 0.5))


@settings(max_examples=60, deadline=None)
@given(values=rasters())
def test_pixel_edges_are_those_of_gdal(values):
    smoke = is_smoke(values).astype(np.uint8)
    found = rasterio.features.shapes(smoke, mask=smoke, connectivity=4)
    theirs = shapely.normalize([shapely.geometry.shape(shape) for shape, _ in found])
    ours = shapely.normalize(shapes_of(values, edges="pixel", strip_rows=3).outlines)
    assert sorted(map(shapely.to_wkt, ours)) == sorted(map(shapely.to_wkt, theirs))


def test_an_open_chain_ends_where_one_of_the_next_strip_begins():
    nodes = np.full((5, 5), 255, np.uint8)
    nodes[1:4, 1:4] = 200
    above = trace(nodes[:3], 0, 125, "smooth", None)
    below = trace(nodes[2:], 2, 125, "smooth", None)
    assert above.ends.tolist() == below.starts.tolist() == [2 * 5 + 3]
    assert above.starts.tolist() == below.ends.tolist() == [2 * 5 + 0]
    assert above.points[0].tolist() == [0, 1.5]
    assert below.points[0].tolist() == [3, 1.5]
    assert (above.sums.pixels.tolist(), below.sums.pixels.tolist()) == ([3], [6])


def test_a_ring_in_one_strip_is_closed():
    nodes = np.full((4, 5), 255, np.uint8)
    nodes[1:3, 1:4] = 200
    chains = trace(nodes, 0, 125, "pixel", None)
    assert chains.starts.tolist() == chains.ends.tolist() == [-1]
    assert sorted(chains.points.tolist()) == [[0, 0], [0, 2], [3, 0], [3, 2]]
    assert chains.sums.total.tolist() == [1200]
