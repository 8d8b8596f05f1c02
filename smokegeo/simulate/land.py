"""Land cover seen from above: biomes with relief, rivers, lakes, fields, towns and roads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smokegeo.simulate.fields import (
    Field,
    Shape,
    blur,
    fractal,
    grid,
    smoothstep,
    standardise,
)
from smokegeo.simulate.spectra import Material
from smokegeo.simulate.surface import Canvas, Surface, cut_parcels


@dataclass(frozen=True, slots=True)
class Biome:
    """Shares of the land that are forest, farmed, town, water and snow, and how rough it is."""

    ground: Material
    forest: float
    fields: float
    town: float
    lakes: float
    river: float
    snow: float
    relief: float
    broadleaf: float


BIOMES: dict[str, Biome] = {
    "boreal": Biome(Material.BRUSH, 0.75, 0.0, 0.0, 0.12, 0.5, 0.0, 0.25, 0.15),
    "temperate": Biome(Material.GRASS, 0.3, 0.55, 0.03, 0.01, 0.5, 0.0, 0.25, 0.6),
    "tropical": Biome(Material.GRASS, 0.7, 0.2, 0.01, 0.02, 0.7, 0.0, 0.15, 0.45),
    "savanna": Biome(Material.GRASS, 0.2, 0.1, 0.01, 0.0, 0.4, 0.0, 0.3, 0.5),
    "mountain": Biome(Material.BRUSH, 0.55, 0.0, 0.0, 0.01, 0.4, 0.1, 1.3, 0.2),
    "coast": Biome(Material.BRUSH, 0.35, 0.2, 0.08, 0.35, 0.0, 0.0, 0.6, 0.4),
    "desert": Biome(Material.SAND, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0, 0.7, 0.3),
    "suburb": Biome(Material.GRASS, 0.25, 0.3, 0.3, 0.02, 0.6, 0.0, 0.15, 0.6),
    "snowfield": Biome(Material.ROCK, 0.3, 0.0, 0.0, 0.04, 0.3, 0.5, 1.0, 0.1),
}


def land(
    shape: Shape,
    rng: np.random.Generator,
    biome: Biome,
    *,
    scale_px: float,
    sun: tuple[float, float],
) -> Surface:
    """Draw a landscape; `scale_px` is the size of its hills and woods, `sun` points to the sun."""
    height = _terrain(shape, rng, scale_px, biome.relief)
    if biome.lakes > 0.3:  # a sea, not many lakes: the land falls off to one side
        height += _tilt(shape, float(rng.uniform(0, 2 * np.pi)), 2.6)
    patch = fractal(shape, rng, slope=1.6, largest_px=scale_px)
    if max(shape) > 6 * scale_px:  # a large scene holds several kinds of country
        wide = 4 * scale_px
        region = fractal(shape, rng, slope=2.0, largest_px=wide, smallest_px=wide / 20)
        patch = standardise(patch + np.float32(0.8) * region)
    texture = fractal(shape, rng, slope=0.7, largest_px=scale_px / 4)
    canvas = Canvas.blank(shape, biome.ground, 0.5 + 0.22 * patch + 0.06 * texture)
    canvas.light *= 1 + np.float32(0.05) * texture
    _farm(canvas, rng, patch, biome, scale_px)
    if biome.relief > 1:
        canvas.paint(height > _level(height, 0.72), Material.ROCK)
    moist = patch - np.float32(0.7 * min(biome.relief, 1.0)) * height  # trees keep to the valleys
    _grow_forest(canvas, moist, texture, biome)
    _shade(canvas, height, biome.relief, scale_px, sun)
    if biome.town > 0:
        _build_towns(canvas, rng, biome.town, scale_px)
    _lay_roads(canvas, rng, scale_px, wild=biome.fields + biome.town < 0.05)
    _run_water(canvas, rng, height, biome, scale_px)
    if biome.snow > 0:
        cold = height + np.float32(0.15) * patch + np.float32(0.06) * texture
        line = _level(cold, 1 - biome.snow)
        canvas.paint(cold > line, Material.SNOW, smoothstep(0.6, -0.1, cold - np.float32(line)))
    return canvas.finish()


def _terrain(shape: Shape, rng: np.random.Generator, scale_px: float, relief: float) -> Field:
    """Return terrain height in standard deviations; high relief has ridges and valleys."""
    rolling = fractal(shape, rng, slope=2.2, largest_px=1.5 * scale_px)
    if relief < 0.5:
        return rolling
    out: Field = np.float32(0.7) * rolling
    # Folded noise has sharp crests; each finer set of them is lower, and lower in the valleys.
    for octave, share in enumerate((1.0, 0.4, 0.16)):
        size = 2.6 * scale_px / 2.4**octave
        crests = fractal(shape, rng, slope=2.3, largest_px=size, smallest_px=size / 14)
        folded: Field = np.float32(1) - np.abs(crests)
        out = out + np.float32(share) * folded * (0.5 + smoothstep(-1.0, 1.5, rolling))
    return out


def _tilt(shape: Shape, angle_rad: float, drop: float) -> Field:
    """Return a plane (y, x) that falls by `drop` on both sides of the middle."""
    y, x = grid(shape)
    fall_x = (x * np.float32(2 / shape[1]) - 1) * np.float32(drop * np.cos(angle_rad))
    fall_y = (y * np.float32(2 / shape[0]) - 1) * np.float32(drop * np.sin(angle_rad))
    return fall_x + fall_y


def _shade(
    canvas: Canvas, height: Field, relief: float, scale_px: float, sun: tuple[float, float]
) -> None:
    """Light the slopes that face the sun."""
    slope_y, slope_x = np.gradient(blur(height, 0.8))
    facing = -(slope_y * np.float32(sun[0]) + slope_x * np.float32(sun[1]))
    usual = max(float(np.std(facing)), 0.4 / scale_px)
    facing *= np.float32(0.9 * min(relief, 1.0) / usual)
    canvas.light *= 1 + np.float32(0.55) * np.tanh(facing)


def _grow_forest(canvas: Canvas, moist: Field, texture: Field, biome: Biome) -> None:
    """Cover the moist places with trees; crowns make the light uneven."""
    if biome.forest <= 0:
        return
    ragged = moist + np.float32(0.25) * texture
    wood = ragged > _level(ragged, 1 - biome.forest)
    canvas.paint(wood, Material.FOREST, np.float32(biome.broadleaf) + 0.12 * moist + 0.08 * texture)
    canvas.light[wood] *= (1 + np.float32(0.1) * texture)[wood]


def _farm(
    canvas: Canvas, rng: np.random.Generator, patch: Field, biome: Biome, scale_px: float
) -> None:
    """Divide part of the land into fields of one crop or bare soil each, with hedges between."""
    if biome.fields <= 0:
        return
    parcels = cut_parcels(
        canvas.light.shape, rng, max(5.0, scale_px / 9), float(rng.uniform(0, np.pi)),
        float(rng.uniform(1.2, 2.5)),
    )  # fmt: skip
    farmed = (patch < _level(patch, biome.fields * 1.25)) & (parcels.value < 0.85)
    shade = np.mod(parcels.value * 17, 1)
    canvas.paint(farmed, Material.FIELD, np.clip(1.25 * shade - 0.1, 0, 1))
    canvas.light[farmed] *= (0.88 + np.float32(0.24) * np.mod(parcels.value * 41, 1))[farmed]
    hedge = farmed & (parcels.border_px < 0.6)
    canvas.paint(hedge, Material.FOREST, 0.6)


def _build_towns(canvas: Canvas, rng: np.random.Generator, share: float, scale_px: float) -> None:
    """Build towns: a street grid, roofs and yards, denser towards the centre."""
    shape = canvas.light.shape
    density = fractal(shape, rng, slope=2.0, largest_px=scale_px * 1.2, smallest_px=2)
    town = density > _level(density, 1 - share)
    angle = float(rng.uniform(0, np.pi))
    blocks = cut_parcels(shape, rng, max(7.0, scale_px / 10), angle, 1.4)
    plots = cut_parcels(shape, rng, 2.6, angle, 1.3)
    built = town & (plots.value < 0.62)
    canvas.paint(town, Material.GRASS, 0.45)
    canvas.paint(built, Material.ROOF, np.mod(plots.value * 13, 1) ** 2)
    canvas.paint(built & (np.mod(plots.value * 29, 1) < 0.35), Material.CONCRETE, 0.4)
    canvas.light[built] *= (0.6 + np.float32(0.7) * np.mod(plots.value * 7, 1))[built]
    canvas.paint(town & (blocks.border_px < 0.8), Material.ASPHALT, 0.3)


def _lay_roads(canvas: Canvas, rng: np.random.Generator, scale_px: float, *, wild: bool) -> None:
    """Draw a few long, gently bent roads; tracks of bare soil in wild country."""
    shape = canvas.light.shape
    y, x = grid(shape)
    count = max(1, round(0.8 * max(shape) / (4 * scale_px)) + int(rng.integers(0, 2)))
    bend = fractal(shape, rng, slope=3.0, largest_px=scale_px * 3) * np.float32(scale_px * 0.35)
    for _ in range(min(count, 12)):
        angle = rng.uniform(0, np.pi)
        cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
        middle = rng.uniform(0, shape[1]) * cos + rng.uniform(0, shape[0]) * sin
        road = np.abs(x * cos + y * sin + bend - np.float32(middle)) < 0.7
        canvas.paint(road, Material.SOIL if wild else Material.ASPHALT, 0.5)


def _run_water(
    canvas: Canvas, rng: np.random.Generator, height: Field, biome: Biome, scale_px: float
) -> None:
    """Let a river meander along a valley line and fill the lowest ground."""
    shape = canvas.light.shape
    wet = np.zeros(shape, dtype=bool)
    if rng.random() < biome.river:
        course = fractal(shape, rng, slope=2.6, largest_px=scale_px * 2.5, smallest_px=2)
        # Contours of noise alone are closed rings; on tilted noise they run through.
        drop = 1.5 * max(1.0, max(shape) / (8 * scale_px))
        course = course + _tilt(shape, float(rng.uniform(0, 2 * np.pi)), drop)
        steep = np.maximum(np.hypot(*np.gradient(course)), np.float32(0.25 / scale_px))
        off = np.mod(course + np.float32(rng.uniform(1.2, 1.8)), 3) - np.float32(1.5)
        distance = np.abs(off) / steep
        width = float(rng.uniform(0.6, 1.2) if rng.random() < 0.6 else rng.uniform(2, 7))
        wet |= distance < width
        bank = smoothstep(0.3, 1.5, fractal(shape, rng, slope=1.8, largest_px=scale_px))
        canvas.paint((distance < width * (1 + 0.6 * bank)) & ~wet, Material.SAND, 0.5)
        if biome.ground is Material.SAND:  # a wadi: bright gravel and no water
            canvas.paint(wet, Material.SAND, 0.95)
            wet[:] = False
    if biome.lakes > 0:
        wet |= height < _level(height, biome.lakes)
    dirty = float(rng.uniform(0, 0.9)) ** 2
    canvas.paint(wet, Material.WATER, dirty + 0.05 * fractal(shape, rng, slope=2.0))
    canvas.light[wet] = 1.0


def _level(field: Field, share: float) -> float:
    """Return the value below which a share of the field lies; a sample of it is enough."""
    step = max(1, min(field.shape) // 256)
    return float(np.quantile(field[::step, ::step], np.clip(share, 0, 1)))
