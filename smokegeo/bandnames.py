"""Understand the many spellings of a band's name: `B02`, `SR_B4`, `nir`, `760nm`, ..."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smokegeo.bands import Band
from smokegeo.sensors import sensors

#: Colour words with the centre and width most instruments give them.
_COLOURS: Mapping[str, tuple[float, float]] = {
    "coastal": (443, 20),
    "blue": (480, 70),
    "green": (560, 60),
    "yellow": (610, 25),
    "red": (655, 60),
    "rededge": (710, 25),
    "nir": (845, 100),
    "cirrus": (1375, 30),
    "swir1": (1610, 90),
    "swir2": (2200, 180),
    "mwir": (3900, 1000),
    "thermal": (10800, 4000),
}

#: Other words for them, most specific first; each must stand alone between non-letters.
_WORDS: Sequence[tuple[str, str]] = (
    (r"coastal(?:[ _-]?(?:blue|aerosol))?|ultra[ _-]?blue|aerosols?", "coastal"),
    (r"veg(?:etation)?[ _-]?red[ _-]?edge|red[ _-]?edge|rededge", "rededge"),
    (r"near[ _-]?infra[ _-]?red|nir[ _-]?narrow|narrow[ _-]?nir|v?nir", "nir"),
    (r"swir[ _-]?1(?:6\d*)?|short[ _-]?wave[ _-]?infra[ _-]?red[ _-]?1", "swir1"),
    (r"swir[ _-]?2(?:2\d*)?|short[ _-]?wave[ _-]?infra[ _-]?red[ _-]?2", "swir2"),
    (r"swir|short[ _-]?wave[ _-]?infra[ _-]?red", "swir1"),
    (r"mwir|mid[ _-]?wave[ _-]?infra[ _-]?red", "mwir"),
    (r"lwir|tir|thermal(?:[ _-]?(?:infra[ _-]?red|ir))?|temperature|flir", "thermal"),
    (r"cirrus", "cirrus"),
    (r"blue|blau|bleu|azul", "blue"),
    (r"green|gr(?:ü|ue)n|vert|verde", "green"),
    (r"yellow|gelb|jaune|amarillo", "yellow"),
    (r"red|rot|rouge|rojo|vermelho", "red"),
    (r"infra[ _-]?red", "nir"),
)
_WORD_PATTERNS = tuple(
    (re.compile(rf"(?<![a-zäöüß]){pattern}(?![a-zäöüß])"), name) for pattern, name in _WORDS
)

#: Codes so short that they mean a band only when they are the whole description.
_CODES = {"r": "red", "g": "green", "b": "blue", "n": "nir", "re": "rededge", "ir": "nir"}

_NUMBER = r"(\d+(?:[.,]\d+)?)"
_NANO = re.compile(rf"(?<![\w.]){_NUMBER}\s*(?:nm|nanomet(?:er|re)s?)\b")
_MICRO = re.compile(rf"(?<![\w.]){_NUMBER}\s*(?:um|µm|μm|micromet(?:er|re)s?|microns?)\b")

#: A numbered band: B2, B02, b8a, band_4, Band 10, SR_B4, ST_B10, LC08_..._B5, sur_refl_b01.
_NUMBERED = re.compile(r"(?<![a-z0-9])(?:s[rt]_?)?b(?:and)?[ _.-]?0*(\d{1,2}a?)(?![a-z0-9])")

#: Names in file names and tags that give the sensor away, most specific first.
_CLUES: Sequence[tuple[str, str]] = (
    (r"hls\.?s30", "sentinel2"),
    (r"hls\.?l30", "landsat8"),
    (r"sentinel[ _-]?2|s2[abc](?:_|\b)|msil[12][ac]", "sentinel2"),
    (r"landsat[ _-]?[89]|l[co]0?[89]_|oli", "landsat8"),
    (r"landsat[ _-]?7|le0?7_|etm", "landsat7"),
    (r"landsat[ _-]?[45]|lt0?[45]_|\btm\b", "landsat5"),
)


@dataclass(frozen=True, slots=True)
class SensorHint:
    """The sensor a set of descriptions points to, with a warning where it is a guess."""

    name: str | None
    warning: str | None = None


def parse_band_name(text: str, sensor: str | None = None) -> Band | None:
    """Return the band a description means, or None.

    A stated wavelength wins over a band number, a number over a colour word, unless the two
    contradict each other; a number needs `sensor` to mean anything.
    """
    lowered = text.casefold().strip()
    numbered = _numbered_band(lowered, sensor)
    stated = _stated_band(lowered) or _colour_band(lowered)
    if numbered is None or (stated is not None and not _overlap(numbered, stated)):
        return stated
    return numbered


def guess_sensor(
    texts: Sequence[str], tags: Mapping[str, str] | None = None, filename: str = ""
) -> SensorHint:
    """Say which sensor numbered bands belong to, from the set of numbers and other clues.

    Band numbers alone are ambiguous: B5 is red edge on Sentinel-2, near infrared on
    Landsat 8 and short-wave infrared on Landsat 5.
    """
    lowered = [text.casefold() for text in texts]
    numbers = {match.group(1) for text in lowered if (match := _NUMBERED.search(text))}
    if not numbers:
        return SensorHint(None)
    clue = " ".join([filename, *(f"{k} {v}" for k, v in (tags or {}).items())]).casefold()
    for pattern, name in _CLUES:
        if re.search(pattern, clue):
            return SensorHint(name)
    if any(re.search(r"(?<![a-z])s[rt]_?b", text) for text in lowered):
        # Landsat Collection 2: TM and ETM+ have no SR_B6 (it is thermal), OLI has.
        oli = "6" in numbers or "10" in numbers
        return SensorHint("landsat8" if oli or not numbers & {"1", "7"} else "landsat7")
    padded = any(re.search(r"(?<![a-z0-9])b0\d", text) for text in lowered)
    if padded or numbers & {"8a", "12"}:
        return SensorHint("sentinel2")
    if numbers <= {"2", "3", "4"}:
        return SensorHint("landsat8")  # blue, green, red on Sentinel-2 and on Landsat 8 alike
    return SensorHint(
        "landsat8",
        "band numbers without a sensor; assuming Landsat 8/9 (say --sensor if not)",
    )


def _numbered_band(lowered: str, sensor: str | None) -> Band | None:
    if sensor is None:
        return None
    match = _NUMBERED.search(lowered)
    if match is None:
        return None
    for band in sensors()[sensor].bands:
        if band.name.casefold().lstrip("b").lstrip("0") == match.group(1):
            return band
    return None


def _stated_band(lowered: str) -> Band | None:
    for pattern, factor in ((_NANO, 1.0), (_MICRO, 1000.0)):
        match = pattern.search(lowered)
        if match:
            value = round(float(match.group(1).replace(",", ".")) * factor, 3)
            # "3nm step" is not a wavelength any of our sensors sees.
            return Band(f"{value:g}nm", value) if 200 <= value <= 20000 else None
    return None


def _colour_band(lowered: str) -> Band | None:
    name = _CODES.get(lowered)
    for pattern, word in _WORD_PATTERNS:
        if name is None and pattern.search(lowered):
            name = word
    return None if name is None else Band(name, *_COLOURS[name])


def _overlap(one: Band, other: Band) -> bool:
    distance = abs((one.wavelength_nm or 0.0) - (other.wavelength_nm or 0.0))
    return distance <= (one.width_nm + other.width_nm) / 2
