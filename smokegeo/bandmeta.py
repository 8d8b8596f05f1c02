"""Find out which bands a raster has, from whatever its metadata (`rastermeta.py`) says.

In this order: the user's explicit choice, GDAL's `IMAGERY` domain, ENVI's `wavelength`, band
descriptions, colour interpretation, and last the number of bands. Descriptions that only count
(`Band 1`, `Band 2`, ...) are none; numbers like 490, 560, 665 are wavelengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    parse_band_name,
    sensor_clue,
)
from smokegeo.bands import Band, BandSet
from smokegeo.errors import InputError, UsageError
from smokegeo.rastermeta import (
    BandNumbers,
    RasterMeta,
    bare_wavelengths,
    envi_numbers,
    imagery_numbers,
    is_filler,
)
from smokegeo.sensors import Sensor
from smokegeo.sensors import sensor as find_sensor

#: What a bare number of bands most likely is.
_BY_COUNT = {
    3: ("mss", "red, green, blue"),
    4: ("naip", "red, green, blue, near infrared"),
    5: ("rededge_mx", "MicaSense RedEdge"),
    6: ("satellite", "blue, green, red, near infrared and two short-wave infrared bands"),
    8: ("planetscope8", "PlanetScope SuperDove"),
    13: ("sentinel2", "Sentinel-2"),
    25: ("hss", "the 25 bands of HSSDataset"),
}

#: What stands for a band to leave out.
_SKIPPED = "-"

#: Counts that mean no instrument in particular, whatever sensor the file's name tells of.
_ANY_SENSOR = (3, 4, 6)

#: What usual stacks of a sensor leave out of its bands, in their order.
_LEFT_OUT: Mapping[str, Sequence[tuple[str, ...]]] = {
    "sentinel2": (("B10",),),  # Level 2A
    "landsat8": (("B8", "B9", "B10", "B11"),),  # surface reflectance
    "landsat7": (("B8",), ("B6", "B8")),
    "landsat5": (("B6",),),
}

#: Colour interpretations that name a part of the spectrum.
_SPECTRAL = {"red", "green", "blue", "coastal", "rededge", "nir", "swir", "mwir", "lwir", "tir"}


@dataclass(frozen=True, slots=True)
class BandReading:
    """The bands found, the one-based raster band of each, where that was read, and doubts.

    `notes` are what was decided without a doubt and may still be news.
    """

    bands: BandSet
    indexes: tuple[int, ...]
    source: str
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_bands(
    meta: RasterMeta, *, sensor: str | None = None, bands: str | None = None
) -> BandReading:
    """Say which bands the raster has; `sensor` or `bands` override what the file says.

    `bands` names every data band in order, `red,green,blue,nir` or `490nm,560nm,665nm`; `-` is one
    to leave out.
    """
    meta = _without_counting(meta)
    data = _data_indexes(meta)
    if bands is not None:
        return _from_names(bands, sensor, meta, data)
    if sensor is not None:
        return _from_sensor(sensor, meta, data)
    readers = (
        _from_imagery,
        _from_envi,
        _from_wavelengths,
        _from_descriptions,
        _from_colours,
        _from_unknown,
    )
    for reader in readers:
        reading = reader(meta, data)
        if reading is not None:
            return _about_alpha(reading, meta)
    return _about_alpha(_from_count(meta, data), meta)


def _without_counting(meta: RasterMeta) -> RasterMeta:
    """Drop descriptions that programs fill in, if none but those of masks are a person's."""
    texts = [text or "" for text in meta.descriptions]
    empty = [is_filler(text, index) for index, text in enumerate(texts, start=1)]
    if not all(e or is_auxiliary(t) or is_validity(t) for e, t in zip(empty, texts, strict=True)):
        return meta
    told = (None if e else text for e, text in zip(empty, texts, strict=True))
    return replace(meta, descriptions=tuple(told))


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


