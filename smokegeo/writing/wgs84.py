"""Polygons of any coordinate system as longitude and latitude on WGS84, fit for RFC 7946.

A polygon across the antimeridian is cut there, as the RFC asks: without the cut a reader draws it
around the whole globe the other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyproj
import shapely
from numpy.typing import NDArray

from smokegeo.errors import InputError
from smokegeo.writing.ground import ground

if TYPE_CHECKING:
    from rasterio.crs import CRS

#: Seven decimals of a degree are a centimetre. Polygons too fine for that get more.
_DECIMALS = (7, 9, 12)
_WORLD = shapely.box(-180, -90, 180, 90)


def to_wgs84(polygons: NDArray[np.object_], crs: CRS | pyproj.CRS) -> NDArray[np.object_]:
    """Return each polygon in degrees, cut at the antimeridian, outer rings counter-clockwise."""
    if len(polygons) == 0:
        return polygons
    on = ground(crs)
    if not on.crs.is_geographic:  # there, a straight line stays one
        polygons = shapely.segmentize(polygons, on.edge_units)
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
        return np.column_stack((lon, lat))

    moved: NDArray[np.object_] = shapely.transform(polygons, move)
    for index in np.flatnonzero(_leaves_the_world(moved)):
        moved[index] = _cut(moved[index])
    return _rounded(shapely.orient_polygons(moved))


def _leaves_the_world(polygons: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Tell which polygons have longitudes beyond 180 degrees, or jump from one side to the other.

    No smoke plume is 180 degrees wide, so one that seems to be runs over the antimeridian.
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
