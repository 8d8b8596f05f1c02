"""GeoJSON as RFC 7946 wants it, with a note on where the polygons come from.

GDAL can write it too, but drops features it cannot transform and takes no foreign members.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from smokegeo.outlines.rings import batches
from smokegeo.writing.wgs84 import to_wgs84

if TYPE_CHECKING:
    import geopandas

#: How the line of a feature begins.
_FEATURE = '{"type": "Feature",'


def write_geojson(
    frame: geopandas.GeoDataFrame, path: Path, *, layer: str, provenance: Mapping[str, str]
) -> None:
    """Write polygons in longitude and latitude, one feature a line; not atomic by itself."""
    shapes = _one_kind(to_wgs84(frame.geometry.to_numpy(), frame.crs))
    names = [name for name in frame.columns if name != frame.geometry.name]
    columns = [[_json_value(value) for value in frame[name]] for name in names]
    head = {"type": "FeatureCollection", "name": layer, "provenance": dict(provenance)}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(head, ensure_ascii=False, indent=1)[:-2] + ',\n "features": [')
        rows = zip(*columns, strict=True)
        for number, (row, shape) in enumerate(zip(rows, _texts(shapes), strict=True)):
            properties = dict(zip(names, row, strict=True))
            text = json.dumps(properties, ensure_ascii=False, allow_nan=False)
            file.write(",\n" if number else "\n")
            file.write(f'{_FEATURE} "properties": {text}, "geometry": {shape}}}')
        file.write("\n]}\n")


def count_features(path: Path) -> int:
    """Count the features in such a file, without GDAL, which refuses very large ones."""
    with path.open("rb") as file:
        return sum(line.startswith(_FEATURE.encode()) for line in file)


def _texts(shapes: NDArray[np.object_]) -> Iterator[str]:
    """Yield each shape as GeoJSON; all of them at once would be larger than the scene."""
    for some in batches(np.append(0, np.cumsum(shapely.get_num_coordinates(shapes)))):
        yield from shapely.to_geojson(shapes[some])


def _one_kind(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Make all MultiPolygons if one is: QGIS wants one kind of geometry in a layer."""
    kinds = shapely.get_type_id(shapes)
    if len(shapes) == 0 or (kinds == shapely.GeometryType.POLYGON).all():
        return shapes
    parts, owner = shapely.get_parts(shapes, return_index=True)
    return np.asarray(shapely.multipolygons(parts, indices=owner))


def _json_value(value: Any) -> Any:
    """Return a cell as JSON knows it; what is not a number is null."""
    if value is None or value != value:
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.item() if hasattr(value, "item") else value
