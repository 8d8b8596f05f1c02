"""Numbers of any scene arrive in the units the model was trained in."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from toy_models import toy_card
from toy_scenes import scene_of

from smokegeo.bands import Band, BandSet, match_bands
from smokegeo.radiometry import Units, choose_scaling, full_scale, in_digits
from smokegeo.scene import landsat, sentinel2
from smokegeo.scene.coding import coding_of, is_radiance
from smokegeo.scene.scene import Source
from smokegeo.sensors import sensor
from smokegeo.survey import survey
from smokegeo.views import VIEWS

LIGHT = BandSet((Band("red", 660, 30), Band("nir", 840, 40)))
BOTH = {"views": ["measured", "relative"]}
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
        assert ", read as " in found.words
    else:
        assert "--scale decides otherwise" in found.words


@pytest.mark.parametrize(
    ("values", "card", "words"),
    [
        (ramp(100, 5000, "uint16"), X1E4, "uint16 values up to 4975, read as reflectance x 10000"),
        (ramp(0.01, 0.8, "float32"), UNIT, "read as reflectance from 0 to 1"),
        (ramp(5, 200, "uint8"), EIGHT, "read as a picture of 8 bits"),
        (ramp(500, 60_000, "uint16"), SIXTEEN, "read as brightness up to 65535"),
    ],
)
def test_numbers_that_need_no_change_are_called_what_they_are(values, card, words):
    assert words in scaling(values, card).words


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_nothing_is_said_of_numbers_where_there_are_none(dtype):
    view = replace(X1E4, input={"dtype": "uint16", "views": list(VIEWS)})
    found = scaling(np.zeros((2, 20, 20), dtype), view, blanks=(0.0,))
    assert found.words == "no valid pixels to tell them by"


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
    coding = landsat.coding_of(name)
    found = scaling(ramp(7500, high, "uint16"), X1E4, coding=coding)
    assert (found.factors[0], found.offsets[0]) == pytest.approx(units)
    assert "Landsat level" in found.words
    scaled = scaling(ramp(100, 8000, "uint16"), X1E4, coding=coding)  # reflectances of that name
    assert (scaled.factors[0], scaled.offsets[0]) == (1, 0)
    assert "too dark to be counts of Landsat" in scaled.words


def test_counts_of_landsat_become_reflectances_by_the_names_of_their_bands():
    coding = landsat.coding_of("cut.tif", ["SR_B2", "sr_b3"])
    for dtype in ("uint16", "float32"):  # as they are, and through a program that knows floats only
        found = scaling(np.rint(ramp(7500, 20_000, dtype)), X1E4, coding=coding)
        assert (found.factors[0], found.offsets[0]) == pytest.approx((0.275, -2000))
        assert "level 2 by the names SR_B of its bands" in found.words
    scaled = scaling(ramp(0.01, 0.8, "float32"), X1E4, coding=coding)
    assert (scaled.factors[0], scaled.offsets[0]) == (10_000, 0)
    assert landsat.coding_of("cut.tif", ["SR_B2", "B3"]) is None
    assert landsat.coding_of("cut.tif", []) is None


@pytest.mark.parametrize("high", [20_000, 43_000])
def test_counts_without_a_name_are_never_taken_for_a_picture_of_16_bits(high, caplog):
    seen = replace(X1E4, input={"dtype": "uint16", "views": list(VIEWS)})
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        found = scaling(ramp(7500, high, "uint16"), seen)
    assert found.trusted == (False, False)
    assert (
        "Level 2: --scale 0.275 --offset -2000; Level 1: --scale 0.2 --offset -1000" in caplog.text
    )
    assert "read as" not in found.words


def test_counts_with_zeros_in_one_band_are_counts_still(caplog):
    values = ramp(7500, 20_000, "uint16")
    values[1, 0, :4] = 0  # a hundredth
    seen = replace(X1E4, input={"dtype": "uint16", "views": list(VIEWS)})
    assert scaling(values, seen).trusted == (False, False)
    assert "no band is darker than 75" in caplog.text
    values[1] = 0  # nothing at all in it
    assert scaling(values, seen).trusted == (False, False)
    values = ramp(1, 9000, "uint16")
    values[:, 0, :4] = 0
    assert scaling(values, seen).trusted == (True, True)


def test_a_model_of_counts_takes_counts_as_they_are():
    counts = toy_card(LIGHT, mean=12_000.0, std=3000.0, low=7000.0, high=28_000.0)
    coding = landsat.coding_of("LC08_L2SP_x.tif")
    found = scaling(ramp(7500, 27_000, "uint16"), counts, coding=coding)
    assert (found.factors, found.offsets) == ((1, 1), (0, 0))


# MicaSense's cameras: 32768 is all light reflected

SIX = tuple(sensor("altum").bands)


@pytest.mark.parametrize(
    ("name", "tags", "bands", "preset", "coded"),
    [
        ("x.tif", {}, SIX, "altum", True),
        ("x.tif", {}, SIX[:5], "rededge_mx", True),
        ("Altum_field.tif", {}, SIX, None, True),
        ("field-rededge.tif", {}, SIX[:5], None, True),
        ("x.tif", {"EXIF_Make": "MicaSense"}, SIX[:5], None, True),
        ("x.tif", {"EXIF_Model": "RedEdge-MX"}, SIX[:5], None, True),
        ("x.tif", {"bands": "blue,green,red,rededge,nir"}, SIX[:5], None, False),
        ("S2_rededge.tif", {}, SIX[:5], None, False),
        ("rededge.tif", {}, SIX[3:5], None, False),  # a band of any sensor
        ("x.tif", {}, SIX, "sentinel2", False),
        ("x.tif", {}, SIX, None, False),
    ],
)
def test_numbers_of_micasense_are_known_by_preset_name_or_tags(name, tags, bands, preset, coded):
    coding = coding_of(name, tags, bands, [None] * len(bands), preset)
    assert (coding is not None) == coded


@pytest.mark.parametrize(
    ("card", "factor"), [(X1E4, 10_000 / 32_768), (UNIT, 1 / 32_768), (EIGHT, 255 / 32_768)]
)
def test_numbers_of_micasense_become_reflectances(card, factor):
    coding = coding_of("x.tif", {}, SIX, [None] * 6, "altum")
    found = scaling(ramp(300, 20_000, "uint16"), card, coding=coding)
    assert (found.factors[0], found.offsets[0]) == (pytest.approx(factor), 0)
    assert "MicaSense x 32768, by the preset altum" in found.words
    floats = scaling(ramp(0.01, 0.8, "float32"), X1E4, coding=coding)
    assert floats.factors == (10_000, 10_000)


def test_a_model_of_micasense_s_own_numbers_takes_them_as_they_are():
    card = toy_card("altum", high=20_000.0)
    coding = coding_of("x.tif", {}, SIX, [None] * 6, "altum")
    assert scaling(ramp(300, 20_000, "uint16", 6), card, coding=coding).factors[0] == 1


# Radiances


@pytest.mark.parametrize(
    ("name", "description", "radiance"),
    [
        ("20230514_101559_12_2415_3B_AnalyticMS.tif", "", True),
        ("20230514_101559_12_2415_3B_AnalyticMS_8b_clip.tif", "", True),
        ("20230514_101559_12_2415_3B_AnalyticMS_SR.tif", "", False),
        ("20230514_101559_12_2415_3B_AnalyticMS_SR_8b_harmonized_clip.tif", "", False),
        ("20230514_101559_12_2415_3B_AnalyticMS_toar.tif", "", False),
        ("ang20150420t182050_rdn_v1_img", "", True),
        ("f130503t01p00r10rdn_e_sc01.img", "", True),
        ("cube.img", "{Measured Radiances in uW nm-1 cm-2 sr-1}", True),
        ("cube.img", "{reflectance from radiance}", False),
        ("cordned.tif", "{irradiance}", False),
        ("scene.tif", "", False),
    ],
)
def test_names_and_headers_tell_of_radiances(name, description, radiance):
    assert is_radiance(name, description) is radiance


@pytest.mark.parametrize(
    ("views", "said"), [(BOTH, "of which only the pattern is used"), ({}, "taken for reflectances")]
)
def test_radiances_are_no_reflectances_and_that_is_said(views, said, caplog):
    card = replace(X1E4, input={"dtype": "uint16", **views})
    found = scaling(ramp(300, 9000, "uint16"), card, radiance=True)
    assert found.trusted == (not views, not views)
    (record,) = caplog.records
    assert said in record.getMessage()
    assert "AnalyticMS_SR), or bring them to the model's units with --scale" in record.getMessage()
    caplog.clear()
    assert scaling(ramp(300, 9000, "uint16"), card, Units(0.5), radiance=True).trusted[0] is True
    assert not caplog.records


@pytest.mark.parametrize("facts", [{"dtype": "uint8"}, {"dtype": "uint16", "full": 1023}])
def test_a_camera_s_model_takes_radiances_as_any_numbers(facts, caplog):
    card = replace(toy_card(LIGHT, high=1023.0), input={**facts, **BOTH})
    assert scaling(ramp(10, 1000, "uint16"), card, radiance=True).trusted == (True, True)
    assert "radiances" not in caplog.text


# What ESA adds to the values of Sentinel-2

ADDED = sentinel2.coding_of("S2A_MSIL2A_20220902T143751_N0400_R096_T20LMR_x.tif", {})


@pytest.mark.parametrize(
    ("card", "units"), [(X1E4, (1, -1000)), (UNIT, (1e-4, -0.1)), (EIGHT, (0.0255, -25.5))]
)
def test_what_was_added_to_all_values_is_taken_off(card, units, caplog):
    found = scaling(ramp(1010, 9000, "uint16"), card, coding=ADDED)
    assert (found.factors[0], found.offsets[0]) == pytest.approx(units)
    assert "with 1000 added, by processing baseline N0400 in its name" in found.words
    assert "--raw or --scale decide otherwise" in found.words
    assert not caplog.records


@pytest.mark.parametrize(
    ("values", "facts", "factor"),
    [
        (ramp(20, 8000, "uint16"), {}, 1),  # taken off already
        (ramp(0.01, 0.8, "float32"), {}, 10_000),
        (ramp(0.11, 0.9, "float32"), {}, 10_000),
        (ramp(0.11, 0.9, "float32"), {"physical": True}, 10_000),  # by scale tags
        (ramp(5, 250, "uint8"), {}, 10_000 / 255),
    ],
)
def test_what_was_added_is_not_taken_off_twice(values, facts, factor):
    found = scaling(values, X1E4, coding=ADDED, **facts)
    assert (found.factors[0], found.offsets[0]) == (pytest.approx(factor), 0)


def test_a_model_of_values_with_1000_added_takes_them_as_they_are(caplog):
    card = toy_card(LIGHT, mean=3000.0, std=900.0, low=1001.0, high=9000.0)
    assert scaling(ramp(1010, 9000, "uint16"), card, coding=ADDED).offsets == (0, 0)
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "tags", "added"),
    [
        ("S2B_MSIL1C_20230102T100559_N0509_R022_T32TPS_20230102T120000_cut.tif", {}, True),
        ("my S2C_MSIL2A_20250102T100559_N0511.tif", {}, True),
        ("S2A_MSIL2A_20190830T100559_N0213_R022_T32TPS_20190830T120000.tif", {}, False),
        ("S2A_MSIL2A_20220830T100559_N9999_R022_T32TPS_20220830T120000.tif", {}, False),
        ("well_N0400_log.tif", {}, False),
        ("cut.tif", {"PROCESSING_BASELINE": "04.00"}, True),
        ("cut.tif", {"PROCESSING_BASELINE": "5.1"}, True),  # 05.10, as a number
        ("cut.tif", {"PROCESSING_BASELINE": "03.01"}, False),
        ("cut.tif", {"PROCESSING_BASELINE": "99.99"}, False),
        ("cut.tif", {"PROCESSING_BASELINE": "unknown"}, False),
        ("cut.tif", {"BOA_ADD_OFFSET": "-1000"}, True),
        ("cut.tif", {"RADIO_ADD_OFFSET": "-1000.0"}, True),
        ("cut.tif", {"BOA_ADD_OFFSET_B02": "1000", "BOA_ADD_OFFSET_B03": "1000"}, True),
        ("cut.tif", {"BOA_ADD_OFFSET": "0", "PROCESSING_BASELINE": "04.00"}, False),
        ("cut.tif", {}, False),
    ],
)
def test_names_and_tags_say_what_was_added(name, tags, added):
    coding = sentinel2.coding_of(name, tags)
    assert (coding is not None) == added
    if coding is not None:
        assert (coding.scale, coding.offset) == (1e-4, -0.1)


@pytest.mark.parametrize(
    ("card", "remedy"),
    [(X1E4, "--scale 1 --offset -1000"), (UNIT, "--scale 0.0001 --offset -0.1")],
)
def test_values_of_which_none_is_dark_may_have_1000_added_and_that_is_said(card, remedy, caplog):
    found = scaling(ramp(990, 9000, "uint16"), card)
    assert found.offsets == (0, 0)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().endswith(f"{remedy} takes it off")
    by_user = Units(*(float(word) for word in remedy.split()[1::2]))
    caplog.clear()
    scaling(ramp(990, 9000, "uint16"), card, by_user)
    assert not caplog.records


def test_one_dark_band_is_enough_to_say_nothing_of_1000_added(caplog):
    scaling(np.concatenate([ramp(2000, 9000, "uint16", 1), ramp(200, 3000, "uint16", 1)]), X1E4)
    scaling(ramp(0.15, 0.9, "float32"), X1E4)
    scaling(ramp(1100, 9000, "uint16"), X1E4, bands_from="product metadata")  # has said it
    scaling(ramp(1100, 9000, "uint16"), EIGHT)  # a camera's
    scaling(ramp(1900, 9000, "uint16"), X1E4)  # under thick cloud nothing is dark
    assert not caplog.records


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


# Colours are judged by themselves, whatever heat lies beside them


@pytest.mark.parametrize(
    ("dtype", "heat"),
    [("uint16", (28_000, 31_000)), ("float32", (-9.5, 40.2)), ("float32", (280.3, 310.9))],
)
@pytest.mark.parametrize("high", [96, 242])
def test_colours_of_8_bits_beside_heat_are_a_picture_in_any_type(dtype, heat, high):
    card = toy_card(HEAT, dtype="uint8", mean=(90.0, 20.0), std=(40.0, 9.0), high=(255.0, 90.0))
    colour = np.rint(ramp(3, high, "float32", 1)).astype(dtype)
    found = scaling(np.concatenate([colour, ramp(*heat, dtype, 1)]), card)
    assert (found.factors[0], found.offsets[0]) == (1, 0)
    assert found.words.startswith(f"{dtype} values up to")


def test_colours_alone_in_16_bits_stay_scaled_reflectances():
    assert scaling(ramp(3, 242, "uint16"), EIGHT).factors == pytest.approx((0.0255, 0.0255))


def test_dark_colours_in_8_bits_beside_heat_are_a_picture_for_a_satellite_s_model():
    card = replace(toy_card(LIGHT, high=9000.0), input={"dtype": "uint16", **BOTH})
    bands = BandSet((*LIGHT.bands, HEAT.bands[1]))
    values = np.concatenate([ramp(3, 242, "uint16"), ramp(28_000, 31_000, "uint16", 1)])
    assert scaling(values, card, bands=bands).trusted == (False, False)


def test_each_file_of_a_folder_is_judged_by_its_own_type():
    card = toy_card(HEAT, dtype="uint8", mean=(90.0, 20.0), std=(40.0, 9.0), high=(255.0, 90.0))
    card = replace(card, input={"dtype": "uint8", "heat": "celsius", **BOTH})
    colour, heat = (
        scene_of(v, BandSet((b,)))
        for v, b in zip(
            (ramp(3, 242, "uint8", 1), ramp(28_000, 31_000, "uint16", 1)), HEAT.bands, strict=True
        )
    )
    scene = replace(
        colour,
        bands=HEAT,
        layers=(*colour.layers, *heat.layers),
        sources=(Source(0, 0), Source(1, 0)),
    )
    found = choose_scaling(scene, survey(scene, (0, 1)), match_bands(HEAT, HEAT), card)
    assert "uint8 values up to" in found.words
    assert found.factors == pytest.approx((1, 0.01))
    picture = replace(scene, layers=(heat.layers[0], colour.layers[0]))  # heat in 8 bits
    found = choose_scaling(picture, survey(picture, (0, 1)), match_bands(HEAT, HEAT), card)
    assert found.trusted == (True, False)


# Which numbers can be trusted


@pytest.mark.parametrize(
    ("dtype", "values", "trusted"),
    [
        ("uint16", ramp(100, 8000, "uint16"), True),
        ("uint16", ramp(5, 250, "uint8"), False),  # a stretched picture for a satellite's model
        ("uint16", ramp(7000, 9000, "uint16"), False),  # raw counts: nothing is that bright
        ("uint8", ramp(5, 250, "uint8"), True),  # a picture for a camera's model
        ("uint16", np.rint(ramp(5, 250, "float32")), False),  # a picture as floats
        ("uint16", np.rint(ramp(5, 90, "float32")), False),
        ("uint16", ramp(0.5, 54.7, "float32"), True),  # per cent
        ("uint8", np.rint(ramp(5, 250, "float32")), True),
    ],
)
def test_light_is_trusted_if_it_can_be_what_the_model_knows(dtype, values, trusted, caplog):
    card = toy_card(LIGHT, high=255.0 if dtype == "uint8" else 9000.0)
    card = replace(card, input={"dtype": dtype, **BOTH})
    assert scaling(values, card).trusted == (trusted, trusted)
    assert ("these are counts" in caplog.text) == (values.max() > 8500)


def test_heat_without_a_unit_is_distrusted_alone():
    card = replace(heat_card(CELSIUS), input={"dtype": "uint16", "heat": "celsius", **BOTH})
    light = ramp(100, 8000, "float32", 1)
    raw = np.concatenate([light, ramp(0, 255, "float32", 1)])
    assert scaling(raw, card).trusted == (True, False)
    kelvin = np.concatenate([light, ramp(270, 320, "float32", 1)])
    assert scaling(kelvin, card).trusted == (True, True)


@pytest.mark.parametrize(
    ("span", "dtype", "trusted"),
    [
        ((0.02, 0.97), "float32", False),  # stretched
        ((0, 900), "uint16", False),  # counts
        ((300, 1800), "int16", False),
        ((-10, 60), "int16", True),
        ((270, 330), "uint16", True),
        ((-3.5, 0.9), "float32", True),  # a cold day
        ((10, 400), "float32", True),  # a fire
    ],
)
def test_heat_that_cannot_be_degrees_is_distrusted(span, dtype, trusted):
    card = replace(heat_card(CELSIUS), input={"dtype": "uint16", "heat": "celsius", **BOTH})
    values = np.concatenate([ramp(100, 8000, dtype, 1), ramp(*span, dtype, 1)])
    assert scaling(values, card).trusted == (True, trusted)


def test_a_model_of_such_counts_of_heat_takes_them_as_they_are():
    card = replace(heat_card((400.0, 90.0, 0.0, 1000.0)), input={"dtype": "uint16", **BOTH})
    values = np.concatenate([ramp(100, 8000, "uint16", 1), ramp(0, 900, "uint16", 1)])
    found = scaling(values, card)
    assert (found.trusted, found.factors) == ((True, True), (1, 1))


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
    assert found.words.startswith("no valid pixels to tell them by")
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
