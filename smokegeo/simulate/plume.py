"""Smoke as puffs carried by wind and eddies: sources in, optical depth at 550 nm out.

Each source lets puffs go at a steady rate. A puff drifts with the mean wind, rises by Briggs'
two-thirds law if the view shows height, and is stirred by a turbulent velocity field that is
itself carried along by the wind (Taylor's frozen turbulence). It widens with age, so the plume
dilutes; stirring alone makes the filaments and folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from smokegeo.simulate.fields import (
    Field,
    Shape,
    blur,
    eddies,
    enlarge,
    fractal,
    sample_periodic,
    warp,
)

_STEPS = 22
_GUSTS_PER_S = 0.31


@dataclass(frozen=True, slots=True)
class Source:
    """A place that emits: pixel position, radius and share of all smoke."""

    y_px: float
    x_px: float
    radius_px: float
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Flow:
    """The air of one video: mean wind in px per second, rise, and the eddies it carries."""

    wind_y: float
    wind_x: float
    rise_px: float
    turbulence: float
    eddy_y: Field
    eddy_x: Field
    gusts: Field
    detail_seed: int

    @property
    def speed(self) -> float:
        """The mean wind speed in px per second."""
        return float(np.hypot(self.wind_y, self.wind_x))


@dataclass(frozen=True, slots=True)
class Emission:
    """What the sources have done up to one moment."""

    sources: tuple[Source, ...]
    time_s: float
    duration_s: float
    peak_tau: float
    spread: float
    detail: float
    puffs: int = 14000


def make_flow(
    rng: np.random.Generator,
    unit_px: float,
    *,
    angle_rad: float,
    rise: float,
    turbulence: float,
) -> Flow:
    """Draw the air of a video; one second moves smoke by `unit_px`, the eddies scale with it."""
    side = 384
    vy, vx = eddies((side, side), rng, largest_px=float(rng.uniform(28, 60)), smallest_px=2.0)
    return Flow(
        float(np.sin(angle_rad) * unit_px),
        float(np.cos(angle_rad) * unit_px),
        rise * unit_px,
        turbulence * unit_px,
        vy,
        vx,
        rng.uniform(0.35, 1.65, 64).astype(np.float32),
        int(rng.integers(2**31)),
    )


def optical_depth(
    shape: Shape, emission: Emission, flow: Flow, unit_px: float, rng: np.random.Generator
) -> Field:
    """Return the optical depth (y, x) at 550 nm of all smoke present at the emission's time."""
    tau = np.zeros(shape, dtype=np.float32)
    total = sum(source.strength for source in emission.sources)
    for source in emission.sources:
        count = max(400, int(emission.puffs * source.strength / total))
        y, x, sigma, mass = _drift(source, emission, flow, unit_px, count, rng)
        tau += _splat(shape, y, x, sigma, mass * np.float32(source.strength / total))
    top = float(np.quantile(tau[tau > 0.02 * tau.max()], 0.97)) if tau.max() > 0 else 1.0
    # Peaks far above the quantile are the first puffs on top of each other: compress them.
    tau = np.tanh(tau / np.float32(2.2 * top)) * np.float32(2.2 * emission.peak_tau)
    return _fine_structure(tau, emission, flow, unit_px)


def lit_side(tau: Field, sun_y: float, sun_x: float, strength: float, scale_px: float) -> Field:
    """Return the brightness (y, x) around 1 of a plume's surface lit from direction (y, x).

    Thickness stands for height: a slope that faces the sun is bright, one that faces away dim.
    """
    out = np.ones_like(tau)
    for factor, weight in ((1.0, 0.6), (3.0, 0.4)):
        height = np.log1p(blur(tau, scale_px * factor)) * np.float32(scale_px * factor)
        slope_y, slope_x = np.gradient(height)
        out += np.float32(weight * strength) * np.tanh(-1.5 * (slope_y * sun_y + slope_x * sun_x))
    return out


def _drift(
    source: Source,
    emission: Emission,
    flow: Flow,
    unit_px: float,
    count: int,
    rng: np.random.Generator,
) -> tuple[Field, Field, Field, Field]:
    """Return where each puff of a source is now (y, x), its width and its mass."""
    # Even ages with a jitter leave fewer gaps than random ones.
    places = np.arange(count, dtype=np.float32) + rng.random(count, dtype=np.float32)
    ages: Field = places * np.float32(emission.duration_s / count)
    turn = rng.uniform(0, 2 * np.pi, count).astype(np.float32)
    radius = np.sqrt(rng.random(count, dtype=np.float32)) * np.float32(source.radius_px)
    y0 = source.y_px + radius * np.sin(turn)
    x0 = source.x_px + radius * np.cos(turn)
    released: Field = np.float32(emission.time_s) - ages
    y = (y0 - flow.wind_y * released).astype(np.float32)
    x = (x0 - flow.wind_x * released).astype(np.float32)
    moved_y, moved_x = _stir(y, x, ages, flow, unit_px)
    now_y = y0 + flow.wind_y * ages + moved_y - flow.rise_px * ages ** np.float32(2 / 3)
    now_x = x0 + flow.wind_x * ages + moved_x
    sigma = 0.45 * source.radius_px + emission.spread * unit_px * ages ** np.float32(0.75)
    mass = _gust(flow.gusts, released)
    return now_y.astype(np.float32), now_x.astype(np.float32), sigma.astype(np.float32), mass


