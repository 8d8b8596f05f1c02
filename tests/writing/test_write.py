"""Vector files: whole or absent, the same bytes each time, and right for whoever reads them."""

import contextlib
import errno
import importlib.util
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import geopandas
import numpy as np
import pyogrio
import pytest
import shapely
from rasterio.crs import CRS
from rasterio.transform import Affine
from some_shapes import UTM, UTM_1, UTM_1_20M, UTM_20M, blobs, box, ring, some_shapes

from smokegeo import files
from smokegeo.errors import OutputError, UsageError
from smokegeo.writing import write
from smokegeo.writing.polygons import COLUMNS, place
from smokegeo.writing.qgisstyle import qml
from smokegeo.writing.write import SUFFIXES, check_format, write_polygons

FACTS = {"smokegeo": "0.1.0", "scene": 'a "quoted" <name> – é.tif', "threshold": "0.5"}
ON_A_SMALL_DISK = """
import resource, sys
from pathlib import Path
import geopandas
from smokegeo.errors import OutputError
from smokegeo.writing.write import write_polygons
frame = geopandas.read_parquet(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for target in sys.argv[2:]:
    try:
        write_polygons(frame, Path(target), provenance={}, style_threshold=0.5)
    except OutputError as error:
        print(error)
"""
NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)
each_format = pytest.mark.parametrize("suffix", SUFFIXES)


def frame(*outlines, crs=UTM, transform=UTM_20M, **options):
    options = {"model": "m", "source": "s.tif", "acquired": NOON} | options
    outlines = outlines or (box(0, 0, 40), ring(100, 100, 30, 8), box(200, 0, 3))
    return place(some_shapes(*outlines), transform, crs, **options).frame


def save(polygons, path, **options):
    return write_polygons(
        polygons, path, **({"provenance": FACTS, "style_threshold": 0.5} | options)
    )


def load(path):
    if path.suffix == ".parquet":
        return geopandas.read_parquet(path)
    return geopandas.read_file(path, layer="smoke")


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="asks how a file was opened")
@each_format
def test_what_is_synced_was_opened_for_writing_as_windows_wants_it(tmp_path, monkeypatch, suffix):
    import fcntl

    modes = []

    def note(handle):
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            modes.append(fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE)

    monkeypatch.setattr(os, "fsync", note)
    save(frame(), tmp_path / f"s{suffix}")
    assert set(modes) == {os.O_RDWR}


