"""Write polygons as a file a QGIS user opens: whole, styled, and the same bytes for the same input.

The suffix chooses the format. GeoPackage carries its style inside; beside the others lies a `.qml`
that QGIS applies by itself.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import logging
import os
import shutil
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smokegeo.errors import OutputError, UsageError, deepest_cause
from smokegeo.files import atomic_file
from smokegeo.writing.geojson import count_features, write_geojson
from smokegeo.writing.qgisstyle import MARK, qml

if TYPE_CHECKING:
    import geopandas

log = logging.getLogger(__name__)

LAYER = "smoke"
SUFFIXES = (".gpkg", ".geojson", ".fgb", ".parquet")
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
        raise UsageError(f"{path}: no vector format for {suffix or 'no suffix'}. Use {known}.")
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
) -> tuple[Path, ...]:
    """Write polygons and their style, all or nothing; return the files, the polygons first."""
    suffix = check_format(path, georeferenced=frame.crs is not None)
    facts = {key: value.encode("utf-8", "replace").decode() for key, value in provenance.items()}
    style = qml(style_threshold)
    beside = path.with_suffix(".qml") if suffix != ".gpkg" else None
    if beside is not None and not _is_ours(beside):
        log.warning("%s is a style of your own and was kept", beside)
        beside = None
    if suffix == ".geojson":
        _advise(frame)

    alone = beside is not None and not beside.exists()
    try:
        with ExitStack() as stack:  # left in reverse: the style takes its place first
            part = stack.enter_context(atomic_file(path))
            style_part = stack.enter_context(atomic_file(beside)) if beside is not None else None
            with _said_plainly(path, _about_bytes(frame)):
                _WRITERS[suffix](frame, part, facts, style)
                if style_part is not None:
                    style_part.write_text(style, encoding="utf-8", newline="\n")
                with part.open("rb") as handle:
                    os.fsync(handle.fileno())
                written = _count(part, suffix)
            if written != len(frame):
                raise OutputError(
                    f"{path}: {written} of {len(frame)} polygons arrived in the file. "
                    "Nothing was written; try another format."
                )
    except BaseException:
        if beside is not None and alone:
            beside.unlink(missing_ok=True)
        raise
    return (path,) if beside is None else (path, beside)


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


@contextmanager
def _said_plainly(path: Path, size_bytes: int) -> Iterator[None]:
    """Turn what GDAL, SQLite or the system say of a failed write into one line.

    GDAL does not always tell a full disk from a broken one; the room that is left does.
    """
    try:
        yield
    except (OSError, RuntimeError, sqlite3.Error) as error:
        reason = deepest_cause(error)
        code = error.errno if isinstance(error, OSError) else None
        full = code in (errno.ENOSPC, errno.EDQUOT)
        full = full or any(hint in reason.lower() for hint in ("no space left", "is full"))
        if full or (code is None and 0 <= _free_bytes(path.parent) < size_bytes):
            raise OutputError(
                f"{path}: no space left in {path.parent}. Nothing was written."
            ) from error
        raise OutputError(f"{path}: cannot be written ({reason}). Nothing was written.") from error


def _free_bytes(folder: Path) -> int:
    """Return the room on the disk of a folder, or -1 where that cannot be known."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return -1
    return usage.free if usage.total > 0 else -1


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
