"""Polygons in pixel coordinates become map polygons with the attributes an analyst reads.

Lengths and areas are geodesic, on the ellipsoid of the scene's own coordinate system: square
metres mean the same in UTM, in degrees and in feet.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import shapely
from numpy.typing import NDArray

from smokegeo.errors import UsageError
from smokegeo.outlines.rings import batches, polygons
from smokegeo.outlines.vectorize import Shapes, first_vertices
from smokegeo.writing.ground import geodesic, ground

if TYPE_CHECKING:
    import geopandas
    from rasterio.crs import CRS
    from rasterio.transform import Affine

log = logging.getLogger(__name__)

COLUMNS = (
    "id",
    "area_m2",
    "perimeter_m",
    "mean_prob",
    "max_prob",
    "pixels",
    "touches_edge",
    "touches_nodata",
    "model",
    "source",
    "acquired",
)

#: Simplifying may change one polygon's area this much; a lone pixel would become a triangle.
_MAX_AREA_CHANGE = 0.2
_PROB_DECIMALS = 4
#: Polygons of one size go from top to bottom, then from left to right.
_ORDER = ("first", "left", "top")


@dataclass(frozen=True)
class Placed:
    """Map polygons with attributes, and the relative change of their area by simplifying."""

    frame: geopandas.GeoDataFrame
    area_drift: float


def place(
    shapes: Shapes | Iterable[Shapes],
    transform: Affine,
    crs: CRS | pyproj.CRS | None,
    *,
    min_area_m2: float = 0.0,
    simplify_px: float = 0.0,
    model: str = "",
    source: str = "",
    acquired: datetime | None = None,
) -> Placed:
    """Put polygons on the map, largest first, each with its attributes.

    Without a `crs` the polygons are placed by `transform` alone: their areas and perimeters are
    null, and they are sorted by pixels. Shapes may come in parts, in any order; each part is done
    with before the next is asked for, so that its outlines in pixels need not be kept.
    """
    if not math.isfinite(min_area_m2) or min_area_m2 < 0:
        raise UsageError(f"minimum area {min_area_m2:g} m2 is not zero or more.")
    if not math.isfinite(simplify_px) or simplify_px < 0:
        raise UsageError(f"simplifying by {simplify_px:g} pixels is not zero or more.")
    if crs is None and min_area_m2 > 0:
        raise UsageError("a minimum area in m2 needs polygons with coordinates. Drop --min-area.")

    name = source or "the scene"
    on = None if crs is None else ground(crs, name)
    each = [shapes] if isinstance(shapes, Shapes) else shapes
    parts = []
    for part in each:
        known = _known(part, simplify_px)
        del part  # its outlines can be let go as soon as they are placed
        known["geometry"] = _apply(transform, known.pop("geometry"))
        unknown = np.full(len(known["geometry"]), np.nan)
        known["area_m2"], known["perimeter_m"] = (
            (unknown, unknown) if on is None else geodesic(known["geometry"], on, name)
        )
        parts.append(known)
    everything = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    keep = ~(everything["area_m2"] < min_area_m2)  # unknown areas stay
    if not keep.all():
        log.info("%d polygons below %g m2 left out", (~keep).sum(), min_area_m2)
        everything = {key: column[keep] for key, column in everything.items()}
    if on is not None:
        pixel_m = math.sqrt(abs(transform.determinant)) * on.metres_per_unit
        for key in ("area_m2", "perimeter_m"):
            everything[key] = np.round(everything[key], _decimals(pixel_m))
    size = everything["pixels" if on is None else "area_m2"]
    order = np.lexsort((*(everything.pop(key) for key in _ORDER), -size))
    columns = {key: column[order] for key, column in everything.items()}
    before, after = (float(columns.pop(key).sum()) for key in ("area_px", "drawn_px"))
    frame = _frame(columns, columns.pop("geometry"), crs, model, source, acquired)
    return Placed(frame, after / before - 1 if before else 0.0)


def _known(shapes: Shapes, simplify_px: float) -> dict[str, NDArray[Any]]:
    """Return what is known of polygons in pixels, and where each lies in the order."""
    drawn = simplified(shapes.outlines, simplify_px)
    left, top = shapely.bounds(shapes.outlines).reshape(-1, 4)[:, :2].T
    return {
        "mean_prob": np.round(np.asarray(shapes.mean_prob, dtype=float), _PROB_DECIMALS),
        "max_prob": np.round(np.asarray(shapes.max_prob, dtype=float), _PROB_DECIMALS),
        "pixels": np.asarray(shapes.pixels, dtype=np.int64),
        "touches_edge": np.asarray(shapes.touches_edge, dtype=bool),
        "touches_nodata": np.asarray(shapes.touches_nodata, dtype=bool),
        "first": first_vertices(shapes.outlines)[:, 0],
        "left": left,
        "top": top,
        "area_px": shapely.area(shapes.outlines),
        "drawn_px": shapely.area(drawn),
        "geometry": drawn,
    }


def simplified(outlines: NDArray[np.object_], tolerance_px: float) -> NDArray[np.object_]:
    """Drop vertices within a tolerance; a polygon that would break or shrink stays as it is."""
    if tolerance_px == 0 or len(outlines) == 0:
        return outlines
    plain = shapely.simplify(outlines, tolerance_px, preserve_topology=True)
    area, plain_area = shapely.area(outlines), shapely.area(plain)
    good = shapely.is_valid(plain) & (shapely.get_type_id(plain) == shapely.GeometryType.POLYGON)
    good &= np.abs(plain_area - area) <= _MAX_AREA_CHANGE * area
    result: NDArray[np.object_] = np.where(good, plain, outlines)
    return result


def _apply(transform: Affine, outlines: NDArray[np.object_]) -> NDArray[np.object_]:
    """Move pixel coordinates to the map by the full affine; outer rings counter-clockwise."""
    a, b, c, d, e, f = tuple(transform)[:6]

    def move(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        column, row = xy.T
        return np.column_stack((a * column + b * row + c, d * column + e * row + f))

    if len(outlines) == 0:
        return outlines
    rings, owner = shapely.get_rings(outlines, return_index=True)
    del outlines
    for some in batches(np.append(0, np.cumsum(shapely.get_num_coordinates(rings)))):
        rings[some] = shapely.transform(rings[some], move)
    made = polygons(rings, owner)
    del rings
    placed: NDArray[np.object_] = shapely.orient_polygons(made)
    del made
    # Two vertices may fall together where coordinates are large and pixels tiny.
    broken = np.flatnonzero(~shapely.is_valid(placed))
    placed[broken] = shapely.make_valid(placed[broken], method="structure")
    return placed


def _frame(
    columns: dict[str, NDArray[Any]],
    geometry: NDArray[np.object_],
    crs: CRS | pyproj.CRS | None,
    model: str,
    source: str,
    acquired: datetime | None,
) -> geopandas.GeoDataFrame:
    import geopandas
    import pandas as pd  # type: ignore[import-untyped]

    if acquired is not None:
        acquired = (acquired if acquired.tzinfo else acquired.replace(tzinfo=UTC)).astimezone(UTC)
    count = len(geometry)
    everything: dict[str, Any] = {"id": np.arange(1, count + 1, dtype=np.int64), **columns}
    everything["model"] = pd.Series([_text(model)] * count, dtype=object)
    everything["source"] = pd.Series([_text(source)] * count, dtype=object)
    everything["acquired"] = pd.Series([acquired] * count, dtype="datetime64[ms, UTC]")
    return geopandas.GeoDataFrame(
        {name: everything[name] for name in COLUMNS},
        geometry=geopandas.GeoSeries(geometry),
        crs=None if crs is None else pyproj.CRS.from_wkt(crs.to_wkt()),
    )


def _text(value: str) -> str:
    """A file name need not be Unicode on every system; what stands in the files must be."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _decimals(pixel_m: float) -> int:
    """Decimals that keep a tenth, more for pixels so small that a tenth would be coarse."""
    if not pixel_m > 0:
        return 1
    return int(min(8, max(1, 1 - 2 * math.floor(math.log10(pixel_m)))))
