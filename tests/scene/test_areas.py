"""Parts of a scene, named in pixels or in degrees."""

from __future__ import annotations

import re

import numpy as np
import pyproj
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from rasterio.transform import Affine, from_origin
from toy_scenes import scene_of

from smokegeo.errors import InputError, UsageError
from smokegeo.labels import Place
from smokegeo.scene.areas import bbox_box, window_box
from smokegeo.scene.layers import Box


def scene(crs=32633, transform=None, width=100, height=80):
    """A scene of 10 m pixels whose first corner is 15 E, about 49.65 N."""
    transform = transform or from_origin(500_000, 5_500_000, 10, 10)
    place = Place(None if crs is None else CRS.from_epsg(crs), transform)
    return scene_of(np.broadcast_to(np.uint8(1), (1, height, width)), place=place)


def degrees(crs, transform, column, row):
    to_lonlat = pyproj.Transformer.from_crs(crs, "OGC:CRS84", always_xy=True)
    return to_lonlat.transform(*(transform @ (column, row)))


# In pixels


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("0,0,100,80", Box(0, 0, 100, 80)),
        ("10,20,5,6", Box(10, 20, 5, 6)),
        (" 10, 20 ,5,6", Box(10, 20, 5, 6)),
        ("90,70,50,50", Box(90, 70, 10, 10)),
        ("-5,-5,10,10", Box(0, 0, 5, 5)),
        ("99,79,1,1", Box(99, 79, 1, 1)),
    ],
)
def test_a_window_is_cut_to_the_scene(text, box):
    assert window_box(text, scene()) == box
    assert window_box(text, scene(crs=None)) == box


@pytest.mark.parametrize("text", ["", "1,2,3", "1,2,3,4,5", "a,b,c,d", "1.5,2,3,4", "0,0,0,5"])
def test_a_window_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="--window"):
        window_box(text, scene())


@pytest.mark.parametrize("text", ["100,0,5,5", "0,80,5,5", "-9,0,9,5"])
def test_a_window_beside_the_scene_is_refused(text):
    with pytest.raises(
        InputError, match=f"--window {text} does not touch array, which is 100 x 80"
    ):
        window_box(text, scene())


# In degrees


