import numpy as np
import pytest
from scipy import ndimage

from smokegeo.simulate.fields import (
    eddies,
    enlarge,
    fractal,
    sample_periodic,
    shift,
    smoothstep,
    standardise,
    warp,
)


@pytest.mark.parametrize("shape", [(17, 23), (64, 48), (101, 16)])
@pytest.mark.parametrize("smallest_px", [1.0, 9.0])
def test_fractal_noise_is_seeded_standardised_float32(shape, smallest_px):
    first = fractal(shape, np.random.default_rng(3), smallest_px=smallest_px)
    again = fractal(shape, np.random.default_rng(3), smallest_px=smallest_px)
    np.testing.assert_array_equal(first, again)
    assert first.shape == shape
    assert first.dtype == np.float32
    assert abs(float(first.mean())) < 0.4
    assert 0.5 < float(first.std()) < 1.3


def test_steeper_noise_is_smoother():
    def roughness(slope):
        return float(
            np.abs(np.diff(fractal((128, 128), np.random.default_rng(0), slope=slope))).mean()
        )

    assert roughness(2.0) < roughness(1.3) < roughness(0.5)


def test_stretched_noise_varies_less_along_its_direction():
    noise = fractal((128, 128), np.random.default_rng(0), stretch=5.0, angle_rad=0.0)
    along, across = np.abs(np.diff(noise, axis=1)).mean(), np.abs(np.diff(noise, axis=0)).mean()
    assert along < 0.6 * across


def test_eddies_neither_gather_nor_spread_smoke():
    vy, vx = eddies((96, 96), np.random.default_rng(1), largest_px=30.0)
    divergence = (np.roll(vy, -1, 0) - np.roll(vy, 1, 0)) + (np.roll(vx, -1, 1) - np.roll(vx, 1, 1))
    assert np.abs(divergence).max() < 1e-4
    assert np.sqrt(np.mean(vy**2 + vx**2)) == pytest.approx(1.0, rel=1e-4)


def test_periodic_samples_hit_pixels_and_wrap():
    field = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = np.array([0, 2, 3, -1], np.float32)
    x = np.array([0, 3, 4, -1], np.float32)
    np.testing.assert_array_equal(sample_periodic(field, y, x), [0, 11, 0, 11])


def test_warp_moves_pixels():
    field = np.random.default_rng(0).random((8, 9), dtype=np.float32)
    ones = np.ones_like(field)
    np.testing.assert_allclose(warp(field, ones, 0 * ones)[:-1], field[1:], rtol=1e-6)


@pytest.mark.parametrize(("dy", "dx"), [(2.0, -3.0), (0.0, 0.0), (-1.0, 1.0)])
def test_shift_moves_whole_pixels_exactly_and_holds_the_edges(dy, dx):
    field = np.random.default_rng(0).random((8, 9), dtype=np.float32)
    expected = ndimage.shift(field, (dy, dx), order=1, mode="nearest")
    np.testing.assert_allclose(shift(field, dy, dx), expected, rtol=1e-6)


def test_shift_by_half_a_pixel_averages_neighbours():
    field = np.array([[0, 1, 3]], np.float32)
    np.testing.assert_allclose(shift(field, 0.0, 0.5), [[0, 0.5, 2]])


def test_enlarge_keeps_flat_fields_flat_and_ramps_straight():
    assert np.all(enlarge(np.full((3, 5), 2.5, np.float32), (11, 17)) == 2.5)
    ramp = enlarge(np.arange(10, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32), (40, 2))
    np.testing.assert_allclose(np.diff(ramp[2:-2, 0]), 0.25, rtol=1e-4)


def test_smoothstep_runs_both_ways():
    x = np.array([-1, 0, 0.5, 1, 2], np.float32)
    np.testing.assert_allclose(smoothstep(0, 1, x), [0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(smoothstep(1, 0, x), [1, 1, 0.5, 0, 0])


def test_a_flat_field_stays_finite_when_standardised():
    assert np.all(standardise(np.full((4, 4), 7, np.float32)) == 0)
