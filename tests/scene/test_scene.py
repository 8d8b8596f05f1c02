"""A scene is one grid of bands, whatever layers it is made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_scenes import PLACE, landscape, scene_of

from smokegeo.bands import Band, BandSet
from smokegeo.scene.arrays import ArrayLayer
from smokegeo.scene.layers import Box
from smokegeo.scene.scene import Source


def read(scene, box=None, bands=None):
    with scene.open() as reader:
        return reader.read(box or scene.whole, range(len(scene.bands)) if bands is None else bands)


def layer(values):
    return ArrayLayer(xr.DataArray(values, dims=("band", "y", "x")), 0.0, values.dtype.name)


FINE, MIDDLE, COARSE = (landscape(n, (60 // f, 90 // f), f) for n, f in ((2, 1), (2, 2), (1, 6)))


def mixed():
    """Five bands of three resolutions, out of order, like those of Sentinel-2."""
    sources = (Source(2, 0, 6), Source(0, 1), Source(1, 0, 2), Source(0, 0), Source(1, 1, 2))
    bands = BandSet(tuple(Band(f"m{i}") for i in range(5)))
    layers = (layer(FINE), layer(MIDDLE), layer(COARSE.astype(np.float32)))
    return scene_of(np.zeros((5, 60, 90)), bands, layers=layers, sources=sources)


def whole():
    """The same by numpy: every coarse pixel repeated."""
    parts = ((COARSE, 0, 6), (FINE, 1, 1), (MIDDLE, 0, 2), (FINE, 0, 1), (MIDDLE, 1, 2))
    return np.stack([v[i].repeat(f, 0).repeat(f, 1) for v, i, f in parts]).astype(np.float32)


def test_coarser_layers_are_repeated_to_the_finest_grid():
    found, valid = read(mixed())
    assert (found == whole()).all()
    assert valid.all()
    assert mixed().dtype == "float32"


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_window_of_any_bands_is_that_part_of_the_whole(data):
    column, row = data.draw(st.integers(0, 89)), data.draw(st.integers(0, 59))
    width, height = data.draw(st.integers(1, 90 - column)), data.draw(st.integers(1, 60 - row))
    bands = data.draw(st.lists(st.integers(0, 4), min_size=1, unique=True))
    found, valid = read(mixed(), Box(column, row, width, height), bands)
    assert (found == whole()[bands, row : row + height, column : column + width]).all()
    assert valid.shape == (height, width)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_crop_of_a_crop_is_a_part_of_the_whole(data):
    scene, at = mixed(), np.array([0, 0])
    for _ in range(2):
        column = data.draw(st.integers(0, scene.width - 1))
        row = data.draw(st.integers(0, scene.height - 1))
        width = data.draw(st.integers(1, scene.width - column))
        height = data.draw(st.integers(1, scene.height - row))
        scene = scene.crop(Box(column, row, width, height))
        at += (column, row)
    found, _ = read(scene)
    assert (found == whole()[:, at[1] : at[1] + height, at[0] : at[0] + width]).all()
    assert scene.offset == tuple(at)
    assert scene.transform @ (0, 0) == pytest.approx(PLACE @ tuple(at))
    assert scene.whole == Box(0, 0, width, height)


def test_a_hole_in_a_coarse_band_is_a_hole_in_all_fine_pixels_under_it():
    coarse = COARSE.copy()
    coarse[0, 1, 2] = 0
    scene = mixed()
    holed = scene_of(
        np.zeros((5, 60, 90)),
        scene.bands,
        layers=(*scene.layers[:2], layer(coarse)),
        sources=scene.sources,
    )
    _, valid = read(holed)
    assert not valid[6:12, 12:18].any()
    assert (~valid).sum() == 36
    assert read(holed, bands=(1, 2))[1].all()


def test_only_layers_that_are_asked_for_are_opened():
    class Never:
        dtype = "uint16"

        def open(self):
            raise AssertionError("opened")

    scene = mixed()
    partly = scene_of(
        np.zeros((5, 60, 90)),
        scene.bands,
        layers=(scene.layers[0], Never(), Never()),
        sources=scene.sources,
    )
    assert (read(partly, bands=(3, 1))[0] == FINE).all()


def test_all_layers_are_closed_and_each_is_opened_once():
    happened = []

    class Told:
        dtype = "uint16"

        def open(self):
            happened.append("open")
            return self

        def __enter__(self):
            return self

        def __exit__(self, *_):
            happened.append("close")

        def read(self, box, positions):
            shape = (box.height, box.width)
            return np.zeros((len(positions), *shape), np.float32), np.ones(shape, bool)

    scene = scene_of(np.zeros((1, 4, 4)), layers=(Told(),))
    with scene.open() as reader:
        for _ in range(3):
            reader.read(scene.whole, (0,))
    assert happened == ["open", "close"]


def test_sentinels_and_blanks_count_only_if_the_scene_says_so():
    values = np.full((2, 3, 3), 5.0, np.float32)
    values[0, 0, 0] = -9999
    values[:, 1, 1] = 0
    values[0, 2, 2] = 0
    assert read(scene_of(values))[1].all()
    _, valid = read(scene_of(values, sentinels=(-9999.0,)))
    assert np.argwhere(~valid).tolist() == [[0, 0]]
    _, valid = read(scene_of(values, blanks=(0.0,)))
    assert np.argwhere(~valid).tolist() == [[1, 1]]


def test_a_scene_can_be_sent_to_another_process():
    again = pickle.loads(pickle.dumps(mixed()))
    assert (read(again)[0] == whole()).all()
