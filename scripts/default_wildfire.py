"""Smoke of wildfires seen from above: long, streaky, drawn out by the wind from lines of fire.

The puffs of `smokegeo.simulate.plume` make the billows of one source seen from near. From a drone
and from space a fire is a front of many sources, and downwind its smoke is a fan of soft strands
through which the ground is seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from smokegeo.simulate.fields import Field, Shape, blur, eddies, enlarge, fractal, smoothstep, warp
from smokegeo.simulate.optics import Layer
from smokegeo.simulate.plume import lit_side
from smokegeo.simulate.stage import Stage
from smokegeo.simulate.thermal import Fire

#: Strands are drawn on a grid so many times coarser: they are soft.
_COARSE = 2


def drifting_smoke(
    stage: Stage, rng: np.random.Generator, *, near: bool = False
) -> tuple[Stage, Layer]:
    """Return the smoke of a burning front, and the stage with that front.

    Near, as from a drone, flames fill their pixels; from space they are some hundredths of one.
    """
    shape = stage.shape
    wind = float(rng.uniform(0, 2 * np.pi))
    places = _front(shape, wind, rng)
    tau = _strands(shape, places, wind, rng)
    tau = _stirred(tau, wind, rng)
    high = float(np.quantile(tau[tau > 0.05 * tau.max()], 0.95)) if tau.max() > 0 else 1.0
    # Most plumes can be seen through but near their fire.
    peak = float(np.exp(rng.normal(np.log(0.8), 0.7)))
    tau = tau * np.float32(peak / max(high, 1e-6))
    relief = float(rng.uniform(0.02, 0.25))
    light = np.clip(lit_side(tau, *stage.sun, relief, float(rng.uniform(2, 6))), 0.5, 1.4)
    return _burning(stage, places, rng, near=near), Layer(tau, light, stage.smoke)


def _front(shape: Shape, wind: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return where it burns: rows of y, x, strength; one place, some, or a line of many."""
    side = float(min(shape))
    # Upwind of the middle, so that its smoke is in view; now and then outside.
    back = float(rng.uniform(-0.25, 0.65)) * side
    across = float(rng.normal(0, 0.22)) * side
    y = shape[0] / 2 - back * np.sin(wind) + across * np.cos(wind)
    x = shape[1] / 2 - back * np.cos(wind) - across * np.sin(wind)
    kind = rng.choice(["one", "some", "line"], p=[0.3, 0.3, 0.4])
    if kind == "one":
        return np.array([[y, x, 1.0]], np.float32)
    if kind == "some":
        count, reach = int(rng.integers(2, 7)), float(rng.uniform(0.05, 0.4)) * side
        offsets = rng.normal(0, reach, (count, 2))
    else:
        count, length = int(rng.integers(8, 25)), float(rng.uniform(0.08, 0.6)) * side
        along = np.linspace(-0.5, 0.5, count) * length
        # A front lies across the wind or along a flank of the fire, and is bent.
        turn = wind + np.pi / 2 + float(rng.normal(0, 0.6))
        bend = float(rng.normal(0, 0.6)) * along**2 / length + rng.normal(0, 0.02 * length, count)
        offsets = np.stack(
            [
                along * np.sin(turn) + bend * np.sin(wind),
                along * np.cos(turn) + bend * np.cos(wind),
            ],
            axis=1,
        )
    strength = np.exp(rng.normal(0, 0.8, count))
    return np.column_stack([offsets + np.array([y, x]), strength]).astype(np.float32)


