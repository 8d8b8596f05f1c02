"""Training samples for the satellite model, made on the fly: sample number n is always the same.

Half of them stand on real imagery, half on procedural land; a quarter hold no smoke at all. Smoke
comes as plumes, thick cores, veils and palls over everything. Bands are left out and numbers
stretched as users' files have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from default_backgrounds import THICK, THIN, UNKNOWN, Background, choose_background, crop
from default_common import (
    IGNORED,
    UNLABELLED,
    Sample,
    closer,
    dim_where_thin,
    farther,
    label,
    pall,
    sharpened,
    stretched,
    without_fire,
    without_remnants,
    without_specks,
)
from numpy.typing import NDArray

from smokegeo.bands import Band
from smokegeo.sensors import sensor
from smokegeo.simulate.clouds import draw_cloud, shadow
from smokegeo.simulate.fields import blur, fractal, smoothstep
from smokegeo.simulate.frame import cloud_opacity, expose, is_judged, smoke_layer
from smokegeo.simulate.land import BIOMES, land
from smokegeo.simulate.optics import Layer, Particles, draw_smoke
from smokegeo.simulate.plume import lit_side
from smokegeo.simulate.scenarios import Casting
from smokegeo.simulate.sensor import REFLECTANCE_SCALE, draw_satellite
from smokegeo.simulate.stage import Stage, build_stage, direction
from smokegeo.simulate.views import DownView, ImageryView, View

BANDS = sensor("satellite").bands
_SCENES = ("high_exposure", "complex_background", "cloud_interference")
#: Which bands a user's file has, and how often: all, colour, colour and NIR, two composites.
_SUBSETS = (
    ((0, 1, 2, 3, 4, 5), 0.36),
    ((0, 1, 2), 0.23),
    ((0, 1, 2, 3), 0.12),
    ((2, 4, 5), 0.12),
    ((2, 3, 5), 0.06),
)
#: How smoke comes, and how often.
_STYLES = {"none": 0.18, "plume": 0.5, "core": 0.12, "veil": 0.1, "pall": 0.1}
_WOODED_STYLES = {"none": 0.2, "plume": 0.27, "core": 0.05, "veil": 0.24, "pall": 0.24}
#: Ground as bright as this in blue, of which no label says what it is, may be cloud.
WHITE = 0.2
#: A veil that changes the light by less than this is faint.
FAINT = 0.08
#: What is bright in some bands as smoke is, seldom in the imagery at hand: it is painted in.
_DECOYS = {
    "muddy river": (0.09, 0.14, 0.17, 0.075, 0.01, 0.008),
    "mud": (0.12, 0.18, 0.23, 0.2, 0.03, 0.015),
    "green lake": (0.05, 0.09, 0.05, 0.03, 0.008, 0.005),
    "shallows": (0.18, 0.22, 0.15, 0.05, 0.01, 0.008),
    "surf": (0.32, 0.32, 0.31, 0.26, 0.14, 0.1),
    "salt": (0.42, 0.48, 0.53, 0.58, 0.5, 0.4),
    "plastic": (0.34, 0.36, 0.38, 0.43, 0.36, 0.28),
    "snow": (0.9, 0.9, 0.88, 0.8, 0.1, 0.07),
    "ash": (0.13, 0.15, 0.17, 0.19, 0.26, 0.25),
}
_WATERY = ("muddy river", "mud", "green lake", "shallows")
_DECOY_SHARES = np.array([2.0 if name in _WATERY else 1.0 for name in _DECOYS])
_DECOY_SHARES /= _DECOY_SHARES.sum()
#: Share of the samples with forest below, half of them under veils and palls: it is what fires
#: burn, and often nothing but the spectrum tells.
_WOODED = 0.18
_WOODS = ("boreal", "tropical", "temperate")
#: Light that air alone adds at the top of the atmosphere, at most.
_RAYLEIGH = np.array([0.085, 0.045, 0.02, 0.007, 0.0, 0.0], np.float32)


def satellite_sample(
    number: int,
    seed: int,
    backgrounds: Sequence[Background],
    size: int = 192,
    *,
    real_share: float = 0.65,
    easy: bool = False,
) -> Sample:
    """Return sample `number` of a stream; an easy one has all its bands, as reflectances."""
    rng = np.random.default_rng([seed, number])
    shape = (size, size)
    real = bool(backgrounds) and rng.random() < real_share
    has, labels, valid = np.ones(6, bool), np.full(shape, UNKNOWN, np.uint8), np.ones(shape, bool)
    view: View | None = None
    picture = False
    wooded = rng.random() < _WOODED
    if real:
        chosen = choose_background(backgrounds, rng, wooded=wooded)
        light, labels, valid = crop(chosen, size, rng)
        has, picture = chosen.has.copy(), chosen.source.stretched
        if rng.random() < 0.35:
            light = with_decoy(light, rng)
        view = ImageryView(dict(zip(BANDS.names, light, strict=True)), chosen.name)
    elif wooded:
        view = _woods(shape, rng)
    scene = str(rng.choice(_SCENES, p=[0.2, 0.4, 0.4]))
    stage = build_stage("satellite", shape, BANDS, scene, rng, view)
    # Today's sensors do not clip ground; a scene scenario does, so that models are tested with it.
    stage = replace(stage, sensor=draw_satellite(BANDS, rng, None))
    stage = _quiet(stage, rng) if real or wooded else _clear(stage)
    if rng.random() < 0.3:
        stage = replace(stage, sunlit=None)  # clouds whose shadows lie elsewhere
    if rng.random() < 0.15:
        stage = _overcast(stage, rng)
    stage = replace(stage, smoke=_particles(rng))
    shares = _WOODED_STYLES if wooded else _STYLES
    style, stage, layer = draw_smoke_layer(stage, number, rng, shares)
    stage = without_fire(stage, 0.6 if style == "none" else 0.35, rng)
    if not easy or rng.random() < 0.2:
        has = choose_bands(has, rng)
    exposed = expose(stage, layer, BANDS, rng, looked_at(has))
    values = exposed.values.astype(np.float32) / REFLECTANCE_SCALE
    veiled = style in ("veil", "pall")
    target = label(exposed.opacity, exposed.change, values[:3].mean(axis=0), everywhere=veiled)
    # Smoke before cloud looks like cloud: SWIR goes through it, and the rest was white before.
    # Before cloud much thinner than itself it is smoke.
    thin = np.maximum(np.float32(0.2), np.float32(0.5) * exposed.opacity)
    clouded = (labels == THICK) | (labels == THIN) | (cloud_opacity(stage) > thin)
    if real and not picture:
        clouded |= (labels == UNKNOWN) & (light[0] > WHITE)
    target[clouded & (exposed.opacity > UNLABELLED)] = IGNORED
    values = _with_air(values, rng, above=not real or chosen.source.above_air)
    values *= np.exp(rng.normal(0, 0.03, (6, 1, 1))).astype(np.float32)
    values = _as_delivered(values, has, rng)
    if style == "veil" and not has[3:].any():
        # Without infrared a faint veil may as well be cloud, and mostly is.
        target[(target == 1) & (exposed.change < FAINT)] = IGNORED
    # A stretched picture shows nothing of smoke that is the same everywhere.
    uniform = veiled and (target == 1).sum() > 0.8 * (target != IGNORED).sum()
    if picture and uniform:
        target[target == 1] = IGNORED
    trusted = not picture and (easy or uniform or rng.random() < 0.55)
    if not trusted:
        values = stretched(values, valid, has, rng)
    elif has[4:].any() and rng.random() < 0.04:
        values = values + np.float32(0.1)  # Sentinel-2 since 2022, where nobody took it off
    if rng.random() < 0.08:
        valid = valid & _swath(shape, rng)
    target[~valid] = IGNORED
    target = without_specks(without_remnants(target, exposed.opacity * valid))
    tag = f"{'real' if real else 'made'} {style}"
    return Sample(values, has, np.full(6, trusted), valid, target, tag)


def looked_at(has: NDArray[np.bool_]) -> Callable[[Band], bool]:
    """Return in which bands people look for smoke: those of light that there are, or any."""
    there = [band for band, kept in zip(BANDS, has, strict=True) if kept]
    names = {band.name for band in ([band for band in there if is_judged(band)] or there)}
    return lambda band: band.name in names


def _woods(shape: tuple[int, int], rng: np.random.Generator) -> DownView:
    """Draw a country of forests."""
    biome = BIOMES[str(rng.choice(_WOODS))]
    biome = replace(biome, forest=float(rng.uniform(0.6, 0.97)))
    ground = land(shape, rng, biome, scale_px=float(rng.uniform(45, 110)), sun=direction(rng))
    return DownView(ground, 1.0, float(rng.uniform(0.02, 0.05)))


def draw_smoke_layer(
    stage: Stage, number: int, rng: np.random.Generator, shares: Mapping[str, float]
) -> tuple[str, Stage, Layer]:
    """Return a style, its smoke, and the stage with the fire and the shadow that belong to it."""
    style = str(rng.choice(list(shares), p=list(shares.values())))
    nothing = np.zeros(stage.shape, np.float32)
    if style == "none":
        return style, stage, Layer(nothing, np.ones((1, 1), np.float32), stage.smoke)
    if style in ("veil", "pall"):
        return style, stage, pall(stage.shape, _particles(rng), rng, thin=style == "veil")
    kind = str(
        rng.choice(["early_stage", "high_transparency", "complex_shape"], p=[0.14, 0.31, 0.55])
    )
    layer = smoke_layer(stage, Casting(number, int(rng.integers(0, 12)), "", kind), rng)
    if style == "core":
        layer = replace(layer, tau=layer.tau * np.float32(rng.uniform(1.5, 4)))
    if rng.random() < (0.5 if style == "core" else 0.2):
        layer = sharpened(layer, rng)
    # A thick plume has hills as a cloud has, and a shadow.
    strength = float(rng.uniform(0.3, 0.7) if style == "core" else rng.uniform(0.15, 0.5))
    light = lit_side(layer.tau, *stage.sun, strength, max(1.0, stage.unit_px * 0.8))
    layer = replace(layer, light=np.clip(light, 0.4, 1.5))
    distance = rng.random()
    if distance < 0.25:
        stage, layer = closer(stage, layer, rng)
    elif distance < 0.65:
        stage, layer = farther(stage, layer, rng)
    if rng.random() < 0.7:
        stage = _shaded(stage, layer, rng)
    return style, stage, dim_where_thin(layer, rng)


def _shaded(stage: Stage, smoke: Layer, rng: np.random.Generator) -> Stage:
    """Return the stage with the shadow of its smoke."""
    away = -float(rng.uniform(0, 0.08)) * min(stage.shape)
    dark = shadow(smoke, (away * stage.sun[0], away * stage.sun[1]))
    return replace(stage, sunlit=dark if stage.sunlit is None else dark * stage.sunlit)


def _as_delivered(
    values: NDArray[np.float32], has: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return the bands as products hold them: SWIR often coarser, some with a ceiling."""
    if has[4:].any() and rng.random() < 0.4:
        softness = float(rng.uniform(0.5, 1.2))
        values[4:] = [blur(band, softness) for band in values[4:]]
    if rng.random() < 0.04:
        values = np.minimum(values, rng.uniform(0.5, 1.2, (6, 1, 1)).astype(np.float32))
    return values


