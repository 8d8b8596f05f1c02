"""The probability raster: ours goes in and comes out exactly, others' are understood or refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rasterio.transform import Affine
from toy_scenes import PLACE, UTM, write_scene

from smokegeo.errors import InputError, UsageError
from smokegeo.labels import Place
from smokegeo.probability import (
    NODATA,
    STEPS,
    finish,
    first_smoke_value,
    open_probability,
    quantise,
)

HERE = Place(UTM, PLACE)


@dataclass(frozen=True)
class Map:
    values: NDArray[np.uint8]

    @property
    def width(self):
        return self.values.shape[1]

    @property
    def height(self):
        return self.values.shape[0]

    def rows(self, start, stop):
        return self.values[start:stop]


def random_map(height=70, width=90):
    values = np.random.default_rng(0).integers(0, STEPS + 1, (height, width)).astype(np.uint8)
    values[:5, :7] = NODATA
    return values


def stored(path):
    """Read a raster as stored values, in two parts."""
    with open_probability(path) as raster:
        middle = raster.height // 2
        return np.concatenate([raster.rows(0, middle), raster.rows(middle, raster.height)])


# Steps


@given(st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_a_stored_value_is_within_half_a_step(p):
    assert abs(int(quantise(np.array([p]))[0]) / STEPS - p) <= 0.5 / STEPS + 1e-12


def test_what_is_no_number_is_nodata_and_the_ends_are_kept():
    values = np.array([0, 1, -1e-9, 1 + 1e-9, np.nan])
    assert quantise(values).tolist() == [0, 250, 0, 250, NODATA]


@pytest.mark.parametrize("number", [float, np.float32, np.float64])
def test_every_step_is_its_own_threshold(number):
    steps = range(1, STEPS + 1)
    assert [first_smoke_value(number(step / STEPS)) for step in steps] == list(steps)


@given(st.floats(1e-9, 1))
@settings(max_examples=200, deadline=None)
def test_smoke_begins_at_the_first_step_that_reaches_the_threshold(threshold):
    first = first_smoke_value(threshold)
    assert 1 <= first <= STEPS
    assert first / STEPS >= threshold - 1e-6
    assert first == 1 or (first - 1) / STEPS < threshold


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, float("nan"), float("inf")])
def test_thresholds_that_are_no_probabilities_are_refused(threshold):
    with pytest.raises(UsageError, match="is not above 0 and up to 1"):
        first_smoke_value(threshold)


# Ours


def test_a_map_comes_back_as_it_was(tmp_path):
    values = random_map()
    path = tmp_path / "p.tif"
    finish(Map(values), path, HERE, {"model": "toy", "threshold": "0.5"})
    assert list(tmp_path.iterdir()) == [path]
    assert (stored(path) == values).all()
    with rasterio.open(path) as src:
        assert (src.crs, src.transform) == (UTM, PLACE)
        assert src.tags()["threshold"] == "0.5"
        assert src.descriptions == ("smoke probability",)
        assert src.scales == (1 / STEPS,)
        assert src.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        floats = src.read(1, masked=True) * src.scales[0]
    assert floats.max() == pytest.approx(1)
    assert (floats.mask == (values == NODATA)).all()


def test_a_large_map_has_overviews_in_which_nodata_does_not_bleed(tmp_path):
    values = np.full((1100, 1300), 100, np.uint8)
    values[:, 600:] = NODATA
    finish(Map(values), tmp_path / "p.tif", HERE, {})
    with rasterio.open(tmp_path / "p.tif") as src:
        assert src.overviews(1)
        small = src.read(1, out_shape=(275, 325))
    assert set(np.unique(small)) == {100, NODATA}
    assert (stored(tmp_path / "p.tif") == values).all()


def test_the_same_map_makes_the_same_bytes(tmp_path):
    for name in ("a.tif", "b.tif"):
        finish(Map(random_map()), tmp_path / name, HERE, {"model": "toy"})
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()


def test_a_map_without_coordinates_is_written_without(tmp_path):
    path = tmp_path / "p.tif"
    finish(Map(random_map()), path, Place(None, Affine.identity()), {})
    assert (stored(path) == random_map()).all()


def test_a_failed_write_leaves_no_helper_file(tmp_path):
    class Broken(Map):
        def rows(self, start, stop):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        finish(Broken(random_map()), tmp_path / "p.tif", HERE, {})
    assert list(tmp_path.iterdir()) == []


# Those of others


def foreign(tmp_path, values, **options):
    return write_scene(tmp_path / "other.tif", np.asarray(values)[None], None, **options)


def some(dtype="float32"):
    values = random_map().astype(dtype) / STEPS
    values[:5, :7] = 0.5
    return values


def test_floats_are_read_in_steps(tmp_path):
    assert (stored(foreign(tmp_path, some())) == quantise(some())).all()


def test_floats_with_nan_or_nodata_are_not_analysed_there(tmp_path):
    values = some("float64")
    values[3, 3] = np.nan
    values[4, 4] = -1
    found = stored(foreign(tmp_path, values, nodata=-1))
    assert np.argwhere(found == NODATA).tolist() == [[3, 3], [4, 4]]


def test_a_raster_of_nothing_is_all_nodata(tmp_path):
    assert (stored(foreign(tmp_path, np.full((9, 9), np.nan, np.float32))) == NODATA).all()


@pytest.mark.parametrize(("dtype", "scale"), [("uint8", 1 / 255), ("uint16", 1e-4)])
def test_scaled_whole_numbers_are_read_by_their_scale(tmp_path, dtype, scale):
    values = np.round(some() / scale).astype(dtype)
    found = stored(foreign(tmp_path, values, scale=scale))
    assert np.abs(found.astype(int) - quantise(some())).max() <= 1


def test_an_offset_is_heeded(tmp_path):
    values = (np.round(some() * 200) + 20).astype(np.uint8)
    found = stored(foreign(tmp_path, values, scale=1 / 200, offset=-0.1))
    assert np.abs(found.astype(int) - quantise(some())).max() <= 1


@pytest.mark.parametrize(("odd", "told"), [(87.5, "87.5"), (np.inf, "inf"), (-9999, "-9999")])
def test_numbers_that_are_no_probabilities_are_refused(tmp_path, odd, told):
    values = some()
    values[60, 60] = odd
    with pytest.raises(InputError, match=rf"other\.tif holds {told}, which is no probability"):
        stored(foreign(tmp_path, values))


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        (np.ones((1, 9, 9), np.uint8), "whole numbers without a scale tag"),
        (np.ones((1, 9, 9), np.int32), "whole numbers without a scale tag"),
        (np.ones((2, 9, 9), np.float32), "has 2 bands"),
    ],
)
def test_rasters_that_are_no_probabilities_are_refused(tmp_path, values, fact):
    path = write_scene(tmp_path / "other.tif", values, None)
    with pytest.raises(InputError, match=fact):
        stored(path)
