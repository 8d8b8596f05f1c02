"""The numbers of frames in a model's units, as `predict` would have them."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from random_data import random_frame
from toy_models import save_toy, toy_card

from smokegeo.bands import match_bands
from smokegeo.cubes import make_cube
from smokegeo.datasets.layout import finish_layout, write_frame
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.errors import UsageError
from smokegeo.evaluate import probabilities
from smokegeo.frameunits import FrameUnits
from smokegeo.modelfile import load_model
from smokegeo.radiometry import Scaling, Units
from smokegeo.sensors import sensor
from smokegeo.torchgeo_api import frame_slices


@pytest.fixture
def stored(tmp_path):
    """Return a function that writes a dataset whose frames hold what a function makes of some."""

    def make(kind, change, name="data", count=1):
        root = tmp_path / name
        root.mkdir()
        bands, records = sensor(kind).bands, []
        for number in range(count):
            frame = random_frame(number, kind)
            cube = make_cube(change(frame.cube.values), bands)
            records.append(write_frame(root, replace(frame, cube=cube), number))
        finish_layout(root, kind, bands, records, {})
        return SmokeDataset(root, None)

    return make


def scalings(card, dataset) -> list[Scaling]:
    """Return the scaling of each frame."""
    units = FrameUnits(card, dataset, match_bands(dataset.band_set, card.bands))
    found = []
    for query in frame_slices(dataset):
        sample = dataset[query]
        image = sample["image"].numpy()
        valid = np.ones(image.shape[1:], bool)
        found.append(units.scaling(int(sample["frame"]), image, valid))
    return found


def test_a_picture_of_heat_is_not_taken_for_degrees(stored):
    views = ["measured", "relative"]
    both = toy_card("mss", input={"dtype": "uint8", "heat": "celsius", "views": views})
    (pattern,) = scalings(both, stored("mss", lambda v: (v // 4).astype(np.uint8)))
    assert pattern.trusted == (True, True, True, False)
    kelvin = stored("mss", lambda v: (v // 40 + 280).astype(np.float32), "kelvin")
    (warm,) = scalings(both, kelvin)
    assert warm.offsets[3] == pytest.approx(-273.15)


def test_frames_of_more_bits_are_brought_to_the_models(stored):
    card = toy_card("hss", input={"dtype": "uint16", "full": 1023})
    (same,) = scalings(card, stored("hss", lambda values: values))
    (finer,) = scalings(card, stored("hss", lambda values: 4 * values, "finer"))
    assert set(same.factors) == {1.0}
    assert set(finer.factors) == {1023 / 4095}


def test_a_model_of_ones_own_takes_its_data_as_it_is(stored):
    card = toy_card("satellite")  # says no more of its input than its type
    (bright,) = scalings(card, stored("satellite", lambda values: 60 * values))
    assert bright.factors == (1.0,) * 6
    assert bright.trusted is True


def test_the_same_frame_is_scored_alike_in_whichever_units_it_is_stored(stored, tmp_path):
    model = load_model(save_toy(tmp_path / "toy.safetensors"))
    whole = stored("satellite", lambda values: 8 * values)
    shares = stored("satellite", lambda values: (8 * values / 10_000).astype(np.float32), "shares")
    (one,), (two,) = (list(probabilities(model, data)) for data in (whole, shares))
    assert one[2].std() > 0.01
    np.testing.assert_allclose(one[2], two[2], atol=1e-3)


def test_what_the_user_says_of_units_holds_for_every_model(stored, tmp_path):
    half = stored("satellite", lambda values: values // 2, count=2)
    for card in (toy_card("satellite"), toy_card("satellite", input={"views": ["measured"]})):
        matching = match_bands(half.band_set, card.bands)
        units = FrameUnits(card, half, matching, Units.said(2.0, None))
        image = half[next(iter(frame_slices(half)))]["image"].numpy()
        assert units.scaling(0, image, np.ones(image.shape[1:], bool)).factors == (2.0,) * 6
    model = load_model(save_toy(tmp_path / "toy.safetensors"))
    told, guessed = (list(probabilities(model, half, said)) for said in (Units(2.0), None))
    assert not np.array_equal(told[0][2], guessed[0][2])


@pytest.mark.parametrize("numbers", [(0.0, None), (-1.0, None), (float("inf"), None), (1, np.nan)])
def test_a_scale_or_offset_that_is_none_is_refused(numbers):
    with pytest.raises(UsageError):
        Units.said(*numbers)


def test_a_doubt_about_units_is_told_once_not_for_every_frame(stored, caplog):
    card = toy_card("satellite", input={"dtype": "uint16", "views": ["measured", "relative"]})
    counts = stored("satellite", lambda values: values + 7000, count=3)
    with caplog.at_level(logging.WARNING, "smokegeo"):
        found = scalings(card, counts)
    assert not any(any(scaling.trusted) for scaling in found)
    assert len(caplog.records) == 1