def _from_names(
    text: str, sensor: str | None, meta: RasterMeta, data: tuple[int, ...]
) -> BandReading:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) not in (len(data), meta.count):
        raise UsageError(
            f"--bands names {len(names)} bands, the raster has {len(data)}; name each one in "
            f"order, {_SKIPPED} for one to leave out."
        )
    indexes = data if len(names) == len(data) else tuple(range(1, meta.count + 1))
    indexes = tuple(i for i, n in zip(indexes, names, strict=True) if n != _SKIPPED)
    names = named_bands(text)
    if not names:
        raise UsageError("--bands leaves out all bands; name those to look at.")
    if sensor is not None:
        preset = find_sensor(sensor)
        chosen = tuple(
            _in_preset(name, preset) or preset.bands[preset.bands.index(name)] for name in names
        )
        _refuse_twice(chosen)
        return BandReading(BandSet(chosen, preset.name), indexes, "explicit choice")
    hint = guess_sensor(names, meta.tags, meta.filename)
    found = [parse_band_name(name, hint.name) for name in names]
    if numbers := bare_wavelengths(names):
        found = [_at(nm) for nm in numbers]
    warnings = [hint.warning] if hint.warning else []
    warnings += [
        f"band {n} is not understood" for n, band in zip(names, found, strict=True) if not band
    ]
    bands = tuple(band or Band(name) for name, band in zip(names, found, strict=True))
    _refuse_twice(bands)
    return BandReading(BandSet(bands), indexes, "explicit choice", tuple(warnings))


def named_bands(text: str) -> list[str]:
    """Return the names in what a user says of the bands, without those to leave out."""
    names = (name.strip() for name in text.split(","))
    return [name for name in names if name not in ("", _SKIPPED)]


def _refuse_twice(bands: Sequence[Band]) -> None:
    """Refuse one name for two bands, with a way to leave one out."""
    names = [band.name.casefold() for band in bands]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"--bands names {name} twice; put {_SKIPPED} for each band to leave out, as in "
                f"red,green,blue,nir,{_SKIPPED},{_SKIPPED}."
            )


def _at(nm: float) -> Band:
    return Band(f"{nm:g}nm", nm)


def _from_sensor(name: str, meta: RasterMeta, data: tuple[int, ...]) -> BandReading:
    preset, source = find_sensor(name), "explicit choice"
    texts = [(meta.descriptions[index - 1] or "").strip() for index in data]
    found: list[Band] = []
    for text in texts:
        band = _in_preset(text, preset)
        if band is None and is_auxiliary(text):
            band = Band(text)
        if band is None:
            break
        found.append(band)
    if len(found) == len(data):  # described, perhaps a subset or in another order
        doubts = (doubt_of_counting(texts, preset.name), doubt_of_repeats(found, data))
        bands = BandSet(_unique(found, data), preset.name)
        return BandReading(bands, data, source, tuple(filter(None, doubts)))
    if len(preset.bands) == len(data):
        return BandReading(preset.bands, data, source)
    stack = None if any(texts) else _stack(preset, len(data))
    if stack is not None:
        note = f"{len(data)} bands are taken for {', '.join(stack.names)}, in this order"
        return BandReading(stack, data, source, notes=(note,))
    raise InputError(
        f"{meta.filename or 'the raster'} has {len(data)} bands, {preset.title} has "
        f"{len(preset.bands)}, and nothing says which one band {data[len(found)]} is. "
        f"Name each in order with --bands {','.join(preset.bands.names[:3])},..."
    )


def _stack(preset: Sensor, count: int) -> BandSet | None:
    """Return the bands of a sensor that a file of so many usually holds, in order."""
    for left_out in ((), *_LEFT_OUT.get(preset.name, ())):
        names = [name for name in preset.bands.names if name not in left_out]
        if len(names) == count:
            return preset.bands.subset(names)
    return None


