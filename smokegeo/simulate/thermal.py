"""Heat: Planck's law, fire fronts, and what a thermal camera shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smokegeo.simulate.fields import Field, Shape, blur, fractal, grid, smoothstep

#: Planck's constants for spectral radiance in W m-2 sr-1 um-1 with wavelength in um.
_C1 = 1.19104e8
_C2 = 14387.77

#: Sunlight at the top of the air, W m-2 um-1.
_SUN_NM = (400, 490, 560, 660, 845, 1000, 1610, 2200)
_SUN_W = (1600, 1960, 1820, 1530, 960, 740, 245, 85)


@dataclass(frozen=True)
class Fire:
    """Burning ground: flame share (y, x) of each pixel in [0, 1], flame temperature, and scar.

    `ember_k` (y, x) is how much warmer than the air the ground is that burnt a while ago.
    """

    flame: Field
    flame_k: float
    scar: Field
    ember_k: Field

    def within(self, burnable: NDArray[np.bool_]) -> Fire:
        """Return the fire without the parts that would burn on water, unless nothing were left."""
        flame = self.flame * burnable
        if flame.max() < 0.3 * self.flame.max():
            return self
        return Fire(flame, self.flame_k, self.scar * burnable, self.ember_k * burnable)


def planck(wavelength_nm: float, temperature_k: Field | float) -> Field:
    """Return black-body radiance in W m-2 sr-1 um-1."""
    um = wavelength_nm / 1000
    out: Field = np.asarray(
        _C1 / um**5 / np.expm1(_C2 / (um * np.asarray(temperature_k, dtype=np.float64))),
        dtype=np.float32,
    )
    return out


def flame_reflectance(wavelength_nm: float, temperature_k: float) -> float:
    """Return the glow of a pixel full of flame, as the reflectance that would look as bright."""
    sun = float(np.interp(wavelength_nm, _SUN_NM, _SUN_W))
    return float(np.pi * planck(wavelength_nm, temperature_k) / sun)


def fire_front(
    shape: Shape,
    rng: np.random.Generator,
    centre: tuple[float, float],
    radius_px: float,
    wind_rad: float,
    *,
    flame_share: float,
    flatten: float = 1.0,
) -> Fire:
    """Draw a fire that spread from a point: a scar, a glowing front, flames on its lee edge.

    `flame_share` is how much of a burning pixel is flame; `flatten` squeezes rows for slant views.
    """
    y, x = grid(shape)
    dy, dx = (y - np.float32(centre[0])) * np.float32(flatten), x - np.float32(centre[1])
    along = dx * np.float32(np.cos(wind_rad)) + dy * np.float32(np.sin(wind_rad))
    across = dy * np.float32(np.cos(wind_rad)) - dx * np.float32(np.sin(wind_rad))
    ragged = fractal(shape, rng, slope=1.8, largest_px=2.2 * radius_px)
    reach = np.hypot(along * np.float32(0.75), across * np.float32(1.2))
    edge = reach / np.float32(radius_px) - 1 + np.float32(0.28) * ragged
    width = max(0.9, 0.05 * radius_px) / radius_px
    front = np.exp(-((edge / np.float32(width)) ** 2))
    lee = smoothstep(-0.5, 0.7, (along / np.maximum(reach, 1)).astype(np.float32))
    patchy = smoothstep(0.1, 1.1, fractal(shape, rng, slope=1.3, largest_px=radius_px * 0.5))
    flame = (flame_share * front * (0.15 + 0.85 * lee) * patchy).astype(np.float32)
    scar = blur(smoothstep(0.02, -0.06, edge), 0.6)
    ember = np.float32(90) * scar * np.exp(np.minimum(edge, 0) * np.float32(3.0))
    # Few flames fill a satellite's pixel, and those cool ground around; a drone sees the flames.
    kelvin = rng.uniform(1650, 1850) if flame_share > 0.2 else rng.uniform(900, 1250)
    return Fire(flame, float(kelvin), scar, ember)
