"""Layers give physical values, and say apart from them which pixels can be used."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import rasterio
import xarray as xr
from rasterio.enums import ColorInterp
from toy_scenes import landscape, write_scene

from smokegeo.scene.arrays import ArrayLayer
from smokegeo.scene.layers import Box, raster_layer, usable

GREY, ALPHA = ColorInterp.gray, ColorInterp.alpha


def layer_of(path, indexes=None, **options):
    with rasterio.open(path) as src:
        return raster_layer(src, indexes or src.indexes, **options)


def read(layer, box=None, positions=None):
    with layer.open() as reader:
        return reader.read(
            box or Box(0, 0, 20, 10), range(len(layer.indexes)) if positions is None else positions
        )


@pytest.fixture
def values():
    return landscape(3, (10, 20))


def write(tmp_path, values, **options):
    return write_scene(tmp_path / "s.tif", values, None, **options)


def test_values_come_as_float32_in_the_order_asked_for(tmp_path, values):
    layer = layer_of(write(tmp_path, values), (3, 1, 2))
    found, valid = read(layer, positions=(1, 0))
    assert found.dtype == np.float32
    assert (found == values[[0, 2]]).all()
    assert valid.all()
    assert not layer.scaled


def test_a_window_is_that_part_of_the_file(tmp_path, values):
    found, valid = read(layer_of(write(tmp_path, values)), Box(4, 2, 7, 5))
    assert (found == values[:, 2:7, 4:11]).all()
    assert valid.shape == (5, 7)


def test_scale_and_offset_tags_make_physical_values(tmp_path, values):
    path = write(tmp_path, values, scale=(1e-4, 2e-4, 1.0), offset=(-0.1, 0.0, 5.0))
    layer = layer_of(path)
    assert layer.scaled
    found, _ = read(layer)
    scale, offset = np.array([1e-4, 2e-4, 1]), np.array([-0.1, 0, 5])
    np.testing.assert_allclose(found, values * scale[:, None, None] + offset[:, None, None], 1e-5)
    np.testing.assert_array_equal(read(layer, positions=(2,))[0][0], values[2] + 5)


def test_raw_leaves_the_tags_out(tmp_path, values):
    layer = layer_of(write(tmp_path, values, scale=1e-4, offset=-0.1), raw=True)
    assert not layer.scaled
    assert (read(layer)[0] == values).all()


def test_nodata_is_compared_before_scaling(tmp_path, values):
    values[1, 3, 3] = 1000
    found, valid = read(layer_of(write(tmp_path, values, scale=1e-4, nodata=1000)))
    assert not valid[3, 3]
    assert (valid == (values != 1000).all(axis=0)).all()
    assert found[1, 3, 3] == pytest.approx(0.1)


def test_only_the_bands_read_decide_what_is_valid(tmp_path, values):
    values[2, 5] = 0
    layer = layer_of(write(tmp_path, values, nodata=0))
    assert read(layer, positions=(0, 1))[1].all()
    assert not read(layer, positions=(0, 2))[1][5].any()


def test_the_user_s_nodata_goes_before_the_file_s(tmp_path, values):
    values[:, 0, :3] = 0
    values[:, 1, :3] = 7
    layer = layer_of(write(tmp_path, values, nodata=0), nodata=7)
    _, valid = read(layer)
    assert valid[0].all()
    assert np.argwhere(~valid).tolist() == [[1, 0], [1, 1], [1, 2]]


def test_an_alpha_band_rules_out_what_it_hides(tmp_path, values):
    alpha = np.full((1, 10, 20), 255, np.uint16)
    alpha[0, 4, 4:8] = 0
    alpha[0, 5, 5] = 1  # thin, but there
    path = write(tmp_path, np.concatenate([values, alpha]), colours=(GREY, GREY, GREY, ALPHA))
    layer = layer_of(path, (1, 2, 3))
    assert layer.alpha == 4
    found, valid = read(layer)
    assert (found == values).all()
    assert np.argwhere(~valid).tolist() == [[4, i] for i in range(4, 8)]


def test_a_data_band_called_alpha_does_not_hide_anything(tmp_path, values):
    values[2, 4, 4:8] = 0
    path = write(tmp_path, values, colours=(GREY, GREY, ALPHA))
    layer = layer_of(path, (1, 2, 3))
    assert (layer.alpha, layer.own_mask) == (None, False)
    assert read(layer)[1].all()


def test_a_mask_in_the_file_is_heeded(tmp_path, values):
    there = np.ones((10, 20), bool)
    there[2:4, 6:9] = False
    layer = layer_of(write(tmp_path, values, valid=there))
    assert layer.own_mask
    assert (read(layer)[1] == there).all()
    assert (read(layer, Box(5, 1, 6, 4), (1,))[1] == there[1:5, 5:11]).all()


def test_mask_and_nodata_are_both_heeded(tmp_path, values):
    there = np.ones((10, 20), bool)
    there[2] = False
    values[0, 5, 5] = 0
    _, valid = read(layer_of(write(tmp_path, values, valid=there), nodata=0))
    there[5, 5] = False
    assert (valid == there).all()


def test_a_layer_can_be_sent_to_another_process(tmp_path, values):
    layer = pickle.loads(pickle.dumps(layer_of(write(tmp_path, values))))
    assert (read(layer)[0] == values).all()


def test_the_type_is_the_common_one_of_its_bands(tmp_path, values):
    assert layer_of(write(tmp_path, values)).dtype == "uint16"
    assert layer_of(write(tmp_path, values.astype("float32"))).dtype == "float32"


# What means "nothing here"

LOWEST = float(np.finfo(np.float32).min)


@pytest.mark.parametrize(
    ("band", "nodata", "wanted"),
    [
        (np.array([0, 1, 255], np.uint8), None, [1, 1, 1]),
        (np.array([0, 1, 255], np.uint8), 0, [0, 1, 1]),
        (np.array([0, 1, 255], np.uint8), -9999, [1, 1, 1]),  # cannot be in such a band
        (np.array([0, 1, 255], np.uint8), 256, [1, 1, 1]),
        (np.array([0, 1, 255], np.uint8), 0.5, [1, 1, 1]),
        (np.array([0, 1, 255], np.uint8), np.nan, [1, 1, 1]),
        (np.array([-9999, 1, 3], np.int16), -9999.0, [0, 1, 1]),
        (np.array([2**31, 1, 3], np.uint32), 2.0**31, [0, 1, 1]),
        (np.array([np.nan, np.inf, -np.inf, 1]), None, [0, 0, 0, 1]),
        (np.array([np.nan, 5, 1], np.float32), np.nan, [0, 1, 1]),
        (np.array([np.inf, 5, 1], np.float32), np.inf, [0, 1, 1]),
        (np.array([LOWEST, 5, 1], np.float32), LOWEST, [0, 1, 1]),
        (np.array([LOWEST, 5, 1], np.float32), -3.4028234663852886e38, [0, 1, 1]),
        (np.array([0.1, 5, 1], np.float32), 0.1, [0, 1, 1]),  # as doubles they would differ
        (np.array([True, False]), 0, [1, 0]),
        (np.array([True, False]), 7, [1, 1]),
    ],
)
def test_nodata_of_every_kind_is_found_in_the_band_s_own_type(band, nodata, wanted):
    assert usable(band, nodata).tolist() == [bool(item) for item in wanted]


# Arrays


def test_an_array_is_read_like_a_file(values):
    values[1, 2, 2] = 0
    layer = ArrayLayer(xr.DataArray(values, dims=("band", "y", "x")), 0.0, "uint16")
    with layer.open() as reader:
        found, valid = reader.read(Box(1, 2, 5, 3), (2, 1))
    assert found.dtype == np.float32
    assert (found == values[[2, 1], 2:5, 1:6]).all()
    assert np.argwhere(~valid).tolist() == [[0, 1]]


def test_a_lazy_array_is_computed_window_by_window(values):
    import dask.array

    asked = []

    def block(block_info=None):
        place = block_info[None]["array-location"]
        asked.append(place)
        return values[tuple(slice(*span) for span in place)]

    lazy = dask.array.map_blocks(block, chunks=((3,), (5, 5), (10, 10)), dtype=values.dtype)
    with ArrayLayer(xr.DataArray(lazy, dims=("band", "y", "x")), None, "uint16").open() as reader:
        asked.clear()
        found, _ = reader.read(Box(11, 1, 4, 3), (0, 1, 2))
    assert (found == values[:, 1:4, 11:15]).all()
    assert [[list(map(int, span)) for span in place] for place in asked] == [
        [[0, 3], [0, 5], [10, 20]]
    ]
