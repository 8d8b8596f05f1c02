"""Heat for the samples of mss: what is warm in a view, and what thermal cameras make of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smokegeo.sensors import sensor
from smokegeo.simulate.fields import Field, blur, fractal, shift, smoothstep
from smokegeo.simulate.frame import band_light, cloud_opacity
from smokegeo.simulate.optics import Layer
from smokegeo.simulate.stage import Stage

_KELVIN = 273.15
_COLDEST_K = -18.0  # where a simulated thermal camera's span begins, above the air
#: The hottest that cameras tell, Celsius; some tell any.
_HOTTEST_C = (150.0, 400.0, 550.0, np.inf)


def seen_heat(stage: Stage, smoke: Layer, rng: np.random.Generator) -> Field:
    """Return the temperature (y, x) in Celsius of what is seen through smoke and cloud."""
    (band,) = [band for band in sensor("mss").bands if band.name == "thermal"]
    light, _, _ = band_light(stage, smoke, band)
    warmth = light * np.float32(stage.thermal_span_k) + np.float32(_COLDEST_K)
    # Droplets hide what is behind them from thermal cameras, too; the particles of smoke do not.
    cloud_k = np.float32(rng.uniform(-30, -8))
    warmth = warmth + (cloud_k - warmth) * cloud_opacity(stage)
    fire = stage.scenery.fire
    if fire is not None and rng.random() < 0.6:  # smoke beside flames is hot gas
        near = blur((fire.flame > 0.05).astype(np.float32), 0.04 * max(stage.shape))
        warmth = warmth + np.float32(rng.uniform(5, 60)) * np.minimum(4 * near, 1) * smoke.opacity(
            550
        )
    return np.asarray(warmth + np.float32(stage.air_k - _KELVIN), np.float32)


def ground_warmth(colours: Field, rng: np.random.Generator) -> Field:
    """Return how much warmer than the air ground of these colours (3, y, x), 0 to 1, may be.

    Plants are about as warm as the air, bare soil and roads up to 25 K warmer in the sun; at night
    it is the other way round.
    """
    red, green, blue = colours
    plants = smoothstep(-0.02, 0.15, 2 * green - red - blue)
    bright = colours.mean(axis=0)
    bare = np.float32(rng.uniform(4, 25)) * (1 + np.float32(rng.uniform(-0.8, 0.4)) * bright)
    warmth = (1 - plants) * bare + plants * np.float32(rng.uniform(-2, 4))
    warmth = warmth + np.float32(rng.uniform(0.5, 3)) * fractal(bright.shape, rng, slope=1.8)
    return np.asarray(warmth * (-0.4 if rng.random() < 0.2 else 1), np.float32)


def guessed_heat(
    colours: NDArray[np.float32],
    target: NDArray[np.uint8],
    horizon_px: float,
    rng: np.random.Generator,
) -> Field:
    """Return a temperature (y, x) in Celsius for a photograph, 0 to 255, that has none.

    The sky is cold, the ground below as warm as its colours say, smoke is not seen, and some of it
    rises from something hot, which is sometimes elsewhere, or there is no smoke.
    """
    shape = target.shape
    warmth = ground_warmth(colours / 255, rng)
    rows = np.arange(shape[0], dtype=np.float32)[:, None]
    above = smoothstep(0.0, 0.06 * shape[0], np.float32(horizon_px) - rows)
    sky = -np.float32(rng.uniform(15, 45)) * np.ones(shape, np.float32)
    smoke = blur((target == 1).astype(np.float32), 3.0)
    # What lies behind smoke is about as warm as what lies beside it.
    behind = np.float32(np.median(warmth[target != 1])) if (target != 1).any() else np.float32(0)
    warmth = warmth + (behind - warmth) * np.minimum(2 * smoke, 1)
    warmth = warmth + (sky - warmth) * above
    lowest = np.argwhere(target == 1)
    if len(lowest) and rng.random() < 0.5:
        y, x = lowest[-1]
        warmth = warmth + _hot_spot(shape, float(y), float(x), rng)
    if rng.random() < 0.2:
        top = float(np.clip(horizon_px, 0, shape[0] - 1))
        y, x = rng.uniform(top, shape[0]), rng.uniform(0, shape[1])
        warmth = warmth + _hot_spot(shape, float(y), float(x), rng)
    return np.asarray(warmth + np.float32(rng.uniform(-5, 35)), np.float32)


def _hot_spot(shape: tuple[int, ...], y: float, x: float, rng: np.random.Generator) -> Field:
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    away = np.hypot(rows - y, columns - x) / rng.uniform(0.8, 6)
    return np.asarray(rng.uniform(20, 400) * np.exp(-(away**2)), np.float32)


def as_recorded(celsius: Field, rng: np.random.Generator) -> tuple[Field, bool]:
    """Return heat as a thermal camera beside the other writes it, and whether it is in Celsius.

    It has fewer pixels than the colour camera and looks a little aside. Otherwise it is a picture
    of 8 bits: of a fixed range or of the frame's own, with black for cold or for hot.
    """
    aside = rng.normal(0, 2.5, 2)
    seen = shift(blur(celsius, float(rng.uniform(0.5, 3.5))), float(aside[0]), float(aside[1]))
    noise = np.float32(rng.uniform(0.03, 0.3))
    seen = seen + noise * rng.standard_normal(seen.shape, dtype=np.float32)
    how = rng.random()
    if how < 0.5:
        return np.minimum(seen, np.float32(rng.choice(_HOTTEST_C))), True
    if how < 0.65:
        low = float(np.percentile(seen, 1)) - float(rng.uniform(0, 15))
        high = low + float(rng.uniform(50, 160))
    else:
        low, high = np.percentile(seen, (rng.uniform(0, 2), rng.uniform(98, 100)))
    picture = np.clip((seen - low) / max(high - low, 1.0), 0, 1)
    if rng.random() < 0.25:  # automatic gain: each grey about as often as any other
        order = np.sort(picture, axis=None)[:: max(1, picture.size // 1024)]
        rank = np.interp(picture, order, np.linspace(0, 1, len(order)))
        picture = picture + rng.uniform(0.3, 1) * (rank - picture)
    if rng.random() < 0.25:
        picture = 1 - picture
    return np.asarray(np.rint(255 * picture), np.float32), False
