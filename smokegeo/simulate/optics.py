"""How smoke, cloud and haze change light: Beer-Lambert extinction and scattered sunlight.

tau(l) = m tau550 [(1 - c) (l / 550 nm)^-a + c]
L      = L_background exp(-tau) + A (1 - exp(-tau))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from smokegeo.simulate.fields import Field

REFERENCE_NM = 550.0
THERMAL_NM = 3000.0
#: Share of a thick layer's absorption that a thin one does not have.
FEWER = 0.8


@dataclass(frozen=True, slots=True)
class Particles:
    """The optics of one kind of particle.

    `angstrom` is the exponent a, `coarse` the share c of large particles, whose extinction is
    flat, `air_mass` the slant m. `albedo` is the brightness A of a thick layer at 550 nm,
    `blue_loss` the share of it lost at 400 nm (brown carbon), `swir` the factors at 1610 and
    2200 nm (water and ice absorb there).
    """

    angstrom: float
    coarse: float
    air_mass: float
    albedo: float
    blue_loss: float = 0.0
    swir: tuple[float, float] = (1.0, 1.0)

    def depth_factor(self, wavelength_nm: float) -> float:
        """Return tau at a wavelength over the vertical tau at 550 nm."""
        angstrom, coarse = self.angstrom, self.coarse
        if wavelength_nm > THERMAL_NM:
            # Smoke is small against such waves: extinction falls at least as 1 / l. Clouds and haze
            # are treated alike, though real droplets are not small (docs/simulator.md, Limits).
            angstrom, coarse = max(angstrom, 1.0), 0.12 * coarse
        fine = (1 - self.coarse) * (wavelength_nm / REFERENCE_NM) ** -angstrom
        return float(self.air_mass * (fine + coarse))

    def brightness(self, wavelength_nm: float) -> float:
        """Return the reflectance A of a thick layer at a wavelength."""
        blue = 1 - self.blue_loss * float(np.clip((700 - wavelength_nm) / 300, 0, 1))
        return self.albedo * blue * self.infrared(wavelength_nm)

    def infrared(self, wavelength_nm: float) -> float:
        """Return what is left of a thick layer's brightness after what water and ice absorb."""
        return float(np.interp(wavelength_nm, (1100, 1610, 2200), (1.0, *self.swir)))


@dataclass(frozen=True)
class Layer:
    """Particles spread over the view: `tau` (y, x) at 550 nm and `light`, brightness around 1.

    `light` may be (1, 1) for a layer that is lit evenly.
    """

    tau: Field
    light: Field
    particles: Particles

    def opacity(self, wavelength_nm: float) -> Field:
        """Return the share (y, x) of the background's light that the layer takes away."""
        out: Field = -np.expm1(self.tau * np.float32(-self.particles.depth_factor(wavelength_nm)))
        return out

    def glow(self, wavelength_nm: float) -> Field:
        """Return the light (y, x) that the layer would show if it let none through.

        What absorbs does so at each scattering: many in a thick layer, one in a thin. So cirrus is
        dark in short-wave infrared where it is thick, and a veil in all bands where it is thin.
        """
        out: Field = self.light * np.float32(self.particles.brightness(wavelength_nm))
        left = self.particles.infrared(wavelength_nm)
        if left < 1:
            depth = self.tau * np.float32(self.particles.depth_factor(wavelength_nm))
            out = out * np.float32(left) ** (np.float32(-FEWER) * np.exp(np.float32(-0.5) * depth))
        return out


def blend(background: Field, opacity: Field, glow: Field | float) -> Field:
    """Return background and scattered light seen through a layer of the given opacity."""
    out: Field = background + (glow - background) * opacity
    return out


def draw_smoke(rng: np.random.Generator) -> Particles:
    """Draw the particles of a plume: fresh, aged or coarse; white, grey, brown or black."""
    kind = rng.choice(["fresh", "aged", "coarse"], p=[0.45, 0.35, 0.2])
    low, high = {"fresh": (1.6, 2.2), "aged": (1.0, 1.6), "coarse": (0.3, 0.9)}[str(kind)]
    coarse = {"fresh": 0.08, "aged": 0.2, "coarse": 0.35}[str(kind)]
    colour = rng.choice(["white", "grey", "brown", "black"], p=[0.45, 0.3, 0.19, 0.06])
    bright = {"white": (0.6, 0.8), "grey": (0.36, 0.55), "brown": (0.28, 0.45), "black": (0.1, 0.2)}
    loss = {"white": 0.04, "grey": 0.12, "brown": 0.4, "black": 0.05}[str(colour)]
    return Particles(
        angstrom=float(rng.uniform(low, high)),
        coarse=float(rng.uniform(0, coarse)),
        air_mass=float(rng.uniform(1.0, 1.6)),
        albedo=float(rng.uniform(*bright[str(colour)])),
        blue_loss=float(rng.uniform(0.4, 1.0)) * loss,
        swir=(float(rng.uniform(0.7, 1.0)), float(rng.uniform(0.5, 0.9))),
    )


def dimmed(particles: Particles, factor: float) -> Particles:
    """Return the same particles under less (or more) light."""
    return replace(particles, albedo=particles.albedo * factor)
