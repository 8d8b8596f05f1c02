"""Mask files: read whatever their convention as 0, 1 and 255 for ignored, and write them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.transform import Affine

from smokegeo.errors import InputError, OutputError, UsageError, deepest_cause
from smokegeo.files import atomic_files

#: Drivers a mask may come in, by suffix; nothing else is ever opened as a mask.
_DRIVERS = {".tif": "GTiff", ".tiff": "GTiff", ".png": "PNG"}


@dataclass(frozen=True)
class Place:
    """Where an image lies; without CRS the transform says nothing."""

    crs: CRS | None
    transform: Affine


@dataclass(frozen=True)
class Labels:
    """A mask's labels, (y, x) uint8, and where it lies."""

    values: NDArray[np.uint8]
    place: Place


def read_labels(path: Path) -> Labels:
    """Read a mask from a GeoTIFF or PNG."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            # Resolved, so that a file called "s3:x.tif" stays a file.
            with rasterio.open(path.resolve(), driver=label_driver(path)) as src:
                if src.count != 1:
                    raise InputError(f"{path} has {src.count} bands; a mask has one.")
                values, place = src.read(1), Place(src.crs, src.transform)
    except RasterioError as error:
        raise InputError(f"{path}: cannot be read ({deepest_cause(error)}).") from error
    try:
        return Labels(normalise_labels(values), place)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def normalise_labels(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Turn {0, 1}, {0, 255} or {0, 1, 255 = ignored} into 0, 1 and 255.

    255 is smoke where it is the only label beside 0, ignored where 1 occurs as well.
    """
    found = np.unique(values)
    if not set(found.tolist()) <= {0, 1, 255}:
        shown = ", ".join(f"{value:g}" for value in found[:6].astype(np.float64))
        more = ", ..." if found.size > 6 else ""
        raise InputError(f"mask values {shown}{more}; only 0, 1 and 255 are understood.")
    labels = values.astype(np.uint8)
    if 1 not in found and 255 in found:
        labels = (labels == 255).astype(np.uint8)
    return labels


def write_labels(path: Path, values: NDArray[np.uint8], place: Place) -> None:
    """Write one (y, x) uint8 band as GeoTIFF or PNG by suffix, whole or not at all."""
    write_together({path: values}, place)


def write_together(images: Mapping[Path, NDArray[np.uint8]], place: Place) -> None:
    """Write several such bands of one place, all of them or none."""
    for path in images:
        label_driver(path)
    with atomic_files(tuple(images)) as parts:
        for (path, values), part in zip(images.items(), parts, strict=True):
            try:
                _fill(part, values, place)
            except RasterioError as error:
                raise OutputError(f"{path}: cannot be written ({deepest_cause(error)}).") from error


def _fill(part: Path, values: NDArray[np.uint8], place: Place) -> None:
    driver = label_driver(part)
    profile: dict[str, object] = {"width": values.shape[1], "height": values.shape[0], "count": 1}
    if driver == "GTiff":
        profile |= {"crs": place.crs, "transform": place.transform, "compress": "deflate"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(part, "w", driver=driver, dtype="uint8", **profile) as dst:
            dst.write(values, 1)


def label_driver(path: Path) -> str:
    """Return the driver for a mask file by its suffix; refuse others, best before any work."""
    driver = _DRIVERS.get(path.suffix.lower())
    if driver is None:
        raise UsageError(f"{path}: a mask is a {', '.join(_DRIVERS)} file.")
    return driver
