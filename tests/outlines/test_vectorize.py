from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from rasterio.features import rasterize
from scipy import ndimage
from stored_rasters import is_smoke, rasters, shapes_of, smooth_field, stored

from smokegeo.errors import UsageError
from smokegeo.outlines.vectorize import vectorize
from smokegeo.probability import NODATA

EDGES = pytest.mark.parametrize("edges", ["smooth", "pixel"])
RINGS = np.array(  # an island in a lake in an island
    [
        "0000000000",
        "0########0",
        "0#......#0",
        "0#.####.#0",
        "0#.#..#.#0",
        "0#.####.#0",
        "0#......#0",
        "0########0",
        "0000000000",
    ]
)


def drawn(lines):
    codes = {"#": 250, ".": 0, "0": 0, "x": NODATA}
    return np.array([[codes[letter] for letter in line] for line in lines], np.uint8)


def frozen(shapes):
    """Everything about shapes, to the last bit."""
    rest = [getattr(shapes, f.name).tolist() for f in dataclasses.fields(shapes)[1:]]
    return [shapely.to_wkb(shapes.outlines).tolist(), *rest]


def spiral(size):
    """One arm of smoke, two pixels wide, that winds inwards with gaps of two."""
    values = np.zeros((size, size), np.uint8)
    row, column, way, length = 0, 0, 0, size - 2
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    turns = 0
    while length > 0:
        for _ in range(length):
            values[row : row + 2, column : column + 2] = 200
            row, column = row + steps[way][0], column + steps[way][1]
        way, turns = (way + 1) % 4, turns + 1
        if turns >= 3 and turns % 2:
            length -= 4
    return values


def check_strips(edges, values):
    whole = frozen(shapes_of(values, edges=edges))
    for strip_rows in (1, 2, 3, 7):
        assert frozen(shapes_of(values, edges=edges, strip_rows=strip_rows)) == whole


@EDGES
@settings(max_examples=30, deadline=None)
@given(values=rasters())
def test_result_does_not_depend_on_strip_height(edges, values):
    check_strips(edges, values)


@pytest.mark.slow
@EDGES
@settings(max_examples=100, deadline=None)
@given(values=rasters(max_side=18))
def test_result_does_not_depend_on_strip_height_of_larger_rasters(edges, values):
    check_strips(edges, values)


@EDGES
def test_large_field_does_not_depend_on_strip_height(edges):
    values = smooth_field(150, sigma=2.5)
    values[:40, :50] = NODATA
    whole = shapes_of(values, edges=edges)
    assert len(whole) > 40
    for strip_rows in (1, 2, 3, 7, 64, 150, 151):
        assert frozen(shapes_of(values, edges=edges, strip_rows=strip_rows)) == frozen(whole)


def check_polygons(edges, values):
    shapes = shapes_of(values, edges=edges, strip_rows=4)
    assert shapely.is_valid(shapes.outlines).all()
    assert (shapely.get_type_id(shapes.outlines) == shapely.GeometryType.POLYGON).all()
    assert (shapely.area(shapes.outlines) > 0).all()
    first = [outline.exterior.coords[0][::-1] for outline in shapes.outlines]
    assert first == sorted(first)

    row, column = np.mgrid[: values.shape[0], : values.shape[1]]
    points = shapely.points(column + 0.5, row + 0.5)
    near = ndimage.binary_dilation(values == NODATA, np.ones((3, 3)))
    border = (row == 0) | (row == row.max()) | (column == 0) | (column == column.max())
    held = np.zeros(values.shape, int)
    for number, outline in enumerate(shapes.outlines):
        inside = shapely.contains_properly(outline, points)
        held += inside
        assert shapes.pixels[number] == inside.sum()
        assert shapes.mean_prob[number] == pytest.approx(values[inside].mean() * 0.004)
        assert shapes.max_prob[number] == pytest.approx(values[inside].max() * 0.004)
        assert shapes.touches_nodata[number] == near[inside].any()
        assert shapes.touches_edge[number] == border[inside].any()
    np.testing.assert_array_equal(held, is_smoke(values))


@EDGES
@settings(max_examples=50, deadline=None)
@given(values=rasters())
def test_polygons_are_valid_and_hold_exactly_the_smoke_pixels(edges, values):
    check_polygons(edges, values)


@pytest.mark.slow
@EDGES
@settings(max_examples=100, deadline=None)
@given(values=rasters(max_side=18))
def test_polygons_of_larger_rasters_are_valid_and_hold_the_smoke_pixels(edges, values):
    check_polygons(edges, values)


@settings(max_examples=50, deadline=None)
@given(values=rasters())
def test_pixel_polygons_rasterise_back_to_the_smoke(values):
    shapes = shapes_of(values, edges="pixel", strip_rows=3)
    burnt = np.zeros(values.shape, np.int32)
    if len(shapes):
        rasterize(zip(shapes.outlines, range(1, len(shapes) + 1), strict=True), out=burnt)
    np.testing.assert_array_equal(burnt > 0, is_smoke(values))
    labels, count = ndimage.label(is_smoke(values))
    assert count == len(shapes)
    pairs = {(a, b) for a, b in zip(labels.ravel().tolist(), burnt.ravel().tolist(), strict=True)}
    assert len(pairs - {(0, 0)}) == count


