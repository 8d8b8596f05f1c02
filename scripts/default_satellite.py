"""Training samples for the satellite model, made on the fly: sample number n is always the same.

Most of them stand on real imagery, the others on procedural land; about a sixth hold no smoke. It
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
from default_surroundings import (
    broken_cloud,
    clear,
    hazy,
    overcast,
    quiet,
    sea,
    with_decoy,
    woods,
)
from default_wildfire import drifting_smoke
from numpy.typing import NDArray

from smokegeo.bands import Band
from smokegeo.sensors import sensor
from smokegeo.simulate.clouds import shadow
from smokegeo.simulate.fields import blur
from smokegeo.simulate.frame import cloud_opacity, expose, is_judged, smoke_layer
from smokegeo.simulate.optics import Layer, Particles, draw_smoke
from smokegeo.simulate.plume import lit_side
from smokegeo.simulate.scenarios import Casting
from smokegeo.simulate.sensor import REFLECTANCE_SCALE, draw_satellite
from smokegeo.simulate.stage import Stage, build_stage
from smokegeo.simulate.views import ImageryView, View

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
_PLAIN_STYLES = {"none": 0.1, "plume": 0.5, "core": 0.16, "veil": 0.1, "pall": 0.14}
_SEA_STYLES = {"none": 0.55, "plume": 0.25, "core": 0.05, "veil": 0.1, "pall": 0.05}
#: What samples are of, and how often. Plain ones are what most users have: a real scene, nothing
#: painted into it but smoke. Forest is what fires burn, and under veils and palls often nothing but
#: the spectrum tells. At sea there are the edges of clouds over dark water; over hazy land thin
#: haze lies everywhere. Any may have clouds, decoys or overcast skies, over real or made land.
_SETTINGS = {"plain": 0.26, "forest": 0.24, "sea": 0.05, "hazy": 0.05, "any": 0.4}
_STYLES_OF = {"plain": _PLAIN_STYLES, "forest": _WOODED_STYLES, "sea": _SEA_STYLES}
#: Share of plumes that are a wildfire's seen from space: soft strands of many sources.
_DRIFTING = 0.5
#: Ground as bright as this in blue, of which no label says what it is, may be cloud.
WHITE = 0.2
#: A veil that changes the light by less than this is faint.
FAINT = 0.08
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
    setting = str(rng.choice(list(_SETTINGS), p=list(_SETTINGS.values())))
    share = {"plain": 1.0, "sea": 0.0}.get(setting, real_share)
    real = bool(backgrounds) and rng.random() < share
    has, labels, valid = np.ones(6, bool), np.full(shape, UNKNOWN, np.uint8), np.ones(shape, bool)
    view: View | None = None
    picture = False
    if real:
        chosen = choose_background(backgrounds, rng, wooded=setting == "forest")
        light, labels, valid = crop(chosen, size, rng)
        has, picture = chosen.has.copy(), chosen.source.stretched
        if setting != "plain" and rng.random() < 0.35:
            light = with_decoy(light, rng)
        view = ImageryView(dict(zip(BANDS.names, light, strict=True)), chosen.name)
    elif setting in ("forest", "sea"):
        view = woods(shape, rng) if setting == "forest" else sea(shape, rng)
    scene = str(rng.choice(_SCENES, p=[0.2, 0.4, 0.4]))
    stage = build_stage("satellite", shape, BANDS, scene, rng, view)
    # Today's sensors do not clip ground; a scene scenario does, so that models are tested with it.
    stage = replace(stage, sensor=draw_satellite(BANDS, rng, None))
    stage = _sky(stage, setting, rng, real=real)
    stage = replace(stage, smoke=_particles(rng))
    style, stage, layer = draw_smoke_layer(stage, number, rng, _STYLES_OF.get(setting, _STYLES))
    unseen = 1.0 if setting == "sea" else 0.6 if style == "none" else 0.35
    stage = without_fire(stage, unseen, rng)
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
    # A stretched picture shows nothing of smoke that is the same everywhere, and without infrared
    # a thick core that fills the view may as well be cloud.
    uniform = (target == 1).sum() > 0.8 * (target != IGNORED).sum()
    if uniform and (picture or not (veiled or has[3:].any())):
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


def _sky(stage: Stage, setting: str, rng: np.random.Generator, *, real: bool) -> Stage:
    """Return the stage with the clouds and the haze of its setting."""
    if setting == "sea":
        return broken_cloud(stage, rng)
    if real or setting == "forest":
        stage = quiet(stage, rng, 1.0 if setting == "plain" else 0.7)
    else:
        stage = clear(stage)
    if setting == "hazy":
        stage = hazy(stage, rng)
    if rng.random() < 0.3:
        stage = replace(stage, sunlit=None)  # clouds whose shadows lie elsewhere
    if setting != "plain" and rng.random() < 0.15:
        stage = overcast(stage, rng)
    return stage


def looked_at(has: NDArray[np.bool_]) -> Callable[[Band], bool]:
    """Return in which bands people look for smoke: those of light that there are, or any."""
    there = [band for band, kept in zip(BANDS, has, strict=True) if kept]
    names = {band.name for band in ([band for band in there if is_judged(band)] or there)}
    return lambda band: band.name in names


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
    drifting = rng.random() < _DRIFTING
    if drifting:
        stage, layer = drifting_smoke(stage, rng)
    else:
        layer = _billowing(stage, style, number, rng)
    if style == "core":
        layer = replace(layer, tau=layer.tau * np.float32(rng.uniform(1.5, 4)))
    fresh = 0.0 if drifting else 0.5 if style == "core" else 0.2
    if rng.random() < fresh:
        layer = sharpened(layer, rng)
    nearer, near = (0.15, 0.75) if drifting else (0.25, 0.6)
    distance = rng.random()
    if distance < nearer:
        stage, layer = closer(stage, layer, rng)
    elif distance > near:
        stage, layer = farther(stage, layer, rng)
    if rng.random() < 0.7:
        stage = _shaded(stage, layer, rng)
    return style, stage, dim_where_thin(layer, rng)


def _billowing(stage: Stage, style: str, number: int, rng: np.random.Generator) -> Layer:
    """Return smoke of few sources, seen from near: with hills as a cloud has."""
    kind = str(
        rng.choice(["early_stage", "high_transparency", "complex_shape"], p=[0.14, 0.31, 0.55])
    )
    layer = smoke_layer(stage, Casting(number, int(rng.integers(0, 12)), "", kind), rng)
    strength = float(rng.uniform(0.3, 0.7) if style == "core" else rng.uniform(0.15, 0.5))
    light = lit_side(layer.tau, *stage.sun, strength, max(1.0, stage.unit_px * 0.8))
    return replace(layer, light=np.clip(light, 0.4, 1.5))


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
