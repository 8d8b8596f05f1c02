"""Polygons land where the pixels are, whatever the transform and the coordinate system."""

from __future__ import annotations

import json

import geopandas
import numpy as np
import pyproj
import pytest
import shapely
from bright_engine import BrightEngine
from click.testing import CliRunner
from faults.judging import assert_done, pixels_of, polygons
from faults.scenes import PLACE, SIZE, UTM33, plume, write_scene
from rasterio.crs import CRS
from rasterio.transform import Affine

from smokegeo.cli import cli

SMOKE = plume()
CORNER = Affine.translation(500_000, 5_500_000)
#: Astride the antimeridian at 63 degrees north; the smoke is on both sides.
ANTIMERIDIAN = Affine(200, 0, 341_500, 0, -200, 6_990_000)
NO_CODE = CRS.from_proj4("+proj=laea +lat_0=50.3 +lon_0=14.7 +x_0=11 +y_0=7 +ellps=bessel +units=m")
NO_CODE_PLACE = Affine.translation(3000, 2000) @ Affine.scale(30, -30)
SOUTH_POLE = Affine.translation(-90_000, 70_000) @ Affine.scale(20, -20)

PLACES = {
    "plain": (UTM33, PLACE),
    "rotated": (UTM33, CORNER @ Affine.rotation(33) @ Affine.scale(20, -20)),
    "sheared": (UTM33, CORNER @ Affine.shear(20, 10) @ Affine.scale(20, -20)),
    "oblong": (UTM33, CORNER @ Affine.rotation(-71) @ Affine.scale(30, -7)),
    "south up": (UTM33, CORNER @ Affine.scale(20, 20)),
    "mirrored": (UTM33, CORNER @ Affine.scale(-20, -20)),
    "turned by 180 degrees": (UTM33, CORNER @ Affine.scale(-20, 20)),
    "rows are columns": (UTM33, CORNER @ Affine(0, 20, 0, 20, 0, 0)),
    "geographic": ("EPSG:4326", Affine(0.0002, 0, 14.2, 0, -0.0001, 60.0)),
    "geographic beyond 180": ("EPSG:4326", Affine(0.001, 0, 179.97, 0, -0.001, -17)),
    "geographic 0 to 360": ("EPSG:4326", Affine(0.001, 0, 301.0, 0, -0.001, -17)),
    "feet": ("EPSG:2263", Affine(60, 0, 980_000, 0, -60, 200_000)),
    "antimeridian": ("EPSG:32601", ANTIMERIDIAN),
    "no EPSG code": (NO_CODE, NO_CODE_PLACE),
    "web map": ("EPSG:3857", Affine(40, 0, 1_600_000, 0, -40, 6_500_000)),
    "north before east": ("EPSG:31468", Affine(20, 0, 4_500_000, 0, -20, 5_500_000)),
    "compound": ("EPSG:32633+5773", PLACE),
    "south pole": ("EPSG:3031", SOUTH_POLE),
    "drone": (UTM33, CORNER @ Affine.scale(0.02, -0.02)),
}


@pytest.fixture(scope="module", params=PLACES)
def placed(request, tmp_path_factory, model):
    """Run predict on a scene in each place; return CRS, transform and the outputs by suffix."""
    crs, transform = PLACES[request.param]
    folder = tmp_path_factory.mktemp("place")
    path = write_scene(folder / "scene.tif", crs=crs, transform=transform)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smokegeo.pipeline.Engine", BrightEngine)
        for suffix in (".gpkg", ".geojson"):
            found[suffix] = folder / f"smoke{suffix}"
            args = ["predict", path, "--out", found[suffix], "--model", model, "--edges", "pixel"]
            assert_done(CliRunner().invoke(cli, [str(arg) for arg in args]))
    return CRS.from_user_input(crs), transform, found


def test_polygons_land_where_the_pixels_are(placed) -> None:
    crs, transform, found = placed
    # In the scene's own coordinates: to the pixel.
    np.testing.assert_array_equal(pixels_of(found[".gpkg"], transform, SIZE), SMOKE)
    own = polygons(found[".gpkg"])
    assert pyproj.CRS(own.crs).equals(pyproj.CRS.from_wkt(crs.to_wkt()), ignore_axis_order=True)
    # The exact area, in pixels.
    area = sum(shapely.area(own.geometry)) / abs(transform.determinant)
    assert area == pytest.approx(SMOKE.sum(), rel=1e-6)
    assert own["pixels"].sum() == SMOKE.sum()


def test_geojson_is_the_same_on_earth(placed) -> None:
    """Every pixel's centre, brought to longitude and latitude, is in the smoke or not."""
    crs, transform, found = placed
    rows, columns = np.indices(SIZE) + 0.5
    a, b, c, d, e, f = tuple(transform)[:6]
    x, y = a * columns + b * rows + c, d * columns + e * rows + f
    to_earth = pyproj.Transformer.from_crs(
        pyproj.CRS.from_wkt(crs.to_wkt()), "OGC:CRS84", always_xy=True
    )
    lon, lat = to_earth.transform(x, y)
    lon = (lon + 180) % 360 - 180
    smoke = polygons(found[".geojson"])
    assert smoke.crs == "EPSG:4326"
    whole = shapely.union_all(smoke.geometry.to_numpy())
    np.testing.assert_array_equal(shapely.contains_xy(whole, lon, lat), SMOKE)
    west, south, east, north = whole.bounds
    assert -180 <= west <= east <= 180
    assert -90 <= south <= north <= 90


