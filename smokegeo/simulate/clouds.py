"""Clouds, cirrus and haze: what smoke is mistaken for. Their extinction hardly has a slope."""

from __future__ import annotations

import numpy as np

from smokegeo.simulate.fields import (
    Field,
    Shape,
    eddies,
    fractal,
    grid,
    sample_periodic,
    shift,
    smoothstep,
    warp,
)
from smokegeo.simulate.optics import Layer, Particles
from smokegeo.simulate.plume import lit_side

CLOUD_KINDS = ("cumulus", "stratocumulus", "cirrus")


def draw_cloud(rng: np.random.Generator, kind: str) -> Particles:
    """Draw the optics of a cloud: water is white with dimmer SWIR, ice is dark in SWIR."""
    ice = kind == "cirrus"
    swir1, swir2 = ((0.25, 0.5), (0.15, 0.4)) if ice else ((0.6, 0.85), (0.45, 0.7))
    return Particles(
        angstrom=float(rng.uniform(-0.15, 0.15)),
        coarse=0.5,
        air_mass=1.0,
        albedo=float(rng.uniform(0.55, 0.8) if ice else rng.uniform(0.7, 0.95)),
        swir=(float(rng.uniform(*swir1)), float(rng.uniform(*swir2))),
    )


def draw_haze(rng: np.random.Generator) -> Particles:
    """Draw the optics of haze or fog: mostly coarse droplets, a faint slope."""
    return Particles(
        angstrom=float(rng.uniform(0.0, 0.6)),
        coarse=float(rng.uniform(0.4, 0.9)),
        air_mass=1.0,
        albedo=float(rng.uniform(0.45, 0.7)),
        swir=(0.8, 0.7),
    )


def cloud_layer(
    shape: Shape,
    rng: np.random.Generator,
    kind: str,
    *,
    cover: float,
    scale_px: float,
    sun: tuple[float, float],
) -> Layer:
    """Draw clouds seen from above, covering about a share `cover` of the view."""
    depth = _depth(shape, rng, kind, cover, scale_px)
    light = lit_side(depth, sun[0], sun[1], 0.22 if kind == "cirrus" else 0.5, scale_px / 12)
    return Layer(depth, np.clip(light, 0.4, 1.25), draw_cloud(rng, kind))


def sky_clouds(
    shape: Shape,
    rng: np.random.Generator,
    kind: str,
    *,
    cover: float,
    horizon_px: float,
    sun: tuple[float, float],
) -> Layer:
    """Draw clouds seen from below by a camera: a flat deck, shrinking towards the horizon."""
    side = 512
    deck = _depth((side, side), rng, kind, cover, 90.0)
    y, x = grid(shape)
    # Rows above the horizon look up at a deck of constant height; distance is 1 / elevation.
    elevation = np.maximum((np.float32(horizon_px) - y) / np.float32(shape[1]), 0.012)
    far = np.float32(34) / (elevation + 0.1)
    across = (x / np.float32(shape[1]) - 0.5) * far * np.float32(2.2) + side / 2
    depth = sample_periodic(deck, far + np.zeros_like(x), across)
    depth = warp(
        depth, *(v * np.float32(shape[0] / 150) for v in eddies(shape, rng, largest_px=30))
    )
    # A longer path through the same deck lower down, but clouds never touch the ground.
    depth *= np.minimum(0.2 / (elevation + 0.12), 1.3) * smoothstep(0, 0.04, elevation)
    light = lit_side(depth, sun[0], sun[1], 0.3, shape[0] / 90)
    light *= 1 - 0.22 * smoothstep(1.5, 6.0, depth)  # thick bases are grey from below
    return Layer(depth, np.clip(light, 0.3, 1.25), draw_cloud(rng, kind))


def haze_layer(shape: Shape, rng: np.random.Generator, tau: float) -> Layer:
    """Draw haze of a mean optical depth, with soft patches."""
    patches = fractal(shape, rng, slope=2.0, smallest_px=max(shape) / 60)
    depth = np.float32(tau) * np.exp(np.float32(0.15) * patches)
    return Layer(depth, np.ones((1, 1), dtype=np.float32), draw_haze(rng))


def shadow(layer: Layer, offset_px: tuple[float, float]) -> Field:
    """Return the sunlight (y, x) in [0.35, 1] left under a layer shifted away from the sun."""
    out: Field = 1 - np.float32(0.65) * shift(layer.opacity(550), *offset_px)
    return out


def _depth(
    shape: Shape, rng: np.random.Generator, kind: str, cover: float, scale_px: float
) -> Field:
    """Return cloud optical depth (y, x) at 550 nm, periodic if the sides suit the FFT."""
    if kind == "cirrus":
        streaks = fractal(
            shape, rng, slope=1.7, largest_px=scale_px, stretch=4.5,
            angle_rad=float(rng.uniform(0, np.pi)),
        )  # fmt: skip
        curl = eddies(shape, rng, largest_px=2 * scale_px, smallest_px=scale_px / 8)
        wisps = warp(streaks, *(v * np.float32(scale_px / 9) for v in curl))
        # Strands thin out over a whole bank of them, not at an edge.
        bank = fractal(shape, rng, slope=2.0, largest_px=2 * scale_px, smallest_px=scale_px / 8)
        above = wisps + bank - np.float32(np.quantile((wisps + bank)[::2, ::2], 1 - cover))
        out: Field = np.float32(0.22) * np.maximum(above, 0) ** 1.5
        return out
    base = fractal(shape, rng, slope=1.75, largest_px=scale_px)
    if kind == "stratocumulus":
        cells = fractal(shape, rng, slope=2.0, largest_px=scale_px / 3, smallest_px=2)
        base = base * np.float32(0.6) + np.float32(0.9) * (np.float32(1) - np.abs(cells))
    else:
        # Cumulus heads are round: folding the noise makes bumps with creases between.
        heads = fractal(shape, rng, slope=1.7, largest_px=scale_px / 4)
        base = base + np.float32(0.35) * (np.abs(heads) - np.float32(0.8))
    if max(shape) > 6 * scale_px:  # in a wide view clouds come in fields with clear sky between
        wide = max(shape) / 2
        base = base + fractal(shape, rng, slope=2.0, largest_px=wide, smallest_px=wide / 40)
    above = base - np.float32(np.quantile(base[::2, ::2], 1 - cover))
    veil = np.float32(0.45) * smoothstep(-0.35, 0.4, above)
    depth: Field = np.float32(2.6) * np.maximum(above, 0) ** 1.6 + veil
    return depth
