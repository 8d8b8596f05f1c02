"""Pictures show true colour where there is any."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from smokegeo.bands import Band, BandSet
from smokegeo.datasets.plot import composite, composite_indexes, plot_sample
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


def test_a_prediction_gets_its_own_panel():
    image, mask = torch.rand(4, 8, 8), torch.zeros(8, 8)
    figure = plot_sample(
        {"image": image, "mask": mask, "prediction": mask}, sensor("mss").bands, show_titles=True
    )
    assert [axis.get_title() for axis in figure.axes] == ["image", "mask", "prediction"]
