"""Polygons on the map: exact places, geodesic sizes, a fixed order and fixed columns."""

import time
from datetime import UTC, datetime, timedelta, timezone

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from rasterio.transform import Affine
from some_shapes import DEGREES, UTM, UTM_20M, blobs, box, ring, some_shapes

from smokegeo.errors import InputError, UsageError
from smokegeo.writing.ground import geodesic, ground
from smokegeo.writing.polygons import COLUMNS, place, simplified

NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)
GRIDS = {
    "north-up": UTM_20M,
    "south-up": Affine(20, 0, 250_000, 0, 20, 7_000_000),
    "rotated": Affine.translation(250_000, 7_000_000) @ Affine.rotation(30) @ Affine.scale(20, -20),
    "sheared": Affine(20, 5, 250_000, 3, -20, 7_000_000),
    "east to west": Affine(-20, 0, 250_000, 0, -20, 7_000_000),
}


def areas(crs, transform, *outlines, **options):
    return place(some_shapes(*outlines), transform, crs, **options).frame.area_m2.to_numpy()


class TestPlace:
    @pytest.mark.parametrize("grid", GRIDS)
    def test_puts_every_vertex_where_the_grid_says(self, grid):
        transform = GRIDS[grid]
        outline = ring(10, 20, 30, 8)
        (placed,) = place(some_shapes(outline), transform, UTM).frame.geometry
        wanted = shapely.Polygon(
            [transform @ point for point in outline.exterior.coords],
            [[transform @ point for point in outline.interiors[0].coords]],
        )
        assert placed.is_valid
        assert placed.exterior.is_ccw
        assert shapely.normalize(placed).equals_exact(shapely.normalize(wanted), 0)

    def test_has_these_columns_in_this_order(self):
        shapes = some_shapes(box(0, 0, 9), box(20, 0, 5), edge=[0], nodata=[1])
        frame = place(shapes, UTM_20M, UTM, model="m", source="s.tif", acquired=NOON).frame
        assert tuple(frame.columns) == (*COLUMNS, "geometry")
        wanted = "id area_m2 perimeter_m mean_prob max_prob pixels touches_edge touches_nodata"
        assert " ".join(COLUMNS) == wanted + " model source acquired"
        first, second = frame.iloc[0], frame.iloc[1]
        assert (first.id, second.id) == (1, 2)
        assert (first.pixels, first.mean_prob, first.max_prob) == (81, 0.75, 0.9)
        assert (first.touches_edge, first.touches_nodata) == (True, False)
        assert (second.touches_edge, second.touches_nodata) == (False, True)
        assert (first.model, first.source, first.acquired) == ("m", "s.tif", NOON)
        assert frame.crs == UTM.to_wkt()

    def test_sorts_by_area_then_from_the_top_left(self):
        shapes = some_shapes(box(10, 50, 5), box(0, 90, 9), box(50, 10, 5), box(20, 10, 5))
        frame = place(shapes, Affine(20, 0, 0, 0, -20, 0), None).frame
        corners = frame.geometry.bounds[["minx", "maxy"]].to_numpy().tolist()
        assert corners == [[0, -1800], [400, -200], [1000, -200], [200, -1000]]
        assert frame.id.tolist() == [1, 2, 3, 4]

    def test_says_the_time_in_utc(self):
        east = timezone(timedelta(hours=7))
        for acquired in (NOON, NOON.replace(tzinfo=None), NOON.astimezone(east)):
            frame = place(some_shapes(box(0, 0, 9)), UTM_20M, UTM, acquired=acquired).frame
            assert frame.acquired[0] == NOON
            assert str(frame.acquired.dtype) == "datetime64[ms, UTC]"

    @pytest.mark.parametrize("count", [0, 1])
    def test_knows_the_kind_of_every_column_even_when_empty(self, count):
        frame = place(some_shapes(*[box(0, 0, 9)] * count), UTM_20M, UTM).frame
        assert isinstance(frame, geopandas.GeoDataFrame)
        assert len(frame) == count
        kinds = {name: str(frame[name].dtype) for name in COLUMNS}
        assert kinds["id"] == kinds["pixels"] == "int64"
        assert kinds["area_m2"] == kinds["mean_prob"] == "float64"
        assert kinds["touches_edge"] == "bool"
        assert kinds["acquired"] == "datetime64[ms, UTC]"
        assert frame.acquired.isna().all()

    def test_gives_the_same_frame_whatever_the_order_it_gets(self):
        shapes = blobs(60)
        shuffled = shapes.take(np.random.default_rng(1).permutation(60))
        one, other = (place(each, UTM_20M, UTM).frame for each in (shapes, shuffled))
        assert one.equals(other)

    def test_names_that_are_no_unicode_become_so(self):
        frame = place(some_shapes(box(0, 0, 9)), UTM_20M, UTM, source="a\udcff.tif").frame
        assert frame.source[0] == "a?.tif"


