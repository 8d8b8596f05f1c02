"""One simulated frame: surroundings, smoke, sensor and annotators put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from smokegeo.bands import Band, BandSet
from smokegeo.consensus import merge_masks
from smokegeo.cubes import make_cube
from smokegeo.errors import UsageError
from smokegeo.simulate.annotators import annotate, visible_smoke
from smokegeo.simulate.backgrounds import Backgrounds
from smokegeo.simulate.fields import Field, Shape
from smokegeo.simulate.kinds import Kind, check_size, find_kind
from smokegeo.simulate.optics import THERMAL_NM, Layer, blend
from smokegeo.simulate.plume import Emission, lit_side, optical_depth
from smokegeo.simulate.scenarios import SMOKES, Casting, SmokePreset, cast_frame
from smokegeo.simulate.sensor import stretch_contrast
from smokegeo.simulate.spectra import Material, state_reflectance
from smokegeo.simulate.stage import Stage, build_stage
from smokegeo.simulate.thermal import flame_reflectance

#: Annotators are shown bands up to here.
_JUDGED_BELOW_NM = 1000.0

#: Seconds of wind between two frames of a video.
_FRAME_STEP_S = 9.0

#: Warmth above the air, in kelvin: where a thermal camera's span begins, of cloud, of smoke.
_COLDEST_K, _CLOUD_K, _SMOKE_K = -18.0, -12.0, 4.0


@dataclass(frozen=True)
class SimulatedFrame:
    """A frame and all that is true of it; every array but the cube is (y, x).

    `tau` is the smoke's optical depth at 550 nm, `opacity` the share of light it takes away in
    the mean over the bands below 1000 nm, `cloud_opacity` that of the clouds at 550 nm.
    """

    cube: xr.DataArray
    mask: NDArray[np.uint8]
    votes: NDArray[np.uint8]
    tau: Field
    opacity: Field
    cloud_opacity: Field
    scenarios: tuple[str, str]
    scene: str


@dataclass(frozen=True, slots=True)
class Rendering:
    """How the numbers are delivered: another bit depth, or an 8-bit picture stretched to it.

    `bits` is 8, 10, 12 or 16; `stretch` is "bands" (each for itself) or "joint".
    """

    bits: int | None = None
    stretch: str | None = None

    def __post_init__(self) -> None:
        if self.bits not in (None, 8, 10, 12, 16):
            raise UsageError(f"{self.bits} bits: a sensor has 8, 10, 12 or 16.")
        if self.stretch not in (None, "bands", "joint"):
            raise UsageError(f"stretch {self.stretch!r} is not one of bands, joint.")


@dataclass(frozen=True)
class Exposed:
    """What the sensor made of a stage: numbers (band, y, x) and what the smoke did to the light."""

    values: NDArray[np.unsignedinteger]
    opacity: Field
    change: Field


def simulate_frame(
    kind: str,
    index: int,
    seed: int = 0,
    *,
    size: tuple[int, int] | None = None,
    scenarios: Sequence[str] = (),
    backgrounds: Backgrounds | None = None,
    rendering: Rendering | None = None,
    smoke: bool = True,
) -> SimulatedFrame:
    """Simulate frame number `index` of a stream; the same arguments give the same frame.

    `size` is (width, height). Without `smoke` the frame is what the sensor saw before any.
    """
    rendering = rendering or Rendering()
    spec = find_kind(kind)
    width, height = size or (spec.width, spec.height)
    check_size(width, height)
    casting = cast_frame(index, seed, scenarios)
    stage = _stage(spec.name, (height, width), seed, casting.video, casting.scene, backgrounds)
    rng = _stream(seed, spec, 2, index)
    layer = smoke_layer(stage, casting, rng)
    if not smoke:
        layer = Layer(np.zeros_like(layer.tau), layer.light, layer.particles)
    if rendering.bits is not None:
        stage = replace(stage, sensor=stage.sensor.with_bits(rendering.bits))
    exposed = expose(stage, layer, spec.bands, rng)
    values = exposed.values
    if rendering.stretch is not None:
        values = stretch_contrast(values, rendering.stretch)
    consensus = merge_masks(annotate(visible_smoke(exposed.opacity, exposed.change), rng))
    return SimulatedFrame(
        make_cube(values, spec.bands),
        consensus.mask,
        consensus.votes,
        layer.tau,
        exposed.opacity,
        cloud_opacity(stage),
        (casting.scene, casting.smoke),
        scene_name(spec.name, casting.video),
    )


def scene_name(kind: str, video: int) -> str:
    """Return the name of the scene the frames of a video are of."""
    return f"{kind}-{video:04d}"


@lru_cache(maxsize=2)
def _stage(
    kind: str, shape: Shape, seed: int, video: int, scene: str, backgrounds: Backgrounds | None
) -> Stage:
    """Return a video's stage; the frames of a video come one after another and share it."""
    spec = find_kind(kind)
    rng = _stream(seed, spec, 1, video)
    view = None if backgrounds is None else backgrounds.crop(shape, rng)
    return build_stage(kind, shape, spec.bands, scene, rng, view)


def _stream(seed: int, kind: Kind, purpose: int, number: int) -> np.random.Generator:
    """Return the random numbers of one video or frame, whatever else is simulated."""
    return np.random.default_rng(
        np.random.SeedSequence(seed, spawn_key=(kind.code, purpose, number))
    )


