from functools import cache

import numpy as np
import pytest

from smokegeo.cubes import cube_bands
from smokegeo.errors import UsageError
from smokegeo.sensors import sensor
from smokegeo.simulate import simulate_frame
from smokegeo.simulate.frame import Rendering, SimulatedFrame, expose
from smokegeo.simulate.optics import Layer, Particles
from smokegeo.simulate.scenarios import FRAMES_PER_VIDEO
from smokegeo.simulate.stage import build_stage
from smokegeo.simulate.views import ImageryView

KINDS = ("hss", "mss", "satellite")
SIZE = (100, 68)


@cache
def frames(kind: str, *scenarios: str) -> tuple[SimulatedFrame, ...]:
    """Return one frame of each of six videos."""
    return tuple(
        simulate_frame(kind, n * FRAMES_PER_VIDEO, 1, size=SIZE, scenarios=scenarios)
        for n in range(6)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_has_its_kinds_bands_size_and_numbers(kind):
    frame = simulate_frame(kind, 0)
    bands = sensor(kind).bands
    expected = {"hss": (217, 409), "mss": (254, 254), "satellite": (256, 256)}[kind]
    assert cube_bands(frame.cube) == bands
    assert frame.cube.shape == (len(bands), *expected)
    assert frame.cube.dtype == (np.uint8 if kind == "mss" else np.uint16)
    for plane in (frame.mask, frame.votes, frame.tau, frame.opacity, frame.cloud_opacity):
        assert plane.shape == expected
    assert frame.tau.dtype == frame.opacity.dtype == np.float32
    if kind == "hss":
        assert frame.cube.values.max() <= 1023


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_arguments_give_the_same_frame(kind):
    first = simulate_frame(kind, 5, 3, size=(40, 32))
    simulate_frame(kind, 77, 4, size=(40, 32))
    again = simulate_frame(kind, 5, 3, size=(40, 32))
    np.testing.assert_array_equal(first.cube.values, again.cube.values)
    np.testing.assert_array_equal(first.votes, again.votes)
    other = simulate_frame(kind, 5, 4, size=(40, 32))
    assert not np.array_equal(first.cube.values, other.cube.values)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_agree_with_opacity(kind):
    for frame in frames(kind):
        inside, outside = frame.mask == 1, frame.votes == 0
        assert frame.opacity[inside].mean() > 4 * frame.opacity[outside].mean()
        assert np.array_equal(frame.mask == 1, frame.votes >= 2)
        assert frame.votes.max() <= 3


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_a_video_share_their_background_and_differ_in_smoke(kind):
    a, b = (simulate_frame(kind, i, 2, size=SIZE) for i in (0, 1))
    assert a.scene == b.scene
    clear = (a.tau < 1e-3) & (b.tau < 1e-3)
    reds = [f.cube.values[0].astype(float) for f in (a, b)]
    assert np.corrcoef(reds[0][clear], reds[1][clear])[0, 1] > 0.8
    assert not np.array_equal(a.tau, b.tau)
    assert simulate_frame(kind, FRAMES_PER_VIDEO, 2, size=SIZE).scene != a.scene


@pytest.mark.parametrize("kind", KINDS)
def test_without_smoke_nothing_is_marked(kind):
    frame = simulate_frame(kind, 1, 0, size=SIZE, smoke=False)
    assert frame.mask.sum() == frame.votes.sum() == 0
    assert frame.opacity.max() == 0


def saturated(frame: SimulatedFrame) -> float:
    lit = frame.cube.values[:3]
    return float((lit >= lit.max()).mean())


def contrast(frame: SimulatedFrame) -> float:
    grey = frame.cube.values[:3].astype(np.float64).mean(axis=0)
    low, middle, high = np.quantile(grey, (0.05, 0.5, 0.95))
    return float((high - low) / max(middle, 1))


def mean(kind, measure, *scenarios):
    return float(np.mean([measure(frame) for frame in frames(kind, *scenarios)]))


@pytest.mark.parametrize("kind", KINDS)
def test_high_exposure_saturates(kind):
    assert mean(kind, saturated, "high_exposure") > 0.03
    assert mean(kind, saturated, "complex_background") < 0.5 * mean(
        kind, saturated, "high_exposure"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_low_visibility_has_little_contrast(kind):
    assert mean(kind, contrast, "low_visibility") < 0.6 * mean(kind, contrast, "complex_background")


@pytest.mark.parametrize("kind", KINDS)
def test_cloud_interference_has_clouds(kind):
    def cloudy(frame):
        return float((frame.cloud_opacity > 0.3).mean())

    assert mean(kind, cloudy, "cloud_interference") > 0.05
    assert mean(kind, cloudy, "low_visibility") < 0.05


def test_complex_background_has_more_edges_than_other_skylines():
    def edges(frame):
        grey = frame.cube.values.astype(np.float64).mean(axis=0)
        return float((np.abs(np.diff(grey, axis=1)) > 0.04 * 1023).mean())

    assert mean("hss", edges, "complex_background") > mean("hss", edges, "low_visibility")


@pytest.mark.parametrize("kind", KINDS)
def test_smoke_scenarios_differ_in_size_and_depth(kind):
    def share(frame):
        return float(frame.mask.mean())

    def depth(frame):
        return float(np.median(frame.tau[frame.tau > 0.05]))

    assert mean(kind, share, "early_stage") < 0.35 * mean(kind, share, "complex_shape")
    assert mean(kind, depth, "high_transparency") < 0.6 * mean(kind, depth, "complex_shape")


def test_fires_glow_in_heat_and_in_short_wave_infrared():
    for frame in frames("mss", "complex_background", "early_stage"):
        heat = frame.cube.values[3].astype(float)
        assert heat.max() > np.median(heat) + 60
    hot = [
        frame.cube.values[5].max() / np.quantile(frame.cube.values[5], 0.99)
        for frame in frames("satellite", "complex_background")
    ]
    assert np.median(hot) > 1.5


def test_smoke_shows_less_in_heat_than_in_light():
    clear, smoky = (
        simulate_frame("mss", 0, 6, size=SIZE, scenarios=["complex_shape"], smoke=smoke)
        for smoke in (False, True)
    )
    thick = smoky.opacity > 0.6
    change = np.abs(smoky.cube.values.astype(float) - clear.cube.values)[:, thick].mean(axis=1)
    assert change[3] < 0.4 * change[:3].max()


def test_smoke_over_plants_is_seen_though_it_darkens_near_infrared():
    bands, shape, rng = sensor("satellite").bands, (64, 64), np.random.default_rng(0)
    leaves = dict(zip(bands.names, (0.03, 0.05, 0.03, 0.5, 0.2, 0.1), strict=True))
    view = ImageryView({n: np.full(shape, v, np.float32) for n, v in leaves.items()}, "leaves")
    stage = build_stage("satellite", shape, bands, "complex_background", rng, view)
    tau, light = np.full(shape, 1.0, np.float32), np.ones((1, 1), np.float32)
    smoke = Layer(tau, light, Particles(1.0, 0.1, 1.0, albedo=0.18))
    assert np.median(expose(stage, smoke, bands, rng).change) > 0.05


def test_all_scale_classes_of_smoke_occur():
    shares = [simulate_frame("hss", i, 0, size=(136, 72)).mask.mean() for i in range(20)]
    assert min(shares) < 0.005
    assert max(shares) > 0.025
    assert any(0.005 <= share <= 0.025 for share in shares)


def test_a_frame_too_small_and_a_kind_unknown_are_refused():
    with pytest.raises(UsageError, match="15x40"):
        simulate_frame("hss", 0, size=(15, 40))
    with pytest.raises(UsageError, match="sonar"):
        simulate_frame("sonar", 0)


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_a_camera_counts_to_its_bit_depth(bits):
    frame = simulate_frame(
        "hss", 0, 1, size=SIZE, scenarios=["high_exposure"], rendering=Rendering(bits=bits)
    )
    assert frame.cube.dtype == ("uint8" if bits == 8 else "uint16")
    assert frame.cube.values.max() == 2**bits - 1


def test_reflectance_keeps_its_scale_at_any_depth():
    coarse, fine = (
        simulate_frame("satellite", 0, 1, size=SIZE, rendering=Rendering(bits=bits))
        for bits in (8, 16)
    )
    assert len(np.unique(coarse.cube.values)) <= 256 < len(np.unique(fine.cube.values))
    assert np.median(coarse.cube.values) == pytest.approx(np.median(fine.cube.values), rel=0.1)


@pytest.mark.parametrize("how", ["bands", "joint"])
def test_a_stretched_picture_fills_eight_bits(how):
    plain = simulate_frame("satellite", 0, 1, size=SIZE)
    picture = simulate_frame("satellite", 0, 1, size=SIZE, rendering=Rendering(stretch=how))
    assert picture.cube.dtype == np.uint8
    assert np.array_equal(picture.mask, plain.mask)
    ranges = np.ptp(picture.cube.values, axis=(1, 2))
    assert (ranges == 255).all() if how == "bands" else ranges.max() == 255


def test_meaningless_renderings_are_refused():
    with pytest.raises(UsageError, match="9 bits"):
        Rendering(bits=9)
    with pytest.raises(UsageError, match="'hard' is not one of"):
        Rendering(stretch="hard")