class TestSizes:
    def test_are_geodesic_in_degrees(self):
        (area,) = areas(DEGREES, Affine(1e-4, 0, 15, 0, -1e-4, 60.01), box(0, 0, 100))
        assert area == pytest.approx(621_587, abs=1)

    def test_agree_between_utm_feet_and_degrees(self):
        # One plot of New York, drawn in three coordinate systems.
        places = geopandas.GeoSeries([shapely.box(0, 0, 300, 300)])
        feet = places.translate(980_000, 200_000).set_crs(2263)
        found = []
        for crs in (2263, 32618, 4326):
            outline = feet.segmentize(10).to_crs(crs)[0]
            found.append(areas(CRS.from_epsg(crs), Affine.identity(), outline)[0])
        assert found == pytest.approx([(300 * 1200 / 3937) ** 2] * 3, rel=2e-4)
        assert found[1:] == pytest.approx([found[0]] * 2, rel=1e-5)

    def test_do_not_depend_on_how_web_mercator_stretches(self):
        (area,) = areas(CRS.from_epsg(3857), Affine(10, 0, 0, 0, -10, 8_400_000), box(0, 0, 100))
        assert area == pytest.approx(1e6 * np.cos(np.radians(60.0)) ** 2, rel=0.02)

    @pytest.mark.parametrize("code", [5498, 4979])
    def test_leave_heights_aside(self, code):
        grid = Affine(1e-4, 0, -100, 0, -1e-4, 60)
        assert areas(CRS.from_epsg(code), grid, box(0, 0, 100)) == pytest.approx(621_774, abs=1)

    def test_count_grads_from_paris_too(self):
        crs = CRS.from_epsg(27572)
        (area,) = areas(crs, Affine(10, 0, 600_000, 0, -10, 2_200_000), box(0, 0, 100))
        assert area == pytest.approx(1e6, rel=1e-3)

    def test_work_on_a_sphere_without_a_code(self):
        modis = CRS.from_proj4("+proj=sinu +R=6371007.181 +units=m")
        (area,) = areas(modis, Affine(463, 0, 1e6, 0, -463, 6e6), box(0, 0, 100))
        assert area == pytest.approx(46_300**2, rel=1e-6)

    def test_leave_holes_out_of_the_area_and_in_the_perimeter(self):
        frame = place(some_shapes(ring(0, 0, 30, 10)), UTM_20M, UTM).frame
        scale = (frame.area_m2[0] / (800 * 400)) ** 0.5
        assert scale == pytest.approx(1, abs=2e-3)
        assert frame.perimeter_m[0] == pytest.approx(160 * 20 * scale, rel=1e-4)

    def test_stay_true_for_a_polygon_with_long_edges(self):
        # Degree cells between two parallels have a known area; their sides there are no geodesics.
        whole, *cells = (
            areas(DEGREES, Affine(0.01, 0, lon, 0, -0.01, 65), box(0, 0, width, 500))[0]
            for lon, width in [(0, 2000), *((lon / 10, 10) for lon in range(200))]
        )
        assert whole == pytest.approx(sum(cells), rel=1e-5)

    def test_are_readable_numbers_and_fine_ones_for_fine_pixels(self):
        coarse = place(blobs(5), UTM_20M, UTM).frame
        assert (coarse.area_m2 == coarse.area_m2.round(1)).all()
        assert (coarse.mean_prob == coarse.mean_prob.round(4)).all()
        fine = Affine(0.05, 0, 250_000, 0, -0.05, 7_000_000)
        (area,) = areas(UTM, fine, box(0, 0, 1))
        assert area == pytest.approx(0.0025, rel=0.01)

    def test_smaller_polygons_than_wanted_are_left_out(self):
        frame = place(
            some_shapes(box(0, 0, 9), box(20, 0, 2)), UTM_20M, UTM, min_area_m2=2000
        ).frame
        assert frame.pixels.tolist() == [81]
        assert place(some_shapes(box(20, 0, 2)), UTM_20M, UTM, min_area_m2=2000).frame.empty


