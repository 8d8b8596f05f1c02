"""The look before the work: what a scene holds, and what in it is nothing at all."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_scenes import PLACE, landscape, scene_of, write_scene

from smokegeo.scene.holes import hollow_blocks
from smokegeo.scene.layers import Box
from smokegeo.scene.opening import open_scene
from smokegeo.scene.scene import SENTINELS
from smokegeo.survey import look_for_blanks, sample_boxes, survey


def scene(values, **facts):
    return scene_of(np.asarray(values), **{"sentinels": SENTINELS, **facts})


def test_the_numbers_are_those_of_the_bands_asked_for_in_their_order():
    values = landscape(4, (80, 90)).astype(np.float32)
    found = survey(scene(values), (2, 0))
    for i, band in enumerate((2, 0)):
        flat = values[band].astype(float).ravel()
        assert found.low[i] == pytest.approx(np.percentile(flat, 0.5))
        assert found.high[i] == pytest.approx(np.percentile(flat, 99.5))
        assert found.mean[i] == pytest.approx(flat.mean())
        assert found.std[i] == pytest.approx(flat.std())
    assert found.valid_share == 1
    assert not found.empty


def test_pixels_that_are_no_numbers_are_not_counted_in():
    values = np.full((1, 10, 10), 5.0)
    values[0, :5] = np.nan
    found = survey(scene(values), (0,))
    assert found.valid_share == 0.5
    assert (found.low, found.high, found.mean, found.std) == ((5,), (5,), (5,), (0,))


def test_a_scene_without_a_valid_pixel_is_empty():
    found = survey(scene(np.full((2, 6, 6), np.nan)), (0, 1))
    assert found.empty
    assert np.isnan([*found.low, *found.high, *found.mean, *found.std]).all()


def test_the_same_scene_is_seen_the_same_way_every_time():
    values = np.random.default_rng(0).integers(1, 5000, (2, 1100, 1200)).astype(np.uint16)
    assert survey(scene(values), (0, 1)) == survey(scene(values), (0, 1))
    assert survey(scene(values), (0,)).low == survey(scene(values), (0, 1)).low[:1]


@given(st.integers(1, 20_000), st.integers(1, 20_000))
@settings(max_examples=200, deadline=None)
def test_samples_lie_inside_the_scene_and_reach_its_borders(width, height):
    boxes = sample_boxes(width, height)
    assert 1 <= len(boxes) <= 64
    assert sum(box.width * box.height for box in boxes) <= 1024**2
    for box in boxes:
        assert 0 <= box.column < box.column + box.width <= width
        assert 0 <= box.row < box.row + box.height <= height
    assert len(set(boxes)) == len(boxes)
    if width >= 256 and height >= 256:
        assert {b.column for b in boxes} >= {0}
        assert max(b.column + b.width for b in boxes) == width
        assert max(b.row + b.height for b in boxes) == height


@pytest.mark.parametrize("side", [500, 1100, 9000])
def test_of_many_bands_less_is_looked_at_so_that_it_fits_into_memory(side):
    for bands in (1, 32, 33, 224, 1000):
        boxes = sample_boxes(side, side, bands)
        assert sum(box.width * box.height for box in boxes) * bands <= 32 * 1024**2
        assert max(box.column + box.width for box in boxes) == side
    assert sample_boxes(side, side, 32) == sample_boxes(side, side)


def test_a_small_scene_is_looked_at_whole():
    assert sample_boxes(1024, 1024) == [Box(0, 0, 1024, 1024)]
    assert len(sample_boxes(1025, 1024)) == 64


# Blanks that nobody declared


def blanks(values, caplog, **facts):
    """Return scene and survey after the search for blanks, and what was said."""
    made = scene(values, **facts)
    bands = range(len(made.bands))
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        result, found = look_for_blanks(made, survey(made, bands), bands)
    return result, found, [record.getMessage() for record in caplog.records]


def zeros(share):
    values = landscape(2, (100, 100))
    values.reshape(2, -1)[:, : int(10_000 * share)] = 0
    return values


def test_many_zeros_are_left_out_and_said(caplog):
    values = zeros(0.3)
    result, found, said = blanks(values, caplog)
    assert result.blanks == (0,)
    assert found.valid_share == pytest.approx(0.7)
    assert min(found.low) > 0
    assert len(said) == 1
    assert said[0].startswith("array: 30.0 % of the pixels are 0 in every band")
    assert "--nodata 0" in said[0]
    with result.open() as reader:
        _, valid = reader.read(result.whole, (0, 1))
    assert (valid == (values != 0).any(axis=0)).all()


def test_a_few_zeros_are_dark_pixels(caplog):
    result, found, said = blanks(zeros(0.004), caplog)
    assert result.blanks == ()
    assert found.valid_share == 1
    assert said == []


def test_a_zero_in_one_band_alone_is_dark(caplog):
    values = zeros(0.3)
    values[1] = 7
    result, found, said = blanks(values, caplog)
    assert result.blanks == ()
    assert said == []
    assert found.low[0] == 0


def test_many_pixels_at_the_end_of_16_bits_are_left_out_and_said(caplog):
    values = landscape(2, (100, 100))
    values[:, :10] = 65_535
    values[:, 90:] = 0
    result, found, said = blanks(values, caplog)
    assert result.blanks == (0, 65_535)
    assert found.valid_share == pytest.approx(0.8)
    assert max(found.high) < 10_000
    assert len(said) == 2
    assert said[1].startswith("array: 10.0 % of the pixels are 65535 in every band")
    assert "--nodata 65535" in said[1]
    with result.open() as reader:
        _, valid = reader.read(result.whole, (0, 1))
    assert (valid == (values != 0).any(axis=0) & (values != 65_535).any(axis=0)).all()


def test_a_picture_that_is_overexposed_is_whole(caplog):
    light = np.linspace(-10_000, 90_000, 10_000).reshape(100, 100)
    values = np.stack([light, 0.9 * light]).clip(1, 65_535).astype(np.uint16)
    result, found, said = blanks(values, caplog)
    assert (values == 65_535).all(axis=0).mean() > 0.1
    assert result.blanks == ()
    assert found.valid_share == 1
    assert said == []


def test_few_pixels_at_the_end_of_16_bits_are_bright(caplog):
    values = landscape(2, (100, 100))
    values[:, 0, :40] = 65_535
    result, _, said = blanks(values, caplog)
    assert result.blanks == ()
    assert said == []


def test_the_dark_is_looked_for_beside_zeros():
    values = np.full((2, 10, 10), 7000, np.uint16)
    values[0, :2] = 0
    values[1] = 0
    found = survey(scene(values), (0, 1))
    assert found.low == (0, 0)
    assert found.dark == (7000, 0)


def test_each_band_is_whole_or_not():
    values = np.full((2, 10, 10), 7.0, np.float32)
    values[1, 3, 3] = 7.5
    assert survey(scene(values), (0, 1)).whole == (True, False)


TILES = {"tiled": True, "blockxsize": 64, "blockysize": 64}


def with_a_hole(path, *, nothing=None, **profile):
    """Write a scene of which one block, between all samples, was left out or set to a number."""
    values = landscape(2, (2048, 2048))
    block = (slice(None), slice(192, 256), slice(1280, 1344))
    if nothing is not None:
        values[block] = nothing
        return write_scene(path, values, ("red", "nir"), **TILES, **profile)
    options = {"driver": "GTiff", "width": 2048, "height": 2048, "count": 2, "dtype": "uint16"}
    place = {"crs": "EPSG:32633", "transform": PLACE}
    with rasterio.open(path, "w", sparse_ok=True, **options, **place, **TILES, **profile) as dst:
        for _, window in dst.block_windows(1):
            rows, columns = window.toslices()
            if (rows, columns) != block[1:]:
                dst.write(values[:, rows, columns], window=window)
        dst.descriptions = ("red", "nir")
    return path


def look(path, caplog):
    """Return a file's scene after the search for blanks, the zeros sampled, and what was said."""
    scene = open_scene(path)
    found = survey(scene, (0, 1))
    with caplog.at_level(logging.WARNING, "smokegeo"):
        result, _ = look_for_blanks(scene, found, (0, 1))
    return result, found.zero_share, [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    "profile",
    [
        {"interleave": "pixel"},
        {"interleave": "band", "compress": "deflate"},
        {"compress": "deflate", "nothing": 0, "interleave": "pixel"},
        {"compress": "lzw", "nothing": 0, "interleave": "band"},
    ],
)
def test_a_block_of_nothing_is_found_between_the_samples(tmp_path, caplog, profile):
    result, share, said = look(with_a_hole(tmp_path / "s.tif", **profile), caplog)
    assert share == 0
    assert result.blanks == (0,)
    assert len(said) == 1
    assert said[0].startswith("s.tif: whole blocks of pixels are 0 in every band")
    with result.open() as reader:
        _, valid = reader.read(Box(1270, 180, 100, 100), (0, 1))
    assert (~valid).sum() == 64 * 64


