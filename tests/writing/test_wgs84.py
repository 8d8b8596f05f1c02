"""Longitude and latitude for RFC 7946: true places, cut at the antimeridian, valid when rounded."""

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from some_shapes import DEGREES, UTM, UTM_1

from smokegeo.errors import InputError
from smokegeo.writing.wgs84 import to_wgs84

WGS84 = pyproj.Geod(ellps="WGS84")


def converted(crs, *polygons):
    array = np.empty(len(polygons), dtype=object)
    array[:] = polygons
    return to_wgs84(array, crs)


def area_m2(geometry):
    """Geodesic area, by pieces: only a cut geometry has it right on each side."""
    fine = shapely.segmentize(geometry, 0.01)
    return abs(WGS84.geometry_area_perimeter(fine)[0])


def area_back(geometry, crs):
    """Area in a grid that keeps areas, with the lines drawn as a map of degrees draws them."""
    back = pyproj.Transformer.from_crs("OGC:CRS84", crs, always_xy=True)
    fine = shapely.segmentize(geometry, 0.1)
    return shapely.transform(fine, back.transform, interleaved=False).area


def test_places_agree_with_pyproj():
    (found,) = converted(UTM, shapely.box(250_000, 6_990_000, 251_000, 7_000_000))
    lon, lat = pyproj.Transformer.from_crs(32647, 4326, always_xy=True).transform(
        250_000, 7_000_000
    )
    corners = shapely.get_coordinates(found)
    assert np.abs(corners - (lon, lat)).sum(axis=1).min() < 1e-7
    assert found.exterior.is_ccw


def test_seven_decimals_are_enough_for_a_plume():
    (found,) = converted(UTM, shapely.Point(300_000, 7_000_000).buffer(500))
    corners = shapely.get_coordinates(found)
    assert (corners == corners.round(7)).all()


@pytest.mark.parametrize(("width", "decimals"), [(1e-5, 7), (2e-8, 9), (2e-10, 12), (2e-13, None)])
def test_a_polygon_finer_than_a_centimetre_stays_valid(width, decimals):
    # Rounded to fewer decimals its corners would fall together.
    sliver = shapely.Polygon([(15, 60), (15 + width / 2, 60.001), (15 + width, 60)])
    (found,) = converted(DEGREES, sliver)
    assert found.is_valid
    assert found.area == pytest.approx(sliver.area, rel=0.2)
    corners = shapely.get_coordinates(found)
    assert decimals is None or np.array_equal(corners, corners.round(decimals))


def test_holes_stay_holes_and_run_the_other_way():
    outer = shapely.box(300_000, 7_000_000, 301_000, 7_001_000)
    inner = shapely.box(300_200, 7_000_200, 300_300, 7_000_300)
    (found,) = converted(UTM, shapely.Polygon(outer.exterior, [inner.exterior]))
    assert found.exterior.is_ccw
    assert not found.interiors[0].is_ccw


def test_a_long_edge_bends_as_the_grid_does():
    (found,) = converted(UTM, shapely.box(300_000, 7_000_000, 700_000, 7_001_000))
    to_grid = pyproj.Transformer.from_crs(4326, 32647, always_xy=True).transform
    middle = shapely.get_coordinates(shapely.segmentize(found, 0.001))
    _, north = to_grid(*middle.T)
    beyond = np.maximum(7_000_000 - north, north - 7_001_000)
    assert beyond.max() < 0.5


