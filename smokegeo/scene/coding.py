"""How a scene stores its reflectances, where only names and tags that came along with it say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smokegeo.bands import Band, BandSet, is_thermal
from smokegeo.errors import InputError
from smokegeo.scene import landsat, sentinel2
from smokegeo.scene.product import listed
from smokegeo.scene.scene import Coding


def coding_of(
    name: str, tags: Mapping[str, str], bands: Sequence[Band], texts: Sequence[str | None]
) -> Coding | None:
    """Return what the name of a file, its tags or the names of its bands say; often nothing.

    `texts` are the bands' own names, before they were understood.
    """
    light = [text or "" for band, text in zip(bands, texts, strict=True) if sees_light(band)]
    return landsat.coding_of(name, light) or sentinel2.coding_of(name, tags)


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