def test_the_samples_miss_such_a_block_that_is_not_compressed(tmp_path, caplog):
    """Only reading all of it would tell; docs/predict.md says so."""
    result, share, said = look(with_a_hole(tmp_path / "s.tif", nothing=0), caplog)
    assert (share, result.blanks, said) == (0, (), [])


@pytest.mark.parametrize("nothing", [7, [[[0]], [[7]]]])
def test_a_flat_block_that_is_not_0_in_every_band_is_data(tmp_path, caplog, nothing):
    path = with_a_hole(tmp_path / "s.tif", nothing=nothing, compress="deflate", interleave="band")
    assert len(hollow_blocks(open_scene(path), 0)) == 1
    result, _, said = look(path, caplog)
    assert (result.blanks, said) == ((), [])


def test_a_block_that_the_file_itself_rules_out_is_not_told_of(tmp_path, caplog):
    result, _, said = look(with_a_hole(tmp_path / "s.tif", nodata=0), caplog)
    assert (result.blanks, said) == ((), [])


@pytest.mark.parametrize("sentinel", SENTINELS)
def test_sentinels_in_any_band_are_left_out_and_said(sentinel, caplog):
    values = landscape(2, (100, 100)).astype(np.float32)
    values[1, 7, :5] = sentinel
    result, found, said = blanks(values, caplog)
    assert found.valid_share == 1 - 5 / 10_000
    assert min(found.low) > 0
    assert len(said) == 1
    assert "below 0.1 % of the pixels hold -9999" in said[0]
    assert "--nodata" in said[0]
    with result.open() as reader:
        _, valid = reader.read(result.whole, (0, 1))
    assert np.argwhere(~valid).tolist() == [[7, i] for i in range(5)]


