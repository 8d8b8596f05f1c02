"""Reflectance of the materials a scene is made of, from 400 to 2400 nm, and how warm they are.

The control points were written down from the shape of well-known spectra: the red edge of
leaves, the water bands near 1400 and 1900 nm, the rise of dry soil, snow's fall after 1000 nm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from smokegeo.simulate.fields import Field

_NM = (400, 450, 490, 560, 610, 660, 690, 720, 750, 850, 970, 1100, 1300, 1450, 1610, 1950, 2200)

#: Reflectance in percent at the wavelengths above.
_PERCENT: dict[str, tuple[float, ...]] = {
    "conifer": (1.5, 1.8, 2, 4, 3, 2.2, 3, 12, 22, 26, 25, 27, 22, 9, 12, 4, 5),
    "broadleaf": (2.5, 3, 3.5, 8, 5, 3.5, 6, 22, 40, 45, 43, 46, 38, 14, 22, 6, 10),
    "grass": (3, 3.5, 4, 9, 6.5, 5, 8, 22, 36, 41, 39, 43, 37, 15, 25, 8, 13),
    "straw": (6, 8, 10, 15, 19, 22, 24, 27, 30, 35, 37, 41, 43, 33, 42, 26, 31),
    "soil": (4, 5.5, 7, 10.5, 13.5, 15.5, 16.5, 18, 19, 23, 26, 29, 33, 29, 35, 25, 30),
    "red_soil": (3, 4, 5, 9, 16, 21, 23, 25, 26, 28, 30, 35, 40, 37, 43, 33, 38),
    "sand": (9, 12, 16, 24, 31, 35, 37, 39, 40, 43, 45, 48, 52, 49, 56, 46, 52),
    "rock": (8, 10, 12, 15, 17, 18, 18.5, 19, 19.5, 20.5, 21, 22, 24, 23, 26, 22, 24),
    "dark_rock": (5, 6, 6.5, 8, 9, 9.5, 9.7, 10, 10, 11, 11, 12, 13, 13, 14, 12, 13),
    "clear_water": (5, 5, 4.5, 3, 1.8, 1.2, 0.9, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1),
    "turbid_water": (4, 6, 8, 12, 13, 12.5, 11, 8, 6, 4.5, 2, 1.5, 0.5, 0.3, 0.3, 0.2, 0.2),
    "snow": (92, 93, 93, 92, 91, 90, 89, 88, 87, 84, 75, 74, 50, 12, 12, 4, 7),
    "old_snow": (70, 72, 73, 73, 72, 71, 70, 69, 67, 62, 50, 48, 25, 5, 6, 2, 3),
    "concrete": (16, 19, 21, 25, 27, 28.5, 29, 29.5, 30, 31.5, 32, 34, 36, 34, 37, 33, 35),
    "asphalt": (5, 6, 6.5, 8, 9, 9.5, 9.8, 10, 10.4, 11.5, 12, 13, 15, 15, 16.5, 15, 16),
    "metal_roof": (30, 36, 40, 44, 45, 45, 45, 45, 44, 43, 43, 45, 47, 46, 49, 45, 47),
    "tile_roof": (4, 5, 6, 9, 17, 23, 25, 27, 28, 30, 31, 34, 38, 37, 41, 36, 38),
    "brick": (6, 7, 8, 12, 19, 23, 24, 25, 26, 28, 29, 31, 34, 33, 36, 31, 33),
    "steel": (12, 14, 15, 17, 18, 18.5, 19, 19, 19, 20, 21, 22, 24, 24, 26, 24, 25),
    "white_paint": (45, 62, 68, 71, 72, 72, 72, 71, 71, 69, 67, 64, 58, 48, 45, 30, 28),
    "red_paint": (4, 4, 4, 5, 22, 44, 50, 53, 55, 58, 58, 57, 54, 46, 46, 33, 30),
    "glass": (6, 7, 8, 8, 7, 6, 6, 6, 5.5, 5, 5, 5, 5, 5, 5, 4, 4),
    "burnt": (2.5, 2.8, 3, 3.6, 4.2, 4.6, 4.9, 5.2, 5.5, 6.5, 8, 9.5, 12, 12.5, 15, 14, 16),
    "ash": (10, 12, 13, 15, 16, 17, 17.5, 18, 18, 19, 20, 22, 24, 23, 26, 23, 25),
}


class Material(IntEnum):
    """What a pixel's ground is; each runs between two states (see `_STATES`)."""

    FOREST = 0
    FIELD = 1
    GRASS = 2
    SOIL = 3
    SAND = 4
    ROCK = 5
    WATER = 6
    SNOW = 7
    CONCRETE = 8
    ASPHALT = 9
    ROOF = 10
    BRICK = 11
    STEEL = 12
    PAINT = 13
    WINDOW = 14
    BURNT = 15
    BRUSH = 16


