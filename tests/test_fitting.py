"""The model that sees most of a scene is chosen, and what it misses is said."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from rasterio.transform import from_origin
from toy_models import save_toy
from toy_scenes import UTM, scene_of

from smokegeo.bands import Band, BandSet
from smokegeo.errors import InputError, ModelError
from smokegeo.fitting import fit_model, rank_models
from smokegeo.labels import Place
from smokegeo.sensors import sensor


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: save_toy(folder / f"{name}.safetensors", name) for name in ("mss", "satellite")}


@pytest.fixture
def bundled(models, monkeypatch):
    for module in ("smokegeo.fitting", "smokegeo.modelfile"):
        monkeypatch.setattr(f"{module}.bundled_models", lambda: models)
    return models


def scene(bands, **facts):
    bands = sensor(bands).bands if isinstance(bands, str) else bands
    return scene_of(np.zeros((len(bands), 4, 4), np.uint16), bands, **facts)


@pytest.mark.parametrize(
    ("bands", "chosen"),
    [
        ("sentinel2", "satellite"),
        ("landsat8", "satellite"),
        ("mss", "mss"),
        ("satellite", "satellite"),
        (BandSet((Band("red", 605, 90), Band("thermal", 10_500, 6000))), "mss"),
        (BandSet((Band("a", 2200, 100),)), "satellite"),
    ],
)
def test_the_bundled_model_that_sees_most_is_chosen(bundled, bands, chosen):
    fit = fit_model(scene(bands))
    assert fit.card.name == chosen
    assert fit.path == bundled[chosen]


def test_between_models_that_see_as_much_the_fuller_one_wins(bundled):
    rgb = sensor("mss").bands.subset(["red", "green", "blue"])
    first, second = rank_models(BandSet(rgb.bands))
    assert len(first.used) == len(second.used) == 3
    assert (first.card.name, second.card.name) == ("mss", "satellite")


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """Models as the package has them: one for pixels of 1 to 60 m, two for cameras."""
    folder = tmp_path_factory.mktemp("families")
    spans = {"hss": None, "mss": None, "satellite": (1.0, 60.0)}
    return {
        name: save_toy(folder / f"{name}.safetensors", name, resolution_m=span)
        for name, span in spans.items()
    }


RGB = BandSet(sensor("mss").bands.subset(["red", "green", "blue"]).bands)


@pytest.mark.parametrize(
    ("bands", "pixel_m", "chosen"),
    [
        (RGB, (10.0, 10.0), "satellite"),
        (RGB, (0.05, 0.05), "mss"),  # a drone's mosaic
        (RGB, None, "mss"),  # a photograph
        (sensor("sentinel2").bands, (10.0, 10.0), "satellite"),
        (sensor("sentinel2").bands.subset(["B04", "B03", "B02"]), None, "satellite"),
        (sensor("sentinel2").bands.subset(["B04", "B03", "B02", "B08"]), None, "satellite"),
        (sensor("landsat8").bands.subset(["B4", "B3", "B2", "B10"]), None, "satellite"),
        (BandSet((*sensor("sentinel2").bands.bands[1:4], Band("SCL"))), None, "satellite"),
        (sensor("planetscope4").bands, None, "satellite"),
        (sensor("naip").bands, None, "mss"),
        (sensor("sentinel2").bands, None, "satellite"),  # seven of its bands lie within hss
        (sensor("hss").bands, None, "hss"),
        (sensor("hss").bands, (2.0, 2.0), "hss"),  # red and NIR alone are no satellite's scene
        (sensor("mss").bands, (0.2, 0.2), "mss"),
        (sensor("mss").bands, (1.0, 1.0), "mss"),  # heat at 1 m is a drone's
        (RGB, (1.0, 1.0), "satellite"),
        (sensor("mss").bands, (30.0, 30.0), "satellite"),  # colours and heat of Landsat
        (RGB, (500.0, 500.0), "satellite"),  # coarser than it knows, but no camera's
    ],
)
def test_pixels_on_the_ground_tell_satellites_from_cameras(
    families, monkeypatch, bands, pixel_m, chosen
):
    monkeypatch.setattr("smokegeo.fitting.bundled_models", lambda: families)
    assert rank_models(bands, pixel_m)[0].card.name == chosen


@pytest.mark.parametrize(
    ("name", "bands_from", "chosen"),
    [
        ("S2A_20220902.tif", "band descriptions", "satellite"),
        ("S2_0001.jpg", "colour interpretation", "mss"),  # a photograph called so
        ("plot.tif", "band descriptions", "mss"),
    ],
)
def test_the_name_of_a_scene_without_a_place_tells_of_its_sensor(
    families, monkeypatch, name, bands_from, chosen
):
    for module in ("smokegeo.fitting", "smokegeo.modelfile"):
        monkeypatch.setattr(f"{module}.bundled_models", lambda: families)
    found = fit_model(scene(RGB, placed=False, name=name, bands_from=bands_from))
    assert found.card.name == chosen


@pytest.mark.parametrize(
    ("bands", "pixel_m", "said"),
    [
        ("satellite", 1000, "pixels of 1 to 60 m; these are of 1e+03 m"),
        (BandSet((Band("red", 660, 30), Band("thermal", 10_500, 1000))), 30, "views of cameras"),
        ("satellite", 20, None),
        (RGB, 250, "pixels of 1 to 60 m; these are of 250 m"),
    ],
)
def test_pixels_a_model_does_not_know_are_warned_of(
    families, monkeypatch, caplog, bands, pixel_m, said
):
    for module in ("smokegeo.fitting", "smokegeo.modelfile"):
        monkeypatch.setattr(f"{module}.bundled_models", lambda: families)
    place = Place(UTM, from_origin(500_000, 5_500_000, pixel_m, pixel_m))
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        fit_model(replace(scene(bands), place=place))
    assert (said or "") in caplog.text
    assert bool(caplog.records) == (said is not None)


def test_one_band_of_a_scene_is_refused_with_what_to_do(models, tmp_path):
    needy = save_toy(tmp_path / "needy.safetensors", input={"dtype": "uint16", "min_bands": 2})
    with pytest.raises(InputError, match="has one band"):
        fit_model(scene(BandSet((Band("B02", 490, 60),))), needy)


@pytest.fixture
def needy_families(tmp_path, monkeypatch):
    """Models that need some bands at least, as those of the package do."""
    needs = {"hss": 4, "mss": 3, "satellite": 2}
    found = {
        name: save_toy(tmp_path / f"{name}.safetensors", name, input={"min_bands": least})
        for name, least in needs.items()
    }
    for module in ("smokegeo.fitting", "smokegeo.modelfile"):
        monkeypatch.setattr(f"{module}.bundled_models", lambda: found)


def test_one_band_is_refused_with_the_least_that_any_model_needs(needy_families):
    text = refusal(fit_model, scene(BandSet((Band("band 1"),)), bands_from="band count"))
    assert "has one band (band 1), and smoke is known by 2 at least" in text
    assert "known by 4 at least" in refusal(fit_model, scene(BandSet((Band("x"),))), "hss")


def test_a_model_that_needs_more_bands_than_there_are_makes_way(needy_families):
    two = BandSet(sensor("mss").bands.subset(["red", "green"]).bands)
    assert rank_models(two)[0].card.name == "mss"  # half of its bands
    assert fit_model(scene(two)).card.name == "satellite"


@pytest.mark.parametrize("count", [2, 10, 12])
def test_without_any_known_band_no_model_is_spoken_of(needy_families, count):
    bands = BandSet(tuple(Band(f"band {i}") for i in range(1, count + 1)))
    text = refusal(fit_model, scene(bands, bands_from="band count"))
    assert f"has {count} band(s) (band 1, band 2" in text
    assert "none of which is known. Name each in order, for instance --bands blue,green" in text
    assert "model" not in text
    assert ("--sensor sentinel2" in text) == (count == 12)


def test_a_named_model_is_used_even_if_another_fits_better(bundled, models):
    assert fit_model(scene("sentinel2"), "mss").card.name == "mss"
    assert fit_model(scene("sentinel2"), models["mss"]).path == models["mss"].resolve()


def test_used_bands_and_their_places_belong_together(models):
    bands = BandSet((Band("x", 2200, 100), Band("y", 400, 10), Band("z", 490, 60)))
    fit = fit_model(scene(bands), models["satellite"])
    assert fit.used == (2, 0)  # in the model's order: blue, then swir2
    assert fit.places == (0, 5)
    assert fit.matching.available == (True, False, False, False, False, True)


@pytest.mark.parametrize(
    ("there", "level", "said"),
    [
        (["red", "green", "nir"], logging.INFO, "array lacks blue, swir1, swir2; the model goes"),
        (["red", "nir"], logging.WARNING, "array lacks blue, green, swir1, swir2; .* most of what"),
    ],
)
def test_absent_bands_are_said(there, level, said, models, caplog):
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        fit_model(scene(sensor("satellite").bands.subset(there)), models["satellite"])
    (record,) = caplog.records
    assert record.levelno == level
    assert re.match(said, record.getMessage())


def test_a_model_not_trained_to_go_without_bands_is_warned_of(tmp_path, caplog):
    path = save_toy(tmp_path / "strict.safetensors", training={"config": {"band_dropout": 0}})
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        fit_model(scene(sensor("satellite").bands.subset(["red", "green", "nir"])), path)
    (record,) = caplog.records
    assert "'strict' was not trained to go without bands, and 3 of 6 are absent" in (
        record.getMessage()
    )


def test_nothing_is_said_when_nothing_is_absent(models, caplog):
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        fit_model(scene("satellite"), models["satellite"])
    assert not caplog.records


def refusal(call, *args):
    with pytest.raises(InputError) as caught:
        call(*args)
    return str(caught.value)


def test_a_misfit_is_refused_with_both_lists(models):
    text = refusal(fit_model, scene(BandSet((Band("heat", 10_500, 900),))), models["satellite"])
    assert text == (
        "array has 1 band(s) (heat), of which model 'satellite' knows 0; it needs 1 of blue, "
        "green, red, nir, swir1, swir2. Name another model with --model."
    )


def test_a_misfit_of_guessed_bands_asks_for_their_names(models):
    bands = BandSet((Band("heat", 10_500, 900),))
    text = refusal(fit_model, scene(bands, bands_from="band count"), models["satellite"])
    assert "Name them with --bands or --sensor." in text


def test_long_lists_of_bands_are_told_as_a_range(models):
    many = BandSet(tuple(Band(f"w{i}", 4000.0 + 10 * i, 5.0) for i in range(50)))
    assert "has 50 band(s) (4000 to 4490 nm)" in refusal(fit_model, scene(many), models["mss"])
    nameless = BandSet(tuple(Band(f"w{i}") for i in range(9)))
    assert "(w0, w1, w2, ...)" in refusal(fit_model, scene(nameless), models["mss"])


def test_a_model_may_ask_for_more_than_one_band(tmp_path):
    path = save_toy(tmp_path / "three.safetensors", input={"dtype": "uint16", "min_bands": 3})
    two = sensor("satellite").bands.subset(["red", "nir"])
    assert "knows 2; it needs 3 of" in refusal(fit_model, scene(two), path)


def test_a_scene_that_no_bundled_model_sees_is_refused(bundled):
    assert "knows 0" in refusal(fit_model, scene(BandSet((Band("uv", 300, 10),))))


def test_without_bundled_models_one_must_be_named(monkeypatch):
    monkeypatch.setattr("smokegeo.fitting.bundled_models", dict)
    with pytest.raises(ModelError, match="--model"):
        fit_model(scene("satellite"))


@pytest.mark.parametrize(("count", "warned"), [(4, True), (5, False), (6, False)])
def test_what_a_model_is_known_to_miss_with_few_bands_is_a_warning(tmp_path, caplog, count, warned):
    few = {"few": {"below": 5, "doubt": "thin smoke is missed"}}
    path = save_toy(tmp_path / "toy.safetensors", "satellite", training=few)
    bands = BandSet(sensor("satellite").bands.bands[:count])
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        fit_model(scene(bands), path)
    said = f"has {count} of the model's 6 bands; with fewer than 5, thin smoke is missed"
    assert (said in caplog.text) is warned
