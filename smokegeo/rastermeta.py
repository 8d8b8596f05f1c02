"""What a raster file says about its bands, before anybody makes sense of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rasterio.io import DatasetReader

#: Centre and width of a band in nm, as far as they are stated.
BandNumbers = tuple[float | None, float | None]

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
_FILLER = re.compile(
    r"(?:(?:band|layer|channel)[ _.-]?)?(?P<number>\d*(?:\.\d+)?)\.?|gr[ae]y|undefined|unknown"
)
#: Bare numbers that are wavelengths, as (lowest, highest, factor to nm); those that are years.
_BARE = ((350.0, 2500.0, 1.0), (0.35, 2.5, 1000.0))
_YEARS = range(1970, 2041)


@dataclass(frozen=True, slots=True)
class RasterMeta:
    """What a raster file says about its bands; one entry per band in each sequence.

    `graded` are the one-based bands marked alpha whose pixels are of many values, unlike a mask's;
    only those without a telling name are looked at. `band_tags` are those of each band.
    """

    descriptions: Sequence[str | None]
    colours: Sequence[str] = ()
    imagery: Sequence[Mapping[str, str]] = ()
    envi: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    filename: str = ""
    graded: Sequence[int] = ()
    band_tags: Sequence[Mapping[str, str]] = ()

    @property
    def count(self) -> int:
        """The number of raster bands, alpha included."""
        return len(self.descriptions)


def raster_meta(src: DatasetReader) -> RasterMeta:
    """Collect the band metadata of an open raster."""
    colours = tuple(colour.name for colour in src.colorinterp)
    names = [text or "" for text in src.descriptions]
    doubtful = [
        index
        for index, text, colour in zip(src.indexes, names, colours, strict=True)
        if colour == "alpha"
        and (is_filler(text, index) or text.casefold().strip() in ("t", f"b{index}"))
    ]
    return RasterMeta(
        descriptions=tuple(src.descriptions),
        colours=colours,
        imagery=tuple(src.tags(i, ns="IMAGERY") for i in src.indexes),
        envi=src.tags(ns="ENVI"),
        tags=src.tags(),
        filename=src.name.replace("\\", "/").rpartition("/")[2],
        graded=tuple(i for i in doubtful if _is_graded(src, i)),
        band_tags=tuple(src.tags(i) for i in src.indexes),
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


def is_filler(text: str, index: int) -> bool:
    """Say whether a description is one that programs fill in by themselves, or none.

    They number bands, from one as `index` does or from zero; any other number is a person's.
    """
    match = _FILLER.fullmatch(text.casefold().strip())
    return match is not None and (
        not match["number"] or float(match["number"]) in (index, index - 1)
    )


def bare_wavelengths(texts: Sequence[str]) -> list[float]:
    """Return the wavelengths in nm if all texts are such numbers without a unit, else nothing."""
    if not all(re.fullmatch(r"\d+(?:\.\d*)?|\.\d+", text.strip()) for text in texts):
        return []
    numbers = [float(text) for text in texts]
    if all(number in _YEARS for number in numbers):
        return []
    for low, high, factor in _BARE:
        if numbers and all(low <= number <= high for number in numbers):
            return [round(number * factor, 3) for number in numbers]
    return []


def imagery_numbers(meta: RasterMeta) -> list[BandNumbers]:
    """Return what GDAL's `IMAGERY` domain states of each band; nothing if there is none."""
    return [
        (
            _positive(tags.get("CENTRAL_WAVELENGTH_UM"), 1000),
            _positive(tags.get("FWHM_UM"), 1000),
        )
        for tags in meta.imagery
    ]


def envi_numbers(meta: RasterMeta) -> list[BandNumbers]:
    """Return what an ENVI header states of each band; nothing if that is not of all bands."""
    envi = {key.casefold().replace(" ", "_"): value for key, value in meta.envi.items()}
    numbers = _envi_list(envi.get("wavelength", ""))
    if len(numbers) != meta.count:
        return []
    widths = _envi_list(envi.get("fwhm", ""))
    if len(widths) != meta.count:
        widths = [None] * meta.count
    return _in_nm(numbers, widths, envi.get("wavelength_units", ""))


def tag_numbers(meta: RasterMeta) -> list[BandNumbers]:
    """Return what tags of the bands state, as GDAL copies them from ENVI headers.

    It copies no unit that is none of length: small whole numbers without one may only count.
    """
    tags = [{key.casefold(): value for key, value in own.items()} for own in meta.band_tags]
    units = {own.get("wavelength_units", "") for own in tags if "wavelength" in own}
    if len(units) != 1 or meta.envi:  # a header that is there has had its say
        return []
    numbers, widths = ([_positive(own.get(key)) for own in tags] for key in ("wavelength", "fwhm"))
    unit = units.pop()
    counting = all(n is None or (n < 100 and n == int(n)) for n in numbers)
    return [] if counting and not unit else _in_nm(numbers, widths, unit)


def bad_bands(meta: RasterMeta) -> tuple[int, ...]:
    """Return the one-based bands that the list of bad ones in an ENVI header marks, unless all."""
    envi = {key.casefold(): value for key, value in meta.envi.items()}
    good = _envi_list(envi.get("bbl", ""))
    if len(good) != meta.count or not any(good):
        return ()
    return tuple(index for index, mark in enumerate(good, start=1) if not mark)


def _in_nm(
    numbers: Sequence[float | None], widths: Sequence[float | None], unit: str
) -> list[BandNumbers]:
    """Return centres and widths in nm; nothing if the unit is none of length."""
    unit = unit.strip().casefold()
    if unit in ("", "unknown"):
        # No sensor of ours sees below 100 nm or beyond 100 um.
        factor = 1000.0 if max(n or 0 for n in numbers) < 100 else 1.0
    elif unit in _ENVI_UNITS:
        factor = _ENVI_UNITS[unit]
    else:
        return []
    return [
        (_scaled(number, factor), _scaled(width, factor))
        for number, width in zip(numbers, widths, strict=True)
    ]


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
