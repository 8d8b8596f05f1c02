import numpy as np
import pytest

from smokegeo.bands import Band
from smokegeo.simulate.clouds import CLOUD_KINDS, cloud_layer, shadow
from smokegeo.simulate.land import BIOMES, land
from smokegeo.simulate.skyline import draw_site
from smokegeo.simulate.spectra import Material, mix_states, state_reflectance, state_warmth_k
from smokegeo.simulate.thermal import fire_front, flame_reflectance, planck
from smokegeo.simulate.views import draw_sky

SHAPE = (96, 128)


@pytest.mark.parametrize("name", BIOMES)
def test_land_is_lit_ground_of_known_materials(name):
    surface = land(SHAPE, np.random.default_rng(0), BIOMES[name], scale_px=40.0, sun=(-0.7, 0.7))
    for nm in (490, 845, 2200):
        light = surface.reflectance(nm)
        assert light.dtype == np.float32
        assert 0 <= light.min() < light.max() < 1.8
    assert set(np.unique(surface.material)) <= set(Material)


def test_a_forest_has_a_red_edge_and_water_has_none():
    red, nir = state_reflectance(660), state_reflectance(845)
    assert nir[Material.FOREST, 0] > 6 * red[Material.FOREST, 0]
    assert nir[Material.WATER, 0] < red[Material.WATER, 0]


def test_snow_is_white_in_light_and_dark_in_short_wave_infrared():
    assert state_reflectance(560)[Material.SNOW, 0] > 0.8
    assert state_reflectance(1610)[Material.SNOW, 0] < 0.2


def test_states_mix_by_dryness():
    material = np.full((1, 3), Material.FIELD, np.uint8)
    dryness = np.array([[0, 0.5, 1]], np.float32)
    table = state_warmth_k()
    wet, half, dry = mix_states(table, material, dryness)[0]
    assert (wet, dry) == tuple(table[Material.FIELD])
    assert half == pytest.approx((wet + dry) / 2)


def test_water_share_of_a_coast_is_large_and_of_a_desert_none():
    def water(name):
        surface = land(SHAPE, np.random.default_rng(1), BIOMES[name], scale_px=40.0, sun=(0, 1))
        return (surface.material == Material.WATER).mean()

    assert water("coast") > 0.2
    assert water("desert") < 0.1


def test_a_crowded_site_covers_more_sky_and_has_stacks():
    def site(seed, clutter):
        rng = np.random.default_rng(seed)
        return draw_site(SHAPE, rng, horizon_px=80.0, clutter=clutter, sun_x=0.5)

    empty, crowded = (
        np.mean([site(seed, clutter).open_sky.mean() for seed in range(4)]) for clutter in (0, 1)
    )
    assert crowded < empty
    assert all(stack.y_px < 90 for stack in site(0, 0.5).stacks)


def test_the_sky_is_blue_and_pales_towards_the_horizon():
    sky = draw_sky(SHAPE, np.random.default_rng(0), 90.0, level=1.0, sun_in_view=False)
    blue, nir = sky.radiance(465), sky.radiance(900)
    assert blue[5, 60] > 1.5 * nir[5, 60]
    assert (blue / nir)[5, 60] > (blue / nir)[85, 60]


def test_the_sun_outshines_everything():
    sky = draw_sky(SHAPE, np.random.default_rng(0), 90.0, level=1.0, sun_in_view=True)
    assert sky.radiance(700).max() > 3


@pytest.mark.parametrize("kind", CLOUD_KINDS)
def test_clouds_cover_about_the_share_asked_for(kind):
    layer = cloud_layer(
        (200, 200), np.random.default_rng(0), kind, cover=0.3, scale_px=50.0, sun=(-1.0, 0.0)
    )
    assert 0.15 < (layer.opacity(550) > 0.1).mean() < 0.5
    assert 0.35 <= shadow(layer, (5.0, 5.0)).min() < 0.95


def test_a_shadow_lies_where_it_is_cast():
    layer = cloud_layer(
        (100, 100), np.random.default_rng(0), "cumulus", cover=0.3, scale_px=30.0, sun=(0.0, 1.0)
    )
    lit = shadow(layer, (0.0, 10.0))
    expected = 1 - 0.65 * layer.opacity(550)
    np.testing.assert_allclose(lit[:, 10:], expected[:, :-10], atol=1e-4)


def test_planck_follows_wien_and_glows_more_in_the_infrared():
    wavelengths = np.arange(1000, 12000, 10)
    peak = wavelengths[np.argmax([float(planck(nm, 1000.0)) for nm in wavelengths])]
    assert peak == pytest.approx(2898, abs=15)
    assert flame_reflectance(2200, 1100.0) > 10 * flame_reflectance(1610, 1100.0) / 3
    assert flame_reflectance(560, 1100.0) < 0.05
    assert flame_reflectance(605, 1650.0) > 3 * flame_reflectance(465, 1650.0)


def test_a_fire_glows_along_the_edge_of_its_scar():
    fire = fire_front((120, 120), np.random.default_rng(0), (60, 60), 25.0, 0.0, flame_share=0.04)
    assert fire.scar[60, 60] > 0.9
    assert fire.scar[2, 2] < 0.1
    assert 0 < fire.flame.max() <= 0.04
    assert fire.flame[60, 60] < 0.2 * fire.flame.max()
    lee, luff = fire.flame[:, 60:].sum(), fire.flame[:, :60].sum()
    assert lee > luff


def test_a_fire_stops_at_the_shore():
    fire = fire_front((80, 80), np.random.default_rng(0), (40, 40), 20.0, 0.0, flame_share=0.04)
    land_only = np.ones((80, 80), bool)
    land_only[:35] = False
    ashore = fire.within(land_only)
    assert ashore.scar[:35].max() == ashore.flame[:35].max() == 0
    np.testing.assert_array_equal(ashore.flame[35:], fire.flame[35:])
    assert fire.within(np.zeros((80, 80), bool)) is fire


def test_bands_without_wavelength_are_taken_as_green():
    from smokegeo.simulate.views import DownView

    surface = land(SHAPE, np.random.default_rng(0), BIOMES["boreal"], scale_px=40.0, sun=(0, 1))
    view = DownView(surface, 1.0, 0.02)
    np.testing.assert_array_equal(view.radiance(Band("x")), view.radiance(Band("y", 550.0)))
