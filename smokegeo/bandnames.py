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
    "green_i": (531, 36),
    "green": (560, 60),
    "yellow": (610, 25),
    "red": (655, 60),
    "rededge": (710, 25),
    "rededge2": (740, 15),
    "rededge3": (783, 20),
    "nir": (845, 100),
    "nir08": (865, 25),
    "nir09": (945, 40),
    "cirrus": (1375, 30),
    "swir1": (1610, 90),
    "swir2": (2200, 180),
    "mwir": (3900, 1000),
    "thermal": (10800, 4000),
    "thermal2": (12000, 1000),
}

#: "infrared" in a few languages; near infrared only if no other word stands with it.
_INFRARED = r"(?:infra[ _-]?(?:red|rouge|rot|r?rojo|vermelho|rosso)|ir)"

#: Other words for them, most specific first; each must stand alone between non-letters.
_WORDS: Sequence[tuple[str, str]] = (
    (r"coastal(?:[ _-]?(?:blue|aerosol))?|ultra[ _-]?blue|aerosols?", "coastal"),
    (r"red[ _-]?edge[ _-]?(?:2|0?75|740)(?!\d)", "rededge2"),
    (r"red[ _-]?edge[ _-]?(?:3|0?78|783)(?!\d)", "rededge3"),
    (r"red[ _-]?edge", "rededge"),
    (r"nir[ _-]?0?8(?!\d)|nir[ _-]?narrow|narrow[ _-]?(?:nir|near[ _-]?infra[ _-]?red)", "nir08"),
    (r"nir[ _-]?(?:09|2)(?!\d)", "nir09"),
    (
        rf"nir|(?:near|proche|nah(?:es)?)[ _-]?{_INFRARED}|{_INFRARED}[ _-]?(?:proche|cercano)",
        "nir",
    ),
    (rf"(?:swir|short[ _-]?wave[ _-]?{_INFRARED})[ _-]?1(?:6\d*)?(?!\d)", "swir1"),
    (rf"(?:swir|short[ _-]?wave[ _-]?{_INFRARED})[ _-]?2(?:[12]\d*)?(?!\d)", "swir2"),
    (rf"(?:swir|short[ _-]?wave[ _-]?{_INFRARED})(?![ _-]?\d)", "swir1"),
    (rf"mwir|mid[ _-]?wave[ _-]?{_INFRARED}", "mwir"),
    (r"lwir[ _-]?12", "thermal2"),
    (
        rf"lwir|tir|therm[a-zà-ÿ]*|(?:long[ _-]?wave|far)[ _-]?{_INFRARED}|temperature|flir",
        "thermal",
    ),
    (r"cirrus", "cirrus"),
    (r"blue|blau|bleu|azul", "blue"),
    (r"green[ _-]?i", "green_i"),
    (r"green|gr(?:ü|ue)n|vert|verde", "green"),
    (r"yellow|gelb|jaune|amarillo", "yellow"),
    # "infra-red" that got this far is neither near nor thermal; it must not become red.
    (r"(?<!infra[ _-])(?:red|rot|rouge|rojo|vermelho)", "red"),
)
_WORD_PATTERNS = tuple(
    (re.compile(rf"(?<![a-zà-ÿ])(?:{pattern})(?![a-zà-ÿ])"), name) for pattern, name in _WORDS
)

#: Codes so short that they mean a band only when they are the whole description.
_CODES = {"r": "red", "g": "green", "b": "blue", "n": "nir", "re": "rededge", "pir": "nir"}

#: Words of layers that go along with spectral bands and are none, or (pan) see all colours.
_AUXILIARY = re.compile(
    r"(?<![a-z])(?:b?qa|qc|quality|f?mask|udm|scl|aot|wvp|sr_aerosol|emis|dem|dsm|dtm|elevation"
    r"|slope|aspect|azimuth|zenith|angle|ndvi|ndwi|nbr|evi|savi|pan|panchromatic)(?![a-z])"
)

