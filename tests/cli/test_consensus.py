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
    grey = tmp_path / "grey.png"
    options = ("--cube", cube(tmp_path), "--grey", grey)
    result = run("consensus", *masks, "--out", tmp_path / "m.png", *options)
    assert result.exit_code == 0
    assert grey.is_file()


def test_the_cube_of_masks_without_a_place_may_have_one(run, masks, tmp_path):
    for number, row in enumerate(ROWS):
        masks[number] = tmp_path / f"{number}.png"
        write_labels(masks[number], np.array([row] * 3, np.uint8), HERE)
    options = ("--cube", cube(tmp_path), "--grey", tmp_path / "grey.png")
    result = run("consensus", *masks, "--out", tmp_path / "m.png", *options)
    assert result.exit_code == 0, result.output


def test_names_of_files_cannot_steer_a_terminal(run, masks, tmp_path):
    result = run("consensus", *masks, "--out", tmp_path / "a\r\x07.png")
    assert result.exit_code == 0, result.output
    assert "a\ufffd\ufffd.png" in result.stdout
    assert "\r" not in result.stdout


def cube(tmp_path, size=(3, 4), place=HERE):
    path = tmp_path / "cube.tif"
    values = np.random.default_rng(0).integers(0, 999, (4, *size)).astype(np.uint16)
    bands = sensor("mss").bands
    write_cube(make_cube(values, bands, crs=place.crs, transform=place.transform), path)
    return path


def faulty(tmp_path, masks, name):
    out = tmp_path / "mask.tif"
    grey = ["--grey", tmp_path / "grey.png"]
    if name == "onto cube":
        path = cube(tmp_path)
        return [*masks, "--out", out, "--cube", path, "--grey", path, "--overwrite"]
    if name == "onto a link":
        (tmp_path / "link.tif").hardlink_to(masks[1])
        return [*masks, "--out", tmp_path / "link.tif", "--overwrite"]
    if name == "no such grey":
        return [*masks, "--out", out, "--cube", cube(tmp_path), "--grey", tmp_path / "grey.jpg"]
    if name == "no such votes":
        return [*masks, "--out", out, "--votes", tmp_path / "votes.jpg"]
    if name == "cube of another size":
        return [*masks, "--out", out, "--cube", cube(tmp_path, (3, 5)), *grey]
    if name == "cube elsewhere":
        there = Place(HERE.crs, from_origin(0, 0, 9, 9))
        return [*masks, "--out", out, "--cube", cube(tmp_path, place=there), *grey]
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
        ("onto cube", 2, "is one of the inputs"),
        ("onto a link", 2, "is one of the inputs"),
        ("no such grey", 2, "grey.jpg: a mask is a .tif, .tiff, .png file"),
        ("no such votes", 2, "votes.jpg: a mask is a .tif, .tiff, .png file"),
        ("cube of another size", 3, "is 5x3 pixels and"),
        ("cube elsewhere", 3, "lies elsewhere"),
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
