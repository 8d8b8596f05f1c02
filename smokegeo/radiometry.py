"""Bring a scene's numbers to the units a model was trained in, once for the whole scene."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import Matching, is_thermal
from smokegeo.errors import UsageError
from smokegeo.modelfile import Card
from smokegeo.scene.coding import MICASENSE
from smokegeo.scene.landsat import LEVEL1, LEVEL2
from smokegeo.scene.product import PRODUCT
from smokegeo.scene.scene import Scene
from smokegeo.survey import Survey
from smokegeo.views import RELATIVE

log = logging.getLogger(__name__)

#: Values this many times beyond the training range are certainly in other units.
_FAR = 20.0
_KELVIN = 273.15
_UNKNOWN = " (units unknown)"
_CAMERA_FULL = (1023.0, 4095.0, 16_383.0, 65_535.0)
#: Somewhere, in some band, every scene is darker than this reflectance, and most are than that.
_DARKEST, _DARK = 0.4, 0.095
#: The darkest that is left of a scene to which 0.1 was added; under thick cloud all is brighter.
_ADDED = (_DARK, 0.14)
#: The full scale of reflectances that are stored as whole numbers.
_SCALED_FULL = 10_000.0
_EIGHT_BITS = 255.0
#: Temperatures of a scene in whole numbers span no more than this, raw counts do.
_HEAT_SPAN = 150.0


@dataclass(frozen=True)
class Units:
    """How a user says that numbers become the model's units: scale * value + offset."""

    scale: float = 1.0
    offset: float = 0.0

    @classmethod
    def said(cls, scale: float | None, offset: float | None) -> Units | None:
        """Return the units of two options, None if the user gave neither."""
        if scale is not None and not 0 < scale < math.inf:
            raise UsageError(f"scale {scale} is not a factor above 0.")
        if offset is not None and not math.isfinite(offset):
            raise UsageError(f"offset {offset} is not a number.")
        if scale is None and offset is None:
            return None
        return cls(1.0 if scale is None else scale, offset or 0.0)


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
    used = [i for i in matching.indexes if i is not None]
    seen = _look_at_light(scene, found, used, [places.index(i) for i in light])
    if seen is not None:
        factor, offset, reason = _light_units(scene, seen, light, card, said)
        for i in light:
            factors[i], offsets[i] = factor, offset
        words.append(reason)
    for i in places:
        if is_thermal(card.bands[i]):
            place = places.index(i)
            dtype = "float32" if scene.physical else scene.dtype_of(used[place : place + 1])
            factors[i], offsets[i], reason = _thermal(dtype, found, place, i, card)
            words.append(reason)
            # Only a model that also sees each band in relation to the scene can do without units.
            trusted[i] = RELATIVE not in card.views or not reason.endswith(_UNKNOWN)
    if (
        seen is not None
        and RELATIVE in card.views
        and said is None
        and not _is_measured(scene, seen, seen.dark * factors[light[0]] + offsets[light[0]], card)
    ):
        words[0] = _pattern_only(scene, seen, _card_full(card, light))
        for i in light:
            trusted[i] = False
    else:
        _warn_far(scene, found, places, card, factors, offsets)
        if seen is not None and said is None and _is_radiance(scene, card):
            _warn_radiance(scene, "taken for reflectances")
    told = "; ".join(filter(None, words))
    return Scaling(tuple(factors), tuple(offsets), told, tuple(trusted))


@dataclass(frozen=True)
class _Light:
    """What the bands of light hold together, whatever heat is stored beside them.

    `stored` is their type in the file, `dtype` what they are: floats if tags have scaled them.
    `dark` is the darkest of them, 0 itself aside.
    """

    stored: str
    dtype: str
    dark: float
    high: float
    whole: bool

    @property
    def is_picture(self) -> bool:
        return full_scale(self.dtype, self.high, whole=self.whole) == _EIGHT_BITS

    @property
    def words(self) -> str:
        return f"{self.stored} values up to {in_digits(self.high)}"


