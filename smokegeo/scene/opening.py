"""Open scenes: a raster file, a product folder, or an `xarray.DataArray`."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rasterio.enums import ColorInterp
from rasterio.io import DatasetReader
from rasterio.transform import Affine

from smokegeo.bandchoice import named_bands
from smokegeo.bandmeta import read_bands
from smokegeo.bands import BandSet
from smokegeo.errors import InputError, UsageError
from smokegeo.files import sha256
from smokegeo.rastermeta import RasterMeta, raster_meta
from smokegeo.scene.areas import bbox_box, window_box
from smokegeo.scene.arrays import array_scene
from smokegeo.scene.coding import check_units, coding_of, is_radiance
from smokegeo.scene.georeference import check_choice, locate
from smokegeo.scene.layers import Layer, RasterLayer, raster_layer
from smokegeo.scene.options import SceneOptions
from smokegeo.scene.product import BandFile
from smokegeo.scene.products import Product, is_product, read_product, refuse_folder
from smokegeo.scene.rasters import check_pixels, find_file, metadata_of, open_raster
from smokegeo.scene.scene import Scene, Source
from smokegeo.scene.times import taken

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger(__name__)

#: How far the pixels of two bands may lie apart, in pixels of the finer one.
_SHIFT_PX = 0.1


def open_scene(source: str | Path | xr.DataArray, options: SceneOptions | None = None) -> Scene:
    """Return the scene in a file, a product folder or an array, checked; its pixels stay there."""
    options = options or SceneOptions()
    _ = options.nodata_value  # refuse a wrong one before anything is opened
    if options.bbox is not None and options.window is not None:
        raise UsageError("--bbox and --window are two ways to say one thing; give one.")
    check_choice(options.crs, options.pixel_coords)
    on_disk = isinstance(source, str | Path)
    if options.sha256 is not None and (not on_disk or is_product(Path(source))):
        raise UsageError("--sha256 is the checksum of one file.")
    if not isinstance(source, str | Path):
        scene = array_scene(source, options)
    elif is_product(Path(source)):
        scene = _from_product(read_product(Path(source), raw=options.raw), options)
    else:
        scene = _from_file(Path(source), options)
    _say_unfit_nodata(scene, options.nodata_value)
    if options.bbox is not None:
        scene = scene.crop(bbox_box(options.bbox, scene))
    elif options.window is not None:
        scene = scene.crop(window_box(options.window, scene))
    return scene


def _say_unfit_nodata(scene: Scene, nodata: float | None) -> None:
    """Say that a user's nodata is a number that no pixel can be."""
    bands = range(len(scene.bands))
    if nodata is not None and all(scene.as_read(band, nodata) is None for band in bands):
        log.warning(
            "%s: --nodata %g is no number that %s can hold, so it leaves nothing out",
            scene.name,
            nodata,
            scene.dtype,
        )


def _from_file(path: Path, options: SceneOptions) -> Scene:
    found = find_file(path)
    if found.is_dir():
        refuse_folder(found)
    if options.sha256 is not None:
        _check_sum(found, options.sha256)
    with open_raster(found) as src, metadata_of(found.name):
        _refuse_palette(src, found.name)
        meta = raster_meta(src)
        reading = read_bands(meta, sensor=options.sensor, bands=options.bands)
        for warning in reading.warnings:
            log.warning("%s: %s", found.name, warning)
        for note in reading.notes:
            log.info("%s: %s", found.name, note)
        place = locate(src, found.name, crs=options.crs, pixel_coords=options.pixel_coords)
        layer = _layer(src, reading.indexes, options)
        check_units(found.name, reading.bands, layer.scales, layer.offsets)
        texts = _texts(meta, reading.indexes, options)
        if not options.skip_damaged:
            check_pixels(src, reading.indexes)
        return Scene(
            name=found.name,
            width=src.width,
            height=src.height,
            place=place,
            bands=reading.bands,
            layers=(layer,),
            sources=tuple(Source(0, i) for i in range(len(reading.indexes))),
            acquired=_acquired(meta),
            bands_from=reading.source,
            physical=layer.scaled,
            coding=None
            if options.raw
            else coding_of(found.name, meta.tags, reading.bands.bands, texts, reading.bands.sensor),
            radiance=not options.raw and is_radiance(found.name, meta.envi.get("description", "")),
            paths=(str(found),),
            sentinels=options.sentinels,
        )


def _refuse_palette(src: DatasetReader, name: str) -> None:
    """Refuse a picture whose pixels are numbers of colours in a table."""
    if src.colorinterp[0] == ColorInterp.palette:
        raise InputError(
            f"{name} holds numbers of colours in a palette, not the colours themselves. "
            f"Convert it: gdal_translate -expand rgb {name} OUT.tif"
        )


