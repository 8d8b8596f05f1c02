"""Scenes that are an `xarray.DataArray`, with its rioxarray georeference."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rasterio.transform import Affine

from smokegeo.bandmeta import read_bands
from smokegeo.bands import BandSet
from smokegeo.errors import InputError, UsageError
from smokegeo.labels import Place
from smokegeo.rastermeta import RasterMeta
from smokegeo.scene.coding import coding_of
from smokegeo.scene.georeference import PICTURE, check_place, parse_crs
from smokegeo.scene.layers import Box, Valid, Values, physical, usable
from smokegeo.scene.options import SceneOptions
from smokegeo.scene.scene import Scene, Source

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ArrayLayer:
    """Bands of an `xarray.DataArray` (band, y, x), in memory or lazy."""

    array: xr.DataArray
    nodata: float | None = None
    dtype: str = ""
    scale: float = 1.0
    offset: float = 0.0

    def as_read(self, position: int, stored: float) -> float | None:
        """Return what reading makes of a stored number, None if the array cannot hold it."""
        return physical(stored, self.dtype, self.scale, self.offset)

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
        if (self.layer.scale, self.layer.offset) != (1.0, 0.0):
            values = values * np.float32(self.layer.scale) + np.float32(self.layer.offset)
        return values, valid & np.isfinite(values).all(axis=0)


def array_scene(array: xr.DataArray, options: SceneOptions) -> Scene:
    """Return an array (band, y, x), or (y, x) for one band, as a scene; lazy ones stay lazy."""
    import rioxarray  # noqa: F401  # registers .rio

    _check_type(array)
    name = str(array.name or "array")
    array = _in_order(array)
    if array.dtype.kind not in "uifb":
        raise InputError(f"an array of {array.dtype} values is no scene.")
    bands, texts, source = _bands(array, name, options)
    tags = {str(key): str(value) for key, value in array.attrs.items()}
    nodata = array.rio.nodata if options.nodata is None else options.nodata_value
    layer = ArrayLayer(
        array,
        None if nodata is None else float(nodata),
        array.dtype.name,
        1.0 if options.raw else float(array.attrs.get("scale_factor", 1.0)),
        0.0 if options.raw else float(array.attrs.get("add_offset", 0.0)),
    )
    return Scene(
        name=name,
        width=array.shape[2],
        height=array.shape[1],
        place=_place(array, name, options),
        bands=bands,
        layers=(layer,),
        sources=tuple(Source(0, i) for i in range(len(bands))),
        bands_from=source,
        physical=(layer.scale, layer.offset) != (1.0, 0.0),
        coding=None if options.raw else coding_of(name, tags, bands.bands, texts),
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
        raise InputError(f"an array of shape {array.shape} is not (band, y, x).")
    for y, x in (("y", "x"), ("lat", "lon"), ("latitude", "longitude")):
        if {y, x} <= set(array.dims):
            (first,) = set(array.dims) - {y, x}
            return array.transpose(first, y, x)
    return array


def _bands(
    array: xr.DataArray, name: str, options: SceneOptions
) -> tuple[BandSet, Sequence[str | None], str]:
    """Return the bands, what the array calls them, and where that was read."""
    if "wavelength" in array.coords and "name" in array.coords and options.bands is None:
        from smokegeo.cubes import cube_bands

        bands = cube_bands(array)
        return bands, bands.names, "the array's coordinates"
    texts = array.attrs.get("long_name", ())
    texts = (texts,) if isinstance(texts, str) else tuple(texts)
    if "band" in array.coords and array["band"].dtype.kind in "UO":
        texts = tuple(str(value) for value in array["band"].values)
    count = array.shape[0]
    named = texts if len(texts) == count else (None,) * count
    reading = read_bands(RasterMeta(descriptions=named), sensor=options.sensor, bands=options.bands)
    for warning in reading.warnings:
        log.warning("%s: %s", name, warning)
    return reading.bands, named, reading.source


def _place(array: xr.DataArray, name: str, options: SceneOptions) -> Place:
    if options.pixel_coords:
        return Place(None, PICTURE)
    crs = array.rio.crs
    if crs is None and options.crs is not None:
        crs = parse_crs(options.crs)
    transform = array.rio.transform(recalc=False)
    if transform.b == 0 and transform.d == 0:  # rioxarray cannot compute a rotated one
        transform = array.rio.transform(recalc=True)
    if crs is None or transform == Affine.identity():
        raise InputError(
            f"{name} has no georeference. Give it one with .rio.write_crs and "
            ".rio.write_transform, or use pixel_coords=True."
        )
    return check_place(Place(crs, transform), array.shape[2], array.shape[1], name)
