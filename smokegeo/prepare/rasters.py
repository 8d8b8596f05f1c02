"""Read GeoTIFF (one page or many) and ENVI cubes through rasterio, each with its own driver."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning
from rasterio.io import DatasetReader

from smokegeo.bandmeta import read_bands
from smokegeo.bands import BandSet
from smokegeo.labels import Place
from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.names import ENVI_SUFFIXES
from smokegeo.prepare.native import Native, check_size, shared_place, shared_valid
from smokegeo.rastermeta import raster_meta


def read_tiff(path: Path) -> Native:
    """Read a TIFF as (band, y, x), or its pages as (page, ...) in the order of their numbers."""
    path = _absolute(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, driver="GTiff") as src:
            pages = _page_numbers(src)
            if len(pages) < 2:
                return _read(src, "tif")
            check_size((len(pages), src.count, *src.shape), np.dtype(src.dtypes[0]))
        layers, places, valid = [], [], []
        for page in pages:
            with rasterio.open(f"GTIFF_DIR:{page}:{path}", driver="GTiff") as src:
                layers.append(src.read())
                places.append(_place(src))
                valid.append(_valid(layers[-1], src.nodatavals))
    if len({layer.shape for layer in layers}) != 1:
        raise SampleFault("unreadable", f"{path.name}: its pages differ in size")
    return Native(
        np.stack(layers),
        "multi-page tif",
        band_axis=0 if len(layers[0]) == 1 else None,
        place=shared_place(places),
        valid=shared_valid(valid),
    )


def read_envi(path: Path) -> Native:
    """Read an ENVI cube, given its header; a data file that comes here has none."""
    if path.suffix.lower() != ".hdr":
        raise SampleFault("unreadable", f"{path.name} has no .hdr header beside it")
    data = envi_data(path)
    if data is None:
        raise SampleFault("unreadable", f"{path.name} has no data file beside it")
    data = _absolute(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(data, driver="ENVI") as src:
            _check_envi_length(src, data)
            return _read(src, "ENVI")


def envi_data(header: Path) -> Path | None:
    """Return the data file an ENVI header describes: same name, another suffix or none."""
    # The bare stem comes first: it is the whole name of the data in cube.bsq.hdr.
    suffixes = ["", *sorted(ENVI_SUFFIXES - {""})]
    names = [f"{header.stem}{spelled}" for s in suffixes for spelled in (s, s.upper())]
    return next((p for name in names if (p := header.with_name(name)).is_file()), None)


def _absolute(path: Path) -> Path:
    """Return a path that is a file to GDAL even if called "s3:x.tif"; links keep their siblings."""
    return Path(os.path.abspath(path))


def _read(src: DatasetReader, form: str) -> Native:
    check_size((src.count, *src.shape), np.dtype(src.dtypes[0]))
    values = src.read()
    return Native(
        values,
        form,
        band_axis=0,
        bands=_stated_bands(src),
        place=_place(src),
        valid=_valid(values, src.nodatavals),
    )


def _page_numbers(src: DatasetReader) -> list[int]:
    """Return the page numbers, sorted as numbers: rasterio lists 10 before 2."""
    matches = (re.match(r"GTIFF_DIR:(\d+):", name) for name in src.subdatasets)
    return sorted(int(match.group(1)) for match in matches if match)


def _stated_bands(src: DatasetReader) -> BandSet | None:
    """Return the bands if the file itself says all of them, without any guess."""
    reading = read_bands(raster_meta(src))
    complete = len(reading.indexes) == src.count and None not in reading.bands.wavelengths_nm
    guessed = reading.warnings or reading.source in ("band count", "colour interpretation")
    return reading.bands if complete and not guessed else None


def _place(src: DatasetReader) -> Place | None:
    if src.crs is None:
        return None
    if src.transform.is_identity:
        raise SampleFault("no geotransform", "a CRS alone places nothing")
    if src.transform.b or src.transform.d:
        raise SampleFault("rotated grid", "warp it north-up first, with gdalwarp")
    return Place(src.crs, src.transform)


def _valid(values: NDArray[Any], nodata: tuple[float | None, ...]) -> NDArray[np.bool_] | None:
    """Return (y, x), True where every band has data; None if the file declares no nodata.

    Alpha is no help here: GDAL calls the fourth of four bands alpha, though it is thermal.
    """
    if all(value is None for value in nodata):
        return None
    valid = np.ones(values.shape[1:], bool)
    for layer, value in zip(values, nodata, strict=True):
        if value is not None:
            valid &= ~np.isnan(layer) if np.isnan(value) else layer != value
    return valid


def _check_envi_length(src: DatasetReader, data: Path) -> None:
    tags = src.tags(ns="ENVI")
    if tags.get("file_compression", "0").strip() not in ("", "0"):
        raise SampleFault("unreadable", f"{data.name} is compressed ENVI; save it uncompressed")
    offset = int(tags.get("header_offset", "0"))
    itemsize = np.dtype(src.dtypes[0]).itemsize
    needed = offset + src.count * src.width * src.height * itemsize
    if data.stat().st_size < needed:
        # GDAL may fill what is missing with zeros.
        raise SampleFault(
            "unreadable", f"{data.name} is cut short: {data.stat().st_size} of {needed} bytes"
        )