class TestFormats:
    @each_format
    def test_come_back_as_they_went_in(self, tmp_path, suffix):
        made = frame()
        save(made, tmp_path / f"smoke{suffix}")
        back = load(tmp_path / f"smoke{suffix}").sort_values("id", ignore_index=True)
        assert tuple(back.columns) == (*COLUMNS, "geometry")
        for name in COLUMNS:
            assert back[name].tolist() == made[name].tolist(), name
        assert back.acquired.dt.tz is not None
        assert back.touches_edge.dtype == bool
        if suffix == ".geojson":
            back = back.to_crs(made.crs)
        assert back.crs == made.crs
        assert shapely.is_valid(back.geometry).all()
        assert shapely.hausdorff_distance(back.geometry, made.geometry).max() < 0.02

    @each_format
    def test_are_the_same_bytes_every_time(self, tmp_path, suffix):
        made = place(blobs(50), UTM_20M, UTM, acquired=NOON).frame
        save(made, tmp_path / f"one{suffix}")
        time.sleep(0.01)  # GeoPackage counts milliseconds
        save(made, tmp_path / f"two{suffix}")
        one, two = (tmp_path / f"{name}{suffix}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()

    @each_format
    def test_may_be_empty(self, tmp_path, suffix):
        path = tmp_path / f"smoke{suffix}"
        save(frame(min_area_m2=1e9), path)
        back = load(path)
        assert len(back) == 0
        assert back.crs == (4326 if suffix == ".geojson" else UTM.to_wkt())
        if suffix != ".geojson":  # which has no place for columns without features
            assert tuple(back.columns) == (*COLUMNS, "geometry")

    @each_format
    def test_leave_nothing_else_behind_even_when_read(self, tmp_path, suffix):
        path = tmp_path / f"smoke{suffix}"
        written = save(frame(), path)
        load(path)
        assert sorted(file.name for file in written) == listing(tmp_path)
        assert written[0] == path

    @pytest.mark.parametrize("suffix", [".gpkg", ".fgb", ".parquet"])
    def test_keep_a_system_without_a_code(self, tmp_path, suffix):
        own = CRS.from_proj4("+proj=laea +lat_0=61 +lon_0=97 +ellps=bessel +units=m")
        save(frame(crs=own, transform=Affine(20, 0, 0, 0, -20, 0)), tmp_path / f"smoke{suffix}")
        assert load(tmp_path / f"smoke{suffix}").crs == own.to_wkt()

    @pytest.mark.parametrize("suffix", [".gpkg", ".fgb", ".parquet"])
    def test_keep_pixel_coordinates_without_a_system(self, tmp_path, suffix):
        save(frame(crs=None, transform=Affine.identity()), tmp_path / f"smoke{suffix}")
        back = load(tmp_path / f"smoke{suffix}")
        assert back.crs is None
        assert back.area_m2.isna().all()
        assert back.total_bounds.tolist() == [0, 0, 203, 130]

    @each_format
    def test_say_where_the_polygons_come_from(self, tmp_path, suffix):
        path = tmp_path / f"smoke{suffix}"
        save(frame(), path)
        if suffix == ".geojson":
            found = json.loads(path.read_text(encoding="utf-8"))["provenance"]
        elif suffix == ".parquet":
            found = load(path).attrs["provenance"]
        else:
            found = pyogrio.read_info(path, layer="smoke")["layer_metadata"]
            if suffix == ".fgb":
                found = json.loads(found["DESCRIPTION"])
        assert found == FACTS

    def test_write_several_pieces_where_a_polygon_has_them(self, tmp_path):
        made = frame()
        made.loc[0, "geometry"] = shapely.MultiPolygon(list(made.geometry[:2]))
        for suffix in SUFFIXES:
            save(made, tmp_path / f"smoke{suffix}")
            assert "MultiPolygon" in set(load(tmp_path / f"smoke{suffix}").geom_type)


class TestGeoJson:
    def text(self, tmp_path, *args, **options):
        save(frame(*args, **options), tmp_path / "smoke.geojson")
        return (tmp_path / "smoke.geojson").read_text(encoding="utf-8")

    def test_is_strict_json_with_nulls_for_what_is_unknown(self, tmp_path):
        def refuse(constant):
            raise AssertionError(constant)

        made = frame(acquired=None)
        made["area_m2"] = np.nan
        save(made, tmp_path / "smoke.geojson")
        text = (tmp_path / "smoke.geojson").read_text(encoding="utf-8")
        properties = json.loads(text, parse_constant=refuse)["features"][0]["properties"]
        assert properties["area_m2"] is None
        assert properties["acquired"] is None

    def test_follows_the_rfc(self, tmp_path):
        content = json.loads(self.text(tmp_path))
        assert "crs" not in content
        assert content["type"] == "FeatureCollection"
        for feature in content["features"]:
            shell, *holes = feature["geometry"]["coordinates"]
            assert shapely.LinearRing(shell).is_ccw
            assert not any(shapely.LinearRing(hole).is_ccw for hole in holes)
            assert np.array_equal(np.round(shell, 7), shell)
        assert content["features"][0]["properties"]["acquired"] == "2024-07-01T12:00:00.000Z"
        assert content["features"][0]["properties"]["touches_edge"] is False

    def test_is_one_kind_of_geometry_though_one_polygon_is_cut(self, tmp_path):
        text = self.text(tmp_path, box(0, 0, 400), box(900, 0, 9), crs=UTM_1, transform=UTM_1_20M)
        kinds = {feature["geometry"]["type"] for feature in json.loads(text)["features"]}
        assert kinds == {"MultiPolygon"}
        west, _, east, _ = load(tmp_path / "smoke.geojson").total_bounds
        assert (west, east) == (-180, 180)

    def test_is_refused_for_pixel_coordinates(self, tmp_path):
        with pytest.raises(UsageError, match=r"Write \.gpkg"):
            save(frame(crs=None, transform=Affine.identity()), tmp_path / "smoke.geojson")
        assert listing(tmp_path) == []


class TestStyle:
    def test_lies_in_the_geopackage(self, tmp_path):
        save(frame(), tmp_path / "smoke.gpkg", style_threshold=0.35)
        with contextlib.closing(sqlite3.connect(tmp_path / "smoke.gpkg")) as database:
            rows = database.execute(
                "SELECT f_table_name, f_geometry_column, useAsDefault, styleQML FROM layer_styles"
            ).fetchall()
            assert rows == [("smoke", "geom", 1, qml(0.35))]
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert database.execute("PRAGMA user_version").fetchone() == (10300,)

    @pytest.mark.parametrize("suffix", [".geojson", ".fgb", ".parquet"])
    def test_lies_beside_the_others(self, tmp_path, suffix):
        written = save(frame(), tmp_path / f"smoke{suffix}", style_threshold=0.35)
        assert written == (tmp_path / f"smoke{suffix}", tmp_path / "smoke.qml")
        assert (tmp_path / "smoke.qml").read_text(encoding="utf-8") == qml(0.35)

    def test_follows_a_new_threshold(self, tmp_path):
        for threshold in (0.5, 0.3):
            save(frame(), tmp_path / "smoke.fgb", style_threshold=threshold)
        assert (tmp_path / "smoke.qml").read_text(encoding="utf-8") == qml(0.3)

    def test_of_the_users_own_is_kept(self, tmp_path, caplog):
        (tmp_path / "smoke.qml").write_text("<qgis>mine</qgis>")
        assert save(frame(), tmp_path / "smoke.fgb") == (tmp_path / "smoke.fgb",)
        assert (tmp_path / "smoke.qml").read_text() == "<qgis>mine</qgis>"
        assert "was kept" in caplog.text

    @pytest.mark.parametrize("raster", ["smoke.tif", "smoke.JP2", "smoke.hdr"])
    def test_is_not_written_where_qgis_would_apply_it_to_a_raster(self, tmp_path, raster, caplog):
        (tmp_path / raster).touch()
        assert save(frame(), tmp_path / "smoke.fgb") == (tmp_path / "smoke.fgb",)
        assert listing(tmp_path) == sorted([raster, "smoke.fgb"])
        (line,) = caplog.messages
        assert f"QGIS would apply smoke.qml to {raster} too. Write .gpkg" in line

    def test_heeds_rasters_that_are_not_there_yet(self, tmp_path, caplog):
        path, other = tmp_path / "smoke.geojson", tmp_path / "smoke_prob.tif"
        assert len(save(frame(), path, rasters=[tmp_path / "smoke.odd"])) == 1
        assert len(save(frame(), path, rasters=[other, tmp_path.parent / "smoke.tif"])) == 2
        assert len(caplog.messages) == 1


class TestCheckFormat:
    @pytest.mark.parametrize("name", ["a.shp", "a", "a.geojson.gz", ".gpkg"])
    def test_names_the_formats_it_knows(self, name):
        with pytest.raises(UsageError, match=r"\.gpkg, \.geojson, \.fgb, \.parquet, or .* ogr2ogr"):
            check_format(Path(name))

    def test_goes_by_the_suffix_whatever_its_case(self):
        assert check_format(Path("A.GeoJSON")) == ".geojson"

    def test_tells_how_to_get_parquet(self, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(UsageError, match=r"smokegeo\[parquet\]"):
            check_format(Path("a.parquet"))

    def test_refuses_geojson_early_for_pixel_coordinates(self):
        with pytest.raises(UsageError, match="GeoJSON"):
            check_format(Path("a.geojson"), georeferenced=False)
        check_format(Path("a.gpkg"), georeferenced=False)


class TestFailure:
    @pytest.fixture
    def old(self, tmp_path):
        """An older result that must survive."""
        save(frame(), tmp_path / "old.fgb")
        return {path: path.read_bytes() for path in tmp_path.iterdir()}

    def unchanged(self, folder, old):
        return {path: path.read_bytes() for path in folder.iterdir()} == old

    @each_format
    def test_leaves_the_folder_as_it_was(self, tmp_path, suffix, old, monkeypatch):
        def fail(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(write.os, "fsync", fail)
        with pytest.raises(OutputError, match=r"no space left in .*\. Nothing was written\.$"):
            save(frame(), tmp_path / f"old{suffix}")
        assert self.unchanged(tmp_path, old)

    @each_format
    def test_of_the_count_is_noticed(self, tmp_path, suffix, old, monkeypatch):
        monkeypatch.setattr(write, "_count", lambda *_: 2)
        with pytest.raises(OutputError, match="2 of 3 polygons"):
            save(frame(), tmp_path / f"new{suffix}")
        assert self.unchanged(tmp_path, old)

    def test_to_take_its_place_takes_the_style_back(self, tmp_path, monkeypatch):
        replace = os.replace

        def fail(source, target):
            if Path(target).suffix == ".fgb":
                raise PermissionError(errno.EPERM, "not allowed")
            replace(source, target)

        monkeypatch.setattr(files.os, "replace", fail)
        with pytest.raises(OutputError, match="not allowed"):
            save(frame(), tmp_path / "smoke.fgb")
        assert listing(tmp_path) == []

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_by_a_signal_leaves_nothing(self, tmp_path, monkeypatch, kind):
        def fail(*_):
            raise kind

        monkeypatch.setattr(write, "_count", fail)
        with pytest.raises(kind):
            save(frame(), tmp_path / "smoke.geojson")
        assert listing(tmp_path) == []

    def test_of_a_disk_that_refuses_bytes(self, tmp_path):
        # A limit on file size is as near to a full disk as a test may come: GDAL's, SQLite's
        # and Arrow's own writes fail halfway.
        place(blobs(400), UTM_20M, UTM).frame.to_parquet(tmp_path / "made.parquet")
        targets = [tmp_path / "out" / f"smoke{suffix}" for suffix in SUFFIXES]
        (tmp_path / "out").mkdir()
        command = [sys.executable, "-c", ON_A_SMALL_DISK, tmp_path / "made.parquet", *targets]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = ran.stdout.splitlines()
        assert len(lines) == len(targets)
        for line, target in zip(lines, targets, strict=True):
            assert line.startswith(f"{target}: ")
            assert line.endswith("Nothing was written.")
        assert listing(tmp_path / "out") == []

    def test_for_want_of_room_is_told_by_what_is_left(self, tmp_path, monkeypatch):
        def fail(*_, **__):
            raise pyogrio.errors.DataSourceError("Unexpected I/O failure")

        monkeypatch.setattr(pyogrio, "write_dataframe", fail)
        with pytest.raises(OutputError, match="Unexpected I/O failure"):
            save(frame(), tmp_path / "smoke.fgb")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))
        with pytest.raises(OutputError, match="no space left"):
            save(frame(), tmp_path / "smoke.fgb")


def test_gdal_keeps_its_own_date_setting(tmp_path):
    save(frame(), tmp_path / "smoke.gpkg")
    assert pyogrio.get_gdal_config_option("OGR_CURRENT_DATE") is None


def test_a_polygon_too_large_for_readers_of_geojson_brings_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(write, "_TOO_LARGE", 4)
    save(frame(), tmp_path / "smoke.geojson")
    assert "a polygon has" in caplog.text
    assert ".gpkg" in caplog.text
    caplog.clear()
    save(frame(), tmp_path / "smoke.fgb")
    assert caplog.text == ""


def test_geojson_is_the_same_in_batches(tmp_path, monkeypatch):
    save(frame(), tmp_path / "once.geojson")
    monkeypatch.setattr("smokegeo.outlines.rings._BATCH_POINTS", 3)
    save(frame(), tmp_path / "batches.geojson")
    once, batches = (tmp_path / f"{name}.geojson" for name in ("once", "batches"))
    assert once.read_bytes() == batches.read_bytes()
