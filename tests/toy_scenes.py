"""Small GeoTIFF scenes, and scenes in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rasterio.transform import Affine, from_origin
from scipy.ndimage import gaussian_filter

from smokegeo.bands import Band, BandSet
from smokegeo.labels import Place
from smokegeo.scene.arrays import ArrayLayer
from smokegeo.scene.georeference import PICTURE
from smokegeo.scene.scene import Scene, Source
from smokegeo.sensors import sensor

UTM = CRS.from_epsg(32633)
PLACE = from_origin(500_000, 5_500_000, 10, 10)
SATELLITE = ("blue", "green", "red", "nir", "swir1", "swir2")


def landscape(
    bands: int = 6, size: tuple[int, int] = (90, 130), seed: int = 0
) -> NDArray[np.uint16]:
    """Return smooth random reflectances times 10000, never 0."""
    noise = np.random.default_rng(seed).standard_normal((bands, *size))
    field = gaussian_filter(noise, (0, 4, 4))
    return np.clip(3000 + 1500 * field / field.std(), 1, 9999).astype(np.uint16)


def write_scene(
    path: Path,
    values: NDArray[Any],
    names: Sequence[str] | None = SATELLITE,
    *,
    crs: CRS | str | None = UTM,
    transform: Affine | None = PLACE,
    scale: float | Sequence[float] = 1.0,
    offset: float | Sequence[float] = 0.0,
    colours: Sequence[ColorInterp] | None = None,
    valid: NDArray[np.bool_] | None = None,
    tags: Mapping[str, str] | None = None,
    **profile: Any,
) -> Path:
    """Write (band, y, x) values as a GeoTIFF; `valid` becomes a mask inside the file."""
    count, height, width = values.shape
    profile = {"photometric": "minisblack", **profile}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(
            path,
            "w",
            driver="GTiff",
            width=width,
            height=height,
            count=count,
            dtype=values.dtype,
            crs=crs,
            transform=transform,
            **profile,
        ) as dst,
    ):
        if colours is not None:  # before the pixels: a TIFF cannot become transparent later
            dst.colorinterp = tuple(colours)
        dst.write(values)
        if names is not None:
            for index, name in enumerate(names, start=1):
                dst.set_band_description(index, name)
        if (scale, offset) != (1.0, 0.0):
            dst.scales = (scale,) * count if isinstance(scale, float) else tuple(scale)
            dst.offsets = (offset,) * count if isinstance(offset, float) else tuple(offset)
        if valid is not None:
            dst.write_mask(valid)
        dst.update_tags(**(tags or {}))
    return path


def damage_block(path: Path, row: int, column: int) -> Path:
    """Spoil the compressed bytes of one block of the first band."""
    with rasterio.open(path) as src:
        offset = src.get_tag_item(f"BLOCK_OFFSET_{column}_{row}", "TIFF", bidx=1)
        size = src.get_tag_item(f"BLOCK_SIZE_{column}_{row}", "TIFF", bidx=1)
    data = bytearray(path.read_bytes())
    start, length = int(offset), int(size)
    data[start : start + length] = b"\xff" * length
    path.write_bytes(data)
    return path


def scene_of(
    values: NDArray[Any], bands: BandSet | str | None = None, *, placed: bool = True, **facts: Any
) -> Scene:
    """Return a scene whose pixels are this array, without any file."""
    import xarray as xr

    if bands is None:
        bands = BandSet(tuple(Band(f"b{i}", 500.0 + 50 * i, 20.0) for i in range(len(values))))
    elif isinstance(bands, str):
        bands = sensor(bands).bands
    layer = ArrayLayer(xr.DataArray(values, dims=("band", "y", "x")), None, values.dtype.name)
    facts.setdefault("place", Place(UTM, PLACE) if placed else Place(None, PICTURE))
    return Scene(
        **{
            "name": "array",
            "width": values.shape[2],
            "height": values.shape[1],
            "bands": bands,
            "layers": (layer,),
            "sources": tuple(Source(0, i) for i in range(len(values))),
            **facts,
        }
    )