#: Descriptions of a band that says which pixels are there. Of other masks (`cloud_mask`, `QA`)
#: nobody knows whether 0 is good or bad.
_VALIDITY = re.compile(
    r"(?:.*[^a-z])?(?:alpha|transparen|opacity).*|a"
    r"|(?:(?:data|no[ _-]?data|valid(?:ity)?|image)[ _-]?)?mask|valid(?:ity)?|no[ _-]?data"
)

#: A wavelength, or a pass-band from one to another, with its unit.
_NUMBER = r"(\d+(?:[.,]\d+)?)"
_WAVELENGTHS = tuple(
    (re.compile(rf"(?<![a-z\d.])(?:{_NUMBER}\s*(?:-|–|to)\s*)?{_NUMBER}\s*{unit}(?![a-z])"), factor)
    for unit, factor in (
        (r"(?:nm|nanom[eè]t(?:er|re)s?)", 1.0),
        (r"(?:um|µm|μm|mi[ck]rom[eè]t(?:er|re)s?|microns?)", 1000.0),
    )
)

#: A numbered band: B2, B02, b8a, band_4, Band 10, SR_B4, ST_B10, LC08_..._B5; not B008.
_NUMBERED = re.compile(
    r"(?<![a-z0-9])(?:s[rt]_?)?b(?:and)?[ _.-]?(0[1-9]a?|[1-9]\d?a?)(?![a-z0-9])"
)
_KNOWN_NUMBERS = {*map(str, range(1, 13)), "8a"}
#: How surface reflectance and temperature of Landsat are spelled: SR_B6, SRB6, SR_B06, sr_band6.
_SURFACE = re.compile(r"(s[rt])_?b(?:and)?[ _.-]?0?")
#: Numbers of bands that Landsat 8 is stacked with from B1 on: its sunlight, or all.
_LANDSAT_COUNTS = (7, 11)

#: Words in file names, descriptions and tags that give the sensor away, most specific first.
_CLUES: Sequence[tuple[re.Pattern[str], str | None]] = tuple(
    (re.compile(rf"(?<![a-z0-9])(?:{pattern})"), name)
    for pattern, name in (
        (r"hls[._-]?s30", "sentinel2"),
        (r"hls[._-]?l30", "landsat8"),
        (r"sentinel[ _-]?2|s2[abc]?(?![a-z0-9])|msil[12][ac]", "sentinel2"),
        (r"t\d\d[a-z]{3}_\d{8}t\d{6}|\d{8}t\d{6}_t\d\d[a-z]{3}", "sentinel2"),
        (r"landsat[ _-]?0?[89]|l[cot]0?[89](?:_|\d{6})|l[89](?![a-z0-9])|oli(?![a-z])", "landsat8"),
        (r"landsat[ _-]?0?7|le0?7(?:_|\d{6})|l7(?![a-z0-9])|etm(?![a-z])|b6_vcid", "landsat7"),
        (r"landsat[ _-]?0?[45]|lt0?[45](?:_|\d{6})|l5(?![a-z0-9])", "landsat5"),
        (r"(?:sensor|instrument)\w*[ =:]+tm(?![a-z])", "landsat5"),
        (r"analyticms_(?:sr_)?8b", "planetscope8"),
        (r"analyticms", "planetscope4"),
        # Sensors whose numbers mean other bands than those of any preset.
        (r"modis|sur_refl|m[oy]d\d\d|mcd43|nadir_reflectance|viirs|vnp\d\d", None),
        (r"aster(?![a-z])|ast_l1|vnir_|hyperion|eo1|lm0[1-5]_|landsat[ _-]?[123]", None),
        (r"himawari|ahi(?![a-z])|hs_h0\d|goes[ _-]?(?:\d\d|[rstu](?![a-z]))|abi(?![a-z])", None),
    )
)


@dataclass(frozen=True, slots=True)
class SensorHint:
    """The sensor a set of descriptions points to, with a warning where it is a guess."""

    name: str | None
    warning: str | None = None


def parse_band_name(text: str, sensor: str | None = None) -> Band | None:
    """Return the band a description means, or None.

    A number is that band of `sensor`, centre and width included, unless the same text states
    a wavelength or colour that is another's; without `sensor` a number means nothing.
    """
    if is_auxiliary(text):
        return None
    lowered = text.casefold().strip()
    numbered = _numbered_band(lowered, sensor)
    stated = _stated_band(lowered) or _colour_band(lowered)
    if numbered is None or (stated is not None and not _agree(numbered, stated)):
        return stated
    return numbered