@pytest.mark.parametrize("offset", [0.0, -0.2, 0.1])
def test_what_means_nothing_is_known_by_the_stored_number_whatever_the_tags(
    tmp_path, offset, caplog
):
    values = landscape(2, (100, 100)).astype(np.int16)
    values[1, 7, :5] = -9999
    values[:, 90:] = 0
    path = write_scene(tmp_path / "s.tif", values, ("red", "nir"), scale=2.75e-5, offset=offset)
    scene = open_scene(path)
    with caplog.at_level(logging.WARNING, "smokegeo"):
        result, found = look_for_blanks(scene, survey(scene, (0, 1)), (0, 1))
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "below 0.1 % of the pixels hold -9999" in said
    assert "10.0 % of the pixels are 0 in every band" in said
    assert found.valid_share == pytest.approx(1 - 1005 / 10_000)
    with result.open() as reader:
        _, valid = reader.read(result.whole, (0, 1))
    expected = np.ones((100, 100), bool)
    expected[90:], expected[7, :5] = False, False
    assert (valid == expected).all()


def test_a_user_who_said_what_is_missing_is_believed(caplog):
    values = zeros(0.3).astype(np.float32)
    values[:, 99, 99] = -9999
    result, found, said = blanks(values, caplog, sentinels=())
    assert result.blanks == ()
    assert found.valid_share == 1
    assert said == []


def test_a_clean_scene_is_passed_without_a_word(caplog):
    values = landscape(3, (60, 60))
    result, _, said = blanks(values, caplog)
    assert said == []
    assert result.blanks == ()
