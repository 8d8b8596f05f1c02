"""How a scene stores its reflectances, where only names and tags that came along with it say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smokegeo.bands import Band, is_thermal
from smokegeo.scene import landsat, sentinel2
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
