"""Forest and hills seen by drones and mountain cameras: crowns, ridges, oblique ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from smokegeo.simulate.fields import Field, Shape, blur, fractal, grid, shift, smoothstep
from smokegeo.simulate.land import BIOMES, land
from smokegeo.simulate.spectra import Material
from smokegeo.simulate.surface import Canvas, Surface

#: What lies between the trees of a drone's view.
UNDERGROWTH = ("grass", "snow", "soil", "brush")


@dataclass(frozen=True)
class Outlook:
    """Ground seen at a slant: surface, sky pixels, distance, and the row of each column's crest."""

    surface: Surface
    open_sky: NDArray[np.bool_]
    distance_km: Field
    crest_px: Field


def forest_floor(
    shape: Shape, rng: np.random.Generator, under: str, *, crown_px: float, cover: float
) -> Surface:
    """Draw single trees over grass, snow, soil or brush, seen from straight above."""
    patch = fractal(shape, rng, slope=1.7, largest_px=14 * crown_px)
    grain = fractal(shape, rng, slope=0.8, largest_px=2 * crown_px)
    ground, dry = {
        "grass": (Material.GRASS, 0.65),
        "snow": (Material.SNOW, 0.35),
        "soil": (Material.SOIL, 0.3),
        "brush": (Material.BRUSH, 0.6),
    }[under]
    canvas = Canvas.blank(shape, ground, dry + 0.15 * patch + 0.1 * grain)
    canvas.light *= 1 + np.float32(0.05) * patch + np.float32(0.07) * grain
    if under == "snow":
        bare = patch + np.float32(0.5) * grain > 1.1
        canvas.paint(bare, Material.GRASS, 0.9)
    _track(canvas, rng, crown_px)
    dome, tone, trunk = _crowns(shape, rng, crown_px, cover, patch)
    sun = rng.uniform(0, 2 * np.pi)
    reach = crown_px * float(rng.uniform(0.4, 1.1))
    cast = shift(dome, reach * float(np.sin(sun)), reach * float(np.cos(sun)))
    canvas.light *= 1 - np.float32(0.55) * smoothstep(0.05, 0.4, cast)
    canvas.paint(trunk, Material.FOREST, np.clip(0.2 + 0.35 * tone + 0.1 * grain, 0, 1))
    slope_y, slope_x = np.gradient(dome * np.float32(crown_px))
    lit = np.tanh(slope_y * np.float32(np.sin(sun)) + slope_x * np.float32(np.cos(sun)))
    crown = 0.5 + 0.75 * dome + 0.35 * lit + 0.35 * (tone - 0.5) + 0.16 * grain
    canvas.light[trunk] = crown[trunk]
    return canvas.finish()


def oblique(
    shape: Shape, rng: np.random.Generator, under: str, *, horizon_px: float, cover: float
) -> Outlook:
    """Draw a forest seen at a slant by a drone; the horizon may lie above the view."""
    rows, columns = shape
    side = int(max(shape) * 2.5)
    flat = forest_floor(
        (side, side),
        rng,
        under,
        crown_px=float(rng.uniform(14, 24)) * max(shape) / 256,
        cover=cover,
    )
    y, x = grid(shape)
    # Ground distance grows as 1 / rows below the horizon; one map pixel per pixel at the foot.
    near = np.float32(rows - horizon_px)
    far = near / np.maximum(y - np.float32(horizon_px), 0.5)
    v = wrapped(side - 1 - (far - 1) * near * np.float32(1.4), side)
    u = wrapped((x - np.float32(columns / 2)) * far + side / 2, side)
    v = np.broadcast_to(v, shape)
    light = flat.light[v, u]
    # Far crowns are smaller than a pixel: only their mean is left.
    fade = smoothstep(2.5, 7.0, np.broadcast_to(far, shape))
    light = light + (np.float32(flat.light.mean()) - light) * fade
    crest = np.full(columns, horizon_px, dtype=np.float32)
    line = fractal((4, columns), rng, slope=1.3, largest_px=columns / 3)[0]
    crest -= np.maximum(2 + 2.5 * line, 0.5).astype(np.float32)
    open_sky = np.broadcast_to(y < crest[None, :], shape).copy()
    # Towards the horizon the gaps close: trees hide the ground behind them.
    closed = np.broadcast_to(far > 9, shape)
    material = np.where(closed, np.uint8(Material.FOREST), flat.material[v, u])
    surface = Surface(material, flat.dryness[v, u], np.where(closed, np.float32(0.75), light))
    return Outlook(
        surface, open_sky, np.minimum(0.06 * far, 5) + np.zeros(shape, np.float32), crest
    )


def wrapped(position: Field, side: int) -> NDArray[np.int64]:
    """Return positions as indexes into a map that goes on where it ends.

    Whole numbers first: a float32 just below 0, taken modulo the side, is the side itself.
    """
    return np.floor(position).astype(np.int64) % side


