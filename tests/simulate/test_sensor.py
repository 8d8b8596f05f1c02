import numpy as np
import pytest

from smokegeo.sensors import sensor
from smokegeo.simulate.sensor import (
    Channel,
    Exposure,
    SensorModel,
    draw_camera,
    draw_mosaic,
    draw_satellite,
)

RNG = np.random.default_rng


def ideal(**changes) -> SensorModel:
    options = {
        "channels": (Channel(1.0, 0.0, 0.0, 0.0, 1.0),), "blur_px": 0.0, "read_noise": 0.0,
        "shot_noise": 0.0, "bits": 10, "full_number": 1023, "dtype": np.dtype(np.uint16),
    }  # fmt: skip
    return SensorModel(**{**options, **changes})


def test_an_ideal_sensor_is_linear_and_saturates():
    light = np.array([[-1, 0, 0.5, 1, 7]], np.float32)
    assert ideal().record(light, 0, RNG(0)).tolist() == [[0, 0, 512, 1023, 1023]]


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_quantisation_leaves_as_many_levels_as_bits_allow(bits):
    ramp = np.linspace(0, 1, 400_000, dtype=np.float32)[None, :]
    numbers = ideal(bits=bits, full_number=65535).record(ramp, 0, RNG(0))
    assert len(np.unique(numbers)) == 2**bits
    assert numbers.max() == 65535


def test_noise_grows_with_light():
    dim, bright = (
        ideal(shot_noise=0.02).record(np.full((200, 200), level, np.float32), 0, RNG(0)).std()
        for level in (0.05, 0.8)
    )
    assert bright > 3 * dim


def test_a_shifted_band_is_displaced():
    light = np.zeros((9, 9), np.float32)
    light[4, 4] = 1
    moved = ideal(channels=(Channel(1.0, 0.0, 1.0, -2.0, 1.0),)).record(light, 0, RNG(0))
    assert np.argwhere(moved == moved.max()).tolist() == [[5, 2]]


def test_mosaic_bands_are_displaced_within_one_block():
    model = draw_mosaic(sensor("hss").bands, RNG(0), Exposure(1.0, 0.0))
    shifts = {(c.shift_y_px, c.shift_x_px) for c in model.channels}
    assert len(shifts) == 25
    assert max(abs(value) for shift in shifts for value in shift) <= 0.5


def test_satellites_write_reflectance_times_ten_thousand():
    model = draw_satellite(sensor("satellite").bands, RNG(0), None)
    numbers = model.record(np.full((50, 50), 0.25, np.float32), 0, RNG(1))
    assert numbers.mean() == pytest.approx(2500, rel=0.1)


def test_colour_has_a_display_curve_and_heat_has_none():
    model = draw_camera(sensor("mss").bands, RNG(0), Exposure(1.0, 0.0))
    grey = np.full((50, 50), 0.2, np.float32)
    red, heat = (model.record(grey, band, RNG(1)).mean() for band in (0, 3))
    assert red == pytest.approx(255 * 0.2 ** (1 / 2.2), rel=0.1)
    assert heat == pytest.approx(255 * 0.2, rel=0.1)
