"""Find out which bands a raster has, from whatever its metadata says.

In this order: the user's explicit choice, GDAL's `IMAGERY` domain, ENVI's `wavelength`, band
descriptions, colour interpretation, and last the number of bands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from smokegeo.bandnames import guess_sensor, is_auxiliary, parse_band_name
from smokegeo.bands import Band, BandSet
from smokegeo.errors import InputError, UsageError
from smokegeo.sensors import Sensor
from smokegeo.sensors import sensor as find_sensor

if TYPE_CHECKING:
    from rasterio.io import DatasetReader

#: What a bare number of bands most likely is.
_BY_COUNT = {
    3: ("mss", 3, "red, green, blue"),
    4: ("naip", 4, "red, green, blue, near infrared"),
    5: ("rededge_mx", 5, "MicaSense RedEdge"),
    6: ("satellite", 6, "blue, green, red, near infrared and two short-wave infrared bands"),
    8: ("planetscope8", 8, "PlanetScope SuperDove"),
    13: ("sentinel2", 13, "Sentinel-2"),
    25: ("hss", 25, "the 25 bands of HSSDataset"),
}

#: Colour interpretations that name a part of the spectrum.
_SPECTRAL = {"red", "green", "blue", "coastal", "rededge", "nir", "swir", "mwir", "lwir", "tir"}

#: ENVI's wavelength units, as factors to nm; those of frequencies and counters are not listed.
_ENVI_UNITS = {
    "nanometers": 1.0,
    "nm": 1.0,
    "micrometers": 1000.0,
    "microns": 1000.0,
    "um": 1000.0,
    "μm": 1000.0,  # casefold turns the micro sign into this letter
    "angstroms": 0.1,
    "millimeters": 1e6,
    "mm": 1e6,
}

#: How much of an alpha band is looked at, and the share of its pixels that two values must make up
#: if it is a mask.
_LOOK_PX, _MASK_SHARE = 512, 0.9

#: Descriptions that programs fill in by themselves: `Band 1`, `Layer_2`, `3`, `Gray`.
_FILLER = re.compile(r"(?:(?:band|layer|channel)[ _.-]?)?[\d.]*|gr[ae]y|undefined|unknown")


@dataclass(frozen=True, slots=True)
class RasterMeta:
    """What a raster file says about its bands; one entry per band in each sequence.

    `graded` are the one-based bands marked alpha whose pixels are of many values, unlike a mask's.
    """

    descriptions: Sequence[str | None]
    colours: Sequence[str] = ()
    imagery: Sequence[Mapping[str, str]] = ()
    envi: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    filename: str = ""
    graded: Sequence[int] = ()

    @property
    def count(self) -> int:
        """The number of raster bands, alpha included."""
        return len(self.descriptions)


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


def raster_meta(src: DatasetReader) -> RasterMeta:
    """Collect the band metadata of an open raster."""
    colours = tuple(colour.name for colour in src.colorinterp)
    nameless = [i for i in src.indexes if colours[i - 1] == "alpha" and not src.descriptions[i - 1]]
    return RasterMeta(
        descriptions=tuple(src.descriptions),
        colours=colours,
        imagery=tuple(src.tags(i, ns="IMAGERY") for i in src.indexes),
        envi=src.tags(ns="ENVI"),
        tags=src.tags(),
        filename=src.name.replace("\\", "/").rpartition("/")[2],
        graded=tuple(i for i in nameless if _is_graded(src, i)),
    )


def _is_graded(src: DatasetReader, index: int) -> bool:
    """Say whether a band has more values than a mask, going by the middle of the raster."""
    from smokegeo.scene.rasters import READ_ERRORS

    height, width = (
        min(_LOOK_PX, block, side)
        for block, side in zip(src.block_shapes[index - 1], src.shape, strict=True)
    )
    row, column = (src.height - height) // 2, (src.width - width) // 2
    try:
        pixels = src.read(index, window=((row, row + height), (column, column + width)))
    except READ_ERRORS:  # damage is found, and said, where the pixels are used
        return False
    counts = np.sort(np.unique(pixels, return_counts=True)[1])
    return bool(counts[-2:].sum() < _MASK_SHARE * pixels.size)


def read_bands(
    meta: RasterMeta, *, sensor: str | None = None, bands: str | None = None
) -> BandReading:
    """Say which bands the raster has; `sensor` or `bands` override what the file says.

    `bands` names every data band in order, `red,green,blue,nir` or `490nm,560nm,665nm`.
    """
    data = _data_indexes(meta)
    if bands is not None:
        return _from_names(bands, sensor, meta, data)
    if sensor is not None:
        return _from_sensor(sensor, meta, data)
    readers = (_from_imagery, _from_envi, _from_descriptions, _from_colours, _from_unknown)
    for reader in readers:
        reading = reader(meta, data)
        if reading is not None:
            return _about_alpha(reading, meta)
    return _about_alpha(_from_count(data), meta)


def _about_alpha(reading: BandReading, meta: RasterMeta) -> BandReading:
    """Say which bands are taken for masks: programs mark the fourth of any four as alpha."""
    masks = [
        i
        for i, (text, colour) in enumerate(zip(meta.descriptions, meta.colours, strict=False), 1)
        if colour == "alpha" and not text and i not in reading.indexes
    ]
    warnings, notes = [*reading.warnings], [*reading.notes]
    for index in masks:
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

    A band called alpha by its colour but described as a spectral band (four-band aerial
    photographs are often written so), or with a wavelength, is data.
    """
    hint = guess_sensor([text or "" for text in meta.descriptions], meta.tags, meta.filename)
    keep = []
    for index, description in enumerate(meta.descriptions, start=1):
        colour = meta.colours[index - 1] if meta.colours else ""
        spectral = (description and parse_band_name(description, hint.name)) or (
            meta.imagery and meta.imagery[index - 1].get("CENTRAL_WAVELENGTH_UM")
        )
        if colour != "alpha" or spectral:
            keep.append(index)
    return tuple(keep)


