"""What lies around the smoke in satellite samples: woods, sea, decoys, overcast skies, haze."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from default_common import pall
from numpy.typing import NDArray

from smokegeo.sensors import sensor
from smokegeo.simulate.clouds import CLOUD_KINDS, cloud_layer, draw_cloud, haze_layer, shadow
from smokegeo.simulate.fields import Shape, fractal, smoothstep
from smokegeo.simulate.land import BIOMES, land
from smokegeo.simulate.optics import Layer
from smokegeo.simulate.stage import Stage, direction
from smokegeo.simulate.views import DownView, ImageryView

_BANDS = sensor("satellite").bands
_WOODS = ("boreal", "tropical", "temperate")
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
#: Water far from any coast, with the light of the air above it.
_DEEP = (0.11, 0.07, 0.04, 0.016, 0.005, 0.004)


def woods(shape: Shape, rng: np.random.Generator) -> DownView:
    """Draw a country of forests."""
    biome = BIOMES[str(rng.choice(_WOODS))]
    biome = replace(biome, forest=float(rng.uniform(0.6, 0.97)))
    ground = land(shape, rng, biome, scale_px=float(rng.uniform(45, 110)), sun=direction(rng))
    return DownView(ground, 1.0, float(rng.uniform(0.02, 0.05)))


def sea(shape: Shape, rng: np.random.Generator) -> ImageryView:
    """Draw dark water, smooth or with swell and glint: any cloud's edge is plain on it."""
    swell = fractal(shape, rng, slope=float(rng.uniform(1.2, 2.4)))
    light = np.array(_DEEP, np.float32) * np.exp(rng.normal(0, 0.25, 6)).astype(np.float32)
    light = light * np.float32(np.exp(rng.normal(0, 0.3)))
    glint = np.float32(rng.choice([0.0, 0.0, rng.uniform(0.0, 0.08)]))
    rough = 1 + np.float32(rng.uniform(0.02, 0.2)) * swell
    seen = np.maximum(light[:, None, None] * rough + glint * np.exp(swell / 4), 0)
    return ImageryView(dict(zip(_BANDS.names, seen.astype(np.float32), strict=True)), "sea")


def broken_cloud(stage: Stage, rng: np.random.Generator) -> Stage:
    """Put clouds of any size with much sky between them over a view, and their shadows."""
    scale = float(np.exp(rng.uniform(np.log(0.05), np.log(0.6)))) * min(stage.shape)
    kind, cover = str(rng.choice(CLOUD_KINDS)), float(rng.uniform(0.08, 0.6))
    layer = cloud_layer(stage.shape, rng, kind, cover=cover, scale_px=scale, sun=stage.sun)
    reach = -float(rng.uniform(0.02, 0.1)) * min(stage.shape)
    dark = shadow(layer, (reach * stage.sun[0], reach * stage.sun[1]))
    return replace(stage, behind=(layer,), before=(), clouds=(layer,), sunlit=dark)


def hazy(stage: Stage, rng: np.random.Generator) -> Stage:
    """Put thin haze of droplets and dust over everything, which is no smoke."""
    tau = float(np.exp(rng.uniform(np.log(0.04), np.log(0.4))))
    return replace(stage, behind=(*stage.behind, haze_layer(stage.shape, rng, tau)))


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


def overcast(stage: Stage, rng: np.random.Generator) -> Stage:
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


def clear(stage: Stage) -> Stage:
    """Leave most of the simulated haze out: seen from above, thick haze is smoke to its users."""

    def thinner(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        return tuple(
            layer
            if any(layer is cloud for cloud in stage.clouds)
            else replace(layer, tau=layer.tau * np.float32(0.2))
            for layer in layers
        )

    return replace(stage, behind=thinner(stage.behind), before=thinner(stage.before))


def quiet(stage: Stage, rng: np.random.Generator, share: float) -> Stage:
    """Leave most of the made-up air out over real imagery, which has its own; of a share all."""
    stage = clear(replace(stage, light=float(rng.uniform(0.75, 1.1))))
    if rng.random() < share:
        stage = replace(stage, behind=(), before=(), clouds=(), sunlit=None)
    return stage
