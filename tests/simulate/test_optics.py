import numpy as np
import pytest

from smokegeo.simulate.clouds import CLOUD_KINDS, draw_cloud
from smokegeo.simulate.optics import Layer, Particles, blend, draw_smoke

SMOKE = Particles(angstrom=1.6, coarse=0.1, air_mass=1.2, albedo=0.6, blue_loss=0.2)


def layer(tau: float, particles: Particles = SMOKE) -> Layer:
    return Layer(np.full((3, 4), tau, np.float32), np.ones((3, 4), np.float32), particles)


@pytest.mark.parametrize("nm", [465, 600, 974, 2200])
def test_no_smoke_leaves_the_background(nm):
    background = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    clear = layer(0.0)
    seen = blend(background, clear.opacity(nm), clear.glow(nm))
    np.testing.assert_array_equal(seen, background)


@pytest.mark.parametrize("nm", [465, 600, 974, 2200])
def test_endless_smoke_shows_its_own_colour_whatever_lies_behind(nm):
    thick = layer(1e4)
    for background in (0.0, 1.0):
        seen = blend(np.full((3, 4), background, np.float32), thick.opacity(nm), thick.glow(nm))
        np.testing.assert_allclose(seen, SMOKE.brightness(nm), atol=1e-6)


def test_opacity_follows_beer_lambert_at_the_reference_wavelength():
    fine = Particles(angstrom=1.3, coarse=0.0, air_mass=1.5, albedo=0.5)
    np.testing.assert_allclose(layer(0.8, fine).opacity(550), 1 - np.exp(-1.5 * 0.8), rtol=1e-5)


def test_optical_depth_of_fine_smoke_has_the_angstrom_exponent_as_slope():
    fine = Particles(angstrom=1.7, coarse=0.0, air_mass=1.0, albedo=0.5)
    slope = np.log(fine.depth_factor(974) / fine.depth_factor(600)) / np.log(974 / 600)
    assert slope == pytest.approx(-1.7)


@pytest.mark.parametrize("seed", range(20))
def test_smoke_thins_with_wavelength_and_cloud_does_not(seed):
    rng = np.random.default_rng(seed)
    smoke = draw_smoke(rng)
    assert smoke.depth_factor(2200) < 0.75 * smoke.depth_factor(490)
    for kind in CLOUD_KINDS:
        cloud = draw_cloud(rng, kind)
        assert cloud.depth_factor(2200) == pytest.approx(cloud.depth_factor(490), rel=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_ice_is_darker_than_water_in_short_wave_infrared(seed):
    rng = np.random.default_rng(seed)
    ice, water = draw_cloud(rng, "cirrus"), draw_cloud(rng, "cumulus")
    assert ice.brightness(1610) / ice.brightness(560) < 0.55
    assert water.brightness(1610) / water.brightness(560) > 0.55


def test_thin_ice_is_a_veil_in_short_wave_infrared_too_and_thin_smoke_is_none():
    rng = np.random.default_rng(0)
    ice, smoke = draw_cloud(rng, "cirrus"), Particles(1.8, 0.02, 1.0, 0.6, swir=(0.9, 0.8))
    dark = np.zeros((3, 4), np.float32)

    def added(tau, particles, nm):
        veil = layer(tau, particles)
        return float(blend(dark, veil.opacity(nm), veil.glow(nm)).mean())

    assert added(0.2, ice, 2200) > 0.5 * added(0.2, ice, 560)
    assert added(20, ice, 2200) < 0.45 * added(20, ice, 560)
    assert added(0.2, smoke, 2200) < 0.15 * added(0.2, smoke, 560)


def test_smoke_hides_little_heat():
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert layer(1.5, draw_smoke(rng)).opacity(10500).max() < 0.45
