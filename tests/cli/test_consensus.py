"""`smokegeo consensus` from files to files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rasterio.crs import CRS
from rasterio.transform import from_origin

from smokegeo.cubes import make_cube, write_cube
from smokegeo.labels import Place, read_labels, write_labels
from smokegeo.sensors import sensor

HERE = Place(CRS.from_epsg(32633), from_origin(5e5, 5e6, 10, 10))
ROWS = ([1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0])


@pytest.fixture
def masks(tmp_path):
    paths = []
    for number, row in enumerate(ROWS):
        paths.append(tmp_path / f"annotator{number}.tif")
        write_labels(paths[-1], np.array([row] * 3, np.uint8), HERE)
    return paths


def test_writes_mask_votes_and_the_papers_statistics(run, masks, tmp_path):
    out = tmp_path / "mask.tif"
    result = run("consensus", *masks, "--out", out)
    assert result.exit_code == 0
    assert read_labels(out).values.tolist() == [[1, 1, 0, 0]] * 3
    assert read_labels(out).place == HERE
    assert (tmp_path / "mask_votes.tif").is_file()
    assert "marked by anyone: 3/3 33.33 %, 2/3 33.33 %, 1/3 33.33 %" in result.output
    assert "in the mask:      3/3 50.00 %, 2/3 50.00 %" in result.output


def test_json_is_for_machines(run, masks, tmp_path):
    result = run("consensus", *masks, "--out", tmp_path / "mask.png", "--json")
    facts = json.loads(result.stdout)
    assert facts["pixels_marked"] == 9
    assert facts["share_of_mask"] == {"3": 0.5, "2": 0.5}
    assert facts["votes"].endswith("mask_votes.png")


def test_writes_the_grey_image_annotators_saw(run, masks, tmp_path):
    cube = tmp_path / "cube.tif"
    values = np.random.default_rng(0).integers(0, 999, (4, 3, 4)).astype(np.uint16)
    write_cube(make_cube(values, sensor("mss").bands, crs=HERE.crs, transform=HERE.transform), cube)
    grey = tmp_path / "grey.png"
    result = run("consensus", *masks, "--out", tmp_path / "m.png", "--cube", cube, "--grey", grey)
    assert result.exit_code == 0
    assert grey.is_file()


def faulty(tmp_path, masks, name):
    out = tmp_path / "mask.tif"
    if name == "two masks":
        return [*masks[:2], "--out", out]
    if name == "sizes differ":
        write_labels(masks[0], np.zeros((3, 5), np.uint8), HERE)
    if name == "odd values":
        write_labels(masks[0], np.full((3, 4), 7, np.uint8), HERE)
    if name == "elsewhere":
        write_labels(masks[0], np.ones((3, 4), np.uint8), Place(HERE.crs, from_origin(0, 0, 9, 9)))
    if name == "no tiff":
        masks[0].write_text("<!doctype html>")
    if name == "exists":
        out.write_text("mine")
    if name == "grey alone":
        return [*masks, "--out", out, "--grey", tmp_path / "g.png"]
    if name == "onto input":
        return [*masks, "--out", masks[1], "--overwrite"]
    if name == "no folder":
        return [*masks, "--out", tmp_path / "nowhere" / "mask.tif"]
    return [*masks, "--out", out]


@pytest.mark.parametrize(
    ("name", "code", "fact"),
    [
        ("two masks", 2, "three annotators or more"),
        ("sizes differ", 3, "differ in size"),
        ("odd values", 3, "mask values 7"),
        ("elsewhere", 3, "lies elsewhere"),
        ("no tiff", 3, "cannot be read"),
        ("exists", 2, "exists already"),
        ("grey alone", 2, "go together"),
        ("onto input", 2, "is one of the inputs"),
        ("no folder", 2, "does not exist"),
    ],
)
def test_faults_are_one_line_and_leave_everything_as_it_was(run, masks, tmp_path, name, code, fact):
    args = faulty(tmp_path, masks, name)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = run("consensus", *args)
    assert result.exit_code == code
    assert [line[:6] for line in result.output.splitlines()] == ["Error:"]
    assert fact in result.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
