"""How a scene stores its reflectances, where only names and tags that came along with it say so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from smokegeo.bandnames import sensor_clue
from smokegeo.bands import Band, BandSet, is_thermal
from smokegeo.errors import InputError
from smokegeo.scene import landsat, sentinel2
from smokegeo.scene.product import listed
from smokegeo.scene.scene import Coding

#: Presets of MicaSense's cameras, in whose 16 bits 32768 is all light, and words for them.
MICASENSE = ("altum", "rededge_mx")
_MICASENSE = re.compile(r"(?<![a-z])(?:micasense|altum|rededge[ _-]?(?:mx?|p)(?![a-z0-9]))")
_MICASENSE_FULL = 32_768.0
#: Words for radiances in names and headers, and in names for what was made reflectance of them.
_RADIANCE = re.compile(r"(?<![a-z])(?:rdn|radiances?|analyticms)(?![a-z])")
_REFLECTANCE = re.compile(r"(?<![a-z])(?:sr|toar)(?![a-z])|refl")


def coding_of(
    name: str,
    tags: Mapping[str, str],
    bands: Sequence[Band],
    texts: Sequence[str | None],
    sensor: str | None = None,
) -> Coding | None:
    """Return what the name of a file, its tags or the names of its bands say; often nothing.

    `texts` are the bands' own names, before they were understood; `sensor` is their preset.
    """
    light = [text or "" for band, text in zip(bands, texts, strict=True) if sees_light(band)]
    return (
        landsat.coding_of(name, light)
        or sentinel2.coding_of(name, tags)
        or _micasense(name, tags, len(light), sensor)
    )


def _micasense(name: str, tags: Mapping[str, str], count: int, sensor: str | None) -> Coding | None:
    """Return how MicaSense's cameras are stored, by preset, or by a word of a file of 5 bands.

    Fewer may be a satellite's red edge, as may all whose name tells of one.
    """
    text = " ".join([name, *tags.values()]).casefold()
    told = _MICASENSE.search(text) is not None or "rededge" in name.casefold()
    if sensor in MICASENSE:
        why = f"the preset {sensor}"
    elif told and count >= 5 and sensor_clue((), tags, name) is None:
        why = "its name or tags"
    else:
        return None
    return Coding(1 / _MICASENSE_FULL, 0.0, 0.0, f"reflectances of MicaSense x 32768, by {why}")


def is_radiance(name: str, description: str = "") -> bool:
    """Say whether a file's name or header tells of radiances, which depend on the sun."""
    name, description = name.casefold(), description.casefold()
    made = _REFLECTANCE.search(name) is not None or "refl" in description  # there sr is steradian
    return not made and _RADIANCE.search(f"{name} {description}") is not None


def sees_light(band: Band) -> bool:
    """True if a band is known to see light, unlike heat, a mask or a height."""
    return band.wavelength_nm is not None and not is_thermal(band)


def check_units(
    name: str, bands: BandSet, scales: Sequence[float], offsets: Sequence[float]
) -> None:
    """Refuse a scene whose bands of light are in two units, some with a scale tag, some without."""
    scaled = {
        band.name: (scale, offset) != (1.0, 0.0)
        for band, scale, offset in zip(bands, scales, offsets, strict=True)
        if sees_light(band)
    }
    if len(set(scaled.values())) > 1:
        bare = [band for band, tagged in scaled.items() if not tagged]
        raise InputError(
            f"{name} has bands with a scale tag and without: {listed(bare)}. "
            "Tag them alike: gdal_edit -scale S -offset O, or ignore all tags with --raw"
        )
