"""The bands of a raster as they were read, and what is known of usual ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smokegeo.bands import Band, BandSet
from smokegeo.sensors import Sensor

#: What usual stacks of a sensor leave out of its bands, in their order.
_LEFT_OUT: Mapping[str, Sequence[tuple[str, ...]]] = {
    "sentinel2": (("B10",),),  # Level 2A
    "landsat8": (("B8", "B9", "B10", "B11"),),  # surface reflectance
    "landsat7": (("B8",), ("B6", "B8")),
    "landsat5": (("B6",),),
}

#: The same bands in the other order that programs write: MicaSense's cameras count near infrared
#: before red edge, exports of Atlas and Metashape go by wavelength.
_OTHER_ORDERS = {
    "red,green,blue": "blue,green,red",
    "red,green,blue,nir": "blue,green,red,nir",
    "blue,green,red,nir": "red,green,blue,nir",
    "blue,green,red,nir,rededge": "blue,green,red,rededge,nir",
    "blue,green,red,nir,rededge,thermal": "blue,green,red,rededge,nir,thermal",
}


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


def unique(bands: Sequence[Band], data: tuple[int, ...]) -> tuple[Band, ...]:
    """Return the bands with repeated names told apart by their raster band number."""
    names = [band.name.casefold() for band in bands]
    return tuple(
        band
        if names.count(band.name.casefold()) == 1
        else Band(f"{band.name} #{i}", band.wavelength_nm, band.fwhm_nm)
        for i, band in zip(data, bands, strict=True)
    )


def band_at(nm: float) -> Band:
    """Return a band of which nothing but the wavelength is known."""
    return Band(f"{nm:g}nm", nm)


def other_order(bands: BandSet) -> str | None:
    """Return the other order that the same bands often have, as `--bands` takes it."""
    return _OTHER_ORDERS.get(",".join(bands.names))


def usual_stack(preset: Sensor, count: int) -> BandSet | None:
    """Return the bands of a sensor that a file of so many usually holds, in order."""
    for left_out in ((), *_LEFT_OUT.get(preset.name, ())):
        names = [name for name in preset.bands.names if name not in left_out]
        if len(names) == count:
            return preset.bands.subset(names)
    return None