def _from_names(
    text: str, sensor: str | None, meta: RasterMeta, data: tuple[int, ...]
) -> BandReading:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) not in (len(data), meta.count):
        raise UsageError(
            f"--bands names {len(names)} bands, the raster has {len(data)}; name each one in order."
        )
    indexes = data if len(names) == len(data) else tuple(range(1, meta.count + 1))
    if sensor is not None:
        preset = find_sensor(sensor)
        chosen = tuple(
            _in_preset(name, preset) or preset.bands[preset.bands.index(name)] for name in names
        )
        return BandReading(BandSet(chosen, preset.name), indexes, "explicit choice")
    hint = guess_sensor(names, meta.tags, meta.filename)
    found = [parse_band_name(name, hint.name) for name in names]
    warnings = [hint.warning] if hint.warning else []
    warnings += [
        f"band {n} is not understood" for n, band in zip(names, found, strict=True) if not band
    ]
    bands = tuple(band or Band(name) for name, band in zip(names, found, strict=True))
    return BandReading(BandSet(bands), indexes, "explicit choice", tuple(warnings))


def _from_sensor(name: str, meta: RasterMeta, data: tuple[int, ...]) -> BandReading:
    preset = find_sensor(name)
    found: list[Band] = []
    for index in data:
        description = (meta.descriptions[index - 1] or "").strip()
        band = _in_preset(description, preset)
        if band is None and is_auxiliary(description):
            band = Band(description)
        if band is None:
            break
        found.append(band)
    if len(found) == len(data):  # described, perhaps a subset or in another order
        return BandReading(BandSet(_unique(found, data), preset.name), data, "explicit choice")
    if len(preset.bands) == len(data):
        return BandReading(preset.bands, data, "explicit choice")
    raise InputError(
        f"{meta.filename or 'the raster'} has {len(data)} bands, {preset.title} has "
        f"{len(preset.bands)}, and nothing says which one band {data[len(found)]} is. "
        "Name them with --bands."
    )


def _in_preset(name: str, preset: Sensor) -> Band | None:
    """Return the preset's own band of that name or number, if it has one."""
    parsed = parse_band_name(name, preset.name)
    wanted = {name.casefold(), parsed.name.casefold() if parsed else ""}
    return next((band for band in preset.bands if band.name.casefold() in wanted), None)