class TestPixelCoordinates:
    def test_have_no_areas(self):
        shapes = some_shapes(box(0, 0, 3), box(9, 9, 5))
        frame = place(shapes, Affine.identity(), None).frame
        assert frame.crs is None
        assert frame.area_m2.isna().all()
        assert frame.perimeter_m.isna().all()
        assert frame.pixels.tolist() == [25, 9]

    def test_refuse_a_minimum_area(self):
        with pytest.raises(UsageError, match=r"Drop --min-area\.$"):
            place(some_shapes(box(0, 0, 3)), Affine.identity(), None, min_area_m2=1)


class TestRefusals:
    def test_a_local_system_cannot_be_placed(self):
        local = CRS.from_wkt('LOCAL_CS["arbitrary",UNIT["metre",1]]')
        with pytest.raises(
            InputError, match=r'^scene\.tif .*"arbitrary".* on Earth.*--crs'
        ) as info:
            place(some_shapes(box(0, 0, 3)), UTM_20M, local, source="scene.tif")
        assert "\n" not in str(info.value)

    def test_a_grid_outside_its_system_cannot_either(self):
        # Beyond the rim of the Earth as a geostationary satellite sees it.
        disc = CRS.from_proj4("+proj=geos +h=35785831 +lon_0=0 +ellps=WGS84 +units=m")
        with pytest.raises(InputError, match="outside the area"):
            place(some_shapes(box(0, 0, 9)), Affine(2000, 0, 6e6, 0, -2000, 6e6), disc)

    @pytest.mark.parametrize("option", ["min_area_m2", "simplify_px"])
    @pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
    def test_sizes_are_positive(self, option, value):
        with pytest.raises(UsageError, match="zero or more"):
            place(some_shapes(box(0, 0, 3)), UTM_20M, UTM, **{option: value})


class TestSimplify:
    def test_takes_vertices_and_tells_the_change_of_area(self):
        shapes = blobs(40)
        plain = place(shapes, UTM_20M, UTM)
        simple = place(shapes, UTM_20M, UTM, simplify_px=0.4)
        assert plain.area_drift == 0
        vertices = [
            shapely.get_num_coordinates(each.frame.geometry).sum() for each in (plain, simple)
        ]
        assert vertices[1] < vertices[0] / 2
        change = simple.frame.area_m2.sum() / plain.frame.area_m2.sum() - 1
        assert simple.area_drift == pytest.approx(change, abs=1e-6)
        assert -0.1 < simple.area_drift < 0

    def test_keeps_a_lone_pixel_a_pixel(self):
        assert simplified(np.array([box(3, 4, 1)]), 2.0)[0].equals(box(3, 4, 1))

    @settings(max_examples=40, deadline=None)
    @given(seed=st.integers(0, 2**16), tolerance=st.floats(0.01, 20))
    def test_leaves_valid_polygons_of_about_the_same_area(self, seed, tolerance):
        rng = np.random.default_rng(seed)
        cells = [box(*cell, 1) for cell in np.argwhere(rng.random((12, 12)) < 0.6)]
        union = shapely.get_parts(shapely.union_all(cells))
        result = simplified(union, tolerance)
        assert shapely.is_valid(result).all()
        assert not shapely.is_empty(result).any()
        assert (shapely.get_type_id(result) == shapely.GeometryType.POLYGON).all()
        assert shapely.area(result) == pytest.approx(shapely.area(union), rel=0.21)


@pytest.mark.slow
def test_forty_thousand_polygons_take_seconds():
    shapes = blobs(400).take(np.arange(40_000) % 400)
    start = time.perf_counter()
    assert len(place(shapes, UTM_20M, UTM).frame) == 40_000
    assert time.perf_counter() - start < 60  # about 4 on an idle core


def test_a_polygon_in_several_parts_has_the_area_of_all():
    one, two = shapely.box(5e5, 5.6e6, 501e3, 5601e3), shapely.box(502e3, 5.6e6, 503e3, 5601e3)
    both = np.array([one, shapely.MultiPolygon([one, two]), two], object)
    area, length = geodesic(both, ground(UTM), "s")
    assert area[1] == pytest.approx(area[0] + area[2])
    assert length[1] == pytest.approx(length[0] + length[2])


def test_batches_do_not_change_a_polygon(monkeypatch):
    shapes = blobs(200)
    before = place(shapes, UTM_20M, UTM).frame
    monkeypatch.setattr("smokegeo.outlines.rings._BATCH_POINTS", 7)
    after = place(shapes, UTM_20M, UTM).frame
    assert shapely.to_wkb(after.geometry).tolist() == shapely.to_wkb(before.geometry).tolist()
    assert after["area_m2"].tolist() == before["area_m2"].tolist()