def smoke_layer(stage: Stage, casting: Casting, rng: np.random.Generator) -> Layer:
    """Return the smoke at a frame's moment, in the style of its smoke scenario."""
    preset = SMOKES[casting.smoke]
    tau = optical_depth(
        stage.shape, _emission(stage, casting, preset, rng), stage.flow, stage.unit_px, rng
    )
    light = lit_side(tau, *stage.sun, 0.32, max(1.0, stage.unit_px * 0.8))
    return Layer(tau, np.clip(light, 0.4, 1.5), stage.smoke)


def _emission(
    stage: Stage, casting: Casting, preset: SmokePreset, rng: np.random.Generator
) -> Emission:
    low, high = preset.sources
    count = min(int(rng.integers(low, high + 1)), len(stage.scenery.sources))
    return Emission(
        stage.scenery.sources[:count],
        time_s=200.0 + _FRAME_STEP_S * casting.moment,
        duration_s=float(rng.uniform(*preset.duration_s)),
        peak_tau=float(rng.uniform(*preset.peak_tau)),
        spread=float(rng.uniform(*preset.spread)),
        detail=float(rng.uniform(*preset.detail)),
        puffs=int(np.clip(stage.shape[0] * stage.shape[1] / 6, 3000, 14000)),
    )


def is_judged(band: Band) -> bool:
    """Say whether annotators look at a band: they see pictures of light, not of heat or SWIR."""
    return (band.wavelength_nm or 0) < _JUDGED_BELOW_NM


class Visibility:
    """What smoke does to the light (y, x), in the mean of the bands in which people look for it.

    `opacity` is the share of light it takes away; `change` is how much brighter or darker it makes
    the bands, in units of full daylight.
    """

    def __init__(
        self, stage: Stage, bands: BandSet, judged: Callable[[Band], bool] = is_judged
    ) -> None:
        self._stage, self._judged = stage, judged
        self._count = np.float32(sum(1 for band in bands if judged(band)))
        self.opacity: Field = np.zeros(stage.shape, dtype=np.float32)
        self._change: Field = np.zeros(stage.shape, dtype=np.float32)

    def light(self, smoke: Layer, band: Band) -> Field:
        """Return a band's light with smoke in it, and note what the smoke does to it."""
        light, opacity, difference = band_light(self._stage, smoke, band)
        if self._judged(band):
            self.opacity += opacity / self._count
            # Over plants smoke is brighter in the visible and darker in NIR: it is seen in both.
            self._change += np.abs(difference) / self._count
        return light

    @property
    def change(self) -> Field:
        """How much the smoke changes the bands that were asked for until now."""
        return self._change / np.float32(self._stage.light)


def expose(
    stage: Stage,
    smoke: Layer,
    bands: BandSet,
    rng: np.random.Generator,
    judged: Callable[[Band], bool] = is_judged,
) -> Exposed:
    """Return what the sensor records of a stage with smoke in it, band after band.

    `judged` says in which bands people look for the smoke.
    """
    values = np.empty((len(bands), *stage.shape), dtype=stage.sensor.dtype)
    visibility = Visibility(stage, bands, judged)
    for position, band in enumerate(bands):
        values[position] = stage.sensor.record(visibility.light(smoke, band), position, rng)
    return Exposed(values, visibility.opacity, visibility.change)


def band_light(stage: Stage, smoke: Layer, band: Band) -> tuple[Field, Field, Field]:
    """Return a band's light with smoke, the smoke's opacity, and the difference it makes."""
    nm = band.wavelength_nm or 550.0
    light = _background(stage, band)
    for layer in stage.behind:
        light = blend(light, layer.opacity(nm), _glow(stage, layer, nm, _CLOUD_K))
    opacity = smoke.opacity(nm)
    difference = (_glow(stage, smoke, nm, _SMOKE_K) - light) * opacity
    light = light + difference
    for layer in stage.before:
        veil = layer.opacity(nm)
        light = blend(light, veil, _glow(stage, layer, nm, _CLOUD_K))
        difference *= 1 - veil
        if any(layer is cloud for cloud in stage.clouds):
            opacity = opacity * (1 - veil)  # smoke under a cloud is not seen
    return light, opacity, difference


def cloud_opacity(stage: Stage) -> Field:
    """Return the opacity (y, x) at 550 nm of all clouds together."""
    clear = np.ones(stage.shape, dtype=np.float32)
    for layer in stage.clouds:
        clear *= 1 - layer.opacity(550)
    return 1 - clear


def _background(stage: Stage, band: Band) -> Field:
    """Return a band's light before any smoke or cloud, with the glow and the scar of a fire."""
    view, fire = stage.scenery.view, stage.scenery.fire
    if _is_thermal(band):
        warm = view.warmth_k()
        if fire is not None:
            warm = warm + fire.ember_k + fire.flame * np.float32(700)
        return (warm - np.float32(_COLDEST_K)) / np.float32(stage.thermal_span_k)
    light = view.radiance(band)
    if stage.sunlit is not None:
        light = light * stage.sunlit
    if fire is not None:
        nm = band.wavelength_nm or 550.0
        burnt = float(state_reflectance(nm)[Material.BURNT, 0]) * stage.light
        light = blend(light, np.float32(0.85) * fire.scar, burnt)
        light += fire.flame * np.float32(flame_reflectance(nm, fire.flame_k))
    return light


def _glow(stage: Stage, layer: Layer, nm: float, warmth_k: float) -> Field | float:
    """Return a layer's own light: sunlight it scatters, or its warmth in the thermal band."""
    if nm > THERMAL_NM:
        return (warmth_k - _COLDEST_K) / stage.thermal_span_k
    return layer.glow(nm) * np.float32(stage.light)


def _is_thermal(band: Band) -> bool:
    return (band.wavelength_nm or 0) > THERMAL_NM