def _in_preset(name: str, preset: Sensor) -> Band | None:
    """Return the preset's own band of that name or number, if it has one."""
    parsed = parse_band_name(name, preset.name)
    wanted = {name.casefold(), parsed.name.casefold() if parsed else ""}
    return next((band for band in preset.bands if band.name.casefold() in wanted), None)


def _from_imagery(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    return _from_numbers(meta, data, imagery_numbers(meta), "IMAGERY metadata")


def _from_envi(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    return _from_numbers(meta, data, envi_numbers(meta), "ENVI wavelength")


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
    return BandReading(BandSet(_unique(found, data)), data, source, (doubt,) if doubt else ())


def _from_wavelengths(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    """Read descriptions that are numbers, if all are, as wavelengths."""
    found = [_at(nm) for nm in bare_wavelengths([meta.descriptions[i - 1] or "" for i in data])]
    if not found:
        return None
    taken = f"band names {', '.join((meta.descriptions[i - 1] or '').strip() for i in data[:3])}"
    doubts = (
        f"{taken}{', ...' if len(data) > 3 else ''} are taken for wavelengths (say --bands if not)",
        doubt_of_repeats(found, data),
    )
    return BandReading(
        BandSet(_unique(found, data)), data, "band descriptions", tuple(filter(None, doubts))
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
    unique = _unique(bands, data)
    named = all(band is not None for band in found) and unique == tuple(bands)
    in_sensor = (
        hint.name if named and hint.name and {b.name for b in unique} <= _names(hint.name) else None
    )
    return BandReading(
        BandSet(unique, in_sensor), data, "band descriptions", tuple(filter(None, doubts))
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
        BandSet(_unique(bands, data)), data, "colour interpretation", tuple(filter(None, doubts))
    )


def _from_unknown(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    """Keep names that a person gave but that mean nothing here, rather than count bands."""
    texts = [(meta.descriptions[index - 1] or "").strip() for index in data]
    if all(map(is_filler, texts, data)):
        return None
    bands = [Band(text or f"band {index}") for index, text in zip(data, texts, strict=True)]
    return BandReading(
        BandSet(_unique(bands, data)),
        data,
        "band descriptions",
        (f"band names {', '.join(b.name for b in bands)} are not understood; use --bands",),
    )


def _from_count(meta: RasterMeta, data: tuple[int, ...]) -> BandReading:
    count = len(data)
    clue = sensor_clue([text or "" for text in meta.descriptions], meta.tags, meta.filename)
    stack = None if clue is None else _stack(find_sensor(clue), count)
    guess = _BY_COUNT.get(count)
    if clue is not None and stack is not None:
        title = find_sensor(clue).title.partition(",")[0]
        words = f"{title} ({', '.join(stack.names)})"
        why = f"there are {count} and the file's name or tags tell of it"
        bands = stack.bands
    elif guess is not None and (clue is None or count in _ANY_SENSOR):
        preset, words = guess
        why = f"there are {count}"
        bands = find_sensor(preset).bands.bands[:count]
    else:
        nameless = BandSet(tuple(Band(f"band {index}") for index in data))
        return BandReading(
            nameless, data, "band count", ("bands have no names; say which they are with --bands",)
        )
    warning = (
        f"bands have no names; assuming {words} because {why} (say --bands or --sensor if not)"
    )
    return BandReading(BandSet(bands), data, "band count", (warning,))


def _names(sensor: str) -> set[str]:
    return set(find_sensor(sensor).bands.names)


def _unique(bands: Sequence[Band], data: tuple[int, ...]) -> tuple[Band, ...]:
    """Return the bands with repeated names told apart by their raster band number."""
    names = [band.name.casefold() for band in bands]
    return tuple(
        band
        if names.count(band.name.casefold()) == 1
        else Band(f"{band.name} #{i}", band.wavelength_nm, band.fwhm_nm)
        for i, band in zip(data, bands, strict=True)
    )
