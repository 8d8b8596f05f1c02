"""Outputs are checked before the work, and whole or absent after it."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import rasterio
from toy_scenes import damage_block, landscape, scene_of, write_scene

from smokegeo.errors import OutputError, UsageError
from smokegeo.outlines.vectorize import vectorize
from smokegeo.probability import NODATA
from smokegeo.scene.opening import open_scene
from smokegeo.work import open_work
from smokegeo.writing.outputs import Outputs
from smokegeo.writing.polygons import place

FACTS = {"software": "smokegeo test", "model": "toy"}


@pytest.fixture
def every(tmp_path):
    return Outputs(tmp_path / "s.gpkg", tmp_path / "p.tif", tmp_path / "m.html")


def refusal(kind, call, *args):
    with pytest.raises(kind) as caught:
        call(*args)
    return str(caught.value)


def test_outputs_that_can_be_written_pass_and_leave_no_trace(every, tmp_path):
    every.check("scene.tif")
    Outputs().check("scene.tif")
    assert list(tmp_path.iterdir()) == []
    assert every.files == (every.polygons, every.probability, every.web_map)


@pytest.mark.parametrize(
    ("name", "field", "fact"),
    [
        ("s.shp", "polygons", "no vector format for .shp"),
        ("s", "polygons", "no vector format for no suffix"),
        ("p.png", "probability", "name a .tif file"),
        ("m.pdf", "web_map", "name a .html file"),
    ],
)
def test_formats_that_are_not_written_are_refused(tmp_path, name, field, fact):
    outputs = Outputs(**{field: tmp_path / name})
    assert fact in refusal(UsageError, outputs.check, "scene.tif")


def test_what_is_there_is_not_replaced_unasked(every, tmp_path):
    for path in every.files:
        path.write_text("mine")
        assert "--overwrite" in refusal(UsageError, every.check, "scene.tif")
        path.unlink()
    every.probability.write_text("mine")
    Outputs(*every.files, overwrite=True).check("scene.tif")
    assert every.probability.read_text() == "mine"


def test_a_missing_folder_is_refused(tmp_path):
    outputs = Outputs(tmp_path / "no" / "s.gpkg")
    assert "does not exist" in refusal(UsageError, outputs.check, "scene.tif")


def test_the_scene_itself_is_never_replaced(tmp_path):
    scene = write_scene(tmp_path / "scene.tif", landscape(6, (8, 8)))
    link = tmp_path / "link.tif"
    link.symlink_to(scene)
    for path in (scene, link, tmp_path / "." / "scene.tif"):
        outputs = Outputs(probability=path, overwrite=True)
        assert "is the scene itself" in refusal(UsageError, outputs.check, str(scene))


def test_a_file_of_the_scene_is_never_replaced(tmp_path):
    red = tmp_path / "red.tif"
    red.touch()
    scene = scene_of(landscape(6, (8, 8)), "satellite", paths=(str(red),))
    outputs = Outputs(tmp_path / "o.gpkg", red, overwrite=True)
    assert "red.tif is a file of the scene." in refusal(UsageError, outputs.check_scene, scene)
    Outputs(tmp_path / "o.gpkg", tmp_path / "p.tif").check_scene(scene)


def test_a_place_where_nothing_can_be_made_is_refused(every, monkeypatch):
    def refuse(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)  # as on a disk mounted read-only
    text = refusal(OutputError, every.check, "scene.tif")
    assert text == f"{every.polygons}: cannot be written (Permission denied)."


def test_a_scene_without_coordinates_gets_no_geojson(tmp_path):
    scene = scene_of(landscape(6, (8, 8)), "satellite", placed=False)
    Outputs(tmp_path / "s.gpkg", tmp_path / "p.tif", tmp_path / "m.html").check_scene(scene)
    geojson = Outputs(tmp_path / "s.geojson")
    assert "no coordinate system" in refusal(UsageError, geojson.check_scene, scene)
    geojson.check_scene(scene_of(landscape(6, (8, 8)), "satellite"))


# Writing


def write(outputs, scene, tmp_path, threshold=0.5):
    stored = np.zeros((scene.height, scene.width), np.uint8)
    stored[5:15, 5:20] = 200
    stored[0, 0] = NODATA
    with open_work(tmp_path / "w", scene.width, scene.height, {}, resume=False) as work:
        work.raster.write(0, stored)
        frame = place(vectorize(work.raster, threshold), scene.transform, scene.crs).frame
        return outputs.write(frame, work.raster, scene, threshold, FACTS), stored


@pytest.fixture
def scene():
    return scene_of(
        landscape(6, (30, 40)), "satellite", acquired=datetime(2024, 8, 30, 10, 5, tzinfo=UTC)
    )


def test_everything_asked_for_is_written_and_named(every, scene, tmp_path):
    files, stored = write(every, scene, tmp_path)
    assert files == (every.polygons, every.probability, every.web_map)
    assert sorted(tmp_path.iterdir()) == sorted(files)
    with rasterio.open(every.probability) as src:
        assert (src.read(1) == stored).all()
        assert (src.crs, src.transform, src.nodata) == (scene.crs, scene.transform, NODATA)
        assert src.tags()["model"] == "toy"
        assert src.tags()["ACQUISITIONDATETIME"] == "2024-08-30T10:05:00+00:00"


def test_only_what_is_asked_for_is_written(scene, tmp_path):
    files, _ = write(Outputs(probability=tmp_path / "p.tif"), scene, tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "p.tif"] == list(files)
    assert write(Outputs(), scene, tmp_path)[0] == ()


@pytest.mark.parametrize("suffix", [".gpkg", ".fgb"])
def test_polygons_come_last_so_that_they_mean_success(every, scene, tmp_path, monkeypatch, suffix):
    every = replace(every, polygons=tmp_path / f"s{suffix}")
    placed, real = [], os.replace

    def note(source, target):
        placed.append(target)
        real(source, target)

    monkeypatch.setattr("smokegeo.files.os.replace", note)
    files, _ = write(every, scene, tmp_path)
    assert sorted(placed) == sorted(files)
    assert placed[-1] == every.polygons


def test_old_outputs_stay_together_if_the_polygons_find_no_place(
    every, scene, tmp_path, monkeypatch
):
    for path in every.files:
        path.write_text("old")
    real = os.replace

    def refuse(source, target):
        if target == every.polygons:
            raise PermissionError(13, "Permission denied")
        real(source, target)

    monkeypatch.setattr("smokegeo.files.os.replace", refuse)
    text = refusal(OutputError, write, replace(every, overwrite=True), scene, tmp_path)
    assert text == f"{every.polygons}: cannot be written (Permission denied)."
    assert [path.read_text() for path in every.files] == ["old"] * 3
    assert sorted(tmp_path.iterdir()) == sorted(every.files)


def test_a_picture_that_cannot_be_read_costs_only_itself(every, tmp_path, caplog):
    values, tiled = landscape(6, (64, 64)), {"tiled": True, "blockxsize": 32, "blockysize": 32}
    path = write_scene(tmp_path / "scene.tif", values, compress="deflate", **tiled)
    whole = open_scene(path)
    damage_block(path, 0, 0)  # of a band that the network need not have seen
    files, _ = write(every, whole, tmp_path)
    assert set(files) == set(every.files)
    (said,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
    assert said.startswith(f"{every.web_map}: the picture of the scene is left out: scene.tif is")
    assert '"picture":null' in every.web_map.read_text("utf-8")


def test_what_was_written_before_a_failure_is_taken_back(every, scene, tmp_path, monkeypatch):
    def fails(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("smokegeo.writing.write._count", fails)
    text = refusal(OutputError, write, every, scene, tmp_path)
    assert text == f"{every.polygons}: no space left in {tmp_path}. Nothing was written."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("stem", "styled"), [("p", False), ("scene", False), ("smoke", True)]
)  # of the probabilities, of the scene, of neither
def test_a_style_that_would_be_applied_to_a_raster_is_not_written(
    every, scene, tmp_path, stem, styled
):
    scene = replace(scene, paths=(str(tmp_path / "scene.odd"),))
    files, _ = write(replace(every, polygons=tmp_path / f"{stem}.fgb"), scene, tmp_path)
    assert (tmp_path / f"{stem}.qml").exists() == styled
    assert (tmp_path / f"{stem}.qml" in files) == styled


def test_a_full_disk_is_named_for_the_raster_too(every, scene, tmp_path, monkeypatch):
    def fails(raster, target, place, tags):
        target.write_text("half")
        raise rasterio.errors.RasterioIOError("Write failed. See previous exception for details.")

    monkeypatch.setattr("smokegeo.writing.outputs.finish", fails)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))
    text = refusal(OutputError, write, every, scene, tmp_path)
    assert text == f"{every.probability}: no space left in {tmp_path}. Nothing was written."


def test_a_raster_that_cannot_be_written_leaves_nothing(every, scene, tmp_path, monkeypatch):
    def fails(raster, target, place, tags):
        target.write_text("half")
        raise rasterio.errors.RasterioIOError("disk on fire")

    monkeypatch.setattr("smokegeo.writing.outputs.finish", fails)
    text = refusal(OutputError, write, every, scene, tmp_path)
    assert text.startswith(f"{every.probability}: cannot be written (disk on fire).")
    assert list(tmp_path.iterdir()) == []
