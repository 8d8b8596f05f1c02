"""Colour composites of any band set, for people to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet

#: Wavelengths to show as red, green and blue, in order of preference: true colour, then colour
#: infrared (vegetation red), then the same for cameras that begin at red.
_COMPOSITES_NM = ((650.0, 555.0, 470.0), (840.0, 660.0, 560.0), (810.0, 700.0, 610.0))
#: The largest distance that still counts as such.
_NEAR_NM = 60.0


def composite_indexes(bands: BandSet) -> tuple[int, int, int]:
    """Return the bands to show as red, green and blue: true colour if possible.

    Otherwise colour infrared, or the longest, middle and shortest wavelength; thermal bands only
    if there is nothing else.
    """
    for wanted in _COMPOSITES_NM:
        found = _nearest(bands, wanted)
        if found is not None:
            return found
    order = [index for _, index in sorted(_optical(bands))]
    return order[-1], order[len(order) // 2], order[0]


def composite(image: NDArray[Any], bands: BandSet) -> NDArray[np.float32]:
    """Return an (H, W, 3) picture in 0..1, stretched from the 2nd to the 98th percentile.

    True colours share one stretch, so that they stay what they are; false colours get one each,
    since a camera's bands differ in sensitivity.
    """
    return stretch(image[list(composite_indexes(bands))], together=has_true_colour(bands))


def has_true_colour(bands: BandSet) -> bool:
    """True if the composite of these bands shows what an eye would see."""
    return _nearest(bands, _COMPOSITES_NM[0]) is not None


def stretch(image: NDArray[Any], *, together: bool) -> NDArray[np.float32]:
    """Return three bands (3, H, W) as a picture, with one stretch for all or one for each."""
    picture = image.astype(np.float32).transpose(1, 2, 0)
    picture[~np.isfinite(picture)] = np.nan
    if np.isnan(picture).all():
        return np.zeros_like(picture)
    axis = None if together else (0, 1)
    low, high = (np.nanpercentile(picture, q, axis=axis) for q in (2, 98))
    stretched = (np.nan_to_num(picture, nan=0.0) - low) / np.maximum(high - low, 1e-6)
    return np.asarray(np.clip(stretched, 0, 1), np.float32)


def _optical(bands: BandSet) -> list[tuple[float, int]]:
    known = [
        (nm, index) for index, nm in enumerate(bands.wavelengths_nm) if nm is not None and nm < 3000
    ]
    return known or [(float(index), index) for index in range(len(bands))]


def _nearest(bands: BandSet, wanted_nm: tuple[float, ...]) -> tuple[int, int, int] | None:
    """Return the three bands nearest to the wavelengths, if all are near and different."""
    nearest = [min(_optical(bands), key=lambda item: abs(item[0] - nm)) for nm in wanted_nm]
    distances = [abs(nm - want) for (nm, _), want in zip(nearest, wanted_nm, strict=True)]
    red, green, blue = (index for _, index in nearest)
    if max(distances) > _NEAR_NM or len({red, green, blue}) < 3:
        return None
    return red, green, blue
