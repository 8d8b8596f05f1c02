"""An industrial site seen by a ground camera: halls, tanks, towers and the stacks that smoke."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smokegeo.simulate.fields import Field, Shape, fractal
from smokegeo.simulate.plume import Source
from smokegeo.simulate.spectra import Material
from smokegeo.simulate.surface import Canvas


@dataclass(frozen=True)
class Site:
    """A drawn site: its surface as a canvas, what is sky, how far each pixel is, and stacks."""

    canvas: Canvas
    open_sky: NDArray[np.bool_]
    distance_km: Field
    stacks: tuple[Source, ...]


class _Pencil:
    """Draws shapes on a canvas from far to near and keeps the depth of what it covers."""

    def __init__(self, shape: Shape, rng: np.random.Generator, sun_x: float) -> None:
        self.canvas = Canvas.blank(shape, Material.CONCRETE)
        self.sky = np.ones(shape, dtype=bool)
        self.distance = np.zeros(shape, dtype=np.float32)
        self.rng = rng
        self.sun_x = sun_x
        self.grime = fractal(shape, rng, slope=1.2, largest_px=20)

    def fill(
        self,
        rows: tuple[float, float],
        columns: tuple[float, float],
        material: Material,
        dryness: float,
        light: float,
        km: float,
    ) -> tuple[slice, slice] | None:
        """Fill a rectangle; return its slices, or None if it lies outside the view."""
        height, width = self.sky.shape
        top, bottom = max(0, round(rows[0])), min(height, round(rows[1]))
        left, right = max(0, round(columns[0])), min(width, round(columns[1]))
        if top >= bottom or left >= right:
            return None
        part = (slice(top, bottom), slice(left, right))
        self.canvas.material[part] = material
        self.canvas.dryness[part] = dryness
        self.canvas.light[part] = light * (1 + 0.05 * self.grime[part])
        self.sky[part] = False
        self.distance[part] = km
        return part

    def hall(self, base: float, x: float, width: float, height: float, km: float) -> None:
        """Draw a building: a front, perhaps a lit side, a roof edge, rows of windows, vents."""
        rng = self.rng
        material = Material(
            rng.choice([Material.CONCRETE, Material.BRICK, Material.STEEL, Material.ROOF])
        )
        tone, light = float(rng.random()), float(rng.uniform(0.45, 1.0))
        self.fill((base - height, base), (x, x + width), material, tone, light, km)
        side = width * rng.uniform(0.15, 0.4)
        if self.sun_x > 0:
            self.fill(
                (base - height, base),
                (x + width - side, x + width),
                material,
                tone,
                1.25 * light,
                km,
            )
        else:
            self.fill((base - height, base), (x, x + side), material, tone, 0.6 * light, km)
        self.fill(
            (base - height - 1, base - height + 1),
            (x - 1, x + width + 1),
            Material.STEEL,
            0.7,
            0.8,
            km,
        )
        if rng.random() < 0.65 and width > 12 and height > 10:
            self._windows(base, x, width, height, km)
        for _ in range(int(rng.integers(0, 4))):
            vent = x + rng.uniform(0, width)
            tall = rng.uniform(2, 8)
            self.fill(
                (base - height - tall, base - height),
                (vent, vent + rng.uniform(1, 5)),
                Material.STEEL,
                float(rng.random()),
                0.7,
                km,
            )

    def _windows(self, base: float, x: float, width: float, height: float, km: float) -> None:
        step = float(self.rng.uniform(4, 8))
        rise = float(self.rng.uniform(5, 10))
        strip = self.rng.random() < 0.4
        for row in np.arange(base - height + 3, base - 3, rise):
            if strip:
                self.fill((row, row + 2), (x + 2, x + width - 2), Material.WINDOW, 0.2, 0.8, km)
                continue
            for column in np.arange(x + 2, x + width - 3, step):
                self.fill(
                    (row, row + rise / 2),
                    (column, column + step / 2),
                    Material.WINDOW,
                    float(self.rng.random()) * 0.6,
                    0.8,
                    km,
                )

    def column(
        self,
        base: float,
        x: float,
        radius: tuple[float, float],
        height: float,
        material: Material,
        dryness: float,
        km: float,
        *,
        waist: float = 0.0,
    ) -> None:
        """Draw a round tower, `radius` at foot and top; light falls off around it."""
        for row in range(max(0, round(base - height)), min(self.sky.shape[0], round(base))):
            t = (base - row) / height
            r = (
                radius[0]
                + (radius[1] - radius[0]) * t
                - waist * radius[0] * np.sin(np.pi * min(1, t * 1.15))
            )
            part = self.fill((row, row + 1), (x - r, x + r), material, dryness, 1.0, km)
            if part is not None:
                across = (np.arange(part[1].start, part[1].stop) - x) / max(r, 0.7)
                across = np.clip(across, -1, 1)
                lit = 0.35 + 0.65 * np.clip(
                    np.sqrt(1 - across**2) * 0.55 + across * self.sun_x * 0.5 + 0.25, 0, 1.2
                )
                self.canvas.light[part] = (lit * (1 + 0.06 * self.grime[part])).astype(np.float32)

    def stack(self, base: float, x: float, width: float, height: float, km: float) -> Source:
        """Draw a chimney, often with warning bands, and return its mouth as a source."""
        material = Material(self.rng.choice([Material.CONCRETE, Material.BRICK, Material.STEEL]))
        half = width / 2
        self.column(base, x, (half * 1.35, half), height, material, float(self.rng.random()), km)
        if self.rng.random() < 0.6:
            band = max(3.0, height * 0.06)
            for k in range(int(self.rng.integers(2, 6))):
                top = base - height + k * band
                for row in range(max(0, round(top)), min(self.sky.shape[0], round(top + band))):
                    left, right = max(0, round(x - half)), min(self.sky.shape[1], round(x + half))
                    self.canvas.material[row, left:right] = Material.PAINT
                    self.canvas.dryness[row, left:right] = (k + 1) % 2
        self.fill(
            (base - height, base - height + 1),
            (x - half - 1, x + half + 1),
            Material.STEEL,
            0.1,
            0.6,
            km,
        )
        return Source(base - height, x, max(1.2, half))

    def lattice(self, base: float, x: float, width: float, height: float, km: float) -> None:
        """Draw a lattice mast or crane tower of thin steel members."""
        rows = range(max(0, round(base - height)), min(self.sky.shape[0], round(base)))
        period = max(4.0, width)
        for row in rows:
            t = (base - row) / height
            half = width / 2 * (1 - 0.6 * t)
            phase = (row % period) / period
            for offset in (-half, half, half * (2 * phase - 1), half * (1 - 2 * phase)):
                self.fill(
                    (row, row + 1), (x + offset, x + offset + 1), Material.STEEL, 0.1, 0.6, km
                )

    def wire(self, y: float, sag: float, km: float) -> None:
        """Draw a power line across the view."""
        columns = np.arange(self.sky.shape[1])
        bow = y - sag * ((columns / columns.size - 0.5) * 2) ** 2
        rows = np.clip(np.round(bow).astype(int), 0, self.sky.shape[0] - 1)
        self.canvas.material[rows, columns] = Material.STEEL
        self.canvas.dryness[rows, columns] = 0
        self.canvas.light[rows, columns] = 0.4
        self.sky[rows, columns] = False
        self.distance[rows, columns] = km

    def trees(self, base: float, height: float, km: float, share: float) -> None:
        """Draw a row of trees with ragged crowns along the foot of the view."""
        rows, columns = self.sky.shape
        line = fractal((4, columns), self.rng, slope=1.1, largest_px=60)[0]
        gap = fractal((4, columns), self.rng, slope=2.0, largest_px=150)[1]
        top = base - height * np.clip(0.6 + 0.35 * line, 0.05, None)
        top[gap > np.quantile(gap, share)] = base
        below = np.arange(rows)[:, None] >= top[None, :]
        below &= np.arange(rows)[:, None] < base
        self.canvas.paint(below, Material.FOREST, float(self.rng.uniform(0.2, 0.8)))
        crowns = fractal((rows, columns), self.rng, slope=1.0, largest_px=9)
        self.canvas.light[below] = (0.75 + 0.28 * crowns)[below]
        self.sky &= ~below
        self.distance[below] = km

    def ground(self, base: float, km: float) -> None:
        """Cover everything below a row with yard and grass."""
        below = np.zeros(self.sky.shape, dtype=bool)
        below[max(0, round(base)) :] = True
        self.canvas.paint(below, Material.GRASS, 0.5 + 0.2 * self.grime)
        yard = below & (fractal(self.sky.shape, self.rng, slope=2.0, stretch=4.0) > 0.2)
        self.canvas.paint(yard, Material.ASPHALT, 0.5)
        self.canvas.light[below] = (0.9 + 0.08 * self.grime)[below]
        self.sky &= ~below
        self.distance[below] = km


def draw_site(
    shape: Shape, rng: np.random.Generator, *, horizon_px: float, clutter: float, sun_x: float
) -> Site:
    """Draw an industrial skyline; `clutter` in [0, 1] says how crowded it is."""
    pencil = _Pencil(shape, rng, sun_x)
    rows, columns = shape
    unit = rows / 217
    _hills(pencil, horizon_px, unit)
    pencil.ground(horizon_px, km=1.5)
    stacks: list[Source] = []
    for km, size in ((2.5, 0.35), (1.3, 0.6), (0.6, 1.0)):
        base = horizon_px + (1 - min(km, 2.0) / 2.0) * 10 * unit
        for _ in range(round((3 + 11 * clutter) * float(rng.uniform(0.6, 1.3)))):
            width = float(rng.uniform(14, 75)) * size * unit
            height = float(rng.uniform(8, 30 + 55 * clutter)) * size * unit
            pencil.hall(base, float(rng.uniform(-20, columns)), width, height, km)
        for _ in range(int(rng.integers(0, 1 + round(3 * clutter)))):
            _tower(pencil, base, size * unit, km)
        for _ in range(int(rng.integers(1, 3)) if km < 2 else 1):
            x = float(rng.uniform(0.08, 0.92)) * columns
            height = float(rng.uniform(0.3, 0.72)) * horizon_px * (0.55 + 0.45 * size)
            stacks.append(pencil.stack(base, x, rng.uniform(6, 13) * size * unit, height, km))
    if rng.random() < 0.05 + 0.2 * clutter:
        for k in range(int(rng.integers(1, 4))):
            pencil.wire(horizon_px * rng.uniform(0.3, 0.7) + 5 * k, rng.uniform(4, 16), 0.3)
    pencil.ground(horizon_px + 10 * unit, km=0.2)
    pencil.trees(
        horizon_px + 13 * unit, rng.uniform(8, 30) * unit, 0.25, float(rng.uniform(0.2, 1))
    )
    vents = [
        Source(horizon_px - rng.uniform(5, 40) * unit, rng.uniform(0.1, 0.9) * columns, 2.5 * unit)
        for _ in range(2)
    ]
    return Site(pencil.canvas, pencil.sky, pencil.distance, (*stacks, *vents))


def _hills(pencil: _Pencil, horizon_px: float, unit: float) -> None:
    """Draw far, pale hills behind the site."""
    rows, columns = pencil.sky.shape
    line = fractal((4, columns), pencil.rng, slope=1.8, largest_px=columns)[0]
    top = horizon_px - unit * (9 + 6 * line)
    hill = np.arange(rows)[:, None] >= top[None, :]
    pencil.canvas.paint(hill, Material.FOREST, 0.5)
    pencil.canvas.light[hill] = 0.8
    pencil.sky &= ~hill
    pencil.distance[hill] = float(pencil.rng.uniform(4, 10))


def _tower(pencil: _Pencil, base: float, unit: float, km: float) -> None:
    """Draw one of: cooling tower, storage tank, column with platforms, lattice mast."""
    rng = pencil.rng
    x = float(rng.uniform(0, pencil.sky.shape[1]))
    kind = rng.integers(0, 4)
    if kind == 0:
        pencil.column(
            base, x, (30 * unit, 20 * unit), 75 * unit, Material.CONCRETE, 0.3, km, waist=0.12
        )
    elif kind == 1:
        pencil.column(base, x, (16 * unit, 16 * unit), 22 * unit, Material.PAINT, 0.0, km)
    elif kind == 2:
        pencil.column(base, x, (5 * unit, 5 * unit), 60 * unit, Material.STEEL, 0.8, km)
        for level in range(1, 5):
            y = base - level * 13 * unit
            pencil.fill((y, y + 1), (x - 8 * unit, x + 8 * unit), Material.STEEL, 0.1, 0.6, km)
    else:
        pencil.lattice(base, x, 9 * unit, float(rng.uniform(50, 110)) * unit, km)
