"""Blocks of files that hold nothing are told without reading them."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from toy_scenes import landscape, scene_of, write_scene

from smokegeo.scene import holes
from smokegeo.scene.holes import hollow_blocks
from smokegeo.scene.layers import Box
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions

TILES = {"tiled": True, "blockxsize": 32, "blockysize": 16, "compress": "deflate"}


@pytest.fixture
def path(tmp_path):
    values = landscape(6, (40, 100))
    values[:, 16:32, 32:64] = 0
    values[:, 32:, 96:] = 0  # in the corner, where the blocks are cut off
    return write_scene(tmp_path / "scene.tif", values, **TILES, interleave="pixel")


def test_they_are_given_in_pixels_of_the_scene(path):
    assert hollow_blocks(open_scene(path), 0) == [Box(32, 16, 32, 16), Box(96, 32, 4, 8)]


def test_those_of_a_coarse_band_are_as_large_on_the_finest_grid(tmp_path):
    fine, coarse = landscape(1, (160, 240)), landscape(1, (80, 120))
    coarse[:, 64:] = 0
    write_scene(tmp_path / "red.tif", fine, None)
    grid = {"blockxsize": 64, "blockysize": 64, "tiled": True, "compress": "deflate"}
    place = scene_of(fine).transform @ scene_of(fine).transform.scale(2)
    write_scene(tmp_path / "swir16.tif", coarse, None, transform=place, **grid)
    scene = open_scene(tmp_path)
    band = [band.name for band in scene.bands].index("swir1")
    assert hollow_blocks(scene, band) == [Box(0, 128, 128, 32), Box(128, 128, 112, 32)]


def test_of_very_many_only_some_are_asked_for(path, monkeypatch):
    monkeypatch.setattr(holes, "_MOST_ASKED", 6)
    assert hollow_blocks(open_scene(path), 0) == []  # every second of twelve: not 5, not 11
    monkeypatch.setattr(holes, "_MOST_ASKED", 12)
    assert len(hollow_blocks(open_scene(path), 0)) == 2


def test_an_array_and_a_picture_have_none(tmp_path):
    assert hollow_blocks(scene_of(np.zeros((2, 9, 9), np.uint16)), 0) == []
    path = tmp_path / "photo.png"
    Image.fromarray(np.zeros((40, 60, 3), np.uint8)).save(path)
    assert hollow_blocks(open_scene(path, SceneOptions(pixel_coords=True)), 0) == []
