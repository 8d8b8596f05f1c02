"""A part of a scene, as a user names it: in pixels or in degrees."""

from __future__ import annotations

import numpy as np

from smokegeo.errors import InputError, UsageError
from smokegeo.scene.georeference import to_wgs84
from smokegeo.scene.layers import Box
from smokegeo.scene.scene import Scene


def window_box(text: str, scene: Scene) -> Box:
    """Return the box a user gave as COLUMN,ROW,WIDTH,HEIGHT, cut to the scene."""
    try:
        column, row, width, height = (int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--window {text!r} is not COLUMN,ROW,WIDTH,HEIGHT in pixels, like 0,0,1000,500."
        ) from None
    if width < 1 or height < 1:
        raise UsageError(f"--window {text}: width and height must be at least 1.")
    size = f"{scene.width} x {scene.height} pixels"
    return _cut(column, row, column + width, row + height, scene, f"--window {text}", size)


def bbox_box(text: str, scene: Scene) -> Box:
    """Return the pixels around WEST,SOUTH,EAST,NORTH in degrees, cut to the scene."""
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        west = south = east = north = float("nan")
    if not (-180 <= west <= 360 and -180 <= east <= 360 and -90 <= south < north <= 90):
        raise UsageError(
            f"--bbox {text!r} is not WEST,SOUTH,EAST,NORTH in degrees, like 14.2,50.1,14.9,50.4."
        )
    if scene.crs is None:
        raise UsageError("--bbox needs a scene with coordinates; use --window.")
    import pyproj

    if east < west:  # over the antimeridian
        east += 360
    # Edges are curved in most coordinate systems, so points along them are used, not corners only.
    side = np.linspace(0, 1, 65)
    lon = np.concatenate([west + (east - west) * side] * 2 + [np.full(65, west), np.full(65, east)])
    lat = np.concatenate(
        [np.full(65, south), np.full(65, north)] + [south + (north - south) * side] * 2
    )
    target = pyproj.CRS.from_wkt(scene.crs.to_wkt())
    x, y = pyproj.Transformer.from_crs("OGC:CRS84", target, always_xy=True).transform(lon, lat)
    # On the same turn of longitudes as the scene; those of a rotated pole are not the box's.
    if target.is_geographic and not target.is_derived:
        middle, _ = scene.transform @ (scene.width / 2, scene.height / 2)
        x = lon + 360 * np.round((middle - lon.mean()) / 360)
    a, b, c, d, e, f = tuple(~scene.transform)[:6]
    columns, rows = a * x + b * y + c, d * x + e * y + f
    ok = np.isfinite(columns) & np.isfinite(rows)
    if not ok.any():
        raise UsageError(f"--bbox {text} lies outside what the scene's coordinates can express.")
    left, top = np.floor(columns[ok].min() + 1e-6), np.floor(rows[ok].min() + 1e-6)
    right, bottom = np.ceil(columns[ok].max() - 1e-6), np.ceil(rows[ok].max() - 1e-6)
    reach = f"{_extent(scene)} in degrees (WEST,SOUTH,EAST,NORTH)"
    return _cut(int(left), int(top), int(right), int(bottom), scene, f"--bbox {text}", reach)


def _extent(scene: Scene) -> str:
    """Return where a scene lies, as a user would say it; its edges are curved in degrees."""
    side, still = np.linspace(0, 1, 65), np.ones(65)
    columns = scene.width * np.concatenate([side, still, side[::-1], 0 * still])
    rows = scene.height * np.concatenate([0 * still, side, still, side[::-1]])
    lon, lat = to_wgs84(scene.place, columns, rows)
    seen = np.isfinite(lon) & np.isfinite(lat)
    if not seen.any():
        return "nowhere"
    lon, lat = np.unwrap(lon[seen], period=360), lat[seen]  # in one piece over the antimeridian
    west = (lon.min() + 180) % 360 - 180
    edges = (west, lat.min(), west + np.ptp(lon), lat.max())
    return ",".join(f"{round(float(edge), 5)}" for edge in edges)


def _cut(
    left: int, top: int, right: int, bottom: int, scene: Scene, option: str, reach: str
) -> Box:
    left, top = max(0, left), max(0, top)
    right, bottom = min(scene.width, right), min(scene.height, bottom)
    if left >= right or top >= bottom:
        raise InputError(f"{option} does not touch {scene.name}, which is {reach}.")
    return Box(left, top, right - left, bottom - top)
