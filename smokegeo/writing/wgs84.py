"""Polygons of any coordinate system as longitude and latitude on WGS84, fit for RFC 7946.

A polygon across the antimeridian is cut there, as the RFC asks: without the cut a reader draws it
around the whole globe the other way. One around a pole reaches up to 90 degrees from -180 to 180.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyproj
import shapely
from numpy.typing import NDArray

from smokegeo.errors import InputError
from smokegeo.writing.ground import EARTH_RADIUS_M, Ground, ground

if TYPE_CHECKING:
    from rasterio.crs import CRS

#: Seven decimals of a degree are a centimetre. Polygons too fine for that get more.
_DECIMALS = (7, 9, 12)
_WORLD = shapely.box(-180, -90, 180, 90)
#: How far a line between two longitudes and latitudes may run beside the true one, and the length
#: below which it does not matter any more.
_BEND_M = 0.1
_TINY_M = 0.01
#: This near to a pole, a few centimetres, any longitude means the pole itself.
_AT_POLE_DEG = 3e-7

Move = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def to_wgs84(polygons: NDArray[np.object_], crs: CRS | pyproj.CRS) -> NDArray[np.object_]:
    """Return each polygon in degrees, cut at the antimeridian, outer rings counter-clockwise."""
    if len(polygons) == 0:
        return polygons
    on = ground(crs)
    # The whole definition: a bound system carries its own shift to WGS84.
    whole = pyproj.CRS.from_wkt(crs.to_wkt())
    transformer = pyproj.Transformer.from_crs(whole, "OGC:CRS84", always_xy=True)

    def move(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        lon, lat = transformer.transform(xy[:, 0], xy[:, 1])
        if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
            raise InputError(
                f'polygons reach outside the area of their coordinate system ("{whole.name}"), '
                "so they have no longitude and latitude. Write .gpkg instead."
            )
        lat = np.where(np.abs(lat) > 90 - _AT_POLE_DEG, np.copysign(90, lat), lat)
        return np.column_stack((lon, lat))

    moved: NDArray[np.object_]
    if on.crs.is_geographic and not on.crs.is_derived:  # there, a straight line stays one
        moved = shapely.transform(_stepwise(polygons, on), move)
    else:
        polygons = shapely.segmentize(polygons, on.edge_units)
        moved = shapely.transform(polygons, move)
        xy, owner = shapely.get_coordinates(moved, return_index=True)
        for index in np.unique(owner[:-1][_bends_m(xy) > _BEND_M]):  # near a pole
            moved[index] = _refined(polygons[index], move, on)
    for index in np.flatnonzero(_leaves_the_world(moved)):
        moved[index] = _cut(moved[index])
    if shapely.is_empty(moved).any():
        raise InputError(
            f'polygons in "{whole.name}" have no area in longitude and latitude, as beyond a pole. '
            "Write .gpkg instead."
        )
    return _rounded(shapely.orient_polygons(moved))


def _stepwise(polygons: NDArray[np.object_], on: Ground) -> NDArray[np.object_]:
    """Return polygons in degrees or the like in which no step leads half around the globe.

    Of such a step nobody could say any more which way around it leads.
    """
    right_angle = np.pi / 2 * EARTH_RADIUS_M / on.metres_per_unit
    west, _, east, _ = shapely.bounds(polygons).T
    wide = east - west > 2 * right_angle
    stepwise = polygons.copy()
    stepwise[wide] = shapely.segmentize(polygons[wide], right_angle)
    return stepwise


def _bends_m(lonlat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far the middle of each step in degrees lies beside the straight line it is for.

    Seen from above the pole, where longitudes are directions and steps in degrees are spirals.
    """
    lon, lat = np.radians(lonlat.T)
    half = ((np.diff(lon) + np.pi) % (2 * np.pi) - np.pi) / 2
    radius = EARTH_RADIUS_M * np.cos(lat)
    middle = (radius[:-1] + radius[1:]) / 2
    # From the first point to the last and to the middle, which lies straight ahead of the pole.
    x, y = np.diff(radius) * np.cos(half), 2 * middle * np.sin(half)
    x_middle, y_middle = middle - radius[:-1] * np.cos(half), radius[:-1] * np.sin(half)
    beside = np.abs(x * y_middle - y * x_middle)
    bends: NDArray[np.float64] = beside / np.maximum(np.hypot(x, y), 1e-9)
    return bends