@given(st.integers(0, 90), st.integers(0, 70), st.integers(1, 30), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_a_box_in_degrees_holds_all_pixels_inside_it_and_few_more(column, row, width, height):
    transform = from_origin(500_000, 5_500_000, 10, 10)
    corners = [
        degrees(32633, transform, column + dx * width, row + dy * height)
        for dx in (0, 1)
        for dy in (0, 1)
    ]
    lon, lat = zip(*corners, strict=True)
    box = bbox_box(f"{min(lon)},{min(lat)},{max(lon)},{max(lat)}", scene())
    right, bottom = min(100, column + width), min(80, row + height)
    assert box.column <= column <= box.column + 1
    assert box.row <= row <= box.row + 1
    assert right <= box.column + box.width <= right + 1
    assert bottom <= box.row + box.height <= bottom + 1


def test_a_box_in_a_scene_of_degrees_is_exact():
    here = scene(4326, from_origin(14, 51, 0.01, 0.01))
    assert bbox_box("14.2,50.5,14.5,50.9", here) == Box(20, 10, 30, 40)
    assert bbox_box("-10,0,80,80", here) == Box(0, 0, 100, 80)
    assert bbox_box("14.205,50.505,14.206,50.506", here) == Box(20, 49, 1, 1)


def test_a_large_box_in_a_curved_system_reaches_as_far_as_its_edges_bend():
    # In a polar projection the middle of an edge lies further out than its corners.
    polar = scene(3995, from_origin(-4_000_000, 4_000_000, 80_000, 80_000), 100, 100)
    box = bbox_box("-45,60,45,89", polar)
    to_polar = pyproj.Transformer.from_crs("OGC:CRS84", 3995, always_xy=True)
    x, y = to_polar.transform(0.0, 60.0)
    column, row = ~polar.transform @ (x, y)
    assert box.column <= column <= box.column + box.width
    assert box.row <= row <= box.row + box.height
    _, corner = ~polar.transform @ to_polar.transform(45.0, 60.0)
    assert row > corner + 10


def test_a_box_over_the_antimeridian_is_narrow():
    across = from_origin(179.5, 10, 0.01, 0.01)  # 179.5 E to 179.5 W
    for text in ("179.8,9.5,-179.9,9.8", "179.8,9.5,180.1,9.8"):
        assert bbox_box(text, scene(4326, across)) == Box(30, 20, 30, 30), text
    west = from_origin(-180.5, 10, 0.01, 0.01)  # the same place, counted from the other side
    assert bbox_box("179.8,9.5,-179.9,9.8", scene(4326, west)) == Box(30, 20, 30, 30)
    with pytest.raises(InputError, match="does not touch"):
        bbox_box("-179.4,9.5,179.4,9.8", scene(4326, from_origin(179.5, 10, 0.001, 0.001)))


def test_a_box_over_the_antimeridian_in_metres():
    # UTM zone 60 goes on beyond 180 degrees.
    to_utm = pyproj.Transformer.from_crs("OGC:CRS84", 32660, always_xy=True)
    x, y = to_utm.transform(179.9, 10.0)
    here = scene(32660, from_origin(x, y, 300, 300))
    box = bbox_box("179.95,9.85,-179.95,9.95", here)
    assert box.column == pytest.approx(0.05 * 109_600 / 300, abs=2)
    assert box.width == pytest.approx(0.1 * 109_600 / 300, abs=3)


def test_scenes_from_0_to_360_degrees_understand_west():
    here = scene(4326, from_origin(250, 40, 0.1, 0.1))  # 110 W
    assert bbox_box("-109,38,-108,39", here) == Box(10, 10, 10, 10)
    assert bbox_box("251,38,252,39", here) == Box(10, 10, 10, 10)


def test_a_rotated_scene_gets_all_pixels_of_the_box():
    turned = Affine.translation(15, 50) @ Affine.rotation(30) @ Affine.scale(0.01, -0.01)
    here = scene(4326, turned)
    box = bbox_box("15.4,49.8,15.5,49.9", here)
    for lon in (15.4, 15.45, 15.5):
        for lat in (49.8, 49.9):
            column, row = ~turned @ (lon, lat)
            assert box.column - 1e-6 <= column <= box.column + box.width + 1e-6
            assert box.row - 1e-6 <= row <= box.row + box.height + 1e-6


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1,2,3",
        "a,b,c,d",
        "14,50,15,49",
        "14,50,15,50",
        "14,-91,15,50",
        "-200,1,2,3",
        "nan,1,2,3",
    ],
)
def test_a_box_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="is not WEST,SOUTH,EAST,NORTH"):
        bbox_box(text, scene())


def test_a_box_elsewhere_is_refused():
    with pytest.raises(InputError) as caught:
        bbox_box("2,48,3,49", scene())
    assert str(caught.value) == (
        "--bbox 2,48,3,49 does not touch array, which is 15.0,49.64535,15.01385,49.65254 in "
        "degrees (WEST,SOUTH,EAST,NORTH)."
    )
    across, belt = from_origin(179.5, 10, 0.01, 0.01), from_origin(-180, 10, 3.6, 0.1)
    for transform, reach in ((across, "179.5,9.2,180.5,10.0"), (belt, "-180.0,2.0,180.0,10.0")):
        with pytest.raises(InputError, match=f"which is {re.escape(reach)} in degrees"):
            bbox_box("2,48,3,49", scene(4326, transform))


def test_a_box_in_a_scene_of_a_rotated_pole_lies_where_it_should():
    pole = "+proj=ob_tran +o_proj=longlat +o_lon_p=-162 +o_lat_p=39.25 +lon_0=180 +datum=WGS84"
    transform = from_origin(-2, 2, 0.04, 0.05)
    place = Place(CRS.from_user_input(pole), transform)
    here = scene_of(np.broadcast_to(np.uint8(1), (1, 80, 100)), place=place)
    lon, lat = degrees(pyproj.CRS.from_wkt(place.crs.to_wkt()), transform, 50, 40)
    assert abs(lat) > 30  # the middle is near 0, 0 on the rotated globe only
    box = bbox_box(f"{lon - 0.1},{lat - 0.1},{lon + 0.1},{lat + 0.1}", here)
    assert (box.column, box.row) == (pytest.approx(47, abs=2), pytest.approx(38, abs=2))
    assert box.width < 10
    assert box.height < 10


def test_a_box_needs_coordinates():
    with pytest.raises(UsageError, match="use --window"):
        bbox_box("14,50,15,51", scene(crs=None))
