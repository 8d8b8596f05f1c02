"""Bring a scene's numbers to the units a model was trained in, once for the whole scene."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import Band, Matching
from smokegeo.modelfile import Card
from smokegeo.scene.scene import Scene
from smokegeo.survey import Survey
from smokegeo.views import RELATIVE

log = logging.getLogger(__name__)

#: From here on a band sees heat, not sunlight.
_THERMAL_NM = 3000.0
#: Values this many times beyond the training range are certainly in other units.
_FAR = 20.0
_KELVIN = 273.15
_UNKNOWN = " (units unknown)"
_CAMERA_FULL = (1023.0, 4095.0, 16_383.0, 65_535.0)
#: Somewhere, in some band, every scene is darker than this reflectance.
_DARKEST = 0.4
#: The level of a Landsat product of Collection 2 in a file's name, and how its counts become
#: reflectances: scale and offset. For level 1 the height of the sun is left out.
_LANDSAT_NAME = re.compile(r"L[COTE]0[4-9]_L([12])[A-Z]{2}[_.]")
_LANDSAT = {"1": (2e-5, -0.1), "2": (2.75e-5, -0.2)}


@dataclass(frozen=True)
class Units:
    """How a user says that numbers become the model's units: scale * value + offset."""

    scale: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Scaling:
    """For each band of the model, in its order: model units = factor * value + offset.

    A band is not `trusted` if its numbers are a picture's, so that only their pattern means
    something.
    """

    factors: tuple[float, ...]
    offsets: tuple[float, ...]
    words: str
    trusted: bool | tuple[bool, ...] = True

    def normaliser(self, card: Card) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return (a, b) such that a * value + b is what the network eats."""
        mean, std = np.array(card.statistics.mean), np.array(card.statistics.std)
        std = np.where(std > 0, std, 1.0)  # a constant band stays 0, as in training
        gain = np.array(self.factors) / std
        return gain.astype(np.float32), ((np.array(self.offsets) - mean) / std).astype(np.float32)


def choose_scaling(
    scene: Scene, found: Survey, matching: Matching, card: Card, said: Units | None = None
) -> Scaling:
    """Decide how the scene's numbers become the model's, from types, ranges and names alone.

    `found` is the survey of the matched bands, in the model's order. `said` is the user's word
    for all bands that see light. Thermal bands are converted between kelvins and degrees.
    """
    count = len(card.bands)
    factors, offsets, trusted = [1.0] * count, [0.0] * count, [True] * count
    places = [i for i, there in enumerate(matching.available) if there]
    light = [i for i in places if not is_thermal(card.bands[i])]
    words = []
    seen = [places.index(i) for i in light]
    if light:
        factor, offset, reason = _light_units(scene, found, seen, light, card, said)
        for i in light:
            factors[i], offsets[i] = factor, offset
        words.append(reason)
    for i in places:
        if is_thermal(card.bands[i]):
            factors[i], offsets[i], reason = _thermal(scene, found, places.index(i), i, card)
            words.append(reason)
            # Only a model that also sees each band in relation to the scene can do without units.
            trusted[i] = RELATIVE not in card.views or not reason.endswith(_UNKNOWN)
    lows = [found.low[places.index(i)] * factors[i] + offsets[i] for i in light]
    if RELATIVE in card.views and said is None and not _is_measured(scene, lows, card):
        words[0] = _pattern_only(scene, found, seen)
        for i in light:
            trusted[i] = False
    else:
        _warn_far(scene, found, places, card, factors, offsets)
    told = "; ".join(filter(None, words))
    return Scaling(tuple(factors), tuple(offsets), told, tuple(trusted))


def _is_measured(scene: Scene, lows: Sequence[float], card: Card) -> bool:
    """Say whether numbers are reflectances rather than a stretched picture or raw counts.

    Pictures have 8 bits. Counts of a sensor lie far from 0 even in the dark, in every band.
    """
    if card.input.get("dtype") == "uint8":  # a camera's model: pictures are what it knows
        return True
    if scene.dtype == "uint8" and not scene.physical:
        return False
    return not lows or math.isnan(lows[0]) or min(lows) < _DARKEST * _card_full(card)


def _pattern_only(scene: Scene, found: Survey, seen: Sequence[int]) -> str:
    """Say that numbers are not taken for reflectances; warn if they are counts of a sensor."""
    if scene.dtype != "uint8":
        log.warning(
            "%s: no band is darker than %s, so these are counts and not reflectances, and only "
            "their pattern is used; --scale and --offset bring them to the model's units "
            "(Landsat Collection 2 Level 2, for one: --scale 0.275 --offset -2000)",
            scene.name,
            in_digits(min(found.low[i] for i in seen)),
        )
    return (
        f"{scene.dtype} values {_top(found, seen)} are not plausible as reflectances, so only "
        "their pattern in the scene counts"
    )


def _top(found: Survey, seen: Sequence[int]) -> str:
    high = max(found.high[i] for i in seen)
    return "no valid pixels" if math.isnan(high) else f"up to {in_digits(high)}"


def is_thermal(band: Band) -> bool:
    """True if a band sees heat."""
    if band.wavelength_nm is None:
        return band.name.casefold() in ("thermal", "tir", "lwir", "mwir", "ir")
    return band.wavelength_nm >= _THERMAL_NM


def full_scale(dtype: str, high: float, *, counts: bool = False, whole: bool = True) -> float:
    """Return the number that stands for "all light reflected" in data of such type and range.

    1 for reflectances, 100 for such in percent, 255 for pictures of 8 bits, 10000 for scaled
    reflectances and counts of sensors, 65535 for pictures of 16 bits. With `counts` whole numbers
    are those of a camera, whose full scale is the highest of 10, 12, 14 or 16 bits. `whole` says
    that all numbers are, as in a picture that was stored as floats.
    """
    if counts and dtype != "uint8" and not dtype.startswith("float"):
        return next((full for full in _CAMERA_FULL if high <= full), _CAMERA_FULL[-1])
    if dtype == "uint8":
        return 255.0
    if dtype.startswith("float") and high <= 3:
        return 1.0
    if dtype.startswith("float") and high <= 110 and not whole:
        return 100.0
    if dtype.startswith("float") and high <= 255:
        return 255.0
    return 10_000.0 if not high > 30_000 else 65_535.0


def _card_full(card: Card, light: Sequence[int] = ()) -> float:
    """Return the number that stands for "all light reflected" in a model's training data."""
    if "full" in card.input:
        return float(card.input["full"])
    maxima = [card.statistics.maximum[i] for i in light] or card.statistics.maximum
    return full_scale(str(card.input.get("dtype", "uint16")), max(maxima))


