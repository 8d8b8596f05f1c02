"""Scenes and outputs that predict refuses, each in one line, with nothing left behind.

The numbers are the rows of the table of faults.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import rasterio
from faults.judging import assert_refused, contents
from faults.scenes import (
    PLACE,
    TILED,
    UTM33,
    cube,
    cut_short,
    plume,
    vrt_to,
    write_scene,
    write_text,
)
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.errors import NotGeoreferencedWarning
from rasterio.io import DatasetWriter
from rasterio.rpc import RPC
from rasterio.transform import Affine
from toy_scenes import damage_block

Make = Callable[[Path], list[object]]


@dataclass(frozen=True)
class Case:
    """A run that is refused: `make` writes into a folder and returns scene and options."""

    name: str
    make: Make
    exit: int
    match: str
    out: str = "out/smoke.geojson"


def text(content: str | bytes, name: str = "scene.tif") -> Make:
    """Make a scene of bytes that are no raster."""
    return lambda folder: [write_text(folder / name, content)]


def scene(*options: object, **profile: object) -> Make:
    """Make a scene with these properties, and run with these options."""
    return lambda folder: [write_scene(folder / "scene.tif", **profile), *options]


def pages(folder: Path) -> list[object]:
    path = folder / "scene.tif"
    for number in range(3):
        with rasterio.open(
            path,
            "w",
            driver="GTiff",
            width=8,
            height=8,
            count=1,
            dtype="uint16",
            crs=UTM33,
            transform=PLACE,
            append_subdataset=number > 0,
        ) as dst:
            dst.write(np.full((1, 8, 8), number, "uint16"))
    return [path]


def truncated(share: float, **profile: object) -> Make:
    """Make a scene with its directory first, which opens however short it is."""
    noise = np.random.default_rng(0).integers(0, 9000, (4, 64, 64)).astype("uint16")

    def make(folder: Path) -> list[object]:
        path = write_scene(folder / "scene.tif", noise, names=None, **profile)
        return [cut_short(path, share), "--bands", "red,green,blue,nir"]

    return make


def spoilt_block(folder: Path) -> list[object]:
    path = write_scene(folder / "scene.tif", compress="deflate", **TILED)
    return [damage_block(path, 2, 2)]


def damaged_raw(folder: Path) -> list[object]:
    """Make damage that no reader can see; only the checksum from before tells."""
    path = write_scene(folder / "scene.tif")
    content = path.read_bytes()
    path.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    return [path, "--sha256", hashlib.sha256(content).hexdigest()]


def control_points(folder: Path) -> list[object]:
    path = write_scene(folder / "scene.tif", crs=None, transform=None)
    corners = [(0, 0), (0, 90), (70, 0), (70, 90)]
    points = [GroundControlPoint(r, c, 500000 + 20 * c, 5500000 - 20 * r) for r, c in corners]
    with _unplaced(path) as dst:
        dst.gcps = (points, CRS.from_string(UTM33))
    return [path]


def coefficients(folder: Path) -> list[object]:
    path = write_scene(folder / "scene.tif", crs=None, transform=None)
    one = [1.0] + [0.0] * 19
    rpc = RPC(0, 1, 50, 1, one, one, 0, 1, 15, 1, one, one, 0, 1, 0, 0)
    with _unplaced(path) as dst:
        dst.rpcs = rpc
    return [path]


@contextmanager
def _unplaced(path: Path) -> Iterator[DatasetWriter]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, "r+") as dst:
            yield dst


def huge(folder: Path) -> Path:
    """A million by a million pixels that take next to nothing on the disk."""
    path = folder / "scene.tif"
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=1_000_000,
        height=1_000_000,
        count=4,
        dtype="uint16",
        crs=UTM33,
        transform=PLACE,
        tiled=True,
        blockxsize=1024,
        blockysize=1024,
        BIGTIFF="YES",
        sparse_ok=True,
    ) as dst:
        dst.write(np.full((4, 1, 1), 1000, "uint16"), window=((0, 1), (0, 1)))
    return path


def giant_block(folder: Path) -> list[object]:
    """A header alone that speaks of one block of 8 GB."""
    side = 65536
    tags = [
        (256, 4, 1, side),
        (257, 4, 1, side),
        (258, 3, 1, 16),
        (259, 3, 1, 8),
        (262, 3, 1, 1),
        (277, 3, 1, 1),
        (322, 4, 1, side),
        (323, 4, 1, side),
        (324, 4, 1, 1000),
        (325, 4, 1, 10),
    ]
    directory = struct.pack("<H", len(tags))
    directory += b"".join(struct.pack("<HHII", *tag) for tag in tags) + struct.pack("<I", 0)
    return [write_text(folder / "scene.tif", b"II*\0" + struct.pack("<I", 8) + directory)]


def band_folder(folder: Path) -> list[object]:
    for name in ("a", "b", "c"):
        write_scene(folder / f"{name}.tif", cube(plume(), 1), names=None)
    return [folder]


def two_grids(folder: Path) -> list[object]:
    write_scene(folder / "red.tif", cube(plume(), 1), names=None)
    write_scene(folder / "nir.tif", cube(plume((34, 44)), 1), names=None)
    return [folder]


def palette(folder: Path) -> list[object]:
    path = write_scene(folder / "scene.tif", cube(plume(), 1, "uint8", 1, 2), names=None)
    with rasterio.open(path, "r+") as dst:
        dst.write_colormap(1, {1: (0, 90, 0, 255), 2: (250, 250, 250, 255)})
    return [path]


def existing(folder: Path) -> list[object]:
    write_text(folder.parent / "out" / "smoke.geojson", "mine")
    return scene()(folder)


def link_to_scene(link: Callable[[Path, Path], None]) -> Make:
    def make(folder: Path) -> list[object]:
        path = write_scene(folder / "scene.tif")
        link(path, folder.parent / "out" / "smoke.gpkg")
        return [path, "--overwrite"]

    return make


def header_without_data(folder: Path) -> list[object]:
    path = write_scene(folder / "scene.dat", driver="ENVI")
    path.unlink()
    return [folder / "scene.hdr"]


def other_overviews(folder: Path) -> list[object]:
    other = write_scene(folder / "other" / "a.tif", names=None)
    item = f'<MDI key="OVERVIEW_FILE">{other}</MDI>'
    write_text(
        folder / "scene.tif.aux.xml",
        f'<PAMDataset><Metadata domain="OVERVIEWS">{item}</Metadata></PAMDataset>',
    )
    return [write_scene(folder / "scene.tif", names=None)]


def one_line(folder: Path) -> list[object]:
    write_scene(folder / "scene.tif")
    return [folder / "scene.tif", folder / "scene.tif"]


LOCAL = 'LOCAL_CS["arbitrary",UNIT["metre",1]]'

CASES = [
    Case("1 no such file", lambda folder: [folder / "scene.tif"], 2, r"scene\.tif.*no such file"),
    Case("1 broken link", lambda f: [_link(f / "scene.tif", "gone.tif")], 2, "no such file"),
    Case("1 links in a circle", lambda f: [_link(f / "scene.tif", "scene.tif")], 2, "no such file"),
    Case("2 folder", lambda folder: [folder], 3, "is a folder"),
    Case("2 folder of bands", band_folder, 3, r"is a folder, but no .*rio stack a\.tif b\.tif"),
    Case(
        "2 folder of two grids", two_grids, 3, r"nir\.tif lies on another grid.*rio warp nir\.tif"
    ),
    Case("2 palette", palette, 3, r"in a palette.*gdal_translate -expand rgb scene\.tif OUT\.tif$"),
    Case("2 empty file", text(b""), 3, r"scene\.tif is empty"),
    Case("2 text", text("hello world"), 3, "begins with"),
    Case("2 web page", text("<!DOCTYPE html><html>404"), 3, r"web page.*raster\. Download it ag"),
    Case("2 XML", text("<?xml version='1.0'?><a/>"), 3, r"XML file.*raster\. Name the raster or"),
    Case(
        "2 LFS pointer",
        text("version https://git-lfs.github.com/spec/v1\n"),
        3,
        r"LFS pointer, not .*raster\. Fetch the file itself: git lfs pull$",
    ),
    Case(
        "2 TIFF of 42 bytes",
        text(b"II*\0\x08\0\0\0" + b"\0" * 34),
        3,
        r"scene\.tif is cut short, damaged",
    ),
    Case("2 control characters", text(b"\x1b[31m\r\nError: \x07"), 3, "begins with"),
    Case(
        "3 HDF5",
        text(b"\x89HDF\r\n\x1a\n" + b"\0" * 99),
        3,
        r'HDF5.*the variable you want: gdal_translate HDF5:"scene\.tif"://NAME OUT\.tif$',
    ),
    Case(
        "3 netCDF",
        text(b"CDF\x01" + b"\0" * 99, "a.nc"),
        3,
        r'netCDF.*gdal_translate NETCDF:"a\.nc":NAME',
    ),
    Case("3 zip archive", text(b"PK\x03\x04" + b"\0" * 99), 3, r"zip archive, not.*\. Unpack it"),
    Case(
        "3 tar archive", text(b"B2.TIF".ljust(257, b"\0") + b"ustar\x0000"), 3, r"tar arch.*Unpack"
    ),
    Case(
        "3 HDF4", text(b"\x0e\x03\x13\x01" + b"\0" * 99), 3, r"an HDF4 file.*Convert the subdatas"
    ),
    Case("3 NITF", text(b"NITF02.10" + b"\0" * 99), 3, r"a NITF file.*Convert it: gdal_translate"),
    Case("3 gzip archive", text(b"\x1f\x8b" + b"\0" * 99), 3, r"gzip archive, not.*\. Unpack it"),
    Case(
        "3 arrays of NumPy",
        text(b"PK\x03\x04" + b"\0" * 99, "cube.npz"),
        3,
        r"cube\.npz is an archive of NumPy arrays, not.*\. Write its array to a GeoTIFF",
    ),
    Case(
        "3 array of NumPy",
        text(b"\x93NUMPY\x01\0" + b"\0" * 99, "cube.npy"),
        3,
        r"NumPy array.*Write its array to a GeoTIFF",
    ),
    Case(
        "3 virtual raster",
        text(vrt_to(Path("/etc/hostname")), "s.vrt"),
        3,
        r"virtual raster.*Convert it: gdal_translate s\.vrt OUT\.tif$",
    ),
    Case("3 bitmap", text(b"BM" + b"\0" * 99, "s.bmp"), 3, r"bitmap.*gdal_translate s\.bmp OUT"),
    Case("3 header without data", header_without_data, 3, "no data file beside"),
    Case("4 cut short, tiled", truncated(0.6, compress="deflate", **TILED), 3, "cut short.*row"),
    Case("4 cut short, strips", truncated(0.6), 3, r"cut short or damaged at row \d+, column \d+"),
    Case("4 cut to its header", truncated(0.01), 3, r"scene\.tif"),
    Case("4 JPEG 2000 cut", lambda f: [_short_jp2(f)], 3, r"scene\.jp2.*(cut short|damaged)"),
    Case("4 PNG cut", lambda f: [_short_png(f), "--pixel-coords"], 3, "cut short", "out/a.gpkg"),
    Case("4 JPEG cut", lambda f: [_short_jpeg(f), "--pixel-coords"], 3, "cut short", "out/a.gpkg"),
    Case("4 ENVI cut", lambda f: [_short_envi(f)], 3, r"scene\.dat.*(cut short|damaged)"),
    Case("5 spoilt block", spoilt_block, 3, r"at row \d+, column \d+.*--skip-damaged"),
    Case("6 raw pixels damaged", damaged_raw, 3, r"another checksum.*Copy it again"),
    Case("6 no checksum", scene("--sha256", "abc"), 2, "64 hexadecimal digits"),
    Case("7 no bands", text(b"\x89HDF\r\n\x1a\n"), 3, "HDF5"),
    Case("8 pages", pages, 3, "3 pages of 1 band"),
    Case(
        "9 bands no model knows",
        scene(pixels=cube(plume(), 2), names=("elevation", "slope")),
        3,
        r"has 2 band\(s\) \(elevation, slope\), none of which is known",
    ),
    Case("9 two unnamed", scene(pixels=cube(plume(), 2), names=None), 3, "--bands"),
    Case("9 wrong --bands", scene("--bands", "red,green"), 2, "--bands names 2 bands.*has 4"),
    Case("9 wrong --sensor", scene("--sensor", "nothing"), 2, "sensor 'nothing' is not known"),
    Case(
        "very many bands",
        scene(pixels=np.ones((1001, 8, 8), np.uint8), names=None),
        3,
        "1001 bands; 1000 is the limit",
    ),
    Case("14 no CRS", scene(crs=None), 3, "no coordinate system.*--crs EPSG"),
    Case("14 bad --crs", scene("--crs", "EPSG:99999999", crs=None), 2, "--crs .* is not"),
    Case("14 --crs against the file", scene("--crs", "EPSG:4326"), 2, "has a coordinate system"),
    Case("16 local CRS", scene(crs=CRS.from_wkt(LOCAL)), 3, '"arbitrary".*Earth'),
    Case("16 coordinates off Earth", scene(transform=PLACE @ Affine.scale(1e9)), 3, "Earth"),
    Case("17 no transform", scene(transform=None), 3, "has no georeference"),
    Case("17 no georeference", scene(transform=None, crs=None), 3, "--pixel-coords"),
    Case("17 pixels in GeoJSON", scene("--pixel-coords", crs=None), 2, r"GeoJSON.*\.gpkg"),
    Case("18 pixel size 0", scene(transform=Affine(0, 0, 5e5, 0, 0, 5.5e6)), 3, "pixel size is 0"),
    Case("18 pixels in a line", scene(transform=Affine(2, 4, 5e5, 1, 2, 5.5e6)), 3, "pixel size"),
    Case("18 NaN transform", scene(transform=Affine(np.nan, 0, 5e5, 0, -2, 5e6)), 3, "transform"),
    Case("21 control points", control_points, 3, "ground control points only.*gdalwarp"),
    Case("21 RPCs", coefficients, 3, "RPC.*gdalwarp"),
    Case("25 overviews elsewhere", other_overviews, 3, "leads to another file"),
    Case("30 complex", scene(pixels=cube(plume(), dtype="complex64")), 3, "holds complex64"),
    Case("30 complex integers", lambda f: [_complex_int(f)], 3, "holds complex_int16"),
    Case(
        "32 two units",
        scene(scales=(1e-4, 1e-4, 1e-4, 1.0), offsets=(0.0,) * 4),
        3,
        r"scene\.tif has bands with a scale tag and without: nir\. Tag them alike",
    ),
    Case("35 giant block", giant_block, 3, r"blocks of 8\.6 GB.*TILED=YES"),
    Case("38 folder missing", scene(), 2, "does not exist", out="out/none/smoke.geojson"),
    Case("38 file for a folder", existing, 2, "exist", out="out/smoke.geojson/x.geojson"),
    Case("39 is a folder", scene(), 5, "is a folder", out="out/sub.geojson"),
    Case("39 not writable", scene(), 5, "cannot be written", out="/proc/smoke.geojson"),
    Case(
        "39 name too long",
        scene(),
        5,
        "written",
        out=f"out/{'x' * 300}.geojson",
    ),
    Case("39 unknown format", scene(), 2, "no vector format", out="out/smoke.docx"),
    Case("40 exists", existing, 2, "exists already.*--overwrite"),
    Case(
        "41 symbolic link",
        link_to_scene(lambda a, b: b.symlink_to(a)),
        2,
        "is the scene",
        "out/smoke.gpkg",
    ),
    Case(
        "41 hard link",
        link_to_scene(lambda a, b: os.link(a, b)),
        2,
        "is the scene",
        "out/smoke.gpkg",
    ),
    Case(
        "41 scene called .gpkg",
        lambda f: [_renamed(f), "--overwrite"],
        2,
        "is the scene",
        "in/scene.gpkg",
    ),
    Case(
        "41 --prob on the scene",
        lambda f: [*scene()(f), "--prob", f / "scene.tif", "--overwrite"],
        2,
        "is the scene",
    ),
    Case(
        "41 two outputs of one name",
        lambda f: [
            *scene()(f),
            "--map",
            f.parent / "out/a.html",
            "--prob",
            f.parent / "out/../out/a.html",
        ],
        2,
        r"--prob|same name",
    ),
    Case("several scenes, one output", one_line, 2, "--out-dir"),
    Case("CRS and none", scene("--crs", "EPSG:32633", "--pixel-coords"), 2, "drop it or --crs"),
    Case("scale of 0", scene(scales=(0,) * 4, offsets=(0,) * 4), 3, "no usable numbers.*--raw"),
    Case("geocentric", scene(crs="EPSG:4978"), 3, "centre of the Earth.*gdal_edit"),
    Case("window outside", scene("--window", "900,900,5,5"), 3, "does not touch"),
    Case("window of words", scene("--window", "a,b"), 2, "COLUMN,ROW,WIDTH,HEIGHT"),
    Case("bbox elsewhere", scene("--bbox", "-70,-30,-69,-29"), 3, "does not touch"),
    Case("bbox upside down", scene("--bbox", "14,51,15,50"), 2, "WEST,SOUTH,EAST,NORTH"),
    Case("bbox of NaN", scene("--bbox", "nan,nan,nan,nan"), 2, "WEST,SOUTH,EAST,NORTH"),
    Case("nodata of words", scene("--nodata", "dark"), 2, "neither a number"),
    Case("overlap beyond the tile", scene("--tile", "32", "--overlap", "32"), 2, "overlap"),
    Case("a URL", lambda f: ["https://example.org/scene.tif"], 2, "local files only"),
    Case("a bucket", lambda f: ["s3://bucket/scene.tif"], 2, "local files only"),
    Case("/vsicurl", lambda f: ["/vsicurl/http://localhost/scene.tif"], 2, "local files only"),
    Case("/vsizip", lambda f: ["/vsizip/a.zip/scene.tif"], 2, "local files only"),
    Case("a connection string", lambda f: ["GTIFF_DIR:1:scene.tif"], 2, "no such file"),
    Case("inline XML", lambda f: [vrt_to(Path("/etc/hostname"))], 2, "no such file"),
]


def _link(path: Path, target: str) -> Path:
    path.symlink_to(target)
    return path


def _short_jp2(folder: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 9000, (4, 128, 128)).astype("uint16")
    return cut_short(
        write_scene(folder / "scene.jp2", pixels, driver="JP2OpenJPEG", QUALITY="100"), 0.3
    )


def _short_png(folder: Path) -> Path:
    return _short_picture(folder / "scene.png", "PNG")


def _short_jpeg(folder: Path) -> Path:
    return _short_picture(folder / "scene.jpg", "JPEG")


def _short_picture(path: Path, driver: str) -> Path:
    pixels = np.random.default_rng(0).integers(0, 255, (3, 64, 64)).astype("uint8")
    return cut_short(
        write_scene(path, pixels, driver=driver, names=None, crs=None, transform=None), 0.6
    )


def _short_envi(folder: Path) -> Path:
    return cut_short(write_scene(folder / "scene.dat", driver="ENVI"), 0.5)


def _complex_int(folder: Path) -> Path:
    path = folder / "scene.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=8, height=8, count=4, dtype="complex_int16", crs=UTM33,
        transform=PLACE,
    ):  # fmt: skip
        pass
    return path


def _renamed(folder: Path) -> Path:
    return Path(shutil.move(write_scene(folder / "scene.tif"), folder / "scene.gpkg"))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_is_refused_in_one_line_and_leaves_nothing(case, tmp_path, model, bright, run) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    (out / "sub.geojson").mkdir()
    args = case.make(folder)
    before = {str(tmp_path): contents(tmp_path)}
    result = run("predict", *args, "--out", tmp_path / case.out, "--model", model)
    assert_refused(result, case.exit, case.match, before)


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".fgb", ".parquet"])
def test_a_polygon_that_got_lost_on_the_way_is_an_error(
    suffix, tmp_path, model, bright, run, monkeypatch
) -> None:
    """Row 52."""
    path = write_scene(tmp_path / "in" / "scene.tif")
    monkeypatch.setattr("smokegeo.writing.write._count", lambda *_: 1)
    (tmp_path / "out").mkdir()
    before = {str(tmp_path): contents(tmp_path)}
    result = run("predict", path, "--out", tmp_path / "out" / f"a{suffix}", "--model", model)
    assert_refused(result, 5, "1 of 2 polygons arrived", before)


def test_a_scene_that_takes_days_needs_a_word(tmp_path, model, bright, run, monkeypatch) -> None:
    """Row 34: a million by a million pixels in a small file."""
    monkeypatch.setattr(bright, "seconds_per_tile", 0.01)
    path = huge(tmp_path)
    before = {str(tmp_path): contents(tmp_path)}
    result = run("predict", path, "--out", tmp_path / "smoke.gpkg", "--model", model)
    line = assert_refused(result, 3, "1000000 x 1000000 .* days.*--bbox or --window", before)
    assert "TB of disk" in line
    part = ("--window", "0,0,40,40", "--nodata", "none")
    result = run("predict", path, *part, "--out", tmp_path / "smoke.gpkg", "--model", model)
    assert result.exit_code == 0, result.output


def test_no_room_on_the_disk_is_said_before_the_work(
    tmp_path, model, bright, run, monkeypatch
) -> None:
    """Row 42, before."""
    path = write_scene(tmp_path / "scene.tif")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100})())
    before = {str(tmp_path): contents(tmp_path)}
    for word in ((), ("--yes",)):  # which is for long work, not for work in vain
        result = run("predict", path, "--out", tmp_path / "smoke.gpkg", "--model", model, *word)
        assert_refused(result, 5, "MB free, about", before)


def test_one_bad_scene_does_not_stop_the_rest_and_the_exit_code_tells(
    tmp_path, model, bright, run
) -> None:
    good, bad = write_scene(tmp_path / "good.tif"), write_text(tmp_path / "bad.tif", "hello")
    late = write_scene(tmp_path / "late.tif")
    result = run("predict", good, bad, late, "--out-dir", tmp_path / "out", "--model", model)
    assert result.exit_code == 3
    assert "2 of 3 scenes done" in result.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["good.gpkg", "late.gpkg"]


def test_a_refusal_comes_before_the_network_is_built(tmp_path, model, run, monkeypatch) -> None:
    def never(*_):
        raise AssertionError("the network was built for nothing")

    monkeypatch.setattr("smokegeo.pipeline.Engine", never)
    for case in CASES:
        if case.name.startswith(("1 ", "2 ", "3 ", "4 ", "8", "9", "14", "17", "18", "30")):
            folder = tmp_path / case.name.replace(" ", "_").replace(",", "")
            folder.mkdir()
            result = run(
                "predict",
                *case.make(folder),
                "--out",
                folder / Path(case.out).name,
                "--model",
                model,
            )
            assert result.exit_code == case.exit, (case.name, result.output)


def test_debug_shows_the_traceback_and_json_stays_clean(tmp_path, model, run) -> None:
    path = write_text(tmp_path / "scene.tif", json.dumps({"a": 1}))
    result = run("predict", path, "--out", tmp_path / "a.gpkg", "--model", model, "--debug")
    assert result.exit_code == 3
    assert "Traceback" in result.stderr
    assert result.stdout == ""