def _strands(
    shape: Shape, places: NDArray[np.float32], wind: float, rng: np.random.Generator
) -> Field:
    """Return the smoke (y, x) of all places: each a strand that widens and thins downwind."""
    small = tuple(-(-side // _COARSE) for side in shape)
    y, x = np.mgrid[: small[0], : small[1]].astype(np.float32)
    y, x = (y + 0.5) * _COARSE, (x + 0.5) * _COARSE
    side = float(min(shape))
    width = side * float(np.exp(rng.uniform(np.log(0.008), np.log(0.05))))
    growth, power = float(rng.uniform(0.06, 0.4)), float(rng.uniform(0.7, 1.0))
    dilution = float(rng.uniform(0.3, 1.0))
    # The wind turns with height and time: all strands bend alike, and sway.
    bend = float(rng.normal(0, 0.35)) / side
    sway, wave = float(rng.uniform(0, 0.05)) * side, side * float(rng.uniform(0.3, 1.2))
    phase = float(rng.uniform(0, 2 * np.pi))
    out = np.zeros(small, np.float32)
    for place in places:
        dy, dx = y - place[0], x - place[1]
        along = dx * np.float32(np.cos(wind)) + dy * np.float32(np.sin(wind))
        across = dy * np.float32(np.cos(wind)) - dx * np.float32(np.sin(wind))
        downwind = np.maximum(along, 0)
        path = bend * downwind**2 + sway * np.minimum(1, downwind / wave) * np.sin(
            2 * np.pi * downwind / wave + phase
        )
        wide = width + growth * downwind**power
        rise = smoothstep(-1.5 * width, 2.5 * width, along)
        strand = np.exp(-0.5 * ((across - path) / wide) ** 2) * (width / wide) ** dilution
        out += place[2] * rise * strand
    if rng.random() < 0.3:  # it has not burnt for long: the smoke ends somewhere
        along = (x - places[:, 1].mean()) * np.cos(wind) + (y - places[:, 0].mean()) * np.sin(wind)
        end = float(rng.uniform(0.15, 0.7)) * side
        ragged = fractal(small, rng, slope=2.0, largest_px=0.15 * side) * np.float32(0.1 * end)
        out *= smoothstep(end, 0.6 * end, (along + ragged).astype(np.float32))
    return enlarge(out.astype(np.float32), shape)


def _stirred(tau: Field, wind: float, rng: np.random.Generator) -> Field:
    """Return the smoke with folds, billows and streaks along the wind."""
    shape, side = tau.shape, float(min(tau.shape))
    for largest, amount in ((0.25, 0.02), (0.06, 0.008)):
        vy, vx = eddies(shape, rng, largest_px=largest * side, smallest_px=2.0)
        reach = np.float32(amount * side * rng.uniform(0.2, 1.6))
        tau = warp(tau, vy * reach, vx * reach)
    billows = fractal(shape, rng, slope=float(rng.uniform(1.5, 2.2)), largest_px=0.2 * side)
    streaks = fractal(
        shape,
        rng,
        slope=float(rng.uniform(2.0, 2.8)),
        largest_px=0.15 * side,
        stretch=float(rng.uniform(3, 9)),
        angle_rad=wind,
    )
    rough = np.float32(rng.uniform(0.1, 0.5)) * billows
    rough += np.float32(rng.uniform(0.1, 0.45)) * streaks
    return np.asarray(tau * np.exp(rough), np.float32)


def _burning(
    stage: Stage, places: NDArray[np.float32], rng: np.random.Generator, *, near: bool = False
) -> Stage:
    """Return the stage with flames at the places that smoke, and burnt ground behind them."""
    shape = stage.shape
    flame, alight = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for y, x, strength in places:
        row, column = int(np.clip(y, -1, shape[0])), int(np.clip(x, -1, shape[1]))
        if 0 <= row < shape[0] and 0 <= column < shape[1]:
            flame[row, column] += strength
            alight[row, column] = 1
    glow = blur(flame, float(rng.uniform(0.6, 1.6)))
    share = rng.uniform(0.2, 0.8) if near else rng.uniform(0.01, 0.12)
    glow *= np.float32(share) / max(float(glow.max()), 1e-6)
    reach = float(rng.uniform(2, 14))
    burnt = blur(alight, reach) * np.float32(2 * np.pi * reach**2)
    ragged = fractal(shape, rng, slope=1.8, largest_px=2 * reach)
    scar = smoothstep(0.35, 0.6, burnt + np.float32(0.15) * ragged) * (rng.random() < 0.6)
    kelvin = float(rng.uniform(1650, 1850) if near else rng.uniform(900, 1250))
    fire = Fire(glow, kelvin, np.asarray(scar, np.float32), 90 * scar)
    return replace(stage, scenery=replace(stage.scenery, fire=fire))
