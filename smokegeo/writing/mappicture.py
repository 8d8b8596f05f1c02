"""The picture under the polygons of a map in the browser: warped to Web Mercator, or as it is."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyproj
from affine import Affine
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.warp import Resampling, reproject

from smokegeo.errors import UsageError
from smokegeo.writing.mapoutlines import degrees

_MAX_PICTURE_PX = 1_600
_MAX_PICTURE_BYTES = 700_000
_RADIUS_M = 6_378_137.0  # of the sphere of Web Mercator
_MAX_LATITUDE = 85.05  # where Web Mercator ends


@dataclass(frozen=True, slots=True)
class Quicklook:
    """A small picture of the scene in its own grid: (height, width, 4) RGBA, alpha 0 = no data.

    Without a `crs` it is a photograph, and `transform` leads to the pixels of the scene.
    """

    rgba: NDArray[np.uint8]
    transform: Affine
    crs: CRS | None

    def __post_init__(self) -> None:
        shape = self.rgba.shape
        if len(shape) != 3 or shape[2] != 4 or 0 in shape or self.rgba.dtype != np.uint8:
            raise UsageError(f"a quicklook is (h, w, 4) uint8, not {shape} {self.rgba.dtype}.")


def grid(quicklook: Quicklook, steps: int = 65) -> NDArray[np.float64]:
    """Return longitude and latitude at `steps` x `steps` points over the picture."""
    height, width, _ = quicklook.rgba.shape
    rows, columns = np.meshgrid(
        np.linspace(0, height, steps), np.linspace(0, width, steps), indexing="ij"
    )
    assert quicklook.crs is not None  # noqa: S101  (a photograph is shown by `flat`)
    a, b, c, d, e, f, *_ = quicklook.transform
    xy = [(a * columns + b * rows + c).ravel(), (d * columns + e * rows + f).ravel()]
    crs = pyproj.CRS.from_wkt(quicklook.crs.to_wkt())
    return degrees(crs, np.column_stack(xy)).reshape(steps, steps, 2)


def flat(quicklook: Quicklook) -> dict[str, Any]:
    """Return a photograph as it is, as a data URI with its corners in pixels of the scene."""
    height, width, _ = quicklook.rgba.shape
    left, top = quicklook.transform @ (0, 0)
    right, bottom = quicklook.transform @ (width, height)
    return {"url": _data_uri(quicklook.rgba), "bounds": [[bottom, left], [top, right]]}


def warped(quicklook: Quicklook, west: float) -> dict[str, Any] | None:
    """Warp a quicklook to Web Mercator; return it as a data URI with its corners."""
    lon, lat = np.moveaxis(grid(quicklook), -1, 0)
    turns = np.where(lon < west, 360, 0) - np.where(lon > west + 360, 360, 0)
    x = _RADIUS_M * np.radians(lon + turns)
    lat = np.clip(lat, -_MAX_LATITUDE, _MAX_LATITUDE)
    y = _RADIUS_M * np.arctanh(np.sin(np.radians(lat)))
    good = np.isfinite(x) & np.isfinite(y)
    if not good.any() or np.ptp(x[good]) == 0 or np.ptp(y[good]) == 0:
        return None
    left, right, bottom, top = x[good].min(), x[good].max(), y[good].min(), y[good].max()
    if right - left > 0.95 * 2 * math.pi * _RADIUS_M:  # all round a pole, the points leave a gap
        left, right = (_RADIUS_M * math.radians(lon) for lon in (west, west + 360))
    height_px, width_px, _ = quicklook.rgba.shape
    across, down = (_step_m(x, y, axis) * 64 / px for axis, px in ((1, width_px), (0, height_px)))
    finer = 2 if max(height_px, width_px) <= 600 else 1  # smoother, where it costs little
    finest = min(across, down) / finer
    width, height = (
        min(_MAX_PICTURE_PX, max(1, math.ceil(side / finest)))
        for side in (right - left, top - bottom)
    )
    picture = np.zeros((4, height, width), np.uint8)
    reproject(
        np.ascontiguousarray(np.moveaxis(quicklook.rgba, -1, 0)),
        picture,
        src_transform=quicklook.transform,
        src_crs=quicklook.crs,
        dst_transform=Affine((right - left) / width, 0, left, 0, (bottom - top) / height, top),
        # GDAL takes x past the edge of Web Mercator for what it is, another turn.
        dst_crs=CRS.from_epsg(3857),
        src_alpha=4,
        dst_alpha=4,
        resampling=Resampling.bilinear,
    )
    south, north = (math.degrees(math.asin(math.tanh(y / _RADIUS_M))) for y in (bottom, top))
    east_west = [round(math.degrees(x / _RADIUS_M), 8) for x in (left, right)]
    corners = [[round(south, 8), east_west[0]], [round(north, 8), east_west[1]]]
    return {"url": _data_uri(np.moveaxis(picture, 0, -1)), "bounds": corners}


def _step_m(x: NDArray[np.float64], y: NDArray[np.float64], axis: int) -> float:
    """Return the usual distance between points of a grid; some may lie beyond the Earth's rim."""
    with np.errstate(invalid="ignore"):
        steps = np.hypot(np.diff(x, axis=axis), np.diff(y, axis=axis))
    known = steps[np.isfinite(steps)]
    return float(np.median(known)) if known.size else math.inf


def _data_uri(rgba: NDArray[np.uint8]) -> str:
    from PIL import Image

    for quality in (85, 70, 50, 30):
        buffer = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(rgba)).save(buffer, "WEBP", quality=quality, method=4)
        if buffer.tell() <= _MAX_PICTURE_BYTES:
            break
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
