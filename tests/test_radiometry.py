"""Numbers of any scene arrive in the units the model was trained in."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from toy_models import toy_card
from toy_scenes import scene_of

from smokegeo.bands import Band, BandSet, match_bands
from smokegeo.radiometry import Units, choose_scaling, full_scale, in_digits, is_thermal
from smokegeo.survey import survey
from smokegeo.views import VIEWS

LIGHT = BandSet((Band("red", 660, 30), Band("nir", 840, 40)))
HEAT = BandSet((Band("red", 660, 30), Band("thermal", 10_500, 1000)))


def scaling(values, card, said=None, bands=None, **facts):
    scene = scene_of(np.asarray(values), bands or card.bands, **facts)
    matching = match_bands(scene.bands, card.bands)
    used = [i for i in matching.indexes if i is not None]
    return choose_scaling(scene, survey(scene, used), matching, card, said)


def ramp(low, high, dtype, count=2):
    return np.linspace(low, high, 400).reshape(1, 20, 20).repeat(count, 0).astype(dtype)


X1E4 = toy_card(LIGHT, mean=2000.0, std=1000.0, high=9000.0)
UNIT = toy_card(LIGHT, dtype="float32", mean=0.2, std=0.1, high=0.9)
EIGHT = toy_card(LIGHT, dtype="uint8", mean=90.0, std=40.0, high=255.0)
SIXTEEN = toy_card(LIGHT, mean=20_000.0, std=9000.0, high=65_000.0)


@pytest.mark.parametrize(
    ("values", "card", "factor"),
    [
        (ramp(100, 8000, "uint16"), X1E4, 1),
        (ramp(0.01, 0.8, "float32"), X1E4, 10_000),
        (ramp(0.01, 1.4, "float64"), X1E4, 10_000),  # clouds are brighter than white
        (ramp(5, 250, "uint8"), X1E4, 10_000 / 255),
        (ramp(5.0, 250.0, "float32"), X1E4, 10_000 / 255),
        (np.rint(ramp(5, 90, "float32")), X1E4, 10_000 / 255),  # a dark picture
        (ramp(0.5, 54.7, "float32"), X1E4, 100),  # per cent
        (ramp(500, 60_000, "uint16"), X1E4, 10_000 / 65_535),
        (ramp(-200, 8000, "int16"), X1E4, 1),
        (ramp(100, 8000, "float32"), X1E4, 1),
        (ramp(0.01, 0.8, "float32"), UNIT, 1),
        (ramp(100, 8000, "uint16"), UNIT, 1e-4),
        (ramp(5, 250, "uint8"), UNIT, 1 / 255),
        (ramp(5, 250, "uint8"), EIGHT, 1),
        (ramp(0, 60, "uint8"), EIGHT, 1),  # a dark picture stays dark
        (ramp(100, 8000, "uint16"), EIGHT, 0.0255),
        (ramp(0.01, 0.8, "float32"), EIGHT, 255),
        (ramp(500, 60_000, "uint16"), SIXTEEN, 1),
        (ramp(0.01, 0.8, "float32"), SIXTEEN, 65_535),
    ],
)
def test_light_is_brought_to_the_model_s_full_scale(values, card, factor, caplog):
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        found = scaling(values, card)
    assert found.factors == pytest.approx((factor, factor))
    assert found.offsets == (0, 0)
    assert not caplog.records
    if factor == 1:
        assert "as the model knows them" in found.words
    else:
        assert "--scale decides otherwise" in found.words


def test_one_factor_serves_all_bands_by_the_brightest():
    values = np.concatenate([ramp(100, 2000, "uint16", 1), ramp(100, 60_000, "uint16", 1)])
    assert len(set(scaling(values, X1E4).factors)) == 1


def test_values_that_tags_have_scaled_are_reflectances_whatever_their_type():
    assert scaling(ramp(0, 0.9, "float32"), X1E4, physical=True).factors == (1e4, 1e4)
    found = scaling(ramp(0, 1, "uint8"), X1E4, physical=True)
    assert found.factors == (1e4, 1e4)


def test_the_user_s_scale_goes_before_all_guesses():
    found = scaling(ramp(0.01, 0.8, "float32"), X1E4, Units(5000.0))
    assert found.factors == (5000, 5000)
    assert "as you said" in found.words


def test_the_user_s_scale_leaves_thermal_bands_alone():
    card = toy_card(HEAT, mean=(2e3, 20.0), std=(1e3, 9.0), low=(0.0, -20.0), high=(9e3, 90.0))
    values = np.stack([np.full((20, 20), 0.5), np.full((20, 20), 300.0)]).astype(np.float32)
    found = scaling(values, card, Units(2.0))
    assert found.factors == (2, 1)
    assert found.offsets == pytest.approx((0, -273.15))


def test_the_user_s_offset_is_added_after_the_scale():
    found = scaling(ramp(7500, 40_000, "uint16"), X1E4, Units(0.275, -2000.0))
    assert (found.factors, found.offsets) == ((0.275, 0.275), (-2000, -2000))
    assert "times 0.275 and -2000, as you said" in found.words


@pytest.mark.parametrize(
    ("name", "units"),
    [("LC08_L2SP_001_cut.tif", (0.275, -2000)), ("LE07_L1TP.tif", (0.2, -1000))],
)
@pytest.mark.parametrize("high", [20_000, 43_000])  # with a cloud and without
def test_counts_of_landsat_become_reflectances_by_the_file_s_name(name, units, high):
    found = scaling(ramp(7500, high, "uint16"), X1E4, name=name)
    assert (found.factors[0], found.offsets[0]) == pytest.approx(units)
    assert "Landsat level" in found.words
    scaled = scaling(ramp(100, 8000, "uint16"), X1E4, name=name)  # reflectances under that name
    assert (scaled.factors[0], scaled.offsets[0]) == (1, 0)


@pytest.mark.parametrize("high", [20_000, 43_000])
def test_counts_without_a_name_are_never_taken_for_a_picture_of_16_bits(high, caplog):
    seen = replace(X1E4, input={"dtype": "uint16", "views": list(VIEWS)})
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        found = scaling(ramp(7500, high, "uint16"), seen)
    assert found.trusted == (False, False)
    assert "--offset -2000" in caplog.text
    assert "as the model knows" not in found.words


def test_a_model_of_counts_takes_counts_as_they_are():
    counts = toy_card(LIGHT, mean=12_000.0, std=3000.0, low=7000.0, high=28_000.0)
    found = scaling(ramp(7500, 27_000, "uint16"), counts, name="LC08_L2SP_x.tif")
    assert (found.factors, found.offsets) == ((1, 1), (0, 0))


# Heat

KELVIN = (280.0, 9.0, 230.0, 340.0)
CELSIUS = (15.0, 9.0, -30.0, 70.0)
CENTIKELVIN = (28_000.0, 900.0, 23_000.0, 34_000.0)
RAW = (120.0, 30.0, 0.0, 255.0)


def heat_card(numbers):
    mean, std, low, high = numbers
    return toy_card(
        HEAT, mean=(2000.0, mean), std=(1000.0, std), low=(0.0, low), high=(9000.0, high)
    )


@pytest.mark.parametrize("card", [KELVIN, CELSIUS, CENTIKELVIN])
@pytest.mark.parametrize(
    ("span", "celsius"),
    [
        ((260.0, 320.0), lambda v: v - 273.15),
        ((-13.0, 47.0), lambda v: v),
        ((26_000.0, 32_000.0), lambda v: v / 100 - 273.15),
    ],
)
def test_heat_is_the_same_temperature_on_both_sides(span, celsius, card):
    values = np.concatenate([ramp(100, 8000, "float32", 1), ramp(*span, "float32", 1)])
    found = scaling(values, heat_card(card))
    there = {KELVIN: lambda v: v - 273.15, CELSIUS: float, CENTIKELVIN: lambda v: v / 100 - 273.15}
    for value in span:
        arrived = found.factors[1] * value + found.offsets[1]
        assert there[card](arrived) == pytest.approx(celsius(value), abs=1e-6)
    assert found.factors[0] == 1
    assert found.offsets[0] == 0


def test_heat_of_unknown_units_is_left_as_it_is_and_said():
    values = np.concatenate([ramp(100, 8000, "float32", 1), ramp(280, 320, "float32", 1)])
    found = scaling(values, heat_card(RAW))
    assert (found.factors[1], found.offsets[1]) == (1, 0)
    assert "units unknown" in found.words


def test_raw_heat_of_the_same_kind_is_taken_as_it_is():
    values = np.concatenate([ramp(100, 8000, "float32", 1), ramp(0, 255, "float32", 1)])
    found = scaling(values, heat_card(RAW))
    assert (found.factors[1], found.offsets[1]) == (1, 0)
    assert "unknown" not in found.words


@pytest.mark.parametrize(
    ("band", "hot"),
    [
        (Band("B10", 10_900), True),
        (Band("mwir", 3900), True),
        (Band("swir2", 2200), False),
        (Band("Thermal"), True),
        (Band("LWIR"), True),
        (Band("red"), False),
    ],
)
def test_thermal_bands_are_known_by_wavelength_or_name(band, hot):
    assert is_thermal(band) is hot


# Which numbers can be trusted

BOTH = {"views": ["measured", "relative"]}


@pytest.mark.parametrize(
    ("dtype", "values", "trusted"),
    [
        ("uint16", ramp(100, 8000, "uint16"), True),
        ("uint16", ramp(5, 250, "uint8"), False),  # a stretched picture for a satellite's model
        ("uint16", ramp(7000, 9000, "uint16"), False),  # raw counts: nothing is that bright
        ("uint8", ramp(5, 250, "uint8"), True),  # a picture for a camera's model
    ],
)
def test_light_is_trusted_if_it_can_be_what_the_model_knows(dtype, values, trusted):
    card = toy_card(LIGHT, high=255.0 if dtype == "uint8" else 9000.0)
    card = replace(card, input={"dtype": dtype, **BOTH})
    assert scaling(values, card).trusted == (trusted, trusted)


def test_heat_without_a_unit_is_distrusted_alone():
    card = replace(heat_card(CELSIUS), input={"dtype": "uint16", "heat": "celsius", **BOTH})
    light = ramp(100, 8000, "float32", 1)
    raw = np.concatenate([light, ramp(0, 255, "float32", 1)])
    assert scaling(raw, card).trusted == (True, False)
    kelvin = np.concatenate([light, ramp(270, 320, "float32", 1)])
    assert scaling(kelvin, card).trusted == (True, True)


@pytest.mark.parametrize("high", [40, 150, 255])
def test_heat_in_8_bits_is_a_picture_however_bright(high):
    card = replace(heat_card(CELSIUS), input={"dtype": "uint8", "heat": "celsius", **BOTH})
    found = scaling(np.stack([ramp(0, 255, "uint8", 1)[0], ramp(0, high, "uint8", 1)[0]]), card)
    assert found.trusted == (True, False)
    assert (found.factors[1], found.offsets[1]) == (1, 0)
    # Celsius in whole numbers that a tag has scaled are measured.
    assert scaling(ramp(0, high, "uint8"), card, physical=True).trusted[1] is (high < 200)


@pytest.mark.parametrize(
    ("values", "factor"),
    [
        (ramp(10, 1000, "uint16"), 1),
        (ramp(10, 4000, "uint16"), 1023 / 4095),
        (ramp(10, 60_000, "uint16"), 1023 / 65_535),
        (ramp(5, 250, "uint8"), 1023 / 255),
        (ramp(0.01, 0.8, "float32"), 1023),
    ],
)
def test_counts_of_a_camera_are_brought_to_the_bits_of_the_model_s(values, factor):
    card = replace(toy_card(LIGHT, high=1023.0), input={"dtype": "uint16", "full": 1023})
    assert scaling(values, card).factors == pytest.approx((factor, factor))


# Doubts


@pytest.mark.parametrize("scale", [1000.0, 0.001])
def test_values_far_outside_the_training_range_are_warned_of_once(scale, caplog):
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        scaling(ramp(100, 8000, "uint16"), X1E4, Units(scale))
    (record,) = caplog.records
    assert "give --scale" in record.getMessage()
    assert "0 to 9000" in record.getMessage()
    assert "band red" in record.getMessage()


def test_a_dark_scene_is_no_reason_to_warn(caplog):
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        scaling(ramp(0, 900, "uint16"), X1E4)
    assert not caplog.records


def test_a_scene_without_valid_pixels_has_a_scaling_too(caplog):
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        found = scaling(np.full((2, 5, 5), np.nan, np.float32), heat_card(KELVIN), bands=HEAT)
    assert np.isfinite([*found.factors, *found.offsets]).all()
    assert "no valid pixels" in found.words
    assert not caplog.records


def test_absent_bands_change_nothing():
    card = toy_card(HEAT, mean=(2000.0, 280.0), std=(1e3, 9.0), low=(0.0, 230.0), high=(9e3, 340.0))
    only_heat = BandSet(HEAT.bands[1:])
    found = scaling(ramp(-10, 40, "float32", 1), card, bands=only_heat)
    assert found.factors == (1, 1)
    assert found.offsets == pytest.approx((0, 273.15))


@pytest.mark.parametrize(
    ("dtype", "high", "full"),
    [
        ("uint8", 3, 255),
        ("float32", 3, 1),
        ("float32", 3.1, 255),
        ("float64", 255, 255),
        ("float32", 256, 10_000),
        ("uint16", 1, 10_000),
        ("int16", 30_000, 10_000),
        ("uint16", 30_001, 65_535),
        ("uint16", float("nan"), 10_000),
    ],
)
def test_the_full_scale_follows_from_type_and_range(dtype, high, full):
    assert full_scale(dtype, high) == full


def test_the_normaliser_joins_units_and_statistics_and_keeps_constant_bands_at_zero():
    card = toy_card(LIGHT, mean=(2000.0, 7.0), std=(1000.0, 0.0))
    gain, shift = scaling(ramp(0.1, 0.8, "float32"), card).normaliser(card)
    assert gain.dtype == shift.dtype == np.float32
    assert gain[0] * 0.3 + shift[0] == pytest.approx((3000 - 2000) / 1000)
    assert (gain[1], shift[1]) == pytest.approx((10_000, -7))


@pytest.mark.parametrize(
    ("value", "text"), [(21100.4, "21100"), (0.12345, "0.1235"), (7.0, "7"), (3.4e38, "3.4e+38")]
)
def test_pixel_values_are_written_as_people_do(value, text):
    assert in_digits(value) == text
