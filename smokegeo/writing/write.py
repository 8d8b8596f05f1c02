"""Write polygons as a file a QGIS user opens: whole, styled, and the same bytes for the same input.

The suffix chooses the format. GeoPackage carries its style inside; beside the others lies a `.qml`
that QGIS applies by itself, to any layer of that name: there is none if a raster has the name too.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smokegeo.errors import OutputError, UsageError
from smokegeo.files import atomic_files
from smokegeo.writing.geojson import count_features, write_geojson
from smokegeo.writing.plainly import said_plainly
from smokegeo.writing.qgisstyle import MARK, qml

if TYPE_CHECKING:
    import geopandas

log = logging.getLogger(__name__)

LAYER = "smoke"
SUFFIXES = (".gpkg", ".geojson", ".fgb", ".parquet")
#: Files that QGIS opens as rasters, by how their names end.
_RASTERS = (
    *(".tif", ".tiff", ".jp2", ".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".img", ".dat"),
    *(".hdr", ".bil", ".bip", ".bsq", ".raw", ".vrt", ".nc", ".hdf", ".h5", ".asc", ".grd", ".ecw"),
)
#: GeoPackage notes when it was last changed; the clock must not change the bytes.
_NO_DATE = "1970-01-01T00:00:00.000Z"
#: From here on QGIS is much quicker with an index, which GeoJSON lacks.
_MANY = 20_000
#: Points of one polygon from which on GDAL may refuse to read it from GeoJSON (200 MB as objects).
_TOO_LARGE = 1_000_000

_STYLE_TABLE = """\
CREATE TABLE layer_styles (
 id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, f_table_catalog TEXT(256), f_table_schema TEXT(256),
 f_table_name TEXT(256), f_geometry_column TEXT(256), styleName TEXT(30), styleQML TEXT,
 styleSLD TEXT, useAsDefault BOOLEAN, description TEXT, owner TEXT(30), ui TEXT(30),
 update_time DATETIME DEFAULT CURRENT_TIMESTAMP)"""


def check_format(path: Path, *, georeferenced: bool = True) -> str:
    """Return the suffix of a file we can write; refuse others, best before any work."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise UsageError(
            f"{path}: no vector format for {suffix or 'no suffix'}. Use {known}, "
            "or convert a .gpkg: ogr2ogr out.shp smoke.gpkg smoke."
        )
    if suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise UsageError(f"{path} needs pyarrow. Install it: pip install 'smokegeo[parquet]'.")
    if suffix == ".geojson" and not georeferenced:
        raise UsageError(
            f"{path}: GeoJSON is always longitude and latitude, and these polygons have no "
            "coordinate system. Write .gpkg instead."
        )
    return suffix


def write_polygons(
    frame: geopandas.GeoDataFrame,
    path: Path,
    *,
    provenance: Mapping[str, str],
    style_threshold: float,
    rasters: Iterable[Path] = (),
) -> tuple[Path, ...]:
    """Write polygons and their style, all or nothing; return the files, the polygons first.

    `rasters` are those that a style must not be taken for: the scene, and what else is written.
    """
    check_format(path, georeferenced=frame.crs is not None)
    files = polygon_files(path, rasters)
    with atomic_files(files) as parts:
        fill_polygons(frame, path, parts, provenance=provenance, style_threshold=style_threshold)
    return files[::-1]