def is_auxiliary(text: str) -> bool:
    """Say whether a description names a layer that is no colour: quality, mask, height, pan."""
    return _AUXILIARY.search(text.casefold()) is not None


def is_validity(text: str) -> bool:
    """Say whether a description names a band that tells which pixels are there: alpha, mask."""
    return _VALIDITY.fullmatch(text.casefold().strip()) is not None


def is_some_infrared(text: str) -> bool:
    """Say whether a description is "infrared" and no more, which may mean near or thermal."""
    return re.fullmatch(_INFRARED, text.casefold().strip()) is not None


def sensor_clue(
    texts: Sequence[str] = (), tags: Mapping[str, str] | None = None, filename: str = ""
) -> str | None:
    """Return the sensor that a file name, descriptions or tags give away by a word."""
    return _clue(texts, tags, filename)[1]


def guess_sensor(
    texts: Sequence[str], tags: Mapping[str, str] | None = None, filename: str = ""
) -> SensorHint:
    """Say which sensor numbered bands belong to, from the set of numbers and other clues.

    Band numbers alone are ambiguous: B5 is red edge on Sentinel-2, near infrared on
    Landsat 8 and short-wave infrared on Landsat 5.
    """
    lowered = [text.casefold() for text in texts]
    found = {
        position: match
        for position, text in enumerate(lowered, start=1)
        if (match := _NUMBERED.search(text)) and not is_auxiliary(text)
    }
    if not found:
        return SensorHint(None)
    numbers = {match.group(1).lstrip("0") for match in found.values()}
    in_order = all(m.group(1).lstrip("0") == str(position) for position, m in found.items())
    # Band 1, Band 2, ... only count the bands, as many programs do.
    counted = in_order and all(match.group().startswith("band") for match in found.values())
    clued, name = _clue(texts, tags, filename)
    if clued:
        spelled = [lowered[position - 1] for position in found]
        if name is not None and in_order and _only_counts(spelled, name, numbers, counted):
            return SensorHint(None)
        return SensorHint(name)
    stated = all(_stated_band(lowered[position - 1]) for position in found)
    if counted or stated or not numbers <= _KNOWN_NUMBERS:
        return SensorHint(None)
    return _sensor_of_numbers(numbers, {match.group() for match in found.values()})


def only_counts(
    texts: Sequence[str], tags: Mapping[str, str] | None = None, filename: str = ""
) -> bool:
    """Say whether names b1, b2, b3, ... only count, as Earth Engine's of uploaded files do.

    They do where no word tells of a sensor, unless as many are usual of Landsat.
    """
    counting = [
        text.casefold().strip() == f"b{index}"
        for index, text in enumerate(texts, start=1)
        if text and not is_auxiliary(text) and not is_validity(text)
    ]
    if not counting or not all(counting) or len(counting) in _LANDSAT_COUNTS:
        return False
    return not _clue(texts, tags, filename)[0]


def _clue(
    texts: Sequence[str], tags: Mapping[str, str] | None, filename: str
) -> tuple[bool, str | None]:
    """Return whether a word gives the sensor away, and its preset if there is one."""
    clue = " ".join([filename, *texts, *(f"{k} {v}" for k, v in (tags or {}).items())]).casefold()
    for pattern, name in _CLUES:
        if pattern.search(clue):
            return True, name
    return False, None


def _only_counts(lowered: Sequence[str], sensor: str, numbers: set[str], counted: bool) -> bool:
    """Say whether numbers 1, 2, 3, ... are those of the file's bands rather than the sensor's."""
    if not counted:
        return any(_numbered_band(f"b{number}", sensor) is None for number in numbers)
    pairs = [
        (_numbered_band(text, sensor), stated)
        for text in lowered
        if (stated := _stated_band(text) or _colour_band(text))
    ]
    if pairs:  # Band 1 - Coastal aerosol, Band 2 - Blue: the words bear the numbers out
        return not all(band is not None and _agree(band, stated) for band, stated in pairs)
    # toa_band1 is how Landsat's bands are called; Sentinel-2's numbers skip to 8A after 8.
    return sensor == "sentinel2" or all(text.strip().startswith("band") for text in lowered)


