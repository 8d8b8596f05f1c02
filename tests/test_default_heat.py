"""Heat in the samples of mss: what is warm, and what thermal cameras make of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smokegeo.sensors import sensor
from smokegeo.simulate.optics import Layer
from smokegeo.simulate.stage import build_stage

SCRIPTS = str(Path(__file__).resolve().parent.parent / "scripts")


@pytest.fixture(scope="module")
def heat():
    sys.path.insert(0, SCRIPTS)
    import default_heat

    yield default_heat
    sys.path.remove(SCRIPTS)


def a_stage(scene="complex_background", seed=0):
    rng = np.random.default_rng(seed)
    return build_stage("mss", (96, 96), sensor("mss").bands, scene, rng)


def smoke_of(stage, depth):
    return Layer(np.full(stage.shape, depth, np.float32), np.ones((1, 1), np.float32), stage.smoke)


def test_fire_is_hot_and_seen_through_smoke(heat):
    stage = a_stage()
    clear, smoky = (
        heat.seen_heat(stage, smoke_of(stage, depth), np.random.default_rng(5))
        for depth in (0.0, 1.5)
    )
    assert clear.max() > 150
    assert smoky.max() > 0.6 * clear.max()


def test_clouds_hide_what_is_behind_them(heat):
    stage = a_stage()
    thick = smoke_of(stage, 20.0)
    overcast = replace(stage, clouds=(thick,), scenery=replace(stage.scenery, fire=None))
    seen = heat.seen_heat(overcast, smoke_of(stage, 0.0), np.random.default_rng(0))
    assert np.ptp(seen) < 1
    assert seen.mean() < stage.air_k - 273.15 - 5


def test_plants_are_cooler_than_bare_ground_by_day(heat):
    colours = np.zeros((3, 32, 32), np.float32)
    colours[:, :, :16] = np.array([0.2, 0.4, 0.2])[:, None, None]
    colours[:, :, 16:] = 0.3
    warmer = [
        np.ptp(w) > 0 and w[:, 16:].mean() > w[:, :16].mean()
        for w in (heat.ground_warmth(colours, np.random.default_rng(seed)) for seed in range(30))
    ]
    assert 0.6 < np.mean(warmer) < 1


def test_a_photograph_s_sky_is_cold_and_its_smoke_cannot_be_seen_in_heat(heat):
    colours = np.full((3, 64, 64), 90, np.float32)
    target = np.zeros((64, 64), np.uint8)
    target[40:50, 20:40] = 1
    colours[:, 40:50, 20:40] = 230
    for seed in range(10):
        seen = heat.guessed_heat(colours, target, 32.0, np.random.default_rng(seed))
        assert np.median(seen[:20]) < np.median(seen[40:]) - 5
        beside = np.median(seen[42:48, 2:16])
        assert abs(np.median(seen[42:48, 24:36]) - beside) < 10


def test_a_camera_writes_celsius_or_its_own_8_bits(heat):
    rng = np.random.default_rng(0)
    celsius = rng.uniform(10, 40, (64, 64)).astype(np.float32)
    celsius[20:40, 20:40] = 900
    made = [heat.as_recorded(celsius, np.random.default_rng(seed)) for seed in range(80)]
    measured = [seen for seen, in_celsius in made if in_celsius]
    pictures = [seen for seen, in_celsius in made if not in_celsius]
    assert 20 < len(measured) < 60
    assert {150.0, 400.0, 550.0} <= {float(seen.max()) for seen in measured}
    assert any(seen.max() > 800 for seen in measured)
    assert all(seen.min() >= 0 and seen.max() <= 255 for seen in pictures)
    assert all((seen == np.rint(seen)).all() for seen in pictures)
    darker = [seen[25:35, 25:35].mean() < seen[:10].mean() for seen in pictures]
    assert 0.05 < np.mean(darker) < 0.5  # hot is black in some