@settings(max_examples=50, deadline=None)
@given(values=rasters())
def test_smooth_outlines_never_reach_into_pixels_that_were_not_analysed(values):
    shapes = shapes_of(values, strip_rows=3)
    row, column = np.nonzero(values == NODATA)
    walls = shapely.union_all(shapely.box(column, row, column + 1, row + 1))
    inside = shapely.box(0, 0, values.shape[1], values.shape[0])
    assert shapely.area(shapely.intersection(shapes.outlines, walls)).sum() < 1e-12
    assert shapely.covers(inside, shapes.outlines).all()


@EDGES
def test_smoke_reaches_the_very_edge_of_its_pixels_at_borders_and_nodata(edges):
    values = np.full((6, 8), 126, np.uint8)
    values[2:4, 3:5] = NODATA
    (outline,) = shapes_of(values, edges=edges).outlines
    assert outline.equals(shapely.box(0, 0, 8, 6) - shapely.box(3, 2, 5, 4))
    assert len(outline.exterior.coords) == len(outline.interiors[0].coords) == 5


def test_an_elbow_comes_besides_the_crossings_before_and_after_it():
    (outline,) = shapes_of([[200, 200, 200], [NODATA, 100, 100]]).outlines
    np.testing.assert_allclose(
        outline.exterior.coords,
        [(0, 0), (3, 0), (3, 1.255), (1.5, 1.255), (1, 1), (0, 1), (0, 0)],
    )


@EDGES
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (5, 1), (4, 3)])
def test_all_smoke_is_one_rectangle(edges, size):
    shapes = shapes_of(np.full(size, 200), edges=edges, strip_rows=2)
    (outline,) = shapes.outlines
    assert outline.equals(shapely.box(0, 0, size[1], size[0]))
    assert len(outline.exterior.coords) == 5
    assert shapes.pixels.tolist() == [size[0] * size[1]]
    assert shapes.mean_prob.tolist() == shapes.max_prob.tolist() == [0.8]
    assert shapes.touches_edge.tolist() == [True]
    assert shapes.touches_nodata.tolist() == [False]


@EDGES
@pytest.mark.parametrize("value", [0, 124, NODATA])
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (5, 1), (4, 3)])
def test_no_smoke_gives_no_polygons_but_all_columns(edges, value, size):
    shapes = shapes_of(np.full(size, value), edges=edges, strip_rows=2)
    assert len(shapes) == 0
    assert [getattr(shapes, f.name).dtype.kind for f in dataclasses.fields(shapes)] == [*"Oiffbb"]


@EDGES
@pytest.mark.parametrize("strip_rows", [1, 2, 5, 100])
def test_island_in_a_lake_in_an_island(edges, strip_rows):
    shapes = shapes_of(drawn(RINGS), edges=edges, strip_rows=strip_rows)
    assert shapes.pixels.tolist() == [26, 10]
    assert [len(outline.interiors) for outline in shapes.outlines] == [1, 1]
    outer, inner = shapes.outlines
    assert shapely.Polygon(outer.interiors[0]).contains(inner)
    if edges == "pixel":
        assert inner.interiors[0].equals(shapely.box(4, 4, 6, 5).exterior)
    else:  # half way between 250 and 0, less half a step of the stored values
        assert inner.interiors[0].bounds == pytest.approx((4.002, 4.002, 5.998, 4.998))


@EDGES
@pytest.mark.parametrize("strip_rows", [1, 3, 1000])
def test_spiral_through_every_strip_is_one_polygon(edges, strip_rows):
    values = spiral(62)
    shapes = shapes_of(values, edges=edges, strip_rows=strip_rows)
    assert shapes.pixels.tolist() == [int((values > 0).sum())]
    assert shapely.is_valid(shapes.outlines).all()


def test_checkerboard_has_single_pixels_with_pixel_edges():
    values = np.indices((7, 9)).sum(axis=0) % 2 * np.uint8(250)
    shapes = shapes_of(values, edges="pixel", strip_rows=2)
    assert shapes.pixels.tolist() == [1] * 31
    assert (shapely.area(shapes.outlines) == 1).all()


@pytest.mark.parametrize(("low", "count"), [(0, 25), (1, 1)])
def test_smoke_is_joined_over_a_saddle_if_its_mean_is_smoke(low, count):
    values = np.where(np.indices((7, 7)).sum(axis=0) % 2, low, 249).astype(np.uint8)
    assert len(shapes_of(values)) == count  # a mean of 124.5 is the level itself: apart


def test_corner_of_nodata_keeps_diagonal_smoke_apart():
    assert len(shapes_of(drawn(["#x", ".#"]))) == 2
    assert len(shapes_of(np.array([[250, 124], [124, 250]]))) == 1


