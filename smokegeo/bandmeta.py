"""Find out which bands a raster has, from whatever its metadata (`rastermeta.py`) says.

In this order: the user's explicit choice (`bandchoice.py`), GDAL's `IMAGERY` domain, ENVI's
`wavelength`, such tags of the bands, band descriptions, colour interpretation, and last the number
of bands. Descriptions that only count (`Band 1`, `Band 2`, ...) are none; numbers like 490, 560,
665 are wavelengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smokegeo.bandchoice import from_names, from_sensor
from smokegeo.banddoubts import (
    doubt_of_counting,
    doubt_of_heat,
    doubt_of_repeats,
    not_understood,
)
from smokegeo.bandnames import (
    guess_sensor,
    is_auxiliary,
    is_validity,
    only_counts,
    parse_band_name,
    sensor_clue,
)
from smokegeo.bandreading import BandReading, band_at, other_order, unique, usual_stack
from smokegeo.bands import Band, BandSet
from smokegeo.rastermeta import (
    BandNumbers,
    RasterMeta,
    bad_bands,
    bare_wavelengths,
    envi_numbers,
    imagery_numbers,
    is_filler,
    tag_numbers,
)
from smokegeo.sensors import sensor as find_sensor

#: What a bare number of bands most likely is.
_BY_COUNT = {
    3: ("mss", "red, green, blue"),
    4: ("naip", "red, green, blue, near infrared"),
    5: ("rededge_mx", "MicaSense RedEdge (blue, green, red, nir, rededge)"),
    6: ("satellite", "blue, green, red, near infrared and two short-wave infrared bands"),
    8: (
        "planetscope8",
        "PlanetScope SuperDove (coastal_blue, blue, green_i, green, yellow, red, rededge, nir)",
    ),
    13: ("sentinel2", "Sentinel-2"),
    25: ("hss", "the 25 bands of HSSDataset"),
}

#: What four bands of a satellite are: unlike aerial photographs, they begin with blue.
_FOUR_IN_SPACE = ("satellite", "blue, green, red, near infrared")

#: Counts that mean no instrument in particular, whatever sensor the file's name tells of.
_ANY_SENSOR = (3, 4, 6)

#: Colour interpretations that name a part of the spectrum.
_SPECTRAL = {"red", "green", "blue", "coastal", "rededge", "nir", "swir", "mwir", "lwir", "tir"}


def read_bands(
    meta: RasterMeta, *, sensor: str | None = None, bands: str | None = None
) -> BandReading:
    """Say which bands the raster has; `sensor` or `bands` override what the file says.

    `bands` names every data band in order, `red,green,blue,nir` or `490nm,560nm,665nm`; `-` is one
    to leave out.
    """
    meta = _without_counting(meta, chosen=sensor is not None)
    data = _data_indexes(meta)
    if bands is not None:
        return from_names(bands, sensor, meta, data)
    if sensor is not None:
        return from_sensor(sensor, meta, data)
    readers = (
        _from_imagery,
        _from_envi,
        _from_tags,
        _from_wavelengths,
        _from_descriptions,
        _from_colours,
        _from_unknown,
    )
    for reader in readers:
        reading = reader(meta, data)
        if reading is not None:
            return _about_alpha(_without_bad(reading, meta), meta)
    return _about_alpha(_without_bad(_from_count(meta, data), meta), meta)


def _without_counting(meta: RasterMeta, *, chosen: bool) -> RasterMeta:
    """Drop descriptions that programs fill in, if none but those of masks are a person's.

    Names b1, b2, b3, ... are the sensor's own if the user has `chosen` one.
    """
    texts = [text or "" for text in meta.descriptions]
    empty = [is_filler(text, index) for index, text in enumerate(texts, start=1)]
    if not chosen and only_counts(texts, meta.tags, meta.filename):
        empty = [not (is_auxiliary(text) or is_validity(text)) for text in texts]
    if not all(e or is_auxiliary(t) or is_validity(t) for e, t in zip(empty, texts, strict=True)):
        return meta
    told = (None if e else text for e, text in zip(empty, texts, strict=True))
    return replace(meta, descriptions=tuple(told))


def _without_bad(reading: BandReading, meta: RasterMeta) -> BandReading:
    """Take the wavelengths from bands that the file's own list calls bad, so that none is used."""
    bad = {*bad_bands(meta)} & {*reading.indexes}
    if not bad:
        return reading
    bands = tuple(
        Band(f"bad band {index}") if index in bad else band
        for index, band in zip(reading.indexes, reading.bands, strict=True)
    )
    note = f"{len(bad)} of {len(bands)} bands are marked bad in the header (bbl) and left out"
    return replace(reading, bands=BandSet(bands), notes=(*reading.notes, note))