def _particles(rng: np.random.Generator) -> Particles:
    """Draw smoke of fine particles mostly, as fires make it: coarse are like cloud in SWIR.

    Over Rondonia's forest smoke changes red by eight times as much as SWIR2: some hundredths of its
    extinction at most are those of coarse particles.
    """
    particles = draw_smoke(rng)
    while particles.angstrom < 1.2 and rng.random() < 0.9:
        particles = draw_smoke(rng)
    return replace(particles, coarse=particles.coarse * float(rng.uniform(0.1, 0.6)))


def _swath(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return what of a view was recorded: up to a straight edge somewhere."""
    y, x = np.mgrid[-1 : 1 : shape[0] * 1j, -1 : 1 : shape[1] * 1j]
    angle = float(rng.uniform(0, 2 * np.pi))
    return np.asarray(np.cos(angle) * x + np.sin(angle) * y < rng.uniform(-0.2, 0.9))


def _with_air(
    values: NDArray[np.float32], rng: np.random.Generator, *, above: bool
) -> NDArray[np.float32]:
    """Return the image as measured above the air, or corrected for it, too little or too much."""
    draw = rng.random()
    if above:  # it holds the light of the air already
        taken = _RAYLEIGH * rng.uniform(-1, 0.1) * rng.uniform(0.8, 1.2, 6) * (draw < 0.6)
        return np.maximum(values + taken.astype(np.float32)[:, None, None], 0)
    if draw < 0.5:
        path = _RAYLEIGH * np.float32(rng.uniform(0, 1))
        return values * (1 - path[:, None, None]) + path[:, None, None]
    if draw < 0.75:
        wrong = _RAYLEIGH * rng.uniform(-0.4, 0.15) * rng.uniform(0.5, 1.5, 6)
        return np.maximum(values + wrong.astype(np.float32)[:, None, None], 0)
    return values


def with_decoy(light: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the image with a river or a patch of something that may be taken for smoke."""
    shape = light.shape[1:]
    name = str(rng.choice(list(_DECOYS), p=_DECOY_SHARES))
    edge = fractal(shape, rng, slope=float(rng.uniform(2.0, 3.0)))
    if name == "muddy river" or rng.random() < 0.25:
        # Where a smooth field is about 0 lies a winding band.
        inside = np.float32(rng.uniform(0.06, 0.35)) - np.abs(edge)
    else:
        inside = edge - np.float32(np.quantile(edge, rng.uniform(0.6, 0.95)))
    share = smoothstep(0.0, float(rng.uniform(0.01, 0.08)), inside.astype(np.float32))
    spectrum = np.array(_DECOYS[name], np.float32) * np.float32(rng.uniform(0.6, 1.4))
    spectrum *= np.exp(rng.normal(0, 0.06, 6)).astype(np.float32)
    texture = 1 + np.float32(rng.uniform(0.01, 0.12)) * fractal(shape, rng, slope=1.8)
    return light + (spectrum[:, None, None] * texture - light) * share


def _overcast(stage: Stage, rng: np.random.Generator) -> Stage:
    """Put cloud over the view, which lifts every band as a pall lifts some.

    Half of it has the very shapes of palls, so that nothing but the spectrum tells them apart.
    """
    kind = str(rng.choice(["cirrus", "stratocumulus"]))
    if rng.random() < 0.5:
        layer = pall(stage.shape, draw_cloud(rng, kind), rng, thin=bool(rng.random() < 0.5))
        return replace(stage, before=(*stage.before, layer), clouds=(*stage.clouds, layer))
    texture = fractal(stage.shape, rng, slope=float(rng.uniform(1.8, 3.0)))
    tau = np.float32(np.exp(rng.uniform(np.log(0.08), np.log(5.0))))
    tau = tau * np.exp(np.float32(rng.uniform(0.1, 0.7)) * texture)
    # Even where nothing is seen through it, its top has hills and valleys.
    light = 1 + np.float32(rng.uniform(0.02, 0.12)) * texture
    layer = Layer(tau.astype(np.float32), light.astype(np.float32), draw_cloud(rng, kind))
    return replace(stage, before=(*stage.before, layer), clouds=(*stage.clouds, layer))


def _clear(stage: Stage) -> Stage:
    """Leave most of the simulated haze out: seen from above, thick haze is smoke to its users."""

    def thinner(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        return tuple(
            layer
            if any(layer is cloud for cloud in stage.clouds)
            else replace(layer, tau=layer.tau * np.float32(0.2))
            for layer in layers
        )

    return replace(stage, behind=thinner(stage.behind), before=thinner(stage.before))


def _quiet(stage: Stage, rng: np.random.Generator) -> Stage:
    """Leave most of the made-up air out over real imagery, which has its own."""
    stage = _clear(replace(stage, light=float(rng.uniform(0.75, 1.1))))
    if rng.random() < 0.7:
        stage = replace(stage, behind=(), before=(), clouds=(), sunlit=None)
    return stage


def choose_bands(has: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which bands the user's file has, of those there are.

    Smoke is known by two visible bands at least, or by SWIR beside one that is not.
    """
    keep = np.zeros(6, bool)
    draw = rng.random()
    for subset, share in _SUBSETS:
        draw -= share
        if draw < 0:
            keep[list(subset)] = True
            break
    else:
        keep = rng.random(6) < 0.6
    kept = keep & has
    usable = kept[:3].sum() >= 2 or (kept[:4].any() and kept[4:].any())
    return kept if usable else has