def ridges(shape: Shape, rng: np.random.Generator, *, horizon_px: float) -> Outlook:
    """Draw hills behind hills as a mountain-top camera sees them."""
    rows, columns = shape
    y, x = grid(shape)
    country = rng.choice(["savanna", "temperate", "boreal", "mountain"], p=[0.35, 0.25, 0.25, 0.15])
    plain = land((512, 512), rng, BIOMES[str(country)], scale_px=60, sun=(-0.7, 0.5))
    canvas = Canvas.blank(shape, Material.BRUSH)
    open_sky = np.ones(shape, dtype=bool)
    distance = np.zeros(shape, dtype=np.float32)
    crest = np.full(columns, horizon_px, dtype=np.float32)
    layers = int(rng.integers(4, 7))
    for k in range(layers):
        t = k / (layers - 1)
        km = 28 * (0.6 / 28) ** t
        size = rows * (0.03 + 0.1 * t)
        line = fractal((4, columns), rng, slope=2.0, largest_px=columns * (0.8 - 0.3 * t))[0]
        top = horizon_px + (rows - horizon_px) * 0.72 * t**1.6 - size * line * 0.45
        crest = np.minimum(crest, top) if k == 0 else crest
        hill = y >= top[None, :]
        depth = np.maximum(y - top[None, :], 0)
        zoom = 0.35 + 5.5 * t**2
        v = ((depth * 2.6 / zoom) + 97 * k).astype(np.int64) % 512
        u = np.broadcast_to((x / zoom + 131 * k), shape).astype(np.int64) % 512
        canvas.material[hill] = plain.material[v, u][hill]
        canvas.dryness[hill] = plain.dryness[v, u][hill]
        relief = fractal(shape, rng, slope=1.5, largest_px=size * 2.5, stretch=1.6, angle_rad=1.2)
        canvas.light[hill] = (plain.light[v, u] * (0.8 + 0.22 * relief))[hill]
        open_sky &= ~hill
        distance[hill] = (km * np.maximum(0.45, 1 - 0.5 * depth / (rows * 0.2)))[hill]
    _brush(canvas, rng, horizon_px)
    return Outlook(canvas.finish(), open_sky, distance, crest)


def _brush(canvas: Canvas, rng: np.random.Generator, horizon_px: float) -> None:
    """Grow bushes and boulders in the foreground, larger towards the viewer."""
    shape = canvas.light.shape
    rows = shape[0]
    y, _ = grid(shape)
    near = smoothstep(0.35, 1.0, (y - np.float32(horizon_px)) / np.float32(rows - horizon_px))
    clumps = fractal(shape, rng, slope=1.35, largest_px=rows / 9, smallest_px=1.5)
    fine = fractal(shape, rng, slope=0.8, largest_px=6)
    bush = (clumps + np.float32(0.4) * fine) * near > 0.35
    canvas.paint(bush, Material.BRUSH, np.clip(0.2 + 0.25 * fine, 0, 1))
    slope_y, _ = np.gradient(blur(clumps, 1.0))
    canvas.light *= 1 + near * (0.22 * fine + 1.6 * np.tanh(1.5 * slope_y))
    stone = (
        fractal(shape, rng, slope=1.4, largest_px=rows / 14, smallest_px=1) * near > 1.75
    ) & ~bush
    canvas.paint(stone, Material.ROCK, 0.95)


def _track(canvas: Canvas, rng: np.random.Generator, crown_px: float) -> None:
    """Draw a dirt track through the wood in some views."""
    if rng.random() > 0.4:
        return
    shape = canvas.light.shape
    y, x = grid(shape)
    angle = rng.uniform(0, np.pi)
    bend = fractal(shape, rng, slope=3.0) * np.float32(2.5 * crown_px)
    middle = rng.uniform(0.3, 0.7) * (shape[1] * np.cos(angle) + shape[0] * np.sin(angle))
    line = x * np.float32(np.cos(angle)) + y * np.float32(np.sin(angle)) + bend
    canvas.paint(np.abs(line - np.float32(middle)) < crown_px * 0.4, Material.SOIL, 0.4)


def _crowns(
    shape: Shape, rng: np.random.Generator, crown_px: float, cover: float, patch: Field
) -> tuple[Field, Field, NDArray[np.bool_]]:
    """Return tree height in [0, 1], a random tone per tree, and where the trees are."""
    count = int(1.6 * cover * shape[0] * shape[1] / crown_px**2) + 1
    rows = rng.integers(0, shape[0], 2 * count)
    columns = rng.integers(0, shape[1], 2 * count)
    # Trees stand in groups: the patchier half of the places is left bare.
    keep = patch[rows, columns] + rng.normal(0, 0.7, 2 * count) > np.quantile(patch, 1 - cover)
    empty = np.ones(shape, dtype=bool)
    empty[rows[keep], columns[keep]] = False
    if empty.all():
        none = np.zeros(shape, dtype=np.float32)
        return none, none, np.zeros(shape, dtype=bool)
    near, (iy, ix) = ndimage.distance_transform_edt(empty, return_indices=True)
    tone = rng.random(shape, dtype=np.float32)[iy, ix]
    radius = np.float32(crown_px) * (0.35 + 0.4 * tone)
    ragged = fractal(shape, rng, slope=1.0, largest_px=crown_px) * np.float32(0.14)
    dome = np.clip(1 - near.astype(np.float32) / radius + ragged, 0, 1)
    dome[near > 1.3 * radius] = 0
    return dome.astype(np.float32), tone, dome > 0.06