def _about_alpha(reading: BandReading, meta: RasterMeta) -> BandReading:
    """Say which bands are taken for masks: programs mark the fourth of any four as alpha."""
    warnings, notes = [*reading.warnings], [*reading.notes]
    for index, text in enumerate((text or "" for text in meta.descriptions), start=1):
        if not _is_alpha(meta, index):
            continue
        if index in reading.indexes and is_auxiliary(text):
            notes.append(f"band {index} ({text}) is marked alpha; going by its name it is no mask")
        if index in reading.indexes or not is_filler(text, index):
            continue
        taken = f"band {index} is marked alpha and taken for a mask"
        names = [*reading.bands.names]
        names.insert(index - 1, "nir")
        remedy = f"if it is near infrared, give --bands {','.join(names)}"
        if index in meta.graded:
            warnings.append(f"{taken}, though it has many values; {remedy}")
        else:
            notes.append(f"{taken}; {remedy}")
    return replace(reading, warnings=tuple(warnings), notes=tuple(notes))


def _data_indexes(meta: RasterMeta) -> tuple[int, ...]:
    """Return the one-based bands that hold data: all but alpha.

    A band called alpha by its colour is data if its description says anything else (programs mark
    the fourth of any four so), or if it has a wavelength.
    """
    hint = guess_sensor([text or "" for text in meta.descriptions], meta.tags, meta.filename)
    keep = []
    for index, description in enumerate(meta.descriptions, start=1):
        text = description or ""
        spectral = parse_band_name(text, hint.name) or (
            meta.imagery and meta.imagery[index - 1].get("CENTRAL_WAVELENGTH_UM")
        )
        masks = is_filler(text, index) or is_validity(text)
        if not _is_alpha(meta, index) or spectral or not masks:
            keep.append(index)
    return tuple(keep)


def _is_alpha(meta: RasterMeta, index: int) -> bool:
    return bool(meta.colours) and meta.colours[index - 1] == "alpha"