def _look_at_light(
    scene: Scene, found: Survey, used: Sequence[int], seen: Sequence[int]
) -> _Light | None:
    """Return what the bands of light hold, None if there are none.

    `used` are the bands of the scene that were surveyed, `seen` which of those see light.
    """
    if not seen:
        return None
    stored = scene.dtype_of([used[i] for i in seen])
    high = max(found.high[i] for i in seen)
    whole = all(found.whole[i] for i in seen)
    dtype = "float32" if scene.physical else stored
    beside_heat = any(is_thermal(band) for band in scene.bands)
    if beside_heat and whole and not dtype.startswith("float") and high <= _EIGHT_BITS:
        dtype = "uint8"  # a picture, in a wider type for the sake of the heat
    darks = [found.dark[i] for i in seen if found.dark[i] != 0]  # an empty band says nothing
    return _Light(stored, dtype, min(darks, default=0.0), high, whole)


def _is_measured(scene: Scene, seen: _Light, dark: float, card: Card) -> bool:
    """Say whether numbers are reflectances rather than a stretched picture or raw counts.

    Pictures have 8 bits, stored as floats or not. Counts of a sensor lie far from 0 even in the
    dark, in every band.
    """
    if math.isnan(dark):  # nothing to judge by
        return True
    if card.input.get("dtype") == "uint8":  # a camera's model: pictures are what it knows
        return True
    if seen.is_picture or _is_radiance(scene, card):
        return False
    return dark < _DARKEST * _card_full(card)


def _pattern_only(scene: Scene, seen: _Light, theirs: float) -> str:
    """Say that numbers are not taken for reflectances; warn if they are counts of a sensor."""
    if scene.radiance:
        _warn_radiance(scene, "of which only the pattern is used")
    elif not seen.is_picture:
        log.warning(
            "%s: no band is darker than %s, so these are counts and not reflectances, and only "
            "their pattern is used; --scale and --offset bring them to the model's units "
            "(Landsat Collection 2 Level 2: %s; Level 1: %s)",
            scene.name,
            in_digits(seen.dark),
            *(_remedy(*numbers, theirs) for numbers in (LEVEL2, LEVEL1)),
        )
    return (
        f"{seen.words} are not plausible as reflectances, so only their pattern in the scene counts"
    )


def _is_radiance(scene: Scene, card: Card) -> bool:
    """Say whether a scene holds radiances and the model reflectances, not a camera's numbers."""
    return scene.radiance and card.input.get("dtype") != "uint8" and "full" not in card.input


def _warn_radiance(scene: Scene, what: str) -> None:
    log.warning(
        "%s: its name or header tells of radiances, %s; take the product of surface reflectance "
        "(Planet: AnalyticMS_SR), or bring them to the model's units with --scale",
        scene.name,
        what,
    )


def _remedy(scale: float, offset: float, theirs: float) -> str:
    """Return the options that make the model's units of stored reflectances."""
    return f"--scale {scale * theirs:g} --offset {offset * theirs:g}"


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
    if dtype.startswith("float") and high <= _EIGHT_BITS:
        return _EIGHT_BITS
    return _SCALED_FULL if not high > 30_000 else 65_535.0


def _card_full(card: Card, light: Sequence[int] = ()) -> float:
    """Return the number that stands for "all light reflected" in a model's training data."""
    if "full" in card.input:
        return float(card.input["full"])
    maxima = [card.statistics.maximum[i] for i in light] or card.statistics.maximum
    return full_scale(str(card.input.get("dtype", "uint16")), max(maxima))