class TestAntimeridian:
    @pytest.mark.parametrize("shift", [0, 360, -360])
    def test_cuts_longitudes_that_run_past_it(self, shift):
        (found,) = converted(DEGREES, shapely.box(179 + shift, 60, 182 + shift, 61))
        assert found.equals(
            shapely.MultiPolygon([shapely.box(-180, 60, -178, 61), shapely.box(179, 60, 180, 61)])
        )

    def test_brings_longitudes_up_to_360_home(self):
        (found,) = converted(DEGREES, shapely.box(200, 10, 201, 11))
        assert found.equals(shapely.box(-160, 10, -159, 11))

    def test_cuts_a_polygon_of_utm_zone_1(self):
        whole = shapely.box(345_000, 6_980_000, 355_000, 6_990_000)
        hole = shapely.box(348_500, 6_984_000, 350_500, 6_986_000)
        polygon = shapely.Polygon(whole.exterior, [hole.exterior])
        (found,) = converted(UTM_1, polygon)
        west, _, east, _ = found.bounds
        assert (west, east) == (-180, 180)
        assert found.geom_type == "MultiPolygon"
        assert all(piece.bounds[2] - piece.bounds[0] < 1 for piece in found.geoms)
        assert found.is_valid
        assert all(piece.exterior.is_ccw for piece in found.geoms)
        assert area_m2(found) == pytest.approx(polygon.area, rel=2e-3)

    def test_leaves_its_neighbours_alone(self):
        found = converted(DEGREES, shapely.box(178, 0, 179, 1), shapely.box(-180, 0, -179, 1))
        assert [each.geom_type for each in found] == ["Polygon", "Polygon"]

    @pytest.mark.parametrize(("code", "sign"), [(3413, 1), (3031, -1)])
    @pytest.mark.parametrize("holes", [0, 1])
    def test_reaches_the_pole(self, code, sign, holes):
        shell = shapely.Point(20_000, 0).buffer(100_000)
        hole = shapely.Point(0, 0).buffer(10_000)
        polygon = shapely.Polygon(shell.exterior, [hole.exterior] * holes)
        (found,) = converted(CRS.from_epsg(code), polygon)
        assert found.is_valid
        assert found.covers(shapely.Point(77, sign * 89.7))
        assert found.covers(shapely.Point(77, sign * 89.99)) is (holes == 0)
        assert not found.covers(shapely.Point(77, 0))

    @settings(max_examples=60, deadline=None)
    @given(
        st.sampled_from([90, -90]),
        st.one_of(st.just(0.0), st.floats(-400_000, 400_000), st.floats(-100, 100)),
        st.one_of(st.just(0.0), st.floats(-400_000, 400_000), st.floats(-100, 100)),
        st.one_of(st.floats(50, 200_000), st.just(50.0)),
        st.booleans(),
        st.booleans(),
    )
    def test_keeps_the_area_anywhere_near_a_pole(self, pole, x, y, side, around, holed):
        # Pixels and squares: their long straight edges are what longitudes bend most.
        left, bottom = (x - side / 2, y - side / 2) if around else (x, y)
        polygon = shapely.box(left, bottom, left + side, bottom + side)
        if holed:
            inner = shapely.affinity.scale(polygon, 0.4, 0.4)
            polygon = shapely.Polygon(polygon.exterior, [inner.exterior])
        crs = pyproj.CRS.from_proj4(f"+proj=laea +lat_0={pole} +lon_0=33 +ellps=WGS84")
        (found,) = converted(crs, polygon)
        assert found.is_valid
        west, south, east, north = found.bounds
        assert -180 <= west <= east <= 180
        assert -90 <= south <= north <= 90
        bend_m2 = 0.1 * polygon.length
        assert area_back(found, crs) == pytest.approx(polygon.area, rel=1e-4, abs=bend_m2)

    @pytest.mark.parametrize("offset", [0, 3, 1500])
    def test_points_near_the_pole_are_inside_or_outside_as_on_the_ground(self, offset):
        crs = pyproj.CRS.from_epsg(3413)
        polygon = shapely.box(-500 + offset, -700, 900 + offset, 300)
        (found,) = converted(crs, polygon)
        to_degrees = pyproj.Transformer.from_crs(crs, "OGC:CRS84", always_xy=True)
        x, y = np.random.default_rng(offset).uniform(-2000, 3000, (2, 2000))
        near_line = shapely.dwithin(polygon.exterior, shapely.points(x, y), 1)
        inside = shapely.contains_xy(polygon, x, y)
        on_map = shapely.covers(found, shapely.points(*to_degrees.transform(x, y)))
        assert inside.any()
        assert (on_map == inside)[~near_line].all()

    def test_a_polygon_around_the_pole_reaches_along_it_from_end_to_end(self):
        (found,) = converted(pyproj.CRS.from_epsg(3031), shapely.box(-30, -30, 30, 30))
        assert found.geom_type == "Polygon"
        assert found.bounds[::2] == (-180, 180)
        assert found.bounds[1] == -90
        corners = {(-180.0, -90.0), (180.0, -90.0)}
        assert corners <= set(map(tuple, shapely.get_coordinates(found).tolist()))


class TestWiderThanHalfTheGlobe:
    @pytest.mark.parametrize(("west", "east"), [(-170, 170), (-180, 180), (-100, 100), (-180, 1)])
    def test_stays_as_it_is_between_its_own_longitudes(self, west, east):
        (found,) = converted(DEGREES, shapely.box(west, 10, east, 20))
        assert found.equals(shapely.box(west, 10, east, 20))

    def test_is_cut_once_if_it_runs_past_180(self):
        hole = shapely.box(100, 12, 290, 18)
        (found,) = converted(DEGREES, shapely.box(10, 10, 350, 20).difference(hole))
        wanted = [shapely.box(-180, 10, -10, 20), shapely.box(10, 10, 180, 20)]
        holes = [shapely.box(-180, 12, -70, 18), shapely.box(100, 12, 180, 18)]
        assert found.equals(shapely.union_all(wanted).difference(shapely.union_all(holes)))

    def test_is_known_in_other_units_than_degrees(self):
        grads = CRS.from_epsg(4807)  # and from Paris
        (found,) = converted(grads, shapely.box(-180, 10, 190, 20))
        assert found.bounds == pytest.approx((-159.66, 9.0, 173.34, 18.0), abs=0.01)
        assert found.area == pytest.approx(9 * 333, rel=1e-3)


def test_what_lies_beyond_a_pole_is_refused_not_lost():
    beyond = shapely.box(179, 90, 181, 90.1)  # half a pixel of a grid of the whole world
    with pytest.raises(InputError, match=r"no area in longitude and latitude.*\.gpkg"):
        converted(DEGREES, shapely.box(0, 0, 1, 1), beyond)


def test_no_polygons_are_no_polygons():
    assert len(converted(UTM)) == 0


def test_what_has_no_longitude_is_refused():
    disc = CRS.from_proj4("+proj=geos +h=35785831 +lon_0=0 +ellps=WGS84 +units=m")
    with pytest.raises(InputError, match=r"\.gpkg"):
        converted(disc, shapely.box(6e6, 6e6, 6.1e6, 6.1e6))
