"""Small scenes with smoke in known pixels, whole or broken in one way each."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from bright_engine import BRIGHT, DARK, NAMES
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import Affine, from_origin

#: 20 m pixels in Bohemia.
UTM33 = "EPSG:32633"
PLACE = from_origin(500_000, 5_500_000, 20, 20)
SIZE = (70, 90)

Smoke = NDArray[np.bool_]


def plume(size: tuple[int, int] = SIZE) -> Smoke:
    """Return a piece of smoke with a hole that lies across tiles, and a lone pixel beside it."""
    height, width = size
    smoke = np.zeros(size, bool)
    smoke[height // 8 : height - height // 8, width // 4 : width // 4 + width // 3] = True
    smoke[height // 3 : height // 2, width // 3 : width // 3 + max(1, width // 9)] = False
    smoke[height // 2, width - width // 8 - 1] = True
    return smoke


def cube(smoke: Smoke, bands: int = 4, dtype: str = "uint16", dark=DARK, bright=BRIGHT) -> NDArray:
    """Return pixels (bands, y, x), bright where there is smoke, no two bands alike."""
    values = np.where(smoke, float(bright), float(dark))
    step = 0.01 * float(dark)
    pixels = np.stack([values + step * index for index in range(bands)])
    return pixels.astype(dtype) if dtype.startswith(("f", "c")) else np.rint(pixels).astype(dtype)


def write_scene(
    path: Path,
    pixels: NDArray | Smoke | None = None,
    *,
    names: tuple[str | None, ...] | None = NAMES,
    crs: Any = UTM33,
    transform: Affine | None = PLACE,
    driver: str = "GTiff",
    **profile: Any,
) -> Path:
    """Write a scene; `pixels` may be smoke, which is then made bright in four bands."""
    if pixels is None:
        pixels = plume()
    if pixels.dtype == bool:
        pixels = cube(pixels)
    scales, offsets = profile.pop("scales", None), profile.pop("offsets", None)
    mask, colours = profile.pop("mask", None), profile.pop("colorinterp", None)
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(
            path,
            "w",
            driver=driver,
            width=pixels.shape[2],
            height=pixels.shape[1],
            count=pixels.shape[0],
            dtype=pixels.dtype,
            crs=crs,
            transform=transform,
            **profile,
        ) as dst:
            dst.write(pixels)
            if names is not None:
                for index, name in enumerate(names[: pixels.shape[0]], 1):
                    dst.set_band_description(index, name)
            if scales is not None:
                dst.scales, dst.offsets = scales, offsets
            if colours is not None:
                dst.colorinterp = colours
            if mask is not None:
                dst.write_mask(mask)
    return path


TILED = {"tiled": True, "blockxsize": 16, "blockysize": 16}


def write_text(path: Path, text: str | bytes) -> Path:
    """Write a file that is no raster."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def cut_short(path: Path, share: float = 0.6) -> Path:
    """Keep the first part of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


def vrt_to(secret: Path, size: tuple[int, int] = (8, 8), bands: int = 1) -> str:
    """Return a virtual raster that gives out the bytes of another file as pixels."""
    height, width = size
    one = f"""
  <VRTRasterBand dataType="Byte" band="%d" subClass="VRTRawRasterBand">
    <SourceFilename relativetoVRT="0">{secret}</SourceFilename>
    <ImageOffset>0</ImageOffset><PixelOffset>1</PixelOffset><LineOffset>{width}</LineOffset>
  </VRTRasterBand>"""
    return (
        f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}">'
        "<SRS>EPSG:32633</SRS><GeoTransform>500000,20,0,5500000,0,-20</GeoTransform>"
        # What makes a mask of a file called .msk.
        + '<Metadata><MDI key="INTERNAL_MASK_FLAGS_1">2</MDI></Metadata>'
        + "".join(one % band for band in range(1, bands + 1))
        + "</VRTDataset>"
    )
