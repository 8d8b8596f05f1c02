"""`smokegeo vectorize`: polygons lie where the probabilities do, and tell how they were made."""

from __future__ import annotations

import json
import warnings

import geopandas
import numpy as np
import pytest
import rasterio
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.errors import NotGeoreferencedWarning
from rasterio.rpc import RPC
from rasterio.transform import Affine

from smokegeo.probability import create

PLACE = Affine(10, 0, 500_000, 0, -10, 5_500_000)
UTM = CRS.from_epsg(32633)


def write_prob(path, *, crs=UTM, transform=PLACE, **tags):
    values = np.zeros((30, 40), np.uint8)
    values[5:15, 10:30] = 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with create(path, 40, 30, crs=crs, transform=transform) as dst:
            dst.write(values, 1)
            dst.update_tags(threshold="0.5", **tags)
    return path


@pytest.fixture
def nowhere(tmp_path):
    """A raster with a transform that no coordinate system explains."""
    return write_prob(tmp_path / "p.tif", crs=None)


@pytest.fixture
def pixels(tmp_path):
    """A raster as `predict --pixel-coords` writes it."""
    return write_prob(tmp_path / "p.tif", crs=None, transform=None)


def refusal(result, code):
    assert result.exit_code == code, result.output
    (line,) = result.output.splitlines()
    return line


def test_coordinates_without_a_system_are_not_taken_for_pixels(run, nowhere, tmp_path):
    text = refusal(run("vectorize", nowhere, "--out", tmp_path / "s.gpkg"), 3)
    assert "p.tif has no coordinate system" in text
    assert "--crs EPSG:32633" in text
    assert "--pixel-coords" in text
    assert not (tmp_path / "s.gpkg").exists()


def test_the_system_can_be_given(run, nowhere, tmp_path):
    out = tmp_path / "s.gpkg"
    result = run("vectorize", nowhere, "--out", out, "--crs", "EPSG:32633", "--edges", "pixel")
    assert result.exit_code == 0, result.output
    found = geopandas.read_file(out, layer="smoke")
    assert found.crs == UTM
    assert found.total_bounds.tolist() == [500_100, 5_499_850, 500_300, 5_499_950]


def test_a_system_of_its_own_is_not_overruled(run, tmp_path):
    prob = write_prob(tmp_path / "p.tif")
    result = run("vectorize", prob, "--out", tmp_path / "s.gpkg", "--crs", "EPSG:32633")
    assert "has a coordinate system already" in refusal(result, 2)


@pytest.mark.parametrize("kind", ["gcps", "rpcs"])
def test_control_points_and_polynomials_are_no_pixel_coordinates(run, pixels, tmp_path, kind):
    ones, corners = [1.0] + [0.0] * 19, ((0, 0), (0, 40), (30, 0), (30, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(pixels, "r+") as dst:
            if kind == "gcps":
                dst.gcps = ([GroundControlPoint(r, c, 15 + c, 50 - r) for r, c in corners], UTM)
            else:
                dst.rpcs = RPC(0, 1, 50, 1, ones, ones, 0, 1, 15, 1, ones, ones, 0, 1)
    result = run("vectorize", pixels, "--out", tmp_path / "s.gpkg")
    assert "Rectify it first" in refusal(result, 3)
    result = run("vectorize", pixels, "--out", tmp_path / "s.gpkg", "--pixel-coords")
    assert result.exit_code == 0, result.output
    assert geopandas.read_file(tmp_path / "s.gpkg", layer="smoke").crs is None


def test_a_photographs_probabilities_become_polygons_in_pixels(run, pixels, tmp_path):
    result = run("vectorize", pixels, "--out", tmp_path / "s.gpkg", "--edges", "pixel")
    assert result.exit_code == 0, result.output
    found = geopandas.read_file(tmp_path / "s.gpkg", layer="smoke")
    assert found.crs is None
    assert found.total_bounds.tolist() == [10, -15, 30, -5]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--min-area", "9"), "Drop --min-area."),
        (("--crs", "EPSG:32633"), "has no georeference"),
        (("--crs", "EPSG:32633", "--pixel-coords"), "drop it or --crs"),
    ],
)
def test_what_pixels_cannot_have_is_refused_with_a_remedy_that_is_there(
    run, pixels, tmp_path, options, remedy
):
    result = run("vectorize", pixels, "--out", tmp_path / "s.gpkg", *options)
    assert result.exit_code in (2, 3)
    assert remedy in result.output
    assert result.output.count("\n") == 1


def facts_of(path):
    return json.loads(path.read_text("utf-8"))["provenance"]


def test_the_options_are_those_of_the_raster_with_the_new_outlines(run, tmp_path):
    made = {"edges": "smooth", "core": None, "min_area_m2": 0.0, "simplify_px": 0.0, "tta": "flip"}
    prob = write_prob(tmp_path / "p.tif", options=json.dumps(made), damaged_blocks="3")
    out = tmp_path / "s.geojson"
    options = ("--edges", "pixel", "--core", "0.7", "--min-area", "50", "--simplify", "0.5")
    assert run("vectorize", prob, "--out", out, *options).exit_code == 0
    facts = facts_of(out)
    new = {"edges": "pixel", "core": 0.7, "min_area_m2": 50.0, "simplify_px": 0.5}
    assert json.loads(facts["options"]) == {**new, "tta": "flip"}
    assert facts["damaged_blocks"] == "3"


@pytest.mark.parametrize("text", [None, "no json", "[1]", "[" * 100_000])
def test_a_raster_of_another_program_need_not_tell_its_options(run, tmp_path, text):
    tags = {} if text is None else {"options": text}
    prob = write_prob(tmp_path / "p.tif", **tags)
    result = run("vectorize", prob, "--out", tmp_path / "s.geojson", "--core", "0.6")
    assert result.exit_code == 0, result.output
    assert json.loads(facts_of(tmp_path / "s.geojson")["options"]) == {
        "edges": "smooth",
        "core": 0.6,
        "min_area_m2": 0.0,
        "simplify_px": 0.0,
    }


def test_names_of_files_cannot_steer_a_terminal(run, tmp_path):
    prob = write_prob(tmp_path / "p\r\x07.tif")
    result = run("vectorize", prob, "--out", tmp_path / "s.gpkg")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("p\ufffd\ufffd.tif: 1 smoke polygon")
