"""Scenes that are an `xarray.DataArray`, with its rioxarray georeference."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from rasterio.errors import CRSError
from rasterio.transform import Affine

from smokegeo.bandmeta import read_bands
from smokegeo.bandreading import BandReading, unique
from smokegeo.bands import Band, BandSet
from smokegeo.errors import InputError, UsageError
from smokegeo.labels import Place
from smokegeo.rastermeta import RasterMeta, bare_wavelengths
from smokegeo.scene.coding import check_units, coding_of, is_radiance
from smokegeo.scene.georeference import PICTURE, check_place, parse_crs
from smokegeo.scene.layers import Box, Valid, Values, check_scaling, physical, usable
from smokegeo.scene.options import SceneOptions
from smokegeo.scene.scene import Scene, Source
from smokegeo.scene.times import taken

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger(__name__)
T = TypeVar("T")

#: How far the coordinates of pixels may be from even, in pixels.
_SHIFT_PX = 0.1
#: What the dimensions of a scene are called.
_DIMENSIONS = ("band", "bands", "wavelength", "y", "x", "lat", "lon", "latitude", "longitude")


@dataclass(frozen=True)
class ArrayLayer:
    """Bands of an `xarray.DataArray` (band, y, x), in memory or lazy."""

    array: xr.DataArray
    nodata: float | None = None
    dtype: str = ""
    scaling: tuple[tuple[float, float], ...] = ()  # scale and offset of each band, if there are any

    def scaling_of(self, position: int) -> tuple[float, float]:
        """Return scale and offset of a band."""
        return self.scaling[position] if self.scaling else (1.0, 0.0)

    def as_read(self, position: int, stored: float) -> float | None:
        """Return what reading makes of a stored number, None if the array cannot hold it."""
        return physical(stored, self.dtype, *self.scaling_of(position))

    def open(self) -> _ArrayReader:
        """Nothing to open: the array is there."""
        return _ArrayReader(self)


@dataclass(frozen=True)
class _ArrayReader:
    layer: ArrayLayer

    def __enter__(self) -> _ArrayReader:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def block_bytes(self, height: int, width: int, bands: int) -> int:
        return height * width * bands * int(self.layer.array.dtype.itemsize)

    def read(self, box: Box, positions: Sequence[int]) -> tuple[Values, Valid]:
        part = self.layer.array[
            list(positions), box.row : box.row + box.height, box.column : box.column + box.width
        ]
        stored = np.asarray(part.values)
        valid = np.ones(stored.shape[1:], bool)
        for band in stored:
            valid &= usable(band, self.layer.nodata)
        with np.errstate(over="ignore"):
            values = stored.astype(np.float32)
            for band, position in zip(values, positions, strict=True):
                scale, offset = self.layer.scaling_of(position)
                if (scale, offset) != (1.0, 0.0):
                    band *= scale
                    band += offset
        return values, valid & np.isfinite(values).all(axis=0)


def array_scene(array: xr.DataArray, options: SceneOptions) -> Scene:
    """Return an array (band, y, x), or (y, x) for one band, as a scene; lazy ones stay lazy."""
    import rioxarray  # noqa: F401  # registers .rio

    _check_type(array)
    name = str(array.name or "array")
    array = _in_order(array)
    if array.dtype.kind not in "uifb":
        raise InputError(f"an array of {array.dtype} values is no scene.")
    if array.size == 0:
        raise InputError(f"{name} holds no pixels: its shape is {array.shape}.")
    reading, texts = _bands(array, name, options)
    tags = {str(key): str(value) for key, value in array.attrs.items()}
    nodata = array.rio.nodata if options.nodata is None else options.nodata_value
    scaling = () if options.raw else _scaling(array, name)
    layer = ArrayLayer(array, None if nodata is None else float(nodata), array.dtype.name, scaling)
    used = [layer.scaling_of(index - 1) for index in reading.indexes]
    check_units(name, reading.bands, *zip(*used, strict=True))
    return Scene(
        name=name,
        width=array.shape[2],
        height=array.shape[1],
        place=_place(array, name, options),
        bands=reading.bands,
        layers=(layer,),
        sources=tuple(Source(0, index - 1) for index in reading.indexes),
        acquired=taken([tags], name),
        bands_from=reading.source,
        physical=any(pair != (1.0, 0.0) for pair in used),
        coding=None
        if options.raw
        else coding_of(name, tags, reading.bands.bands, texts, reading.bands.sensor),
        radiance=not options.raw and is_radiance(name, tags.get("description", "")),
        sentinels=options.sentinels,
    )


def _check_type(array: object) -> None:
    """Refuse what is no array of xarray, such as a whole Dataset."""
    import xarray as xr

    if not isinstance(array, xr.DataArray):
        remedy = ' Make one: dataset.to_dataarray("band")' if isinstance(array, xr.Dataset) else ""
        raise UsageError(
            f"a scene is a path or an xarray.DataArray, not a {type(array).__name__}.{remedy}"
        )


def _in_order(array: xr.DataArray) -> xr.DataArray:
    """Return the array as (band, y, x), by the names of its dimensions where they are known."""
    if array.ndim == 2:
        array = array.expand_dims("band")
    if array.ndim != 3:
        extra = [str(name) for name in array.dims if name not in _DIMENSIONS]
        remedy = f" Pick one: .isel({extra[0]}=0)" if array.ndim > 3 and extra else ""
        raise InputError(f"an array of shape {array.shape} is not (band, y, x).{remedy}")
    for y, x in (("y", "x"), ("lat", "lon"), ("latitude", "longitude")):
        if {y, x} <= set(array.dims):
            (first,) = set(array.dims) - {y, x}
            array = array.transpose(first, y, x)
            # rioxarray knows `lat` and `lon` by their attributes only.
            known = y != "lat" or {"x", "y"} & {*array.coords}
            return array if known else array.rename({y: "y", x: "x"})
    return array


def _bands(
    array: xr.DataArray, name: str, options: SceneOptions
) -> tuple[BandReading, Sequence[str | None]]:
    """Return the bands, and what the array calls them."""
    count = array.shape[0]
    if options.bands is None and (bands := _from_coordinates(array)) is not None:
        return BandReading(
            bands, tuple(range(1, count + 1)), "the array's coordinates"
        ), bands.names
    texts = array.attrs.get("long_name", ())
    texts = (texts,) if isinstance(texts, str) else tuple(texts)
    named: Sequence[str | None] = _per_band(array, texts) or (None,) * count
    if "band" in array.coords and array["band"].dtype.kind in "UO":
        named = tuple(str(value) for value in array["band"].values)
    elif "band" in array.coords and array["band"].dtype.kind in "uif":
        numbers = tuple(f"{value:g}" for value in array["band"].values)
        named = numbers if bare_wavelengths(numbers) else named
    reading = read_bands(RasterMeta(descriptions=named), sensor=options.sensor, bands=options.bands)
    for warning in reading.warnings:
        log.warning("%s: %s", name, warning)
    for note in reading.notes:
        log.info("%s: %s", name, note)
    return reading, [named[index - 1] for index in reading.indexes]


def _from_coordinates(array: xr.DataArray) -> BandSet | None:
    """Return the bands of an array that has their wavelengths as a coordinate."""
    along = [key for key, own in array.coords.items() if own.dims == array.dims[:1]]
    numbers = {key: array[key].values for key in along if array[key].dtype.kind in "uif"}
    texts = {key: array[key].values for key in along if array[key].dtype.kind in "UO"}
    stated = numbers.get("wavelength", numbers.get("wavelengths"))
    if stated is None:
        return None
    # No sensor of ours sees below 100 nm or beyond 100 um.
    factor = 1000.0 if max((nm for nm in stated if nm > 0), default=100) < 100 else 1.0
    centres, widths = (
        [round(float(nm) * factor, 3) if nm > 0 else None for nm in column]
        for column in (stated, numbers.get("fwhm", np.zeros(len(stated))))
    )
    plain = [f"{nm:g}nm" if nm else f"band {i}" for i, nm in enumerate(centres, start=1)]
    names = map(str, texts.get("name", texts.get("band", np.array(plain))))
    bands = tuple(map(Band, names, centres, widths))
    places = tuple(range(1, len(bands) + 1))
    # The sensor that our own cubes name; others mean anything by it.
    return BandSet(unique(bands, places), array.attrs.get("sensor") if "name" in texts else None)


def _per_band(array: xr.DataArray, items: Sequence[T]) -> tuple[T, ...]:
    """Return what an attribute lists of each band, nothing if it is of other bands.

    rioxarray numbers the bands of a file: some may have been picked, or turned around.
    """
    if "band" in array.coords and array["band"].dtype.kind in "ui":
        numbers = [int(number) for number in array["band"].values]
        once = len(set(numbers)) == len(numbers)  # unlike bands of several files put together
        if once and all(1 <= number <= len(items) for number in numbers):
            return tuple(items[number - 1] for number in numbers)
    return tuple(items) if len(items) == array.shape[0] else ()


def _scaling(array: xr.DataArray, name: str) -> tuple[tuple[float, float], ...]:
    """Return scale and offset of each band, from one attribute for all or for each."""
    scales = _numbers(array, name, ("scale_factor", "scales"), 1.0)
    offsets = _numbers(array, name, ("add_offset", "offsets"), 0.0)
    for scale, offset in zip(scales, offsets, strict=True):
        check_scaling(name, scale, offset)
    return tuple(zip(scales, offsets, strict=True))


def _numbers(
    array: xr.DataArray, name: str, keys: Sequence[str], default: float
) -> tuple[float, ...]:
    for key in keys:
        value = array.attrs.get(key)
        if value is None:
            continue
        try:
            found = [float(number) for number in np.atleast_1d(value)]
        except (TypeError, ValueError):
            found = []
        numbers = tuple(found) * array.shape[0] if np.ndim(value) == 0 else _per_band(array, found)
        if not numbers:
            raise InputError(
                f"{name}: its attribute {key} is {str(value)[:40]!r}, which is no number, nor one "
                f"for each of {array.shape[0]} bands. Correct it, or use raw=True."
            )
        return numbers
    return (default,) * array.shape[0]


def _place(array: xr.DataArray, name: str, options: SceneOptions) -> Place:
    if options.pixel_coords:
        return Place(None, PICTURE)
    from rioxarray.exceptions import RioXarrayError

    try:
        crs, transform = array.rio.crs, array.rio.transform(recalc=False)
        if transform.b == 0 and transform.d == 0:  # rioxarray cannot compute a rotated one
            transform = array.rio.transform(recalc=True)
    except (RioXarrayError, CRSError) as error:
        raise InputError(
            f"{name}: its georeference cannot be read ({error}). Call its dimensions band, y and "
            "x, and give it one with .rio.write_crs and .rio.write_transform."
        ) from error
    if crs is not None and options.crs is not None:
        raise UsageError(
            f"{name} has a coordinate system already ({crs.to_string()[:60]}); --crs is for scenes "
            "without one. Drop it, or correct the array with .rio.write_crs."
        )
    if options.crs is not None:
        crs = parse_crs(options.crs)
    if crs is None or transform == Affine.identity():
        raise InputError(
            f"{name} has no georeference. Give it one with .rio.write_crs and "
            ".rio.write_transform, or use pixel_coords=True."
        )
    for dimension in array.dims[1:]:
        _check_even(array, str(dimension), name)
    return check_place(Place(crs, transform), array.shape[2], array.shape[1], name)


def _check_even(array: xr.DataArray, dimension: str, name: str) -> None:
    """Refuse coordinates that no transform can express."""
    if dimension not in array.coords or array.sizes[dimension] < 3:
        return
    found = array[dimension].values.astype(np.float64)
    even = np.linspace(found[0], found[-1], found.size)
    step = abs(even[1] - even[0])
    if not np.abs(found - even).max() <= _SHIFT_PX * step:
        raise InputError(
            f"{name}: its {dimension} coordinates are not evenly spaced, so its pixels lie on no "
            "grid. Put it on one: .rio.reproject(array.rio.crs), or .interp"
        )