def _stir(y: Field, x: Field, ages: Field, flow: Flow, unit_px: float) -> tuple[Field, Field]:
    """Return how far the eddies have moved puffs that started at (y, x) in the drifting air."""
    now_y, now_x = y, x
    step_s = ages * np.float32(1 / _STEPS)
    scale = np.float32(1 / unit_px)
    for step in range(_STEPS):
        # A fresh puff keeps the momentum of its source before the eddies take over.
        grip = np.minimum(1, np.float32((step + 0.5) / 3) * step_s) * np.float32(flow.turbulence)
        reach: Field = (grip * step_s).astype(np.float32)
        half_y = now_y + sample_periodic(flow.eddy_y, now_y * scale, now_x * scale) * reach / 2
        half_x = now_x + sample_periodic(flow.eddy_x, now_y * scale, now_x * scale) * reach / 2
        at_y: Field = (half_y * scale).astype(np.float32)
        at_x: Field = (half_x * scale).astype(np.float32)
        now_y = now_y + sample_periodic(flow.eddy_y, at_y, at_x) * reach
        now_x = now_x + sample_periodic(flow.eddy_x, at_y, at_x) * reach
    return now_y - y, now_x - x


def _gust(gusts: Field, released: Field) -> Field:
    """Return the mass of each puff by its time of release: sources do not burn evenly."""
    at = released * np.float32(_GUSTS_PER_S)
    low = np.floor(at).astype(np.int64)
    part = (at - low).astype(np.float32)
    part = part * part * (3 - 2 * part)
    mass: Field = gusts[low % gusts.size] * (1 - part) + gusts[(low + 1) % gusts.size] * part
    return mass


def _splat(shape: Shape, y: Field, x: Field, sigma: Field, mass: Field) -> Field:
    """Return the sum of Gaussian puffs, wide ones on coarser grids."""
    out = np.zeros(shape, dtype=np.float32)
    level = np.round(2 * np.log2(np.maximum(sigma, 0.7))).astype(np.int64)
    for step in np.unique(level):
        chosen = level == step
        width = float(2.0 ** (step / 2))
        coarse = max(1, 2 ** int(np.floor(np.log2(max(width / 2.0, 1.0)))))
        margin = int(np.ceil(3 * width / coarse)) + 1
        rows, columns = (-(-side // coarse) for side in shape)
        counts = _bin(
            (rows + 2 * margin, columns + 2 * margin),
            (y[chosen] + 0.5) / coarse - 0.5 + margin,
            (x[chosen] + 0.5) / coarse - 0.5 + margin,
            mass[chosen],
        )
        smooth = blur(counts, width / coarse)[margin : margin + rows, margin : margin + columns]
        smooth /= np.float32(coarse**2)
        if coarse == 1:
            out += smooth
        else:
            whole = enlarge(smooth, (rows * coarse, columns * coarse))
            out += whole[: shape[0], : shape[1]]
    return out


def _bin(shape: Shape, y: Field, x: Field, mass: Field) -> Field:
    """Return the mass gathered on the grid, each puff shared by its four nearest pixels."""
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    inside = (top >= 0) & (top < shape[0] - 1) & (left >= 0) & (left < shape[1] - 1)
    top, left, mass = top[inside], left[inside], mass[inside]
    fy, fx = y[inside] - top, x[inside] - left
    total: NDArray[np.float64] = np.zeros(shape[0] * shape[1])
    for dy, wy in ((0, 1 - fy), (1, fy)):
        for dx, wx in ((0, 1 - fx), (1, fx)):
            cell = (top + dy) * shape[1] + left + dx
            total += np.bincount(cell, mass * wy * wx, minlength=total.size)
    return total.reshape(shape).astype(np.float32)


def _fine_structure(tau: Field, emission: Emission, flow: Flow, unit_px: float) -> Field:
    """Return the depth with the billows and streaks that puffs are too coarse to carry."""
    rng = np.random.default_rng(flow.detail_seed)
    angle = float(np.arctan2(flow.wind_y, flow.wind_x))
    size = max(4.0, 14 * unit_px)
    # Noise on a side that suits the FFT is periodic, so it can drift with the wind.
    whole: Shape = (fft.next_fast_len(tau.shape[0], True), fft.next_fast_len(tau.shape[1], True))
    noise = fractal(whole, rng, slope=1.75, largest_px=size, smallest_px=1.2)
    grain = fractal(whole, rng, slope=1.6, largest_px=size, stretch=3.0, angle_rad=angle)
    curls = eddies(whole, rng, largest_px=size, smallest_px=1.5)
    shift = (
        round(flow.wind_y * emission.time_s) % whole[0],
        round(flow.wind_x * emission.time_s) % whole[1],
    )
    billows, streaks, vy, vx = (
        np.roll(field, shift, (0, 1))[: tau.shape[0], : tau.shape[1]]
        for field in (noise, grain, *curls)
    )
    amount = np.float32(emission.detail)
    reach = np.float32(2.2 * unit_px * emission.detail)
    tau = warp(tau, vy * reach, vx * reach)
    tau *= np.exp(amount * (0.8 * billows + 0.4 * streaks) - np.float32(0.4) * amount**2)
    return tau