def _light_units(
    scene: Scene, seen: _Light, light: Sequence[int], card: Card, said: Units | None
) -> tuple[float, float, str]:
    """Return factor and offset to the model's units, and why.

    `light` are the places of the bands of light in the model.
    """
    if said is not None:
        shift = f" and {said.offset:+g}" if said.offset else ""
        return said.scale, said.offset, f"values times {said.scale:g}{shift}, as you said"
    theirs = _card_full(card, light)
    # A model that was trained on counts itself, or on a camera's, takes them as they are.
    trained = math.inf if "full" in card.input else min(card.statistics.minimum[i] for i in light)
    counted = trained < _DARKEST * theirs and seen.dark > _DARKEST * _SCALED_FULL
    counted &= not seen.dtype.startswith("float") and theirs == _SCALED_FULL
    code, spared = scene.coding, ""
    if code is not None and _can_be_coded(scene, seen):
        # A model of counts has seen none that is darker; of a camera's, nothing else can tell.
        other = trained < code.least * theirs / _SCALED_FULL
        other |= code.least == 0 and trained < math.inf and card.bands.sensor not in MICASENSE
        if seen.dark >= code.least and other:
            return (
                code.scale * theirs,
                code.offset * theirs,
                (
                    f"{seen.words}, {code.why}: times {code.scale:g} and {code.offset:+g} is "
                    "reflectance (--raw or --scale decide otherwise)"
                ),
            )
        if seen.dark < code.least:
            spared = f"; too dark to be {code.why}"
    ours = full_scale(
        seen.dtype,
        seen.high if math.isfinite(seen.high) else 0.0,
        counts="full" in card.input,
        whole=seen.whole,
    )
    if counted:
        ours = _SCALED_FULL  # nothing is dark: counts with an offset, not a picture of 16 bits
    elif ours == _SCALED_FULL and theirs != _EIGHT_BITS and trained < _DARK * theirs:
        _warn_added(scene, seen, theirs)
    if math.isnan(seen.high):
        return theirs / ours, 0.0, "no valid pixels to tell them by"
    if ours == theirs:
        return 1.0, 0.0, f"{seen.words}, read as {_meaning(theirs)}{spared}"
    return (
        theirs / ours,
        0.0,
        (
            f"{seen.words} are taken for {ours:g} = full, the model's full is "
            f"{theirs:g}: times {theirs / ours:g} (--scale decides otherwise){spared}"
        ),
    )


def _meaning(full: float) -> str:
    """Say what numbers are, by the one that stands for "all light reflected"."""
    return {
        1.0: "reflectance from 0 to 1",
        100.0: "reflectance in percent",
        _EIGHT_BITS: "a picture of 8 bits",
        _SCALED_FULL: "reflectance x 10000",
    }.get(full, f"brightness up to {full:g}")


def _can_be_coded(scene: Scene, seen: _Light) -> bool:
    """Say whether numbers can be stored reflectances: whole, beyond 8 bits, not yet scaled."""
    return not scene.physical and seen.whole and seen.high > _EIGHT_BITS


def _warn_added(scene: Scene, seen: _Light, theirs: float) -> None:
    """Warn if nothing is dark, as where 1000 was added to all and nothing says so.

    A folder of Sentinel-2 bands has said what it assumes.
    """
    if scene.physical or scene.bands_from == PRODUCT:
        return
    if not _ADDED[0] <= seen.dark / _SCALED_FULL <= _ADDED[1]:
        return
    log.warning(
        "%s: no band is darker than %s; if 1000 was added to each value, as ESA does to "
        "Sentinel-2's since 2022, %s takes it off",
        scene.name,
        in_digits(seen.dark),
        _remedy(1 / _SCALED_FULL, -1000 / _SCALED_FULL, theirs),
    )


def _thermal(
    dtype: str, found: Survey, place: int, index: int, card: Card
) -> tuple[float, float, str]:
    ours = _heat_unit(dtype, found.low[place], found.high[place])
    known = card.input.get("heat")  # said by the card, else guessed
    stats, trained = card.statistics, str(card.input.get("dtype", "uint16"))
    theirs = known or _heat_unit(trained, stats.minimum[index], stats.maximum[index])
    span = found.high[place] - found.low[place]
    if ours in ("celsius", "kelvin") and (known or ours != theirs):
        # Whole numbers that differ by more than degrees do are a sensor's counts.
        ours = "raw" if span > _HEAT_SPAN and not dtype.startswith("float") else ours
    name = card.bands[index].name
    if ours == theirs or "raw" in (ours, theirs):
        doubt = _UNKNOWN if ours != theirs else ""
        return 1.0, 0.0, f"{name} in {ours}{doubt}"
    to_celsius = {"celsius": (1.0, 0.0), "kelvin": (1.0, -_KELVIN), "centikelvin": (0.01, -_KELVIN)}
    gain, shift = to_celsius[ours]
    back_gain, back_shift = to_celsius[theirs]
    return gain / back_gain, (shift - back_shift) / back_gain, f"{name} from {ours} to {theirs}"


def _heat_unit(dtype: str, low: float, high: float) -> str:
    """Guess the unit of a thermal band from its type and range.

    8 bits are a picture of heat, and so are floats of 0 to 1.
    """
    if dtype == "uint8" or (dtype.startswith("float") and low >= 0 and high <= 1):
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