def _sensor_of_numbers(numbers: set[str], spelled: set[str]) -> SensorHint:
    spelled = {_SURFACE.sub(r"\1_b", text) for text in spelled}
    if any(text.startswith(("sr", "st")) for text in spelled):
        # Landsat Collection 2: band 6 is thermal (ST) on TM and ETM+, short-wave (SR) on OLI.
        if spelled & {"sr_b6", "st_b10"}:
            return SensorHint("landsat8")
        if "st_b6" in spelled or numbers >= {"1", "2", "3", "4", "5", "7"}:
            return SensorHint("landsat7")
        return _doubtful("landsat7" if "1" in numbers else "landsat8", numbers)
    if numbers & {"8a", "12"} or (numbers >= {"8", "11"} and "10" not in numbers):
        return SensorHint("sentinel2")  # Landsat 8 has its thermal B11 never without B10
    if any(text.startswith("b0") for text in spelled):
        sure = "8" in numbers or numbers <= {"1", "2", "3", "4"}  # HLS writes Landsat's B05, too
        return SensorHint("sentinel2") if sure else _doubtful("sentinel2", numbers)
    if numbers == {"1", "2", "3", "4", "5", "7"}:
        # All that TM and ETM+ see of sunlight; B6 is their heat.
        return _doubtful("landsat7", numbers)
    # Nobody stacks Landsat's panchromatic B8 with a few others; B8 of Sentinel-2 is the usual NIR.
    # B2, B3, B4 are blue, green, red on both, and green, red, near infrared on older Landsats.
    name = "sentinel2" if "8" in numbers and "10" not in numbers else "landsat8"
    return _doubtful(name, numbers)


def _doubtful(name: str, numbers: set[str]) -> SensorHint:
    """Assume a sensor, and say which bands the numbers are then."""
    preset = sensors()[name]
    bands = (_numbered_band(f"b{number}", name) for number in numbers)
    known = sorted(filter(None, bands), key=lambda band: preset.bands.index(band.name))
    listed = ", ".join(f"{band.name} at {band.wavelength_nm:g} nm" for band in known)
    return SensorHint(
        name,
        f"band numbers without a sensor; assuming {preset.title.partition(',')[0]} with {listed} "
        "(say --sensor if not)",
    )


def _numbered_band(lowered: str, sensor: str | None) -> Band | None:
    if sensor is None:
        return None
    match = _NUMBERED.search(lowered)
    if match is None:
        return None
    for band in sensors()[sensor].bands:
        if band.name.casefold().lstrip("b").lstrip("0") == match.group(1).lstrip("0"):
            return band
    return None


def _stated_band(lowered: str) -> Band | None:
    for pattern, factor in _WAVELENGTHS:
        match = pattern.search(lowered)
        if match is None:
            continue
        low, high = (
            None if number is None else round(float(number.replace(",", ".")) * factor, 3)
            for number in match.groups()
        )
        # "3nm step" is not a wavelength any of our sensors sees.
        if high is None or not 200 <= high <= 20000:
            continue
        if low is None or not 200 <= low < high:
            return Band(f"{high:g}nm", high)
        centre = round((low + high) / 2, 3)
        return Band(f"{centre:g}nm", centre, round(high - low, 3))
    return None


def _colour_band(lowered: str) -> Band | None:
    name = "nir" if re.fullmatch(_INFRARED, lowered) else _CODES.get(lowered)
    for pattern, word in _WORD_PATTERNS:
        if name is None and pattern.search(lowered):
            name = word
    return None if name is None else Band(name, *_COLOURS[name])


def _agree(one: Band, other: Band) -> bool:
    """Say whether two may be one band: the centre of one lies within the other.

    To overlap is not enough: a coastal band reaches into what is called blue.
    """
    distance = abs((one.wavelength_nm or 0.0) - (other.wavelength_nm or 0.0))
    return distance <= max(one.width_nm, other.width_nm) / 2
