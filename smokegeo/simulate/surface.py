"""The ground under a view: which material each pixel is, in which state, how brightly lit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smokegeo.simulate.fields import Field, Shape, fractal, grid
from smokegeo.simulate.spectra import (
    Material,
    mix_states,
    state_reflectance,
    state_warmth_k,
)


@dataclass(frozen=True)
class Surface:
    """Ground seen by a sensor, all (y, x): material, dryness in [0, 1], light around 1."""

    material: NDArray[np.uint8]
    dryness: Field
    light: Field

    def reflectance(self, wavelength_nm: float) -> Field:
        """Return the light (y, x) the ground sends back, relative to a white sheet in the sun."""
        table = state_reflectance(wavelength_nm)
        out: Field = mix_states(table, self.material, self.dryness) * self.light
        return out

    def warmth_k(self) -> Field:
        """Return how much warmer than the air the ground is (y, x); shade is cooler."""
        warm = mix_states(state_warmth_k(), self.material, self.dryness)
        out: Field = warm * np.clip(self.light, 0.2, 1.3)
        return out


@dataclass
class Canvas:
    """A surface while it is being painted; later paint covers earlier paint."""

    material: NDArray[np.uint8]
    dryness: Field
    light: Field

    @classmethod
    def blank(cls, shape: Shape, material: Material, dryness: Field | float = 0.5) -> Canvas:
        """Return a canvas of one material."""
        return cls(
            np.full(shape, material, dtype=np.uint8),
            np.array(np.broadcast_to(dryness, shape), dtype=np.float32),
            np.ones(shape, dtype=np.float32),
        )

    def paint(
        self, where: NDArray[np.bool_], material: Material, dryness: Field | float | None = None
    ) -> None:
        """Cover the pixels of `where`; without `dryness` they keep the one they have."""
        self.material[where] = material
        if dryness is not None:
            self.dryness[where] = np.broadcast_to(np.float32(dryness), where.shape)[where]

    def finish(self) -> Surface:
        """Return the painted surface."""
        return Surface(self.material, np.clip(self.dryness, 0, 1), np.clip(self.light, 0.05, 1.8))


@dataclass(frozen=True)
class Parcels:
    """A plane cut into quadrilaterals: a random number per parcel, and distance to its border."""

    value: Field
    border_px: Field


def cut_parcels(
    shape: Shape, rng: np.random.Generator, size_px: float, angle_rad: float, aspect: float = 2.0
) -> Parcels:
    """Cut the view into strips, and the strips into parcels of about `size_px`."""
    y, x = grid(shape)
    cos, sin = np.float32(np.cos(angle_rad)), np.float32(np.sin(angle_rad))
    sway = fractal(shape, rng, slope=2.5) * np.float32(size_px * 0.15)
    u, v = x * cos + y * sin + sway, y * cos - x * sin + sway
    reach = int(2 * (shape[0] + shape[1]) / size_px) + 4
    widths = rng.uniform(0.5, 1.5, reach).astype(np.float32) * np.float32(size_px)
    breaks = np.cumsum(widths) - np.float32(shape[0] + shape[1])
    strip = np.clip(np.searchsorted(breaks, u), 1, reach - 1)
    to_strip = np.minimum(u - breaks[strip - 1], breaks[strip] - u)
    length = (widths * rng.uniform(0.6, 1.4, reach) * aspect).astype(np.float32)
    shift = rng.uniform(0, 1, reach).astype(np.float32)
    along = v / length[strip] + shift[strip]
    cell = np.floor(along)
    part = along - cell
    to_cell = np.minimum(part, 1 - part) * length[strip]
    table = rng.random(4096, dtype=np.float32)
    key = (strip.astype(np.int64) * 131 + cell.astype(np.int64) * 8191) % 4096
    return Parcels(table[key], np.minimum(np.abs(to_strip), to_cell).astype(np.float32))
