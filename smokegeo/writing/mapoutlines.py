"""Outlines for a map in the browser: in degrees, whole across the antimeridian, not too heavy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyproj
import shapely
from numpy.typing import NDArray

from smokegeo.writing.ground import ground

_MAX_POINTS = 250_000  # about 5 MB of coordinates
_TURNS = (-720, -360, 0, 360, 720)  # an outline unwrapped from 180 ends at 540 at most

Outlines = NDArray[np.object_]


def in_degrees(outlines: Outlines, crs: pyproj.CRS | None) -> Outlines:
    """Return outlines in WGS84 degrees, whole: one that crosses the antimeridian runs past 180."""
    if not len(outlines):
        return outlines
    crs = pyproj.CRS.from_user_input(crs)
    if not _has_longitudes(crs):  # there, a straight line stays one
        outlines = shapely.segmentize(outlines, ground(crs).edge_units)
    placed: Outlines = shapely.transform(outlines, partial(degrees, crs))
    west, _, east, _ = shapely.bounds(placed).T
    if not _has_longitudes(crs):  # there, an outline as wide as the world means just that
        for torn in np.flatnonzero(east - west > 180):
            placed[torn] = shapely.union_all([_mend(p) for p in shapely.get_parts(placed[torn])])
    return placed


def degrees(crs: pyproj.CRS, xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points as longitude and latitude; longitudes of a grid in degrees stay on its turn."""
    to_wgs84 = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    lon, lat = to_wgs84.transform(xy[:, 0], xy[:, 1])
    if _has_longitudes(crs):  # a grid that runs from 170 to 190 degrees stays in one piece
        lon = lon + 360 * np.round((xy[:, 0] - lon) / 360)
    return np.column_stack([lon, lat])


def _has_longitudes(crs: pyproj.CRS) -> bool:
    return bool(crs.is_geographic and not crs.is_derived)  # a rotated pole is derived


def _mend(polygon: shapely.Polygon) -> shapely.Geometry:
    """Join a polygon torn apart where its longitudes jump from 180 to -180."""
    shell, *holes = (_unwrapped(ring) for ring in (polygon.exterior, *polygon.interiors))
    for hole in holes:
        for turn in _TURNS:
            shell = shell.difference(shapely.affinity.translate(hole, turn))
    return shell


def _unwrapped(ring: shapely.LinearRing) -> shapely.Geometry:
    lon, lat = shapely.get_coordinates(ring).T
    lon = np.unwrap(lon, period=360)
    if abs(lon[-1] - lon[0]) > 180:  # it goes round a pole: close it along that
        lon, lat = np.append(lon, lon[[-1, 0]]), np.append(lat, [np.sign(lat.mean()) * 90] * 2)
    return shapely.make_valid(shapely.Polygon(np.column_stack([lon, lat])))


def into_window(outlines: Outlines, west: float) -> Outlines:
    """Shift outlines by whole turns into west..west + 360, cutting only what does not fit."""
    shifted = outlines.copy()
    for number, outline in enumerate(outlines):
        left, _, right, _ = outline.bounds
        if west <= left and right <= west + 360:
            continue
        window = shapely.box(west, -90, west + 360, 90)
        outline = shapely.make_valid(outline, method="structure")
        pieces = [
            shapely.affinity.translate(part, turn).intersection(window)
            for part in shapely.get_parts(outline)
            for turn in _TURNS
        ]
        whole = shapely.union_all(pieces)
        shifted[number] = shapely.union_all([p for p in shapely.get_parts(whole) if p.area > 0])
    return shifted


def lighten(outlines: Outlines) -> tuple[Outlines, bool]:
    """Round coordinates, and simplify outlines that would make the page too heavy."""
    if not len(outlines):
        return outlines, False
    left, bottom, right, top = shapely.total_bounds(outlines)
    extent = max(right - left, top - bottom)
    tolerance, light = extent / 20_000, outlines
    while shapely.get_num_coordinates(light).sum() > _MAX_POINTS and tolerance < extent / 100:
        light = shapely.simplify(outlines, tolerance)
        tolerance *= 2
    # 0.1 m, which would show on a scene of drone size: 1 mm there.
    decimals = 6 if extent > 0.02 else 8
    rounded = shapely.transform(light, lambda xy: np.round(xy, decimals))
    return rounded, light is not outlines
