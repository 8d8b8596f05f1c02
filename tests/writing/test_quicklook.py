"""The small picture of a scene lies where the scene lies."""

from __future__ import annotations

import numpy as np
import pytest
from toy_scenes import PLACE, UTM, landscape, scene_of

from smokegeo.writing.quicklook import quicklook


def test_a_small_scene_is_shown_pixel_by_pixel():
    found = quicklook(scene_of(landscape(6, (30, 40)), "satellite"))
    assert found.rgba.shape == (30, 40, 4)
    assert found.rgba.dtype == np.uint8
    assert (found.rgba[..., 3] == 255).all()
    assert found.transform == PLACE
    assert found.crs == UTM
    assert found.rgba[..., :3].min() == 0
    assert found.rgba[..., :3].max() == 255


def test_the_colours_are_red_green_and_blue():
    values = landscape(6, (20, 20))
    values[:3] = 1000
    values[2, :, :10] = 9000  # red
    values[0, :10] = 9000  # blue
    rgba = quicklook(scene_of(values, "satellite")).rgba
    assert rgba[15, 5, :3].tolist() == [255, 0, 0]
    assert rgba[5, 15, :3].tolist() == [0, 0, 255]
    assert rgba[5, 5, :3].tolist() == [255, 0, 255]


def test_the_land_is_seen_beside_clouds():
    values = landscape(6, (40, 40)) // 8
    land = quicklook(scene_of(values, "satellite")).rgba
    values[:, :10] = 6 * int(values.max())
    beside = quicklook(scene_of(values, "satellite")).rgba
    assert (beside[:10, :, :3] == 255).all()
    assert 40 < np.median(beside[10:, :, :3]) < np.median(land[..., :3])


@pytest.mark.parametrize("size", [(6, 60_000), (60_000, 6)])
def test_a_strip_is_thinned_along_and_not_across(size):
    pixels = np.broadcast_to(np.uint16(1), (6, *size))
    found = quicklook(scene_of(pixels, "satellite"))
    assert found.rgba.shape[:2] == tuple(min(side, 1200) for side in size)
    steps = (found.transform.e / PLACE.e, found.transform.a / PLACE.a)
    assert steps == tuple(side / have for side, have in zip(size, found.rgba.shape, strict=False))


@pytest.mark.parametrize("size", [(101, 57), (300, 20), (20, 300), (64, 64), (1, 1), (1000, 1)])
def test_a_large_scene_is_thinned_and_stays_in_its_place(size):
    height, width = size
    rows, columns = np.mgrid[:height, :width]
    values = np.stack([rows, columns, rows + columns]).astype(np.float32) + 1
    scene = scene_of(values)
    found = quicklook(scene, side_px=32)
    steps = (round(found.transform.e / PLACE.e), round(found.transform.a / PLACE.a))
    assert found.transform @ (0, 0) == PLACE @ (0, 0)
    for have, want, step in zip(found.rgba.shape[:2], size, steps, strict=True):
        assert have >= 1
        assert (have - 1) * step < want
        assert have * step > want - step


def test_invalid_pixels_are_transparent_and_do_not_touch_the_stretch():
    values = landscape(6, (30, 40)).astype(np.float32)
    plain = quicklook(scene_of(values, "satellite")).rgba
    values[:, :3] = np.nan
    values[:, 3:6] = -9999
    found = quicklook(scene_of(values, "satellite", sentinels=(-9999.0,))).rgba
    assert (found[:6, :, 3] == 0).all()
    assert (found[6:, :, 3] == 255).all()
    assert np.abs(found[6:].astype(int) - plain[6:]).max() < 30


def test_a_scene_of_nothing_is_a_clear_picture():
    values = np.full((3, 5, 5), np.nan, np.float32)
    assert (quicklook(scene_of(values)).rgba[..., 3] == 0).all()


@pytest.mark.parametrize("placed", [True, False])
def test_a_photograph_is_shown_as_it_is(placed):
    values = np.random.default_rng(0).integers(20, 200, (4, 30, 40)).astype(np.uint8)
    found = quicklook(scene_of(values, "mss", placed=placed))
    assert np.array_equal(found.rgba[..., :3], np.moveaxis(values[:3], 0, -1))
    assert (found.crs is None) is not placed


def test_dark_measurements_of_8_bits_are_stretched():
    values = np.random.default_rng(0).integers(5, 60, (4, 30, 40)).astype(np.uint8)
    assert quicklook(scene_of(values, "mss")).rgba[..., :3].max() == 255


def test_a_photograph_that_was_thinned_keeps_its_size_in_pixels():
    values = np.full((4, 256, 512), 150, np.uint8)
    found = quicklook(scene_of(values, "mss", placed=False), side_px=128)
    assert found.rgba.shape == (64, 128, 4)
    assert found.transform @ (128, 64) == (512, -256)