def test_smoke_that_closes_over_a_corner_has_a_hole_that_touches_its_outline():
    (outline,) = shapes_of(drawn(["###", "#.#", "##."]), edges="pixel").outlines
    assert outline.is_valid
    assert outline.area == 7
    assert len(outline.interiors) == 1


def test_touches_nodata_looks_at_all_eight_neighbours_across_strips():
    values = np.zeros((8, 8), np.uint8)
    values[2, 2] = values[5, 5] = values[0, 6] = 200
    values[3, 3] = NODATA
    for strip_rows in (1, 2, 3, 4, 100):
        shapes = shapes_of(values, strip_rows=strip_rows)
        assert shapes.touches_nodata.tolist() == [False, True, False]
        assert shapes.touches_edge.tolist() == [True, False, False]


@EDGES
def test_core_keeps_polygons_that_are_strong_somewhere(edges):
    values = np.zeros((5, 9), np.uint8)
    values[1:3, 1:3], values[1:4, 5:8], values[2, 6] = 174, 150, 175
    assert shapes_of(values, edges=edges).pixels.tolist() == [4, 9]
    assert shapes_of(values, edges=edges, core=0.7).pixels.tolist() == [9]
    assert len(shapes_of(values, edges=edges, core=0.71)) == 0


def test_threshold_is_met_by_the_stored_step_itself():
    assert len(shapes_of([[150]], 0.6)) == 1
    assert len(shapes_of([[149]], 0.6)) == 0
    assert len(shapes_of([[250, 249]], 1.0)) == 1


def test_smooth_edges_are_nearer_to_a_disc_than_pixel_edges():
    row, column = np.mgrid[:80, :80] + 0.5
    distance = np.hypot(column - 40.3, row - 39.6)
    values = np.rint(250 / (1 + np.exp((distance - 25) / 2))).astype(np.uint8)
    truth = shapely.Point(40.3, 39.6).buffer(25, quad_segs=200)
    error = {}
    for edges in ("smooth", "pixel"):
        (outline,) = shapes_of(values, edges=edges).outlines
        error[edges] = outline.symmetric_difference(truth).area / truth.area
        vertices = shapely.get_coordinates(outline)
        error[edges, "radius"] = abs(np.hypot(*(vertices - (40.3, 39.6)).T) - 25).max()
    assert error["smooth"] < 0.004 < 0.02 < error["pixel"]
    assert error["smooth", "radius"] < 0.06 < 0.5 < error["pixel", "radius"]


@pytest.mark.parametrize("seed", range(3))
def test_smooth_area_agrees_with_pixel_area(seed):
    values = smooth_field(400, seed)
    area = shapely.area(shapes_of(values).outlines).sum()
    assert area == pytest.approx(is_smoke(values).sum(), rel=0.02)


def test_holes_have_their_vertices_between_the_pixel_centres():
    values = np.full((5, 5), 200, np.uint8)
    values[2, 2] = 100  # the level, 124.5, lies 24.5 of 100 steps out from the centre
    (outline,) = shapes_of(values).outlines
    (hole,) = outline.interiors
    np.testing.assert_allclose(
        sorted(hole.coords[:-1]), [(2.255, 2.5), (2.5, 2.255), (2.5, 2.745), (2.745, 2.5)]
    )


def test_shells_and_holes_have_fixed_directions_and_starts():
    for edges in ("smooth", "pixel"):
        for outline in shapes_of(drawn(RINGS), edges=edges).outlines:
            assert outline.exterior.is_ccw
            assert not outline.interiors[0].is_ccw
            for ring in (outline.exterior, *outline.interiors):
                assert ring.coords[0] == min(ring.coords, key=lambda xy: (xy[1], xy[0]))


@EDGES
def test_a_raster_on_disk_gives_what_its_values_give(edges):
    values = smooth_field(100, sigma=2.5)
    values[:30, :20] = NODATA
    with stored(values) as raster:
        shapes = vectorize(raster, 0.5, edges=edges, strip_rows=30)
    assert len(shapes) > 10
    assert frozen(shapes) == frozen(shapes_of(values, edges=edges))


def test_take_chooses_polygons_by_flag_or_number():
    shapes = shapes_of(drawn(["#.#.#"]))
    assert len(shapes.take(np.array([True, False, True]))) == 2
    assert shapes.take(np.array([2])).outlines[0].bounds[2] == 5


def test_progress_is_told_of_every_strip():
    seen = []

    def progress(items, label, total):
        seen.append((label, total, list(items)))
        return seen[0][2]

    shapes_of(np.zeros((10, 3)), strip_rows=4, progress=progress)
    assert seen == [("strips outlined", 3, [0, 4, 8])]


@pytest.mark.parametrize(
    "options", [{"edges": "round"}, {"strip_rows": 0}, {"core": 2.0}, {"threshold": 0.0}]
)
def test_senseless_options_are_refused(options):
    with pytest.raises(UsageError):
        shapes_of([[0]], **options)