def _light_units(
    scene: Scene,
    found: Survey,
    seen: Sequence[int],
    light: Sequence[int],
    card: Card,
    said: Units | None,
) -> tuple[float, float, str]:
    """Return factor and offset to the model's units, and why.

    `seen` are the places of the bands of light in the survey, `light` those in the model.
    """
    if said is not None:
        shift = f" and {said.offset:+g}" if said.offset else ""
        return said.scale, said.offset, f"values times {said.scale:g}{shift}, as you said"
    high, low = max(found.high[i] for i in seen), min(found.low[i] for i in seen)
    dtype, top = "float32" if scene.physical else scene.dtype, _top(found, seen)
    theirs = _card_full(card, light)
    # A model that was trained on counts itself, or on a camera's, takes them as they are.
    dark = min(card.statistics.minimum[i] for i in light) < _DARKEST * theirs
    counted = dark and "full" not in card.input and low > _DARKEST * 10_000
    counted &= not dtype.startswith("float") and theirs == full_scale("uint16", 0)
    if counted and (name := _LANDSAT_NAME.match(scene.name)):
        scale, offset = _LANDSAT[name[1]]
        return (
            scale * theirs,
            offset * theirs,
            (
                f"{scene.dtype} counts {top} of Landsat level {name[1]}, by the file's name: "
                f"times {scale:g} and {offset:+g} is reflectance (--scale decides otherwise)"
            ),
        )
    ours = full_scale(
        dtype,
        high if math.isfinite(high) else 0.0,
        counts="full" in card.input,
        whole=found.whole,
    )
    if counted:
        ours = 10_000.0  # nothing is dark: counts with an offset, not a picture of 16 bits
    if ours == theirs:
        return 1.0, 0.0, f"{scene.dtype} values {top}, as the model knows them"
    return (
        theirs / ours,
        0.0,
        (
            f"{scene.dtype} values {top} are taken for {ours:g} = full, the model's full is "
            f"{theirs:g}: times {theirs / ours:g} (--scale decides otherwise)"
        ),
    )


def _thermal(
    scene: Scene, found: Survey, place: int, index: int, card: Card
) -> tuple[float, float, str]:
    dtype = "float32" if scene.physical else scene.dtype
    ours = _heat_unit(dtype, found.low[place], found.high[place])
    known = card.input.get("heat")  # said by the card, else guessed
    stats, trained = card.statistics, str(card.input.get("dtype", "uint16"))
    theirs = known or _heat_unit(trained, stats.minimum[index], stats.maximum[index])
    name = card.bands[index].name
    if ours == theirs or "raw" in (ours, theirs):
        doubt = _UNKNOWN if ours != theirs else ""
        return 1.0, 0.0, f"{name} in {ours}{doubt}"
    to_celsius = {"celsius": (1.0, 0.0), "kelvin": (1.0, -_KELVIN), "centikelvin": (0.01, -_KELVIN)}
    gain, shift = to_celsius[ours]
    back_gain, back_shift = to_celsius[theirs]
    return gain / back_gain, (shift - back_shift) / back_gain, f"{name} from {ours} to {theirs}"


def _heat_unit(dtype: str, low: float, high: float) -> str:
    """Guess the unit of a thermal band from its type and range; 8 bits are a picture of heat."""
    if dtype == "uint8":
        return "raw"
    if low >= 20_000 and high <= 65_535:
        return "centikelvin"
    if low >= 200 and high <= 2_000:
        return "kelvin"
    if low >= -90 and high <= 2_000 and not (low >= 0 and 200 <= high <= 255):
        return "celsius"
    return "raw"


def _warn_far(
    scene: Scene,
    found: Survey,
    places: Sequence[int],
    card: Card,
    factors: Sequence[float],
    offsets: Sequence[float],
) -> None:
    """Warn when values lie far outside what the model was trained on: other units, surely."""
    for place, i in enumerate(places):
        high = found.high[place] * factors[i] + offsets[i]
        top = card.statistics.maximum[i]
        if top <= 0 or math.isnan(high) or is_thermal(card.bands[i]):
            continue
        if high > _FAR * top or high < top / _FAR:
            log.warning(
                "%s: band %s reaches %.4g in the model's units, which was trained on %.4g to %.4g; "
                "if the units differ, give --scale",
                scene.name,
                card.bands[i].name,
                high,
                card.statistics.minimum[i],
                top,
            )
            return


def in_digits(value: float) -> str:
    """Return a pixel value as people write it: 21100, not 2.11e+04."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