def _from_imagery(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    return _from_numbers(meta, data, imagery_numbers(meta), "IMAGERY metadata")


def _from_envi(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    return _from_numbers(meta, data, envi_numbers(meta), "ENVI wavelength")


def _from_tags(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    return _from_numbers(meta, data, tag_numbers(meta), "band tags")


def _from_numbers(
    meta: RasterMeta,
    data: tuple[int, ...],
    numbers: Sequence[BandNumbers],
    source: str,
) -> BandReading | None:
    """Build the reading from measured wavelengths; names come from the descriptions."""
    if not any(numbers[index - 1][0] for index in data if numbers):
        return None
    hint = guess_sensor([d or "" for d in meta.descriptions], meta.tags, meta.filename)
    found = []
    for index in data:
        description = (meta.descriptions[index - 1] or "").strip()
        nm, fwhm = numbers[index - 1]
        if nm is None:  # a band without wavelength among others that have one
            known = parse_band_name(description, hint.name)
            found.append(known or Band(description or f"band {index}"))
            continue
        short = description and len(description) <= 20 and "(" not in description
        found.append(
            Band(description if short else f"{nm:g}nm", round(nm, 3), fwhm and round(fwhm, 3))
        )
    doubt = doubt_of_repeats(found, data)
    return BandReading(BandSet(unique(found, data)), data, source, (doubt,) if doubt else ())


def _from_wavelengths(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    """Read descriptions that are numbers, if all are, as wavelengths."""
    found = [band_at(nm) for nm in bare_wavelengths([meta.descriptions[i - 1] or "" for i in data])]
    if not found:
        return None
    taken = f"band names {', '.join((meta.descriptions[i - 1] or '').strip() for i in data[:3])}"
    doubts = (
        f"{taken}{', ...' if len(data) > 3 else ''} are taken for wavelengths (say --bands if not)",
        doubt_of_repeats(found, data),
    )
    return BandReading(
        BandSet(unique(found, data)), data, "band descriptions", tuple(filter(None, doubts))
    )


def _from_descriptions(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    texts = [(meta.descriptions[index - 1] or "").strip() for index in data]
    hint = guess_sensor(texts, meta.tags, meta.filename)
    if any(texts):
        texts = _with_colours(texts, hint.name, meta, data)
    found = [parse_band_name(text, hint.name) for text in texts]
    auxiliary = [is_auxiliary(text) for text in texts]
    if not any(found) and not any(auxiliary):
        return None
    clear = [not _is_alpha(meta, index) or index in meta.graded for index in data]
    found, heat = doubt_of_heat(found, texts, data, clear)
    names = [
        band.name if band else text if other else None
        for band, text, other in zip(found, texts, auxiliary, strict=True)
    ]
    bands = [
        band or Band(text or f"band {index}")
        for index, text, band in zip(data, texts, found, strict=True)
    ]
    doubts = (
        hint.warning or doubt_of_counting(texts, hint.name),
        heat,
        not_understood(names, texts, data),
        doubt_of_repeats(bands, data),
    )
    apart = unique(bands, data)
    named = all(band is not None for band in found) and apart == tuple(bands)
    in_sensor = (
        hint.name if named and hint.name and {b.name for b in apart} <= _names(hint.name) else None
    )
    return BandReading(
        BandSet(apart, in_sensor), data, "band descriptions", tuple(filter(None, doubts))
    )


def _with_colours(
    texts: list[str], sensor: str | None, meta: RasterMeta, data: tuple[int, ...]
) -> list[str]:
    """Give bands without a telling name their colours, if red, green and blue are all theirs."""
    colours = {
        position: meta.colours[index - 1]
        for position, index in enumerate(data)
        if meta.colours and meta.colours[index - 1] in _SPECTRAL
        if is_filler(texts[position], index)
        if parse_band_name(texts[position], sensor) is None
    }
    if not {"red", "green", "blue"} <= set(colours.values()):
        return texts
    return [colours.get(position, text) for position, text in enumerate(texts)]


def _from_colours(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    if not meta.colours:
        return None
    colours = [meta.colours[index - 1] for index in data]
    if len(set(colours) & _SPECTRAL) < 3:
        return None
    texts = [(meta.descriptions[index - 1] or "").strip() for index in data]
    found = [parse_band_name(colour) for colour in colours]
    assumed = None
    if len(data) == 4 and colours[:3] == ["red", "green", "blue"] and colours[3] == "undefined":
        found[3] = parse_band_name("nir")
        assumed = "band 4 has no name; assuming near infrared"
    names = [None if band is None else band.name for band in found]
    bands = [
        band or Band(text or f"band {index}")
        for index, text, band in zip(data, texts, found, strict=True)
    ]
    doubts = (assumed, not_understood(names, texts, data), doubt_of_repeats(bands, data))
    return BandReading(
        BandSet(unique(bands, data)), data, "colour interpretation", tuple(filter(None, doubts))
    )


def _from_unknown(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    """Keep names that a person gave but that mean nothing here, rather than count bands."""
    texts = [(meta.descriptions[index - 1] or "").strip() for index in data]
    if all(map(is_filler, texts, data)):
        return None
    bands = [Band(text or f"band {index}") for index, text in zip(data, texts, strict=True)]
    return BandReading(
        BandSet(unique(bands, data)),
        data,
        "band descriptions",
        (f"band names {', '.join(b.name for b in bands)} are not understood; use --bands",),
    )


def _from_count(meta: RasterMeta, data: tuple[int, ...]) -> BandReading:
    count = len(data)
    clue = sensor_clue([text or "" for text in meta.descriptions], meta.tags, meta.filename)
    stack = None if clue is None else usual_stack(find_sensor(clue), count)
    guess = _FOUR_IN_SPACE if clue is not None and count == 4 else _BY_COUNT.get(count)
    if clue is not None and stack is not None:
        title = find_sensor(clue).title.partition(",")[0]
        words = f"{title} ({', '.join(stack.names)})"
        why = f"there are {count} and the file's name or tags tell of it"
        bands = BandSet(stack.bands)
    elif guess is not None and (clue is None or count in _ANY_SENSOR):
        preset, words = guess
        why = f"there are {count}"
        bands = BandSet(find_sensor(preset).bands.bands[:count])
    else:
        nameless = BandSet(tuple(Band(f"band {index}") for index in data))
        return BandReading(
            nameless, data, "band count", ("bands have no names; say which they are with --bands",)
        )
    other = other_order(bands)
    choice = "--bands" if other is None else f"--bands, such as {other},"
    warning = (
        f"bands have no names; assuming {words} because {why} (say {choice} or --sensor if not)"
    )
    return BandReading(bands, data, "band count", (warning,))


def _names(sensor: str) -> set[str]:
    return set(find_sensor(sensor).bands.names)