def _from_imagery(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    if not meta.imagery:
        return None
    wavelengths, widths = [], []
    for index in data:
        tags = meta.imagery[index - 1]
        wavelengths.append(_positive(tags.get("CENTRAL_WAVELENGTH_UM"), 1000))
        widths.append(_positive(tags.get("FWHM_UM"), 1000))
    return _from_numbers(meta, data, wavelengths, widths, "IMAGERY metadata")


def _from_envi(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    envi = {key.casefold().replace(" ", "_"): value for key, value in meta.envi.items()}
    numbers = _envi_list(envi.get("wavelength", ""))
    if len(numbers) != meta.count:
        return None
    unit = envi.get("wavelength_units", "").strip().casefold()
    if unit in ("", "unknown"):
        # No sensor of ours sees below 100 nm or beyond 100 um.
        factor = 1000.0 if max(n or 0 for n in numbers) < 100 else 1.0
    elif unit in _ENVI_UNITS:
        factor = _ENVI_UNITS[unit]
    else:
        return None
    widths = _envi_list(envi.get("fwhm", ""))
    if len(widths) != meta.count:
        widths = [None] * meta.count
    return _from_numbers(
        meta,
        data,
        [_scaled(numbers[i - 1], factor) for i in data],
        [_scaled(widths[i - 1], factor) for i in data],
        "ENVI wavelength",
    )


def _from_numbers(
    meta: RasterMeta,
    data: tuple[int, ...],
    wavelengths: Sequence[float | None],
    widths: Sequence[float | None],
    source: str,
) -> BandReading | None:
    """Build the reading from measured wavelengths; names come from the descriptions."""
    if not any(wavelengths):
        return None
    hint = guess_sensor([d or "" for d in meta.descriptions], meta.tags, meta.filename)
    found = []
    for position, index in enumerate(data):
        description = (meta.descriptions[index - 1] or "").strip()
        nm, fwhm = wavelengths[position], widths[position]
        if nm is None:  # a band without wavelength among others that have one
            known = parse_band_name(description, hint.name)
            found.append(known or Band(description or f"band {index}"))
            continue
        short = description and len(description) <= 20 and "(" not in description
        found.append(
            Band(description if short else f"{nm:g}nm", round(nm, 3), fwhm and round(fwhm, 3))
        )
    return BandReading(BandSet(_unique(found, data)), data, source)


def _from_descriptions(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    texts = [meta.descriptions[index - 1] or "" for index in data]
    hint = guess_sensor(texts, meta.tags, meta.filename)
    found = [parse_band_name(text, hint.name) for text in texts]
    if not any(found) and not any(is_auxiliary(text) for text in texts):
        return None
    warnings = [hint.warning] if hint.warning else []
    bands = []
    for index, text, band in zip(data, texts, found, strict=True):
        if band is None:
            band = Band(text.strip() or f"band {index}")
            if not is_auxiliary(text):
                warnings.append(f"band {index} ({text or 'no description'}) is not understood")
        bands.append(band)
    unique = _unique(bands, data)
    named = all(band is not None for band in found) and unique == tuple(bands)
    in_sensor = (
        hint.name if named and hint.name and {b.name for b in unique} <= _names(hint.name) else None
    )
    return BandReading(BandSet(unique, in_sensor), data, "band descriptions", tuple(warnings))


def _from_colours(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    if not meta.colours:
        return None
    colours = [meta.colours[index - 1] for index in data]
    if len(set(colours) & _SPECTRAL) < 3:
        return None
    found = [
        parse_band_name(colour) or Band(f"band {index}")
        for index, colour in zip(data, colours, strict=True)
    ]
    warnings: tuple[str, ...] = ()
    if len(data) == 4 and colours[:3] == ["red", "green", "blue"] and colours[3] == "undefined":
        found[3] = parse_band_name("nir") or found[3]
        warnings = ("band 4 has no name; assuming near infrared",)
    return BandReading(BandSet(_unique(found, data)), data, "colour interpretation", warnings)


def _from_unknown(meta: RasterMeta, data: tuple[int, ...]) -> BandReading | None:
    """Keep names that a person gave but that mean nothing here, rather than count bands."""
    texts = [(meta.descriptions[index - 1] or "").strip() for index in data]
    if all(_FILLER.fullmatch(text.casefold()) for text in texts):
        return None
    bands = [Band(text or f"band {index}") for index, text in zip(data, texts, strict=True)]
    return BandReading(
        BandSet(_unique(bands, data)),
        data,
        "band descriptions",
        (f"band names {', '.join(b.name for b in bands)} are not understood; use --bands",),
    )


def _from_count(data: tuple[int, ...]) -> BandReading:
    guess = _BY_COUNT.get(len(data))
    if guess is None:
        bands = BandSet(tuple(Band(f"band {index}") for index in data))
        return BandReading(
            bands, data, "band count", ("bands have no names; say which they are with --bands",)
        )
    preset, count, words = guess
    return BandReading(
        BandSet(find_sensor(preset).bands.bands[:count]),
        data,
        "band count",
        (f"bands have no names; assuming {words} because there are {count}",),
    )


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


def _envi_list(text: str) -> list[float | None]:
    items = [item for item in re.split(r"[,\s]+", text.strip().strip("{}").strip()) if item]
    return [_positive(item) for item in items]


def _positive(text: str | None, factor: float = 1.0) -> float | None:
    try:
        value = float(text) if text is not None else 0.0
    except ValueError:
        return None
    return value * factor if 0 < value < float("inf") else None


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
