"""Where on Earth a coordinate system lies, and lengths and areas on its own ellipsoid.

Everything goes by the full definition (WKT), never by an EPSG code: many scenes have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyproj
import shapely
from numpy.typing import NDArray

from smokegeo.errors import InputError
from smokegeo.outlines.rings import batches

if TYPE_CHECKING:
    from rasterio.crs import CRS

#: An edge that is straight in the scene's grid is bent on the ellipsoid. Pieces this short leave
#: a bend of about 0.1 m.
EDGE_M = 2000.0
EARTH_RADIUS_M = 6371000.0


@dataclass(frozen=True)
class Ground:
    """The horizontal part of a coordinate system that lies on Earth, and its ellipsoid."""

    crs: pyproj.CRS
    geodetic: pyproj.CRS
    geod: pyproj.Geod
    metres_per_unit: float

    @property
    def edge_units(self) -> float:
        """The longest edge, in the units of the coordinate system, that needs no point between."""
        return EDGE_M / self.metres_per_unit


def ground(crs: CRS | pyproj.CRS, name: str = "the scene") -> Ground:
    """Find where on Earth a coordinate system lies; refuse a local one, best before any work."""
    whole = pyproj.CRS.from_wkt(crs.to_wkt())
    flat = whole
    while flat.is_bound or flat.is_compound:
        inner = flat.source_crs if flat.is_bound else flat.sub_crs_list[0]
        if inner is None:
            break
        flat = inner
    geodetic, geod = flat.geodetic_crs, flat.get_geod()
    if geodetic is None or geod is None or not flat.axis_info:
        raise InputError(
            f'{name} uses a local coordinate system ("{whole.name}") that cannot be placed on '
            "Earth. Give the true one with --crs."
        )
    unit = flat.axis_info[0].unit_conversion_factor
    return Ground(flat, geodetic, geod, unit * (EARTH_RADIUS_M if flat.is_geographic else 1.0))


def geodesic(
    polygons: NDArray[np.object_], on: Ground, name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the area in m2 and the length of all rings in m of each polygon."""
    area_m2, perimeter_m = np.zeros(len(polygons)), np.zeros(len(polygons))
    if len(polygons) == 0:
        return area_m2, perimeter_m
    part_of = np.arange(len(polygons))
    if (shapely.get_type_id(polygons) != shapely.GeometryType.POLYGON).any():
        polygons, part_of = shapely.get_parts(polygons, return_index=True)
    rings, owner = shapely.get_rings(polygons, return_index=True)
    is_shell = np.diff(owner, prepend=-1) != 0
    owner = part_of[owner]
    for part in batches(np.append(0, np.cumsum(shapely.get_num_coordinates(rings)))):
        area, length = _rings_geodesic(rings[part], on, name)
        np.add.at(area_m2, owner[part], np.where(is_shell[part], area, -area))
        np.add.at(perimeter_m, owner[part], length)
    return area_m2, perimeter_m


def _rings_geodesic(
    rings: NDArray[np.object_], on: Ground, name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the area inside and the length of each ring."""
    xy, owner = shapely.get_coordinates(shapely.segmentize(rings, on.edge_units), return_index=True)
    to_geodetic = pyproj.Transformer.from_crs(on.crs, on.geodetic, always_xy=True)
    lon, lat = to_geodetic.transform(xy[:, 0], xy[:, 1])
    if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
        raise InputError(
            f'{name} reaches outside the area of its coordinate system ("{on.crs.name}"), so '
            "polygons cannot be placed. Check its georeference."
        )
    # Some systems count in grads, and not from Greenwich; only the unit matters here.
    unit = on.geodetic.axis_info[0].unit_conversion_factor
    lon, lat = np.degrees(lon * unit), np.degrees(lat * unit)
    starts = np.searchsorted(owner, np.arange(len(rings)))
    stops = np.append(starts[1:], len(owner)) - 1  # the last point repeats the first
    area, length = np.zeros((2, len(rings)))
    for ring, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        area[ring], length[ring] = on.geod.polygon_area_perimeter(lon[start:stop], lat[start:stop])
    return np.abs(area), length