def _texts(
    meta: RasterMeta, indexes: tuple[int, ...], options: SceneOptions
) -> Sequence[str | None]:
    """Return what the user, or else the file, calls the bands."""
    named = named_bands(options.bands or "")
    return named if len(named) == len(indexes) else [meta.descriptions[i - 1] for i in indexes]


def _check_sum(path: Path, wanted: str) -> None:
    """Refuse a file with another checksum: damage of raw pixels shows in no other way."""
    if not re.fullmatch("[0-9a-fA-F]{64}", wanted):
        raise UsageError(f"--sha256 {wanted!r} is not a checksum of 64 hexadecimal digits.")
    found = sha256(path)
    if found != wanted.lower():
        raise InputError(
            f"{path.name} has another checksum ({found[:12]}...) than --sha256 says "
            f"({wanted[:12].lower()}...): it was changed or damaged. Copy it again."
        )


def _layer(src: DatasetReader, indexes: tuple[int, ...], options: SceneOptions) -> RasterLayer:
    layer = raster_layer(
        src,
        indexes,
        nodata=options.nodata_value,
        raw=options.raw,
        skip_damaged=options.skip_damaged,
    )
    if options.ignores_nodata:
        layer = replace(layer, nodata=(None,) * len(indexes), own_mask=False, alpha=None)
    return layer


def _from_product(product: Product, options: SceneOptions) -> Scene:
    """Join the band files of a product on the finest of their grids."""
    if options.bands is not None or options.sensor is not None:
        raise UsageError(f"{product.name} names its own bands; drop --bands and --sensor.")
    for note in product.notes:
        log.info("%s: %s", product.name, note)
    opened = []
    for file in product.files:
        with open_raster(file.path) as src, metadata_of(file.path.name):
            place = locate(src, file.path.name, crs=options.crs, pixel_coords=options.pixel_coords)
            layer = _band_layer(src, file, options)
            opened.append((file, place, src.width, src.height, layer))
            if not options.skip_damaged:
                check_pixels(src, (file.index,))
    finest, place, width, height, _ = max(opened, key=lambda item: item[2])
    layers: list[Layer] = []
    sources = []
    for file, own, columns, rows, layer in opened:
        factor = width // columns
        scaled = own.transform @ Affine.scale(1 / factor)
        if (columns * factor, rows * factor) != (width, height) or not (
            options.pixel_coords
            or (own.crs == place.crs and _same_grid(scaled, place.transform, width, height))
        ):
            raise InputError(
                f"{product.name}: {file.path.name} lies on another grid than the other bands. Put "
                f"in its place what this makes of it: "
                + _regrid(file.path.name, finest.path.name, width, height, own.crs is not None)
            )
        sources.append(Source(len(layers), 0, factor))
        layers.append(layer)
    return Scene(
        name=product.name,
        width=width,
        height=height,
        place=place,
        bands=BandSet(tuple(file.band for file in product.files), product.sensor),
        layers=tuple(layers),
        sources=tuple(sources),
        acquired=product.acquired,
        bands_from=product.bands_from,
        physical=product.scaled and not options.raw,
        coding=product.coding,
        paths=tuple(str(file.path) for file in product.files),
        sentinels=options.sentinels,
    )


def _band_layer(src: DatasetReader, file: BandFile, options: SceneOptions) -> RasterLayer:
    """Describe a band file: its mask is its own, the rest is as the product says."""
    layer = _layer(src, (file.index,), replace(options, raw=True))
    return replace(
        layer,
        scales=(1.0 if options.raw else file.scale,),
        offsets=(0.0 if options.raw else file.offset,),
        nodata=(file.nodata,) if options.nodata is None else layer.nodata,
    )


def _same_grid(one: Affine, other: Affine, width: int, height: int) -> bool:
    """Say whether two grids of one size lie upon each other, in pixels: degrees are large."""
    to_other = ~other @ one
    return all(
        math.dist(to_other @ corner, corner) <= _SHIFT_PX
        for corner in ((0, 0), (width, 0), (0, height), (width, height))
    )


def _regrid(name: str, other: str, width: int, height: int, placed: bool) -> str:
    """Return the command that puts a file on the grid of another."""
    if placed:
        return f"rio warp {name} OUT.tif --like {other}"
    return f"gdal_translate -outsize {width} {height} {name} OUT.tif"


def acquired(src: DatasetReader) -> datetime | None:
    """Return when the picture in an open raster was taken, if it says so."""
    return _acquired(raster_meta(src))


def _acquired(meta: RasterMeta) -> datetime | None:
    return taken([meta.tags, *meta.imagery, meta.envi], meta.filename)
