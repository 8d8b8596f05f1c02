"""What surrounds the smoke of satellite samples, and the smoke of wildfires seen from space."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smokegeo.sensors import sensor
from smokegeo.simulate.frame import cloud_opacity
from smokegeo.simulate.stage import build_stage

ROOT = Path(__file__).resolve().parent.parent
BANDS = sensor("satellite").bands


@pytest.fixture(scope="module")
def scripts():
    sys.path.insert(0, str(ROOT / "scripts"))
    import default_satellite
    import default_surroundings
    import default_wildfire

    yield argparse.Namespace(
        satellite=default_satellite, around=default_surroundings, wildfire=default_wildfire
    )
    sys.path.remove(str(ROOT / "scripts"))


def a_stage(seed=0, size=96, view=None):
    rng = np.random.default_rng(seed)
    return build_stage("satellite", (size, size), BANDS, "complex_background", rng, view)


def test_smoke_of_a_wildfire_starts_at_its_fire_and_thins_downwind(scripts):
    stage = a_stage(size=128)
    wind, rng = 0.0, np.random.default_rng(1)  # towards +x
    places = np.array([[64.0, 20.0, 1.0]], np.float32)
    tau = scripts.wildfire._strands((128, 128), places, wind, rng)
    assert tau[:, :8].max() < 0.05 * tau.max()  # nothing upwind
    near, far = tau[:, 40], tau[:, 110]
    assert near.max() > far.max() > 0
    wide = [(column > 0.5 * column.max()).sum() for column in (near, far)]
    assert wide[1] > wide[0]
    burning = scripts.wildfire._burning(stage, places, rng).scenery.fire
    y, x = np.unravel_index(burning.flame.argmax(), burning.flame.shape)
    assert np.hypot(y - 64, x - 20) < 2


def test_smoke_of_wildfires_is_mostly_seen_through(scripts):
    drawn = [
        scripts.wildfire.drifting_smoke(a_stage(n), np.random.default_rng(n))[1] for n in range(30)
    ]
    assert all(np.isfinite(layer.tau).all() and layer.tau.min() >= 0 for layer in drawn)
    assert all(layer.light.min() > 0.4 and layer.light.max() < 1.5 for layer in drawn)
    opacity = np.array([np.quantile(layer.opacity(550), 0.95) for layer in drawn])
    assert 0.2 < np.median(opacity) < 0.95
    # Some cover a corner of the view, some most of it.
    cover = np.array([(layer.opacity(550) > 0.1).mean() for layer in drawn])
    assert cover.min() < 0.2
    assert cover.max() > 0.5


def test_a_drone_sees_flames_where_a_satellite_sees_warm_pixels(scripts):
    far, near = (
        [
            scripts.wildfire.drifting_smoke(a_stage(n), np.random.default_rng(n), near=near)[0]
            for n in range(12)
        ]
        for near in (False, True)
    )
    for distant, close in zip(far, near, strict=True):
        there, here = distant.scenery.fire, close.scenery.fire
        assert there.flame.max() < 0.15
        assert here.flame.max() == 0 or here.flame.max() > 0.15
        assert there.flame_k < 1400 < here.flame_k
    assert any(stage.scenery.fire.flame.max() > 0 for stage in near)


def test_a_fire_out_of_view_still_smokes_into_it_and_burns_nothing_there(scripts):
    places = np.array([[48.0, -20.0, 1.0]], np.float32)
    rng = np.random.default_rng(2)
    fire = scripts.wildfire._burning(a_stage(), places, rng).scenery.fire
    assert fire.flame.max() == 0
    assert scripts.wildfire._strands((96, 96), places, 0.0, rng)[48, 30] > 0


def test_at_sea_water_is_dark_and_clouds_have_edges(scripts):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        stage = a_stage(seed, view=scripts.around.sea((96, 96), rng))
        assert np.median(stage.scenery.view.reflectance["swir1"]) < 0.1
        cloudy = cloud_opacity(scripts.around.broken_cloud(stage, rng))
        assert (cloudy > 0.1).any()
        assert (cloudy < 0.05).any()  # there is sky between them


def test_haze_lifts_what_is_seen_everywhere_and_is_no_cloud(scripts):
    stage = replace(a_stage(), behind=(), before=(), clouds=(), sunlit=None)
    hazy = scripts.around.hazy(stage, np.random.default_rng(0))
    (haze,) = hazy.behind
    assert haze.tau.min() > 0.2 * haze.tau.max() > 0
    assert cloud_opacity(hazy).max() == 0


@pytest.mark.parametrize("setting", ["plain", "forest", "sea", "hazy", "any"])
def test_every_setting_makes_samples_with_smoke_and_without(scripts, monkeypatch, setting):
    monkeypatch.setattr(scripts.satellite, "_SETTINGS", {setting: 1.0})
    made = [scripts.satellite.satellite_sample(n, 5, (), 64) for n in range(40)]
    smoky = [(s.target == 1).any() for s in made]
    assert {True, False} == set(smoky)
    assert all(np.isfinite(s.values).all() for s in made)


def test_a_plain_sample_has_no_clouds_but_its_scenes_own(scripts):
    stage = a_stage(3)
    for seed in range(20):
        sky = scripts.satellite._sky(stage, "plain", np.random.default_rng(seed), real=True)
        assert cloud_opacity(sky).max() == 0


def test_smoke_that_fills_a_colour_picture_is_left_open_unless_it_is_a_veil(scripts, monkeypatch):
    monkeypatch.setattr(scripts.satellite, "_SETTINGS", {"plain": 1.0})
    monkeypatch.setattr(scripts.satellite, "choose_bands", lambda has, rng: np.arange(6) < 3)
    made = [scripts.satellite.satellite_sample(n, 6, (), 64) for n in range(60)]
    cores = [s for s in made if s.tag.endswith(("core", "plume"))]
    assert len(cores) > 20
    for sample in cores:
        known = sample.target != scripts.satellite.IGNORED
        assert (sample.target == 1).sum() <= 0.85 * max(1, known.sum())


def test_plumes_of_real_smoke_are_smoke_inside_and_the_clear_scene_outside(scripts):
    import default_judges
    import default_mixed

    valid = np.ones((120, 150), bool)
    valid[50:60, 60:70] = False
    names = tuple(BANDS.names)
    clear, smoky = (
        default_judges.Picture(name, np.full((6, 120, 150), level, np.uint16), names, valid, valid)
        for name, level in (("clear", 400), ("smoke", 1400))
    )
    made = default_mixed.mixed_plumes(clear, smoky, count=6, side=100)
    assert len({picture.name for picture in made}) == 6
    again = default_mixed.mixed_plumes(clear, smoky, count=6, side=100)
    for picture, same in zip(made, again, strict=True):
        assert (picture.values == same.values).all()
        assert picture.values.min() >= 400
        assert picture.values.max() <= 1400
        light = picture.values.mean(axis=0)
        assert (light[picture.labels == 1] >= 900).all()
        assert (light[picture.labels == 0] <= 500).all()
        assert (picture.labels[~picture.valid] == 255).all()
    assert any((picture.labels == 1).any() for picture in made)
    assert any((~picture.valid).any() for picture in made)


def test_a_picture_of_8_bits_is_stretched_band_by_band_and_has_a_name_of_its_own(scripts):
    import default_judges
    import default_mixed

    ramp = np.arange(100, dtype=np.uint16).reshape(10, 10)
    valid = np.ones((10, 10), bool)
    valid[0, 0] = False
    values = np.stack([1000 + 10 * ramp, 40 * ramp])
    values[:, 0, 0] = 60_000  # what is not valid does not count
    picture = default_judges.Picture("a", values, ("red", "green"), valid, valid.astype(np.uint8))
    shown = default_mixed.as_8_bits(picture)
    assert shown.values.dtype == np.uint8
    assert (shown.values[0][valid] == shown.values[1][valid]).all()
    assert shown.values[:, 9, 9].tolist() == [255, 255]
    assert shown.values[:, 0, 1].tolist() == [0, 0]
    assert shown.name != picture.name
    assert picture.measured
    assert not shown.measured