@dataclass(frozen=True, slots=True)
class _States:
    """A material's two states and their temperature above the air, in kelvin, in sunshine."""

    lush: str
    dry: str
    lush_warmth_k: float
    dry_warmth_k: float


_STATES: dict[Material, _States] = {
    Material.FOREST: _States("conifer", "broadleaf", 0, 1),
    Material.FIELD: _States("grass", "soil", 2, 14),
    Material.GRASS: _States("grass", "straw", 3, 11),
    Material.SOIL: _States("soil", "red_soil", 13, 15),
    Material.SAND: _States("red_soil", "sand", 16, 18),
    Material.ROCK: _States("dark_rock", "rock", 15, 12),
    Material.WATER: _States("clear_water", "turbid_water", -4, -2),
    Material.SNOW: _States("snow", "old_snow", -12, -9),
    Material.CONCRETE: _States("concrete", "rock", 11, 12),
    Material.ASPHALT: _States("asphalt", "concrete", 18, 13),
    Material.ROOF: _States("tile_roof", "metal_roof", 14, 9),
    Material.BRICK: _States("brick", "concrete", 10, 10),
    Material.STEEL: _States("steel", "metal_roof", 9, 9),
    Material.PAINT: _States("white_paint", "red_paint", 4, 7),
    Material.WINDOW: _States("glass", "steel", 5, 6),
    Material.BURNT: _States("burnt", "ash", 24, 18),
    Material.BRUSH: _States("conifer", "straw", 2, 9),
}


def state_reflectance(wavelength_nm: float) -> NDArray[np.float32]:
    """Return the reflectance (material, state) in [0, 1] of all materials at a wavelength."""
    rows = [
        [np.interp(wavelength_nm, _NM, _PERCENT[name]) / 100 for name in (s.lush, s.dry)]
        for s in (_STATES[material] for material in Material)
    ]
    return np.array(rows, dtype=np.float32)


def state_warmth_k() -> NDArray[np.float32]:
    """Return the temperature (material, state) above the air, in kelvin, in full sunshine."""
    states = [_STATES[material] for material in Material]
    return np.array([[s.lush_warmth_k, s.dry_warmth_k] for s in states], dtype=np.float32)


def mix_states(table: NDArray[np.float32], material: NDArray[np.uint8], dryness: Field) -> Field:
    """Return the value (y, x) of each pixel's material, between its two states."""
    first = table[:, 0][material]
    out: Field = first + (table[:, 1][material] - first) * dryness
    return out


def sunlight(wavelength_nm: float) -> float:
    """Return the sun's light at the ground, relative to green, with the gaps air leaves."""
    smooth = np.interp(
        wavelength_nm,
        (400, 450, 500, 550, 600, 700, 800, 900, 1000, 1610, 2200),
        (0.65, 0.93, 1.0, 1.0, 0.98, 0.84, 0.70, 0.58, 0.47, 0.15, 0.05),
    )
    gaps = ((688, 4, 0.15), (720, 10, 0.15), (761, 6, 0.45), (820, 10, 0.12), (940, 24, 0.5))
    absorbed = sum(
        depth * np.exp(-(((wavelength_nm - centre) / max(width, 7.5)) ** 2) / 2)
        for centre, width, depth in gaps
    )
    return float(smooth * (1 - absorbed))
