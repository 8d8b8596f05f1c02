from dataclasses import replace

import numpy as np
import pytest

from smokegeo.simulate.plume import Emission, Source, lit_side, make_flow, optical_depth

SHAPE = (96, 192)
CALM = Emission((Source(48.0, 20.0, 2.0),), 200.0, 120.0, 1.5, 0.2, 0.3, puffs=4000)


def plume(emission=CALM, seed=0, **air):
    options = {"angle_rad": 0.0, "rise": 0.0, "turbulence": 0.2, **air}
    flow = make_flow(np.random.default_rng(seed), 1.2, **options)
    return optical_depth(SHAPE, emission, flow, 1.2, np.random.default_rng(seed + 1))


def width_at(tau, columns):
    """Return the spread in rows of the smoke in some columns."""
    mass = tau[:, columns].sum(axis=1)
    rows = np.arange(tau.shape[0])
    middle = (mass * rows).sum() / mass.sum()
    return float(np.sqrt((mass * (rows - middle) ** 2).sum() / mass.sum()))


def test_smoke_drifts_down_wind_of_its_source():
    tau = plume()
    assert tau[:, 20:].sum() > 20 * tau[:, :14].sum()
    assert tau.dtype == np.float32
    assert np.all(np.isfinite(tau))
    assert tau.min() >= 0


@pytest.mark.parametrize("seed", range(3))
def test_plume_widens_and_thins_with_distance(seed):
    tau = plume(seed=seed)
    assert width_at(tau, slice(100, 140)) > 1.5 * width_at(tau, slice(22, 32))
    assert tau[:, 100:140].max() < tau[:, 20:60].max()


def test_hot_smoke_rises_in_a_side_view():
    rows = np.arange(SHAPE[0])[:, None]
    flat, hot = plume(), plume(rise=2.0)
    assert (hot * rows).sum() / hot.sum() < (flat * rows).sum() / flat.sum() - 5


def test_young_smoke_stays_near_its_source():
    young = plume(replace(CALM, duration_s=8.0))
    assert young[:, 60:].max() < 0.02
    assert (young > 0.1).mean() < 0.3 * (plume() > 0.1).mean()


def test_peak_optical_depth_scales_the_plume():
    thin, thick = plume(replace(CALM, peak_tau=0.4)), plume(replace(CALM, peak_tau=4.0))
    np.testing.assert_allclose(thick, 10 * thin, rtol=1e-3, atol=1e-5)


def test_the_next_frame_of_a_video_carries_its_eddies_along():
    now, later = plume(replace(CALM, time_s=200.0)), plume(replace(CALM, time_s=203.0))
    step = round(3 * 1.2)
    inner = slice(40, 150)
    moved = np.corrcoef(now[:, inner].ravel(), later[:, 40 + step : 150 + step].ravel())[0, 1]
    still = np.corrcoef(now[:, inner].ravel(), later[:, inner].ravel())[0, 1]
    assert moved > 0.7
    assert moved > still


def test_the_side_towards_the_sun_is_bright():
    y, x = np.mgrid[:64, :64].astype(np.float32)
    ball = 3 * np.exp(-((y - 32) ** 2 + (x - 32) ** 2) / 200).astype(np.float32)
    light = lit_side(ball, 0.0, 1.0, 0.4, 2.0)
    assert light[32, 44] > 1.1
    assert light[32, 20] < 0.9
