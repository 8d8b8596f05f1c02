"""Where a scene lies on Earth, or a refusal that says what is missing."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import CRSError
from rasterio.io import DatasetReader
from rasterio.transform import Affine

from smokegeo.errors import InputError, UsageError
from smokegeo.labels import Place

Floats = NDArray[np.float64]
#: Where QGIS shows a picture without georeference: rows go down, below 0.
PICTURE = Affine(1, 0, 0, 0, -1, 0)
#: Endings of world files.
_WORLD_FILES = (".tfw", ".tifw", ".wld", ".jgw", ".jpgw", ".pgw", ".pngw", ".j2w")
log = logging.getLogger(__name__)


def parse_crs(text: str) -> CRS:
    """Return the CRS a user named: EPSG:32633, WKT or PROJ."""
    try:
        return CRS.from_user_input(text)
    except CRSError as error:
        raise UsageError(
            f"--crs {text!r} is not a coordinate system. Give one like EPSG:32633."
        ) from error


def check_choice(crs: str | None, pixel_coords: bool) -> None:
    """Refuse to place a raster in two ways."""
    if crs is not None and pixel_coords:
        raise UsageError("--pixel-coords does without a coordinate system; drop it or --crs.")


def locate(
    src: DatasetReader, name: str, *, crs: str | None = None, pixel_coords: bool = False
) -> Place:
    """Return the place of an open raster; `crs` is the user's word for a file that has none."""
    if pixel_coords:
        return Place(None, PICTURE)
    transform = src.transform
    if transform == Affine.identity():
        raise InputError(_without_transform(src, name))
    _say_sidecars(src, name)
    own = src.crs
    if crs is not None and own is not None:
        raise UsageError(
            f"{name} has a coordinate system already ({own.to_string()[:60]}); --crs is for scenes "
            "without one. Drop --crs, or correct the file: gdal_edit -a_srs"
        )
    if crs is not None:
        own = parse_crs(crs)
    if own is None:
        raise InputError(
            f"{name} has no coordinate system, so polygons cannot be placed. "
            "Give it with --crs EPSG:32633 (the right code), or use --pixel-coords."
        )
    return check_place(Place(own, transform), src.width, src.height, name)


def check_place(place: Place, width: int, height: int, name: str) -> Place:
    """Refuse a transform without extent and a CRS that is not on Earth."""
    values = tuple(place.transform)[:6]
    if not all(map(math.isfinite, values)):
        raise InputError(f"{name}: its geotransform holds values that are no numbers.")
    if place.transform.determinant == 0:
        raise InputError(
            f"{name}: its pixel size is 0, so its pixels have no place. "
            "Correct the geotransform: gdal_edit -tr X Y"
        )
    if place.crs is None:
        return place
    if _is_geocentric(place.crs):
        raise InputError(
            f"{name}: its coordinate system counts from the centre of the Earth, where a picture "
            "has no place. Give the file the right one: gdal_edit -a_srs, or use --pixel-coords."
        )
    lon, lat = to_wgs84(place, np.array([width / 2]), np.array([height / 2]))
    if not (np.isfinite(lon).all() and np.isfinite(lat).all()) or abs(lat[0]) > 90:
        kind = place.crs.to_wkt().split('"')[1] if '"' in place.crs.to_wkt() else "unnamed"
        raise InputError(
            f'{name}: its coordinate system ("{kind[:60]}") and transform do not lead to a place '
            "on Earth. Correct the file, or use --pixel-coords."
        )
    return place


def _is_geocentric(crs: CRS) -> bool:
    import pyproj

    try:
        return bool(pyproj.CRS.from_wkt(crs.to_wkt()).is_geocentric)
    except (CRSError, pyproj.exceptions.CRSError):  # said better by what leads nowhere
        return False


def to_wgs84(place: Place, columns: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of pixel positions; not finite where there are none."""
    import pyproj
    from pyproj.exceptions import ProjError

    a, b, c, d, e, f = tuple(place.transform)[:6]
    x, y = a * columns + b * rows + c, d * columns + e * rows + f
    nowhere = np.full(np.shape(x), np.inf)
    if place.crs is None:
        return nowhere, nowhere
    try:
        source = pyproj.CRS.from_wkt(place.crs.to_wkt())
        transformer = pyproj.Transformer.from_crs(source, "OGC:CRS84", always_xy=True)
        lon, lat = transformer.transform(x, y)
    except (ProjError, CRSError):
        return nowhere, nowhere
    return np.asarray(lon), np.asarray(lat)


def _without_transform(src: DatasetReader, name: str) -> str:
    gcps, _ = src.gcps
    if gcps:
        return (
            f"{name} has ground control points only. Rectify it first: gdalwarp {name} OUT.tif, "
            "or use --pixel-coords."
        )
    if src.rpcs is not None:
        return (
            f"{name} has rational polynomial coefficients (RPC) only. "
            f"Rectify it first: gdalwarp -rpc {name} OUT.tif, or use --pixel-coords."
        )
    return (
        f"{name} has no georeference: no transform, control points or RPCs. "
        "Georeference it, or use --pixel-coords for polygons in pixels."
    )


def _say_sidecars(src: DatasetReader, name: str) -> None:
    """Say when the place comes from a file beside the scene, which overrides the scene's own."""
    for file in src.files[1:]:
        path = Path(file)
        if path.suffix.lower() in _WORLD_FILES:
            log.info("%s: georeference from %s", name, path.name)
        elif path.name.endswith(".aux.xml") and path.is_file():
            text = path.read_bytes()[:1_000_000]
            if b"<GeoTransform>" in text or b"<SRS" in text:
                log.info("%s: georeference from %s", name, path.name)


def pixel_size_m(place: Place, width: int, height: int) -> tuple[float, float] | None:
    """Return width and height of a pixel at the scene's middle, in metres on the ground."""
    if place.crs is None:
        return None
    import pyproj

    x, y = width / 2, height / 2
    lon, lat = to_wgs84(place, np.array([x, x + 1, x]), np.array([y, y, y + 1]))
    if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
        return None
    _, _, metres = pyproj.Geod(ellps="WGS84").inv(lon[[0, 0]], lat[[0, 0]], lon[1:], lat[1:])
    return float(metres[0]), float(metres[1])
