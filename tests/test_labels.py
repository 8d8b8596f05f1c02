"""Mask files of every convention."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rasterio.crs import CRS
from rasterio.transform import from_origin

from smokegeo.errors import InputError, OutputError, UsageError
from smokegeo.labels import Place, normalise_labels, read_labels, write_labels, write_together

HERE = Place(CRS.from_epsg(32633), from_origin(5e5, 5e6, 10, 10))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([0, 1, 1], [0, 1, 1]),
        ([0, 255, 0], [0, 1, 0]),
        ([0, 1, 255], [0, 1, 255]),
        ([0, 0, 0], [0, 0, 0]),
        ([False, True, True], [0, 1, 1]),
        ([0.0, 1.0, 0.0], [0, 1, 0]),
    ],
)
def test_conventions(given, meant):
    assert normalise_labels(np.array([given])).tolist() == [meant]


@pytest.mark.parametrize("values", [[0, 2], [0, 128, 255], [-1, 0], [0.5, 1.0], [np.nan, 1.0]])
def test_other_values_are_refused_and_shown(values):
    with pytest.raises(InputError, match="only 0, 1 and 255 are understood"):
        normalise_labels(np.array([values]))


def test_geotiff_keeps_its_place(tmp_path):
    values = np.eye(5, dtype=np.uint8)
    write_labels(tmp_path / "mask.tif", values, HERE)
    read = read_labels(tmp_path / "mask.tif")
    assert np.array_equal(read.values, values)
    assert read.place == HERE


def test_png_has_none_and_leaves_no_side_car(tmp_path):
    values = np.eye(5, dtype=np.uint8)
    write_labels(tmp_path / "mask.png", values, HERE)
    assert np.array_equal(read_labels(tmp_path / "mask.png").values, values)
    assert [path.name for path in tmp_path.iterdir()] == ["mask.png"]


def test_a_name_like_a_url_stays_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_labels(tmp_path / "s3:mask.tif", np.eye(3, dtype=np.uint8), HERE)
    assert read_labels(Path("s3:mask.tif")).values.sum() == 3


def test_several_are_written_together_or_not_at_all(tmp_path):
    one, two = tmp_path / "a.tif", tmp_path / "b.png"
    values = np.eye(5, dtype=np.uint8)
    (tmp_path / "b.png").mkdir()
    with pytest.raises(OutputError, match=r"b\.png: cannot be written"):
        write_together({one: values, two: values}, HERE)
    assert [path.name for path in tmp_path.iterdir()] == ["b.png"]
    two.rmdir()
    write_together({one: values, two: values}, HERE)
    assert all(np.array_equal(read_labels(path).values, values) for path in (one, two))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "mask.tif").write_text("<VRTDataset></VRTDataset>")
    with pytest.raises(InputError, match=r"mask\.tif: cannot be read"):
        read_labels(tmp_path / "mask.tif")
    with pytest.raises(UsageError, match=r"is a \.tif, \.tiff, \.png file"):
        read_labels(tmp_path / "mask.jpg")