def test_geojson_follows_the_rfc(placed) -> None:
    _, _, found = placed
    data = json.loads(found[".geojson"].read_text("utf-8"))
    assert "crs" not in data
    for feature in data["features"]:
        shape = shapely.geometry.shape(feature["geometry"])
        assert shape.is_valid
        for part in shapely.get_parts(shape):
            assert part.exterior.is_ccw
            assert not any(ring.is_ccw for ring in part.interiors)


def test_areas_are_square_metres_on_the_ground(placed) -> None:
    """Measured on the ellipsoid from the GeoJSON, by another way than ours."""
    _, _, found = placed
    smoke = polygons(found[".geojson"])
    geod = pyproj.Geod(ellps="WGS84")
    for shape, area_m2 in zip(smoke.geometry, smoke["area_m2"], strict=True):
        ours, _ = geod.geometry_area_perimeter(shape)
        assert abs(ours) == pytest.approx(area_m2, rel=2e-3, abs=0.05)


def test_at_the_antimeridian_the_smoke_is_cut_in_two(tmp_path, model, bright, run) -> None:
    path = write_scene(tmp_path / "scene.tif", crs="EPSG:32601", transform=ANTIMERIDIAN)
    assert_done(run("predict", path, "--out", tmp_path / "a.geojson", "--model", model))
    smoke = polygons(tmp_path / "a.geojson")
    large = smoke.geometry.iloc[0]
    assert large.geom_type == "MultiPolygon"
    west, _, east, _ = zip(*(part.bounds for part in large.geoms), strict=True)
    assert max(west) > 179
    assert min(east) < -179
    assert all(right - left < 1 for left, right in zip(west, east, strict=True))


@pytest.mark.parametrize("place", ["rotated", "geographic", "antimeridian", "feet", "south up"])
def test_a_bbox_cuts_the_right_part(place, tmp_path, model, bright, run) -> None:
    """The box around a few pixels, in degrees, finds their smoke and nothing moves."""
    crs, transform = PLACES[place]
    path = write_scene(tmp_path / "scene.tif", crs=crs, transform=transform)
    wanted = shapely.transform(
        shapely.box(25, 10, 45, 30), lambda xy: np.array([transform @ tuple(p) for p in xy])
    )
    geographic = geopandas.GeoSeries([wanted], crs=CRS.from_user_input(crs)).to_crs("OGC:CRS84")
    lon, lat = shapely.get_coordinates(geographic.iloc[0]).T
    if np.ptp(lon) > 180:
        lon = lon % 360
    west, east = ((value + 180) % 360 - 180 for value in (lon.min(), lon.max()))
    out = tmp_path / "a.gpkg"
    box = f"--bbox={west:.9f},{lat.min():.9f},{east:.9f},{lat.max():.9f}"
    assert_done(run("predict", path, box, "--out", out, "--model", model, "--edges", "pixel"))
    found = pixels_of(out, transform, SIZE)
    np.testing.assert_array_equal(found[10:30, 25:45], SMOKE[10:30, 25:45])
    assert not (found & ~SMOKE).any()


@pytest.mark.parametrize("suffix", [".fgb", ".parquet"])
def test_other_formats_hold_the_same(suffix, tmp_path, model, bright, run) -> None:
    crs, transform = PLACES["rotated"]
    path = write_scene(tmp_path / "scene.tif", crs=crs, transform=transform)
    out = tmp_path / f"smoke{suffix}"
    assert_done(run("predict", path, "--out", out, "--model", model, "--edges", "pixel"))
    frame = geopandas.read_parquet(out) if suffix == ".parquet" else polygons(out)
    assert frame.crs == UTM33
    frame.to_file(tmp_path / "again.gpkg", layer="smoke")
    np.testing.assert_array_equal(pixels_of(tmp_path / "again.gpkg", transform, SIZE), SMOKE)


def test_the_probability_raster_lies_on_the_scene(tmp_path, model, bright, run) -> None:
    import rasterio

    crs, transform = PLACES["sheared"]
    path = write_scene(tmp_path / "scene.tif", crs=crs, transform=transform)
    prob = tmp_path / "p.tif"
    window = ("--window", "30,20,40,30", "--prob", prob)
    assert_done(run("predict", path, "--out", tmp_path / "a.gpkg", "--model", model, *window))
    with rasterio.open(prob) as src:
        assert src.transform.almost_equals(transform @ Affine.translation(30, 20))
        assert src.crs == CRS.from_user_input(crs)
        np.testing.assert_array_equal(src.read(1) == 250, SMOKE[20:50, 30:70])
