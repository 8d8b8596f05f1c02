"""Failures that other tools do not notice: no error, and a plausible map that is wrong.

Those of damaged files, transforms, bands and units are cases in `test_refusals.py` and
`test_going_on.py`; these need the real network, several runs or an environment. Those of
training are elsewhere: masks of 0 and 255 in `tests/cli/test_prepare.py`, a loss that is not a
number in `tests/test_train.py`.
"""

from __future__ import annotations

import json

import numpy as np
import pyproj
import pytest
import rasterio
from bright_engine import NAMES
from faults.judging import assert_done, assert_refused, contents, pixels_of, polygons
from faults.scenes import PLACE, SIZE, TILED, cube, cut_short, plume, write_scene, write_text
from rasterio.transform import Affine

SMOKE = plume()


@pytest.fixture
def probabilities(tmp_path, model, run):
    """Run the real network; return the stored probabilities."""

    def predict(path, *options):
        prob = tmp_path / f"{path.stem}-p.tif"
        args = ("--out", tmp_path / f"{path.stem}.gpkg", "--prob", prob, "--threads", "1")
        assert_done(run("predict", path, *args, "--model", model, *options))
        with rasterio.open(prob) as src:
            return src.read(1)

    return predict


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -9999, -3.4028234663852886e38])
def test_one_bad_pixel_spoils_nothing_but_itself(value, tmp_path, probabilities) -> None:
    """A2 1 and 2: whatever the bad number is, the map is that of a pixel left out."""
    pixels = cube(SMOKE, dtype="float32")
    pixels[2, 30, 40] = 0
    declared = write_scene(tmp_path / "declared.tif", pixels, nodata=0)
    pixels[2, 30, 40] = value
    odd = write_scene(tmp_path / "odd.tif", pixels)
    expected, found = probabilities(declared), probabilities(odd)
    assert found[30, 40] == 255
    assert (found == 255).sum() == 1
    np.testing.assert_array_equal(found, expected)


def test_a_pixel_is_valid_only_if_all_used_bands_are(tmp_path, model, bright, run) -> None:
    """A2 3: a third of each band is missing, elsewhere in each; a band not used does not count."""
    pixels = np.concatenate([cube(SMOKE), np.full((1, *SIZE), 500, "uint16")])
    for band in range(4):
        pixels[band, :, band * 7 : band * 7 + 25] = 0
    pixels[4] = 0
    path = write_scene(tmp_path / "scene.tif", pixels, names=(*NAMES, "10900nm"), nodata=0)
    out = tmp_path / "a.gpkg"
    assert_done(run("predict", path, "--out", out, "--model", model, "--edges", "pixel"))
    expected = SMOKE.copy()
    expected[:, : 3 * 7 + 25] = False
    np.testing.assert_array_equal(pixels_of(out, PLACE, SIZE), expected)


def test_opening_is_no_proof(tmp_path, model, bright, run) -> None:
    """A2 5: cut anywhere, a scene is never taken for a whole one."""
    noise = np.random.default_rng(0).integers(0, 9000, (4, 64, 64)).astype("uint16")
    whole = write_scene(tmp_path / "whole.tif", noise, names=None, compress="deflate", **TILED)
    data = whole.read_bytes()
    bands = ("--bands", ",".join(NAMES))
    for share in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 3 / len(data)):
        path = write_text(tmp_path / "cut.tif", data[: int(share * len(data))])
        result = run("predict", path, "--out", tmp_path / "a.gpkg", "--model", model, *bands)
        assert result.exit_code == 3, (share, result.output)
    assert not (tmp_path / "a.gpkg").exists()
    assert_done(run("predict", whole, "--out", tmp_path / "a.gpkg", "--model", model, *bands))


def test_a_part_of_a_file_cut_short_needs_a_word(tmp_path, model, bright, run) -> None:
    """The part asked for may be whole; that the file is not must be said all the same."""
    path = write_scene(tmp_path / "scene.tif", names=None, **TILED)
    cut_short(path, 0.9)
    options = ("--bands", ",".join(NAMES), "--window", "0,0,30,30", "--model", model)
    result = run("predict", path, "--out", tmp_path / "a.gpkg", *options)
    assert_refused(result, 3, "cut short.*--skip-damaged", {})
    assert_done(run("predict", path, "--out", tmp_path / "a.gpkg", *options, "--skip-damaged"))


def beside(folder, kind):
    if kind == "tfw":
        path = write_scene(folder / "scene.tif", transform=None)
        write_text(folder / "scene.tfw", "20\n0\n0\n-20\n500010\n5499990\n")
    elif kind == "msk":
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False):
            valid = np.ones(SIZE, bool)
            valid[20:40] = False
            path = write_scene(folder / "scene.tif", mask=valid)
        assert (folder / "scene.tif.msk").is_file()
    else:
        path = write_scene(folder / "scene.tif")
        numbers = ", ".join(map(str, (PLACE @ Affine.translation(50, 50)).to_gdal()))
        inner = f"<GeoTransform>{numbers}</GeoTransform>"
        write_text(folder / "scene.tif.aux.xml", f"<PAMDataset>{inner}</PAMDataset>")
    return path


