"""Outlines for the map run where they run on the ground, and break nothing near 180 degrees."""

from __future__ import annotations

import numpy as np
import pyproj
import pytest
import shapely

from smokegeo.writing.mapoutlines import in_degrees, into_window

UTM_1 = pyproj.CRS.from_epsg(32601)


def outlines(*polygons):
    array = np.empty(len(polygons), object)
    array[:] = polygons
    return array


def box_with_a_hole(x, y):
    """Return a box of 100 x 100 km with a hole 100 m inside its north edge."""
    hole = shapely.box(x + 30_000, y + 95_000, x + 60_000, y + 99_900)
    return shapely.Polygon(shapely.box(x, y, x + 100_000, y + 100_000).exterior, [hole.exterior])


def test_a_long_side_bends_as_the_grid_does():
    polygon = shapely.box(300_000, 7_000_000, 400_000, 7_001_000)
    (found,) = in_degrees(outlines(polygon), UTM_1)
    lonlat = shapely.get_coordinates(shapely.segmentize(found, 0.001))
    back = pyproj.Transformer.from_crs("OGC:CRS84", UTM_1, always_xy=True)
    on_grid = shapely.points(*back.transform(*lonlat.T))
    assert shapely.distance(on_grid, polygon.exterior).max() < 0.5


@pytest.mark.parametrize("x", [300_000, 350_000, 400_000])
@pytest.mark.parametrize("y", [3e6, 5e6, 6.9e6])
def test_a_hole_near_an_edge_stays_inside_it(x, y):
    polygon = box_with_a_hole(x, y)
    placed = in_degrees(outlines(polygon), UTM_1)
    for west in (-180.0, 0.0):
        (found,) = into_window(placed, west)
        assert found.is_valid
        assert found.area == pytest.approx(placed[0].area, rel=1e-9)


def test_an_outline_that_crosses_itself_is_cut_all_the_same():
    bow = shapely.Polygon([(179, 0), (182, 2), (182, 0), (179, 2)])
    (found,) = into_window(outlines(bow), -180.0)
    assert found.is_valid
    assert found.area == pytest.approx(3.0)
