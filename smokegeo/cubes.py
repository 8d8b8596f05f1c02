"""Spectral cubes in memory: an `xarray.DataArray` (band, y, x) with wavelengths on its bands.

Cubes are written and read as GeoTIFF through rioxarray. The wavelengths also go into GDAL's
`IMAGERY` metadata, where QGIS and every GDAL tool find them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import rasterio
import rioxarray
import xarray as xr
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.io import DatasetWriter
from rasterio.transform import Affine

from smokegeo.bandmeta import read_bands
from smokegeo.bands import Band, BandSet
from smokegeo.errors import InputError, deepest_cause
from smokegeo.rastermeta import raster_meta

if TYPE_CHECKING:
    from collections.abc import Mapping


def make_cube(
    values: NDArray[Any],
    bands: BandSet,
    *,
    crs: CRS | None = None,
    transform: Affine | None = None,
) -> xr.DataArray:
    """Wrap (band, y, x) values; `crs` and `transform` only if the pixels have a place."""
    if values.ndim != 3 or values.shape[0] != len(bands):
        raise InputError(f"cube of shape {values.shape} does not hold {len(bands)} bands.")
    cube = xr.DataArray(
        values,
        dims=("band", "y", "x"),
        coords={
            "band": np.arange(1, len(bands) + 1),
            "name": ("band", list(bands.names)),
            "wavelength": ("band", _floats(bands.wavelengths_nm)),
            "fwhm": ("band", _floats([band.fwhm_nm for band in bands])),
        },
        attrs={"sensor": bands.sensor} if bands.sensor else {},
    )
    if crs is not None and transform is not None:
        cube = cube.rio.write_crs(crs).rio.write_transform(transform)
    return cube


def cube_bands(cube: xr.DataArray) -> BandSet:
    """Return the band set of a cube made by `make_cube` or `read_cube`; widths may be missing."""
    names, numbers = cube["name"].values, cube["wavelength"].values
    widths = cube["fwhm"].values if "fwhm" in cube.coords else [np.nan] * len(names)
    return BandSet(
        tuple(
            Band(str(name), _known(nm), _known(fwhm))
            for name, nm, fwhm in zip(names, numbers, widths, strict=True)
        ),
        cube.attrs.get("sensor"),
    )


def write_cube(
    cube: xr.DataArray, path: Path, *, tags: Mapping[str, str] | None = None, **profile: Any
) -> None:
    """Write a cube as a compressed, tiled GeoTIFF with its wavelengths; not atomic by itself."""
    bands = cube_bands(cube)
    plain = cube.drop_vars(["name", "wavelength", "fwhm"]).copy(deep=False)  # own attrs
    plain.attrs = {}
    # photometric: GDAL takes three or four uint8 bands for red, green, blue and transparency.
    options = {"compress": "deflate", "predictor": 2, "tiled": True, "zlevel": 1}
    options |= {"photometric": "minisblack", **profile}
    if np.issubdtype(cube.dtype, np.floating):
        options["predictor"] = 3
    place = plain.rio.transform()
    rotated = place.b != 0 or place.d != 0  # rioxarray cannot recompute such a transform
    plain.rio.to_raster(path, driver="GTiff", recalc_transform=not rotated, **options)
    with rasterio.open(path, "r+", driver="GTiff") as dst:
        tag_bands(dst, bands)
        dst.update_tags(**(tags or {}))


def tag_bands(dst: DatasetWriter, bands: BandSet) -> None:
    """Write the names, wavelengths and widths of the bands, and the sensor, into a raster."""
    for index, band in enumerate(bands, start=1):
        dst.set_band_description(index, band.name)
        spectral = {}
        if band.wavelength_nm is not None:
            spectral["CENTRAL_WAVELENGTH_UM"] = f"{band.wavelength_nm / 1000:.10g}"
        if band.fwhm_nm is not None:
            spectral["FWHM_UM"] = f"{band.fwhm_nm / 1000:.10g}"
        if spectral:
            dst.update_tags(index, ns="IMAGERY", **spectral)
    if bands.sensor:
        dst.update_tags(SENSOR=bands.sensor)


def read_cube(path: Path) -> xr.DataArray:
    """Read a GeoTIFF as a cube, in memory, with the bands its metadata tells of."""
    try:
        with rasterio.open(path, driver="GTiff") as src:
            reading = read_bands(raster_meta(src))
            has_place = src.crs is not None
        # One page of a GeoTIFF is one array, never the list of datasets the signature allows.
        with cast("xr.DataArray", rioxarray.open_rasterio(path, driver="GTiff")) as lazy:
            values = lazy.load()
    except rasterio.errors.RasterioError as error:
        raise InputError(f"{path}: cannot be read ({deepest_cause(error)}).") from error
    picked = values.isel(band=[index - 1 for index in reading.indexes])
    return make_cube(
        picked.values,
        reading.bands,
        crs=picked.rio.crs if has_place else None,
        transform=picked.rio.transform() if has_place else None,
    )


def _floats(values: Any) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
