"""Pictures show true colour where there is any."""

from __future__ import annotations

import numpy as np
import pytest

from smokegeo.bands import Band, BandSet
from smokegeo.composite import composite, composite_indexes, has_true_colour, stretch
from smokegeo.sensors import sensor


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("mss", ("red", "green", "blue")),
        ("satellite", ("red", "green", "blue")),
        ("sentinel2", ("B04", "B03", "B02")),
        ("naip", ("red", "green", "blue")),
        ("hss", ("840nm", "664nm", "600nm")),
    ],
)
def test_composites_use_the_right_bands(name, shown):
    bands = sensor(name).bands
    assert tuple(bands[i].name for i in composite_indexes(bands)) == shown
    assert has_true_colour(bands) is (name != "hss")


def test_one_band_and_nameless_bands_can_be_shown():
    assert composite_indexes(BandSet((Band("thermal", 10500),))) == (0, 0, 0)
    assert composite_indexes(BandSet((Band("a"), Band("b")))) == (1, 1, 0)


def test_composite_is_in_range_whatever_the_values():
    image = np.array([np.nan, np.inf, -5, 1e9] * 4, np.float32).reshape(1, 4, 4).repeat(4, 0)
    picture = composite(image, sensor("mss").bands)
    assert picture.shape == (4, 4, 3)
    assert np.isfinite(picture).all()
    assert picture.min() >= 0
    assert picture.max() <= 1


def test_true_colours_share_one_stretch_and_false_colours_do_not():
    image = np.linspace(0, 1, 100).reshape(1, 10, 10) * np.array([1, 2, 4]).reshape(3, 1, 1)
    together = stretch(image, together=True)
    assert together[..., 0].max() < together[..., 1].max() < together[..., 2].max() == 1
    apart = stretch(image, together=False)
    assert apart.max(axis=(0, 1)).tolist() == [1, 1, 1]


def test_a_flat_or_empty_image_can_be_stretched():
    for value in (7, np.nan):
        for together in (True, False):
            picture = stretch(np.full((3, 4, 4), value), together=together)
            assert (picture == 0).all()
            assert picture.dtype == np.float32


def test_stretching_leaves_the_image_alone():
    image = np.array([np.inf, 1, 2, 3], np.float32).reshape(1, 2, 2).repeat(3, 0)
    before = image.copy()
    stretch(image, together=True)
    assert (image == before).all()
