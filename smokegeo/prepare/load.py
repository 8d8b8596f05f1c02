"""Make a checked frame of one sample's native files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from smokegeo.bands import BandSet
from smokegeo.cubes import make_cube
from smokegeo.datasets.layout import IGNORE, Frame
from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.masks import Labelled, settle_masks
from smokegeo.prepare.mosaic import split_mosaic, whole_blocks
from smokegeo.prepare.native import Native, is_elsewhere, squeezed
from smokegeo.sensors import Sensor, sensor

#: Data types both GeoTIFF and torch can hold.
_KEPT = frozenset({"uint8", "uint16", "int16", "int32", "float32"})


class Source(Protocol):
    """Where a sample's image and masks are read from."""

    def read_image(self) -> Native:
        """Return the image as its file holds it."""

    def read_masks(self) -> list[Native]:
        """Return the masks, one per annotator file; none if there is none."""


@dataclass(frozen=True)
class Sample:
    """One frame to be: id, folders and stem it came from, and the source that can read it."""

    id: str
    key: tuple[str, ...]
    source: Source
    scene: str = ""
    split: str | None = None
    scenarios: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expected:
    """What the frames should be: the kind, the user's own bands, the camera of raw mosaics."""

    kind: str
    bands: BandSet | None
    camera: Sensor

    @property
    def default_bands(self) -> BandSet:
        """The bands assumed where nobody knows better: the paper's."""
        return self.bands or sensor(self.kind).bands


@dataclass(frozen=True)
class Loaded:
    """A frame read and checked, and what its native form was."""

    frame: Frame
    form: str
    labelled: Labelled


def load_frame(sample: Sample, expected: Expected) -> Loaded:
    """Read one sample into memory; raise the `SampleFault` that makes it unusable."""
    masks = sample.source.read_masks()
    if not masks:
        raise SampleFault("no mask")
    native = _without_mosaic(sample.source.read_image(), expected)
    cube = _to_cube(native, expected)
    height, width = cube.shape[1:]
    labelled = settle_masks(masks, (height, width))
    if native.place and labelled.place and is_elsewhere(native.place, labelled.place):
        raise SampleFault("mask lies elsewhere", "its georeference is not the image's")
    mask = labelled.mask
    if native.valid is not None:
        mask = np.where(native.valid, mask, np.uint8(IGNORE))
    frame = Frame(sample.id, cube, mask, sample.scene, sample.scenarios, labelled.votes)
    return Loaded(frame, native.form, labelled)


def _without_mosaic(native: Native, expected: Expected) -> Native:
    """Take a raw frame of the camera apart into bands; return any other as it is."""
    raw = squeezed(native.values)
    if raw.ndim != 2 or expected.kind != "hss":
        return native
    values, bands = split_mosaic(raw, expected.camera)
    valid = None if native.valid is None else whole_blocks(native.valid, expected.camera)
    return Native(values, f"raw mosaic ({native.form})", band_axis=0, bands=bands, valid=valid)


def _to_cube(native: Native, expected: Expected) -> xr.DataArray:
    values = squeezed(native.values)
    bands = expected.bands or native.bands or expected.default_bands
    if values.ndim != 3:
        shape = "x".join(map(str, native.values.shape))
        raise SampleFault("wrong band count", f"shape {shape}, {len(bands)} bands wanted")
    values = _storable(bands_first(values, native.band_axis, len(bands)))
    if native.valid is not None:
        values = np.where(native.valid, values, values.dtype.type(0))
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).any(axis=0).sum())
        raise SampleFault("NaN or infinite values", f"{count} pixels")
    place = native.place
    return make_cube(
        values,
        bands,
        crs=None if place is None else place.crs,
        transform=None if place is None else place.transform,
    )


def bands_first(values: NDArray[Any], band_axis: int | None, count: int) -> NDArray[Any]:
    """Move the axis that counts the bands to the front of a 3-D array; refuse to guess."""
    shape = "x".join(map(str, values.shape))
    if band_axis is not None:
        if values.shape[band_axis] != count:
            raise SampleFault("wrong band count", f"{values.shape[band_axis]} of {count}")
        return np.moveaxis(values, band_axis, 0)
    fits = [axis for axis, length in enumerate(values.shape) if length == count]
    if not fits:
        raise SampleFault("wrong band count", f"shape {shape}, {count} bands wanted")
    if len(fits) > 1:
        raise SampleFault("axes ambiguous", f"shape {shape}, {count} bands")
    return np.moveaxis(values, fits[0], 0)


def _storable(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values in a data type that GeoTIFF has, unchanged where it has theirs."""
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    if values.dtype.name in _KEPT:
        return values
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    low, high = (values.min(), values.max()) if values.dtype.kind in "iu" else (0, np.inf)
    for candidate in (np.uint16, np.int16, np.int32):
        limits = np.iinfo(candidate)
        if limits.min <= low and high <= limits.max:
            return values.astype(candidate)
    raise SampleFault("data type", f"{values.dtype} does not fit into a GeoTIFF")