@pytest.mark.parametrize("kind", ["tfw", "msk", "aux.xml"])
@pytest.mark.parametrize("setting", ["EMPTY_DIR", "TRUE", "FALSE"])
def test_a_setting_of_gdal_does_not_change_the_map(
    kind, setting, tmp_path, model, bright, run
) -> None:
    """A2 8: files beside the scene are read whatever the environment says (TorchGeo sets this)."""
    path = beside(tmp_path / "in", kind)
    args = ("--model", model, "--edges", "pixel")
    assert_done(run("predict", path, "--out", tmp_path / "a.gpkg", *args))
    with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN=setting):
        assert_done(run("predict", path, "--out", tmp_path / "b.gpkg", *args))
    files = contents(tmp_path)
    assert files["a.gpkg"] == files["b.gpkg"]


def test_scale_and_offset_count(tmp_path, probabilities) -> None:
    """A2 9: reflectances stored as whole numbers give the map of the reflectances."""
    stored = cube(SMOKE, dark=2000, bright=9000)
    as_floats = (stored * 1e-4 - 0.1).astype("float32")
    tagged = write_scene(tmp_path / "tagged.tif", stored, scales=(1e-4,) * 4, offsets=(-0.1,) * 4)
    plain = write_scene(tmp_path / "plain.tif", as_floats)
    difference = probabilities(tagged).astype(int) - probabilities(plain)
    assert np.abs(difference).max() <= 1  # the last bit of a float


def test_geojson_without_a_code_is_in_degrees(tmp_path, model, bright, run) -> None:
    """A2 10."""
    crs = "+proj=tmerc +lat_0=0 +lon_0=14.9 +k=1 +x_0=12 +y_0=34 +ellps=GRS80"
    place = Affine(20, 0, 1000, 0, -20, 5_500_000)
    path = write_scene(tmp_path / "scene.tif", crs=crs, transform=place)
    assert_done(run("predict", path, "--out", tmp_path / "a.geojson", "--model", model))
    data = json.loads((tmp_path / "a.geojson").read_text("utf-8"))
    assert "crs" not in data
    west, south, east, north = polygons(tmp_path / "a.geojson").total_bounds
    assert 14.8 < west < east < 15.1
    assert 49 < south < north < 50


def test_least_areas_are_square_metres_in_degrees_too(tmp_path, model, bright, run) -> None:
    """A2 11."""
    smoke = np.zeros(SIZE, bool)
    smoke[5, 5] = True
    smoke[20:30, 20:30] = True
    pixel = Affine(0.001, 0, 14.2, 0, -0.001, 60.0)
    path = write_scene(tmp_path / "scene.tif", smoke, crs="EPSG:4326", transform=pixel)
    options = ("--min-area", "40000", "--edges", "pixel")
    assert_done(run("predict", path, "--out", tmp_path / "a.gpkg", "--model", model, *options))
    (area_m2,) = polygons(tmp_path / "a.gpkg")["area_m2"]
    lon, lat = (14.22, 14.23, 14.23, 14.22), (59.97, 59.97, 59.98, 59.98)
    expected, _ = pyproj.Geod(ellps="WGS84").polygon_area_perimeter(lon, lat)
    assert area_m2 == pytest.approx(abs(expected), rel=1e-4)


def test_no_scene_of_several_is_passed_over(tmp_path, model, bright, run) -> None:
    """A2 15: one that cannot be opened is counted, named and in the exit code."""
    good = write_scene(tmp_path / "good.tif")
    bad = write_text(tmp_path / "bad.tif", b"II*\0" + b"\xff" * 100)
    result = run("predict", bad, good, "--out-dir", tmp_path / "out", "--model", model)
    assert result.exit_code == 3
    assert "1 of 2 scenes done" in result.stdout
    assert "failed" in result.stdout
    assert "bad.tif" in result.stdout
    assert sum(line.startswith("Error:") for line in result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (1e300, ()),
        (-1e300, ()),
        (3e38, ("--scale", "1000")),
    ],
)
def test_the_network_never_sees_what_is_not_a_number(
    value, options, tmp_path, model, bright, run
) -> None:
    """The stand-in asserts it; here with numbers that are too large for 32 bits."""
    pixels = cube(SMOKE, dtype="float64")
    if options:
        pixels /= 1000
    pixels[:, 10:12] = value
    path = write_scene(tmp_path / "scene.tif", pixels)
    out = tmp_path / "a.gpkg"
    assert_done(
        run("predict", path, "--out", out, "--model", model, "--edges", "pixel", *options),
        "2.9 % of it could not be analysed",
    )
    expected = SMOKE.copy()
    expected[10:12] = False
    np.testing.assert_array_equal(pixels_of(out, PLACE, SIZE), expected)
