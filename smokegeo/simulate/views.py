"""What a sensor looks at before any smoke: ground, sky and the air between, band by band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import Band
from smokegeo.simulate.fields import Field, Shape, grid
from smokegeo.simulate.optics import REFERENCE_NM, blend
from smokegeo.simulate.surface import Surface


class View(Protocol):
    """A background that can say how bright each pixel is in a band, and how warm."""

    @property
    def shape(self) -> Shape:
        """The size of the view (y, x)."""

    @property
    def open_sky(self) -> NDArray[np.bool_] | None:
        """The pixels (y, x) that look past the ground, or None if the sensor looks down."""

    def radiance(self, band: Band) -> Field:
        """Return the light (y, x) in units of a white sheet in the sun."""

    def warmth_k(self) -> Field:
        """Return how much warmer than the air each pixel is (y, x)."""


@dataclass(frozen=True)
class Sky:
    """A clear sky: elevation (y, x) in [0, 1] above the horizon and distance to the sun.

    `turbidity` 0 is mountain air, 1 is white haze; `sun_glow` (y, x) is the sun and its halo.
    """

    elevation: Field
    sun_glow: Field
    turbidity: float
    level: float

    def radiance(self, wavelength_nm: float) -> Field:
        """Return the sky's light (y, x): molecules scatter blue, haze scatters white."""
        ratio = wavelength_nm / REFERENCE_NM
        low = np.exp(self.elevation * np.float32(-1 / 0.18))
        blue = np.float32(0.13 * ratio**-3.9 * (1 - 0.6 * self.turbidity)) * (1 + 0.9 * low)
        haze = 0.05 + 0.3 * self.turbidity + np.float32(0.24 + 0.2 * self.turbidity) * low
        white = np.float32(ratio ** (-1.3 + 1.1 * self.turbidity)) * haze
        out: Field = np.float32(self.level) * (blue + white) + self.sun_glow
        return out

    def horizon(self, wavelength_nm: float) -> float:
        """Return the light of the sky just above the horizon, the colour of distance."""
        ratio = wavelength_nm / REFERENCE_NM
        blue = 0.13 * ratio**-3.9 * (1 - 0.6 * self.turbidity) * 1.5
        white = ratio ** (-1.3 + 1.1 * self.turbidity) * (0.2 + 0.45 * self.turbidity)
        return float(self.level * (blue + white))


def draw_sky(
    shape: Shape, rng: np.random.Generator, horizon_px: float, *, level: float, sun_in_view: bool
) -> Sky:
    """Draw a sky over a horizon at the given row; with the sun in it if asked."""
    y, x = grid(shape)
    elevation = np.maximum((np.float32(horizon_px) - y) / np.float32(max(shape)), 0)
    elevation = np.repeat(elevation, shape[1], axis=1)
    if sun_in_view:
        sun_y = float(rng.uniform(0.05, 0.45)) * horizon_px
        sun_x = float(rng.uniform(0.1, 0.9)) * shape[1]
    else:
        sun_y, sun_x = -0.6 * shape[0], float(rng.uniform(-0.5, 1.5)) * shape[1]
    away = np.hypot(y - np.float32(sun_y), x - np.float32(sun_x)) / np.float32(max(shape))
    halo = np.float32(0.35) * np.exp(-away / 0.12) + np.float32(0.12) * np.exp(-away / 0.35)
    disc = np.float32(9.0) * np.exp(-((away / np.float32(0.022)) ** 2))
    glow = (halo + disc if sun_in_view else halo * np.float32(0.8)).astype(np.float32)
    return Sky(elevation, glow * np.float32(level), float(rng.uniform(0.05, 0.6)), level)


@dataclass(frozen=True)
class CameraView:
    """Ground and sky as a ground or drone camera sees them, paled by distance."""

    surface: Surface
    sky: Sky
    open_sky: NDArray[np.bool_]
    distance_km: Field
    haze_per_km: float
    sunlight: float

    @property
    def shape(self) -> Shape:
        """The size of the view (y, x)."""
        return self.open_sky.shape

    def radiance(self, band: Band) -> Field:
        """Return the light (y, x): sky, or ground seen through air."""
        nm = _centre_nm(band)
        ground = self.surface.reflectance(nm) * np.float32(self.sunlight)
        depth = np.float32(self.haze_per_km * (nm / REFERENCE_NM) ** -1.2) * self.distance_km
        seen = blend(ground, -np.expm1(-depth), self.sky.horizon(nm))
        return np.where(self.open_sky, self.sky.radiance(nm), seen)

    def warmth_k(self) -> Field:
        """Return the warmth (y, x); a clear sky is far colder than the air."""
        sky = np.float32(-38) * (1 - np.exp(-self.sky.elevation * np.float32(8)))
        return np.where(self.open_sky, sky, self.surface.warmth_k())


@dataclass(frozen=True)
class DownView:
    """Ground seen from above through the clear air's own blue light."""

    surface: Surface
    sunlight: float
    airlight: float
    open_sky: None = None

    @property
    def shape(self) -> Shape:
        """The size of the view (y, x)."""
        return self.surface.light.shape

    def radiance(self, band: Band) -> Field:
        """Return the light (y, x)."""
        nm = _centre_nm(band)
        air = np.float32(self.airlight * (nm / REFERENCE_NM) ** -3.5)
        out: Field = self.surface.reflectance(nm) * np.float32(self.sunlight) + air
        return out

    def warmth_k(self) -> Field:
        """Return the ground's warmth (y, x)."""
        return self.surface.warmth_k()


@dataclass(frozen=True)
class ImageryView:
    """A user's own raster: reflectance (y, x) by band name, taken as it is."""

    reflectance: Mapping[str, Field]
    origin: str
    open_sky: None = field(default=None)

    @property
    def shape(self) -> Shape:
        """The size of the view (y, x)."""
        shape: Shape = next(iter(self.reflectance.values())).shape
        return shape

    def radiance(self, band: Band) -> Field:
        """Return the reflectance of the band (y, x)."""
        return self.reflectance[band.name]

    def warmth_k(self) -> Field:
        """Return a guess (y, x): dark ground is warmer in the sun than bright ground."""
        mean = np.mean(list(self.reflectance.values()), axis=0, dtype=np.float32)
        out: Field = np.float32(14) - np.float32(20) * np.clip(mean, 0, 1)
        return out


def _centre_nm(band: Band) -> float:
    return REFERENCE_NM if band.wavelength_nm is None else band.wavelength_nm