def _refined(polygon: shapely.Geometry, move: Move, on: Ground) -> shapely.Geometry:
    """Return a polygon in degrees with so many points that its lines run where they should."""
    parts = []
    for part in shapely.get_parts(polygon):
        rings = []
        for ring in shapely.get_rings(part):
            xy = shapely.get_coordinates(ring)
            while True:
                lonlat = move(xy)
                long = np.hypot(*np.diff(xy, axis=0).T) * on.metres_per_unit > _TINY_M
                bent = np.flatnonzero(long & (_bends_m(lonlat) > _BEND_M))
                if not bent.size:
                    break
                xy = np.insert(xy, bent + 1, (xy[bent] + xy[bent + 1]) / 2, axis=0)
            rings.append(lonlat)
        parts.append(shapely.Polygon(rings[0], rings[1:]))
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


def _leaves_the_world(polygons: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Tell which polygons have longitudes beyond 180 degrees, or jump from one side to the other.

    One that seems to be 180 degrees wide runs over the antimeridian, or lies near a pole.
    """
    bounds = shapely.bounds(polygons)
    wide = bounds[:, 2] - bounds[:, 0] > 180
    leaves: NDArray[np.bool_] = wide | (bounds[:, 0] < -180) | (bounds[:, 2] > 180)
    return leaves


def _cut(polygon: shapely.Geometry) -> shapely.Geometry:
    parts = []
    for part in shapely.get_parts(polygon):
        rings = [_inside_the_world(ring) for ring in shapely.get_rings(part)]
        parts.append(shapely.difference(rings[0], shapely.union_all(rings[1:])))
    pieces = shapely.get_parts(shapely.union_all(parts))
    pieces = pieces[shapely.get_type_id(pieces) == shapely.GeometryType.POLYGON]
    return pieces[0] if len(pieces) == 1 else shapely.MultiPolygon(list(pieces))


def _inside_the_world(ring: shapely.Geometry) -> shapely.Geometry:
    """Return the area of a ring with its longitudes brought back between -180 and 180."""
    lon, lat = shapely.get_coordinates(ring).T
    lon = np.unwrap(lon, period=360)
    if abs(lon[-1] - lon[0]) > 180:  # once around a pole: the area reaches up (or down) to it
        pole = np.copysign(90, lat.mean())
        lon = np.concatenate((lon, [lon[-1], lon[0], lon[0]]))
        lat = np.concatenate((lat, [pole, pole, lat[0]]))
    area = shapely.make_valid(shapely.Polygon(np.column_stack((lon, lat))), method="structure")
    turns = range(
        int(np.floor((lon.min() + 180) / 360)), int(np.floor((lon.max() + 180) / 360)) + 1
    )
    shifted = [shapely.transform(area, lambda xy, k=k: xy - (360 * k, 0)) for k in turns]
    return shapely.union_all([shapely.intersection(piece, _WORLD) for piece in shifted])


def _rounded(polygons: NDArray[np.object_]) -> NDArray[np.object_]:
    """Round to as few decimals as leave each polygon valid."""
    result = polygons.copy()
    todo = np.arange(len(polygons))
    for decimals in _DECIMALS:
        result[todo] = shapely.transform(
            polygons[todo], lambda xy, decimals=decimals: np.round(xy, decimals)
        )
        todo = todo[~shapely.is_valid(result[todo])]
    result[todo] = polygons[todo]
    return result
