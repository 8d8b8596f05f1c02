"""One video's surroundings: view, clouds, air, fire, places that smoke, and the sensor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from smokegeo.bands import BandSet
from smokegeo.simulate.clouds import (
    CLOUD_KINDS,
    cloud_layer,
    haze_layer,
    shadow,
    sky_clouds,
)
from smokegeo.simulate.countryside import UNDERGROWTH, Outlook, forest_floor, oblique, ridges
from smokegeo.simulate.fields import Field, Shape
from smokegeo.simulate.land import BIOMES, land
from smokegeo.simulate.optics import THERMAL_NM, Layer, Particles, blend, draw_smoke
from smokegeo.simulate.plume import Flow, Source, make_flow
from smokegeo.simulate.scenarios import SCENES, Range, ScenePreset
from smokegeo.simulate.sensor import (
    Exposure,
    SensorModel,
    draw_camera,
    draw_mosaic,
    draw_satellite,
)
from smokegeo.simulate.skyline import draw_site
from smokegeo.simulate.spectra import Material
from smokegeo.simulate.thermal import Fire, fire_front
from smokegeo.simulate.views import CameraView, DownView, Sky, View, draw_sky

#: Smoke crosses the shorter side of a view in about this many seconds.
_CROSSING_S = 85.0

#: How many places to look at for one that can burn.
_PLACES_TRIED = 10

#: A scene whose white point leaves out more pixels than this is meant to be overexposed.
_OVEREXPOSED = 0.97


@dataclass(frozen=True)
class Scenery:
    """A view with the places in it that may smoke, and a fire if there is one."""

    view: View
    sources: tuple[Source, ...]
    horizon_px: float | None = None
    fire: Fire | None = None


@dataclass(frozen=True)
class Stage:
    """All that the frames of one video share."""

    scenery: Scenery
    behind: tuple[Layer, ...]
    before: tuple[Layer, ...]
    clouds: tuple[Layer, ...]
    sunlit: Field | None
    flow: Flow
    unit_px: float
    sun: tuple[float, float]
    smoke: Particles
    light: float
    air_k: float
    thermal_span_k: float
    sensor: SensorModel

    @property
    def shape(self) -> Shape:
        """The size of the view (y, x)."""
        return self.scenery.view.shape


def build_stage(
    kind: str,
    shape: Shape,
    bands: BandSet,
    scene: str,
    rng: np.random.Generator,
    view: View | None = None,
) -> Stage:
    """Draw the surroundings of a video in the style of a scene scenario.

    A `view` given (a user's raster) replaces the procedural background.
    """
    preset = SCENES[scene]
    unit_px = min(shape) / _CROSSING_S
    light = _draw(rng, preset.light)
    turn = float(rng.uniform(0, 2 * np.pi))
    if view is not None:
        # A drone sees the flames of a fire, a satellite some hundredths of a pixel of them.
        scenery = _from_above(view, rng, turn, 0.7 if kind == "mss" else 0.04)
    elif kind == "hss":
        scenery = _industrial(shape, rng, preset, light)
    elif kind == "mss":
        scenery = _countryside(shape, rng, scene, preset, light, turn)
    else:
        scenery = _land(shape, rng, scene, light, turn)
    camera = scenery.horizon_px is not None
    sun = (-0.75, float(rng.choice([-0.6, 0.6]))) if camera else direction(rng)
    # A drone that looks down flies below the clouds and most of the haze.
    if kind == "mss" and not camera:
        thin = (0.4 * preset.haze_tau[0], 0.4 * preset.haze_tau[1])
        preset = replace(preset, cloud_cover=(0.0, 0.0), haze_tau=thin)
    behind, before, clouds = draw_air(scenery, rng, preset, sun)
    flow = make_flow(
        rng,
        unit_px,
        angle_rad=_wind(scenery, shape, rng, turn),
        rise=float(rng.uniform(0.4, 3.5)) if camera else 0.0,
        turbulence=float(rng.uniform(0.16, 0.42)),
    )
    sunlit = None
    if not camera and clouds:
        reach = float(rng.uniform(0.03, 0.1)) * min(shape)
        sunlit = shadow(clouds[0], (-sun[0] * reach, -sun[1] * reach))
    exposure = meter(scenery.view, (*behind, *before), bands, light, preset, rng)
    sensor = draw_sensor(kind, bands, rng, exposure, overexposed=preset.white[1] < _OVEREXPOSED)
    return Stage(
        scenery, behind, before, clouds, sunlit, flow, unit_px, sun, draw_smoke(rng), light,
        float(rng.uniform(275, 305)), float(rng.uniform(70, 160)), sensor,
    )  # fmt: skip


def _industrial(
    shape: Shape, rng: np.random.Generator, preset: ScenePreset, light: float
) -> Scenery:
    """Draw a ground camera's view of stacks and halls against the sky."""
    horizon = float(rng.uniform(0.7, 1.0)) * shape[0]
    clutter = _draw(rng, preset.clutter)
    site = draw_site(
        shape, rng, horizon_px=horizon, clutter=clutter, sun_x=float(rng.uniform(-1, 1))
    )
    sky = _sky(shape, rng, horizon, preset, light)
    haze = float(rng.uniform(0.05, 0.25)) + 0.4 * float(np.mean(preset.haze_tau))
    view = CameraView(site.canvas.finish(), sky, site.open_sky, site.distance_km, haze, light)
    return Scenery(view, site.stacks, horizon)


def _countryside(
    shape: Shape,
    rng: np.random.Generator,
    scene: str,
    preset: ScenePreset,
    light: float,
    turn: float,
) -> Scenery:
    """Draw a drone's or a mountain camera's view of forest, with a fire on the ground."""
    under = (
        "snow" if scene == "high_exposure" and rng.random() < 0.6 else str(rng.choice(UNDERGROWTH))
    )
    style = str(rng.choice(["nadir", "oblique", "ridges"], p=[0.4, 0.3, 0.3]))
    if scene == "cloud_interference" and style == "nadir":
        style = "ridges"  # clouds below a drone would be fog
    cover = float(rng.uniform(0.3, 0.85))
    if style == "nadir":
        surface = forest_floor(
            shape, rng, under, crown_px=float(rng.uniform(7, 18)) * min(shape) / 254, cover=cover
        )
        return _from_above(DownView(surface, light, 0.008 * light), rng, turn, 0.7)
    horizon = float(rng.uniform(-0.1, 0.3) if style == "oblique" else rng.uniform(0.3, 0.55))
    horizon *= shape[0]
    if style == "oblique":
        outlook = oblique(shape, rng, under, horizon_px=horizon, cover=cover)
    else:
        outlook = ridges(shape, rng, horizon_px=horizon)
    sky = _sky(shape, rng, max(horizon, 1.0), preset, light)
    haze = float(rng.uniform(0.02, 0.07)) + 0.15 * float(np.mean(preset.haze_tau))
    view = CameraView(outlook.surface, sky, outlook.open_sky, outlook.distance_km, haze, light)
    return _fire_on_slope(view, outlook, rng, horizon, turn)


def _fire_on_slope(
    view: CameraView, outlook: Outlook, rng: np.random.Generator, horizon: float, turn: float
) -> Scenery:
    """Set fire to a place on the ground at middle distance."""
    rows, columns = view.shape
    x = float(rng.uniform(0.12, 0.88)) * columns
    top = max(float(outlook.crest_px[int(x)]), 0.12 * rows)
    y = top + float(rng.uniform(0.08, 0.55)) * (rows - top)
    near = (y - top) / max(rows - top, 1)
    radius = (0.6 + 6 * near) * rows / 254
    fire = fire_front(view.shape, rng, (y, x), 2.5 * radius, turn, flatten=2.2, flame_share=0.7)
    sources = tuple(
        Source(y + float(rng.normal(0, 0.6 * radius)), x + float(rng.normal(0, 2 * radius)), radius)
        for _ in range(5)
    )
    return Scenery(view, (Source(y, x, radius), *sources), horizon, fire)


def _land(shape: Shape, rng: np.random.Generator, scene: str, light: float, turn: float) -> Scenery:
    """Draw a satellite's view; the scene scenario decides which country suits it."""
    names = {
        "high_exposure": ["desert", "snowfield"],
        "complex_background": ["suburb", "temperate", "coast", "mountain"],
    }.get(scene, ["boreal", "temperate", "tropical", "savanna", "mountain", "coast"])
    biome = BIOMES[str(rng.choice(names))]
    surface = land(shape, rng, biome, scale_px=float(rng.uniform(45, 110)), sun=direction(rng))
    air = float(rng.uniform(0.02, 0.05))
    return _from_above(DownView(surface, light, air), rng, turn, 0.04)


def _from_above(view: View, rng: np.random.Generator, turn: float, flame_share: float) -> Scenery:
    """Set fire to a place in a view from above; the smoke rises from the glowing edge."""
    rows, columns = view.shape
    burnable = view.surface.material != Material.WATER if isinstance(view, DownView) else None
    for _ in range(_PLACES_TRIED):
        # The source lies up-wind of the middle so that the plume crosses the view.
        centre = (
            rows * float(np.clip(0.5 - 0.3 * np.sin(turn) + rng.normal(0, 0.1), 0.05, 0.95)),
            columns * float(np.clip(0.5 - 0.3 * np.cos(turn) + rng.normal(0, 0.1), 0.05, 0.95)),
        )
        if burnable is None or burnable[int(centre[0]), int(centre[1])]:
            break
    radius = float(np.exp(rng.uniform(np.log(0.012), np.log(0.09)))) * min(rows, columns)
    fire = fire_front(view.shape, rng, centre, radius, turn, flame_share=flame_share)
    if burnable is not None:
        fire = fire.within(burnable)
    return Scenery(view, glowing_sources(fire, rng, 6, max(0.9, 0.16 * radius)), None, fire)


def glowing_sources(
    fire: Fire, rng: np.random.Generator, count: int, radius_px: float
) -> tuple[Source, ...]:
    """Return places on the glowing edge of a fire where smoke rises."""
    glowing = np.argwhere(fire.flame > 0.3 * fire.flame.max())
    picked = glowing[rng.integers(0, len(glowing), count)]
    return tuple(
        Source(float(y), float(x), radius_px * float(rng.uniform(0.6, 1.6))) for y, x in picked
    )


def _sky(
    shape: Shape, rng: np.random.Generator, horizon: float, preset: ScenePreset, light: float
) -> Sky:
    return draw_sky(
        shape, rng, horizon, level=light, sun_in_view=bool(rng.random() < preset.sun_in_view)
    )


def draw_air(
    scenery: Scenery,
    rng: np.random.Generator,
    preset: ScenePreset,
    sun: tuple[float, float],
) -> tuple[tuple[Layer, ...], tuple[Layer, ...], tuple[Layer, ...]]:
    """Draw what lies behind the smoke, before it, and which of these layers are clouds."""
    shape = scenery.view.shape
    haze = haze_layer(shape, rng, _draw(rng, preset.haze_tau))
    cover = _draw(rng, preset.cloud_cover)
    if cover < 0.04:
        return (), (haze,), ()
    kind = str(rng.choice(CLOUD_KINDS, p=[0.5, 0.25, 0.25]))
    open_sky = scenery.view.open_sky
    if scenery.horizon_px is None or open_sky is None:
        scale = float(np.exp(rng.uniform(np.log(0.1), np.log(0.5)))) * min(min(shape), 512)
        clouds = cloud_layer(shape, rng, kind, cover=cover, scale_px=scale, sun=sun)
        # Cirrus lies above any smoke, low clouds mostly below or beside it.
        if kind == "cirrus" or rng.random() < 0.3:
            return (haze,), (clouds,), (clouds,)
        return (haze, clouds), (), (clouds,)
    clouds = sky_clouds(shape, rng, kind, cover=cover, horizon_px=scenery.horizon_px, sun=sun)
    clouds.tau[~open_sky] = 0
    return (clouds,), (haze,), (clouds,)


def _wind(scenery: Scenery, shape: Shape, rng: np.random.Generator, turn: float) -> float:
    """Return the wind's direction: as the fire spread, or across the camera's view."""
    if scenery.horizon_px is None:
        return turn + float(rng.normal(0, 0.2))
    towards_middle = scenery.sources[0].x_px < shape[1] / 2
    tilt = float(rng.normal(0, 0.12))
    return tilt if towards_middle == (rng.random() < 0.85) else float(np.pi) - tilt


def meter(
    view: View,
    layers: tuple[Layer, ...],
    bands: BandSet,
    light: float,
    preset: ScenePreset,
    rng: np.random.Generator,
) -> Exposure:
    """Set the exposure by the scene without smoke, as a camera does before the event."""
    lit = [band for band in bands if (band.wavelength_nm or 0) < THERMAL_NM]
    sample = lit[:: max(1, len(lit) // 3)][:3]
    mean = np.zeros(view.shape, dtype=np.float32)
    for band in sample:
        radiance = view.radiance(band)
        for layer in layers:
            nm = band.wavelength_nm or 550.0
            radiance = blend(radiance, layer.opacity(nm), layer.glow(nm) * np.float32(light))
        mean += radiance / len(sample)
    white = float(np.quantile(mean[::3, ::3], _draw(rng, preset.white)))
    if preset.white[1] > _OVEREXPOSED:
        # A camera in the sun is not set so that grey things clip: smoke is brighter than ground.
        white = max(white, 0.45 * light)
    white *= _draw(rng, preset.white_level)
    return Exposure(max(white, 0.05), _draw(rng, preset.black) * white)


def draw_sensor(
    kind: str, bands: BandSet, rng: np.random.Generator, exposure: Exposure, *, overexposed: bool
) -> SensorModel:
    """Draw the sensor of a kind; a satellite's exposure is fixed unless it is overexposed."""
    if kind == "hss":
        return draw_mosaic(bands, rng, exposure)
    if kind == "mss":
        return draw_camera(bands, rng, exposure)
    return draw_satellite(bands, rng, exposure if overexposed else None)


def direction(rng: np.random.Generator) -> tuple[float, float]:
    """Draw a unit vector (y, x)."""
    turn = float(rng.uniform(0, 2 * np.pi))
    return (float(np.sin(turn)), float(np.cos(turn)))


def _draw(rng: np.random.Generator, limits: Range) -> float:
    return float(rng.uniform(*limits))