def polygon_files(path: Path, rasters: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Return the files that polygons are written to: perhaps a style, and last the polygons."""
    if path.suffix.lower() == ".gpkg":
        return (path,)
    style = path.with_suffix(".qml")
    if (raster := _raster_of_the_stem(style, rasters)) is not None:
        log.warning(
            "%s has no style: QGIS would apply %s to %s too. Write .gpkg, which carries its style "
            "inside, or choose another name",
            path,
            style.name,
            raster.name,
        )
        return (path,)
    if not _is_ours(style):
        log.warning("%s is a style of your own and was kept", style)
        return (path,)
    return style, path


def fill_polygons(
    frame: geopandas.GeoDataFrame,
    path: Path,
    parts: Sequence[Path],
    *,
    provenance: Mapping[str, str],
    style_threshold: float,
) -> None:
    """Write polygons for `path` into the parts of its `polygon_files`; not atomic by itself."""
    suffix = check_format(path, georeferenced=frame.crs is not None)
    facts = {key: value.encode("utf-8", "replace").decode() for key, value in provenance.items()}
    style = qml(style_threshold)
    if suffix == ".geojson":
        _advise(frame)
    *beside, part = parts
    with said_plainly(path, _about_bytes(frame)):
        _WRITERS[suffix](frame, part, facts, style)
        for style_part in beside:
            style_part.write_text(style, encoding="utf-8", newline="\n")
        with part.open("r+b") as handle:
            os.fsync(handle.fileno())
        written = _count(part, suffix)
    if written != len(frame):
        raise OutputError(
            f"{path}: {written} of {len(frame)} polygons arrived in the file. "
            "Nothing was written; try another format."
        )


def _raster_of_the_stem(style: Path, rasters: Iterable[Path]) -> Path | None:
    """Return a raster that QGIS would apply a style to, because it has the same folder and stem."""
    wanted = os.path.normcase(os.path.abspath(style.with_suffix("")))
    beside = (path for path in style.parent.iterdir() if path.suffix.lower() in _RASTERS)
    for raster in (*rasters, *sorted(beside)):
        if os.path.normcase(os.path.abspath(raster.with_suffix(""))) == wanted:
            return raster
    return None


def _advise(frame: geopandas.GeoDataFrame) -> None:
    """Say what readers will make of a large GeoJSON file."""
    largest = int(frame.geometry.count_coordinates().max()) if len(frame) else 0
    if largest > _TOO_LARGE:
        log.warning(
            "a polygon has %d points: QGIS and GDAL refuse so large a one in .geojson unless the "
            "environment says OGR_GEOJSON_MAX_OBJ_SIZE=0. Write .gpkg or .fgb for them",
            largest,
        )
    elif len(frame) > _MANY:
        log.info("%d polygons: QGIS opens .gpkg and .fgb much faster than .geojson", len(frame))


def _write_geojson(
    frame: geopandas.GeoDataFrame, part: Path, facts: Mapping[str, str], style: str
) -> None:
    write_geojson(frame, part, layer=LAYER, provenance=facts)


def _write_gpkg(
    frame: geopandas.GeoDataFrame, part: Path, facts: Mapping[str, str], style: str
) -> None:
    # QGIS 3.22 warns about versions after 1.3. The facts belong to the layer: from those of a whole
    # dataset, GDAL makes an .aux.xml beside the file as soon as it is read.
    options = {"dataset_options": {"VERSION": "1.3"}, "layer_metadata": dict(facts) or None}
    with _gdal_option("OGR_CURRENT_DATE", _NO_DATE):
        _write_ogr(frame, part, "GPKG", options)
    columns = "f_table_catalog, f_table_schema, f_table_name, f_geometry_column, styleName,"
    columns += "styleQML, styleSLD, useAsDefault, description, owner, update_time"
    row = ("", "", LAYER, "geom", LAYER, style, "", 1, MARK, "", _NO_DATE)
    with closing(sqlite3.connect(part)) as database, database:
        database.execute(_STYLE_TABLE)
        database.execute(
            f"INSERT INTO layer_styles ({columns}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
            row,
        )
        # Listed as QGIS lists its own; hidden from the list, QGIS does not find it.
        database.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, last_change) "
            "VALUES ('layer_styles', 'attributes', 'layer_styles', ?)",
            (_NO_DATE,),
        )


def _write_fgb(
    frame: geopandas.GeoDataFrame, part: Path, facts: Mapping[str, str], style: str
) -> None:
    text = json.dumps(dict(facts), ensure_ascii=False)
    options = {"layer_options": {"TITLE": "smoke polygons", "DESCRIPTION": text}}
    _write_ogr(frame, part, "FlatGeobuf", options)


def _write_parquet(
    frame: geopandas.GeoDataFrame, part: Path, facts: Mapping[str, str], style: str
) -> None:
    labelled = frame.copy(deep=False)
    labelled.attrs = {"provenance": dict(facts)}
    labelled.to_parquet(part, index=False, compression="zstd")


def _write_ogr(
    frame: geopandas.GeoDataFrame, part: Path, driver: str, options: dict[str, Any]
) -> None:
    import pyogrio

    several = bool((frame.geom_type == "MultiPolygon").any())
    with warnings.catch_warnings():
        # Polygons in pixel coordinates have none, and say so by having none.
        warnings.filterwarnings("ignore", message="'crs' was not provided")
        pyogrio.write_dataframe(
            frame,
            part,
            layer=LAYER,
            driver=driver,
            geometry_type="MultiPolygon" if several else "Polygon",
            promote_to_multi=several,
            **options,
        )


_WRITERS = {
    ".geojson": _write_geojson,
    ".gpkg": _write_gpkg,
    ".fgb": _write_fgb,
    ".parquet": _write_parquet,
}


def _count(part: Path, suffix: str) -> int:
    """Count the polygons that a reader finds in the file."""
    if suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(part) as file:
            return int(file.metadata.num_rows)
    if suffix == ".geojson":
        return count_features(part)
    import pyogrio

    return int(pyogrio.read_info(part, layer=LAYER, force_feature_count=True)["features"])


def _about_bytes(frame: geopandas.GeoDataFrame) -> int:
    """Estimate the room a file needs while it is written, from its vertices and rows."""
    return 65536 + 512 * len(frame) + 32 * int(frame.geometry.count_coordinates().sum())


@contextmanager
def _gdal_option(name: str, value: str) -> Iterator[None]:
    import pyogrio

    before = pyogrio.get_gdal_config_option(name)
    pyogrio.set_gdal_config_options({name: value})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({name: before})


def _is_ours(style: Path) -> bool:
    """Tell whether a style may be replaced: absent, or written by us and never saved since."""
    try:
        return MARK in style.read_text(encoding="utf-8", errors="replace")[:400]
    except FileNotFoundError:
        return True
    except OSError:
        return False
