"""Scenes that are odd but usable: predict says what it makes of them, and the polygons are right.

The numbers are the rows of the table of faults.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import rasterio
from bright_engine import BRIGHT, DARK, NAMES
from faults.judging import assert_done, contents, pixels_of, polygons
from faults.scenes import (
    PLACE,
    SIZE,
    TILED,
    UTM33,
    Smoke,
    cube,
    plume,
    write_scene,
    write_text,
)
from rasterio.enums import ColorInterp
from toy_scenes import damage_block

from smokegeo.scene.georeference import PICTURE

FULL = plume()
#: Pixels that hold nothing in many of the cases: some smoke, some not.
HOLE = np.zeros(SIZE, bool)
HOLE[20:50, 20:32] = True
CUT = FULL & ~HOLE


@dataclass(frozen=True)
class Case:
    """A scene made in a folder, what must be said, and where the smoke must be found."""

    name: str
    make: Callable[[Path], list[object]]
    notes: tuple[str, ...] = ()
    smoke: Smoke = field(default_factory=lambda: FULL)
    silent: tuple[str, ...] = ("Warning",)  # what must not be said


def scene(*options: object, name: str = "scene.tif", **profile: object):
    return lambda folder: [write_scene(folder / name, **profile), *options]


def holed(value: float, dtype: str = "uint16", bands: tuple[int, ...] = (0, 1, 2, 3)):
    pixels = cube(FULL, dtype=dtype)
    for band in bands:
        pixels[band][HOLE] = value
    return pixels


def with_alpha(folder: Path) -> list[object]:
    pixels = np.concatenate([cube(FULL), np.where(HOLE, 0, 65535)[None].astype("uint16")])
    colours = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.undefined]
    return scene(pixels=pixels, names=NAMES, colorinterp=[*colours, ColorInterp.alpha])(folder)


def band_files(
    *names: str, options=("-q",), nodata: float | None = None, pixels=None, dtype: str = "uint16"
):
    """Make a folder of one file for each of blue, green, red and near infrared."""

    def make(folder: Path) -> list[object]:
        values = cube(FULL, dtype=dtype) if pixels is None else pixels
        if nodata is not None:
            values[:, HOLE] = nodata
        for name, band in zip(names, values, strict=True):
            path = folder / "bands" / f"{name}.tif"
            write_scene(path, band[None], names=None, nodata=nodata)
        return [folder / "bands", *options]

    return make


def masked_band_files(folder: Path) -> list[object]:
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        for name, band in zip(("blue", "green", "red", "nir"), cube(FULL), strict=True):
            write_scene(folder / "bands" / f"{name}.tif", band[None], names=None, mask=~HOLE)
    return [folder / "bands"]


def two_dates(folder: Path) -> list[object]:
    """The second date is dark everywhere."""
    pixels = np.concatenate([cube(FULL), cube(np.zeros(SIZE, bool))])
    names = tuple(f"{name}_{year}" for year in (2022, 2023) for name in NAMES)
    return [write_scene(folder / "scene.tif", pixels, names=names)]


def linked(folder: Path) -> list[object]:
    """Scene and side-car out of a store of files that are named by their content."""
    store = folder / "blobs"
    write_scene(store / "3f2a9c", transform=PLACE @ PLACE.translation(1000, 1000))
    numbers = ", ".join(map(str, PLACE.to_gdal()))
    write_text(store / "77", f"<PAMDataset><GeoTransform>{numbers}</GeoTransform></PAMDataset>")
    (folder / "scene.tif").symlink_to(store / "3f2a9c")
    (folder / "scene.tif.aux.xml").symlink_to(store / "77")
    return [folder / "scene.tif"]


def spoilt_block(folder: Path) -> list[object]:
    path = write_scene(folder / "scene.tif", compress="deflate", **TILED)
    return [damage_block(path, 2, 2), "--skip-damaged"]


def spoilt_bytes(folder: Path) -> list[object]:
    """Row 6: bytes of a plain TIFF; nobody can tell that they are wrong."""
    path = write_scene(folder / "scene.tif", interleave="band", names=None)
    with rasterio.open(path) as src:
        start = int(src.get_tag_item("BLOCK_OFFSET_0_0", "TIFF", bidx=4))
    data = bytearray(path.read_bytes())
    data[start + 10 : start + 20] = b"\x01" * 10
    path.write_bytes(data)
    return [path, "--bands", ",".join(NAMES)]


def sparse(folder: Path) -> list[object]:
    """Row 33: blocks that were never written read as 0, and nothing is declared."""
    path = folder / "scene.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=SIZE[1], height=SIZE[0], count=4, dtype="uint16",
        crs=UTM33, transform=PLACE, sparse_ok=True, **TILED,
    ) as dst:  # fmt: skip
        dst.write(cube(FULL)[:, :32, :48], window=((0, 32), (0, 48)))
        dst.descriptions = NAMES
    return [path]


def world_file(folder: Path) -> list[object]:
    path = write_scene(folder / "scene.tif", transform=None)
    write_text(folder / "scene.tfw", "20\n0\n0\n-20\n500010\n5499990\n")
    return [path]


def moved_by_aux(folder: Path) -> list[object]:
    """Row 25: QGIS takes the place from the file beside it, and so do we, out loud."""
    path = write_scene(folder / "scene.tif", transform=PLACE @ PLACE.translation(1000, 1000))
    numbers = ", ".join(map(str, PLACE.to_gdal()))
    text = f"<PAMDataset><GeoTransform>{numbers}</GeoTransform></PAMDataset>"
    write_text(folder / "scene.tif.aux.xml", text)
    return [path]


def window_part() -> Smoke:
    smoke = np.zeros(SIZE, bool)
    smoke[30:60, 30:70] = FULL[30:60, 30:70]
    return smoke


def upper_left() -> Smoke:
    smoke = FULL.copy()
    smoke[32:] = False
    smoke[:, 48:] = False
    return smoke


def block_lost() -> Smoke:
    smoke = FULL.copy()
    smoke[32:48, 32:48] = False
    return smoke


#: Band files as they come in a product of 2022, without its metadata.
DATED = [f"T33UVR_20220902T143741_{band}_20m" for band in ("B02", "B03", "B04", "B8A")]
HALVES = {"scales": (1e-4,) * 4, "offsets": (-0.1,) * 4}

CASES = [
    Case("plain", scene()),
    Case("3 ENVI", scene(name="scene.dat", driver="ENVI")),
    Case(
        "3 ENVI by its header",
        lambda f: [scene(name="s.dat", driver="ENVI")(f)[0].with_suffix(".hdr")],
    ),
    Case(
        "3 JPEG 2000",
        scene(
            "--bands",
            "red,green,blue,nir",
            name="s.jp2",
            driver="JP2OpenJPEG",
            QUALITY="100",
            REVERSIBLE="YES",
            names=None,
        ),
    ),
    Case("3 BigTIFF", scene(BIGTIFF="YES")),
    Case("3 big-endian", scene(ENDIANNESS="BIG")),
    Case("3 one band after another", scene(interleave="band")),
    Case("3 COG", scene(driver="COG")),
    Case(
        "5 spoilt block left out",
        spoilt_block,
        ("Warning.*cannot be read at row 32, column 32", r"4\.1 % of it could not be analysed"),
        block_lost(),
        (),
    ),
    Case("6 spoilt bytes", spoilt_bytes),
    Case("9 three of four bands", scene(pixels=cube(FULL, 3)), ("lacks nir",)),
    Case(
        "10 another order",
        scene(pixels=cube(FULL)[::-1], names=NAMES[::-1]),
        ("band descriptions",),
    ),
    Case(
        "10 no names",
        scene(names=None),
        ("Warning.*no names; assuming red, green, blue",),
        silent=(),
    ),
    Case(
        "10 names are wavelengths",
        scene(names=("660", "560", "480", "840")),
        ("Warning.*660, 560, 480, ... are taken for wavelengths",),
        silent=("no names",),
    ),
    Case(
        "10 two dates",
        two_dates,
        (r"Warning.*2 times \(bands 1, 5\), 3 more likewise; the first is used.*--bands",),
        silent=(),
    ),
    Case(
        "10 one of two dates",
        lambda f: [*two_dates(f), "--bands", ",".join((*NAMES, *"----"))],
        ("explicit choice",),
    ),
    Case("25 links into a store", linked, ("georeference from scene.tif.aux.xml",)),
    Case(
        "10 named by the user",
        scene("--bands", "red,green,blue,nir", names=None),
        ("explicit choice",),
    ),
    Case("11 alpha", with_alpha, (r"could not be analysed",), CUT),
    Case("bands named by colour", band_files("blue", "green", "red", "nir")),
    Case(
        "Sentinel-2 bands without a date",
        band_files("B02", "B03", "B04", "B08"),
        (r"Warning: bands: neither .* the stored values are taken as they are\. If 1000",),
        silent=(),
    ),
    Case(
        "Sentinel-2 bands without metadata, with 1000 added",
        band_files(*DATED, options=(), pixels=cube(FULL, dark=1900, bright=9000)),
        (
            r"Warning: T33UVR_20220902T143741: no MTD.*1000 is taken off.*20220902.*--raw",
            r"with 1000 added, by the date 20220902: times 0\.0001 and -0\.1",
        ),
        silent=(),
    ),
    Case(
        "Sentinel-2 bands without metadata, harmonised",
        band_files(*DATED, options=(), pixels=cube(FULL, dark=300, bright=9000)),
        (r"too dark to be reflectances of Sentinel-2 with 1000 added, by the date 20220902",),
        silent=(),
    ),
    Case(
        "Sentinel-2 bands with their own nodata",
        band_files("B02", "B03", "B04", "B08", nodata=-9999, dtype="int16"),
        ("could not be analysed",),
        CUT,
        ("not declared",),
    ),
    Case("14 CRS from the user", scene("--crs", UTM33, crs=None)),
    Case("25 world file", world_file, ("georeference from scene.tfw",)),
    Case("25 side-car", moved_by_aux, ("georeference from scene.tif.aux.xml",)),
    Case("26 nodata 0", scene(pixels=holed(0), nodata=0), ("could not be analysed",), CUT),
    Case("26 nodata 65535", scene(pixels=holed(65535), nodata=65535), ("not be analysed",), CUT),
    Case("26 nodata NaN", scene(pixels=holed(np.nan, "float32"), nodata=np.nan), ("not be",), CUT),
    Case("26 nodata -9999", scene(pixels=holed(-9999, "int16"), nodata=-9999), ("not be",), CUT),
    Case("26 nodata in one band", scene(pixels=holed(0, bands=(2,)), nodata=0), ("not be",), CUT),
    Case(
        "26 nodata of a float",
        scene(pixels=holed(np.finfo("f4").min, "float32"), nodata=float(np.finfo("f4").min)),
        ("not be",),
        CUT,
    ),
    Case(
        "26 nodata beyond the type",
        scene("--nodata", "-9999"),
        ("Warning.*--nodata -9999 is no number that uint16 can hold",),
        silent=(),
    ),
    Case("26 mask band", scene(mask=~HOLE), ("could not be analysed",), CUT),
    Case("26 masks of band files", masked_band_files, ("could not be analysed",), CUT),
    Case("26 user's nodata", scene("--nodata", "77", pixels=holed(77)), ("not be analysed",), CUT),
    Case(
        "26 --nodata none",
        scene("--nodata", "none", pixels=holed(0), nodata=0),
        (),
        CUT,
        ("analysed", "Warning"),
    ),
    Case("27 undeclared NaN", scene(pixels=holed(np.nan, "float32")), ("not be analysed",), CUT),
    Case(
        "27 undeclared NaN in one band",
        scene(pixels=holed(np.nan, "float32", (1,))),
        ("not be",),
        CUT,
    ),
    Case("27 undeclared infinity", scene(pixels=holed(np.inf, "float32")), ("not be",), CUT),
    Case(
        "27 undeclared -9999",
        scene(pixels=holed(-9999, "int16")),
        (r"Warning: .*5\.7 % .*-9999.*--nodata",),
        CUT,
        (),
    ),
    Case(
        "27 undeclared 0",
        scene(pixels=holed(0)),
        (r"Warning: .*5\.7 % .*are 0.*--nodata 0",),
        CUT,
        (),
    ),
    Case(
        "27 undeclared 65535",
        scene(pixels=holed(65_535)),
        (r"Warning: .*5\.7 % .*are 65535.*--nodata 65535", "read as reflectance x 10000"),
        CUT,
        (),
    ),
    Case("29 uint8", scene(pixels=cube(FULL, 4, "uint8", 30, 200)), (r"255 = full.*times 39",)),
    Case("29 reflectance", scene(pixels=cube(FULL, 4, "float32", 0.1, 0.8)), ("1 = full",)),
    Case(
        "29 the user's factor",
        scene("--scale", "0.1", pixels=cube(FULL, 4, "float32", 10 * DARK, 10 * BRIGHT)),
        ("as you said",),
    ),
    Case(
        "29 far too bright",
        scene("--scale", "1", pixels=cube(FULL, 4, "float32", 1e6, 9e8)),
        ("Warning: .*trained on.*--scale",),
        np.ones(SIZE, bool),
        (),
    ),
    Case("29 int16", scene(pixels=cube(FULL, dtype="int16"))),
    Case("29 float64", scene(pixels=cube(FULL, dtype="float64"))),
    Case("31 uint32", scene(pixels=cube(FULL, dtype="uint32"))),
    Case("31 int32", scene(pixels=cube(FULL, dtype="int32"))),
    Case("31 int64", scene(pixels=cube(FULL, dtype="int64"))),
    Case("31 uint64", scene(pixels=cube(FULL, dtype="uint64"))),
    Case("31 int8", scene("--scale", "100", pixels=cube(FULL, 4, "int8", 10, 80))),
    Case(
        "31 one bit",
        scene("--scale", "9000", pixels=cube(FULL, 4, "uint8", 0, 1), nbits=1, nodata=255),
        (),
        FULL,
        (),
    ),
    Case(
        "32 scale and offset",
        scene(pixels=cube(FULL, dark=2000, bright=9000), **HALVES),
        ("1 = full",),
    ),
    Case(
        "32 --raw",
        scene("--raw", pixels=cube(FULL, dark=4600, bright=9000), **HALVES),
        ("read as reflectance x 10000",),
        np.ones(SIZE, bool),
    ),
    Case(
        "32 offset of Sentinel-2 by the name",
        scene(
            name="S2A_MSIL2A_20220902T143751_N0400_R096_T33UVR_20220902T200000.tif",
            pixels=cube(FULL, dark=1900, bright=9000),
        ),
        (r"with 1000 added, by processing baseline N0400 .*times 0\.0001 and -0\.1",),
    ),
    Case(
        "32 offset that nothing tells of",
        scene(pixels=cube(FULL, dark=1200, bright=9000)),
        (r"Warning: .*no band is darker than 1200; .*--scale 1 --offset -1000 takes it off",),
        silent=(),
    ),
    Case("33 sparse", sparse, ("Warning.*are 0 in every band",), upper_left(), ()),
    Case("37 window", scene("--window", "30,30,40,30"), (), window_part()),
    Case("tiles of 32", scene("--tile", "32", "--overlap", "9")),
    Case("tiles without overlap", scene("--tile", "33", "--overlap", "0")),
    Case("one tile", scene("--tile", "512")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_says_what_it_does_and_finds_the_smoke(case, tmp_path, model, bright, run) -> None:
    (tmp_path / "in").mkdir()
    args = case.make(tmp_path / "in")
    before = contents(tmp_path / "in")
    out = tmp_path / "smoke.gpkg"
    result = run("predict", *args, "--out", out, "--model", model, "--edges", "pixel")
    said = assert_done(result, *case.notes)
    assert not [word for word in case.silent if word in said], said
    found = pixels_of(out, PLACE, SIZE)
    np.testing.assert_array_equal(found, case.smoke)
    assert polygons(out)["pixels"].sum() == case.smoke.sum()
    assert contents(tmp_path / "in") == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "smoke.gpkg"]


def test_one_missing_block_of_many_is_told_and_left_out(tmp_path, model, bright, run) -> None:
    """Row 33: far fewer zeros than make a scene's zeros suspicious by their number."""
    path, prob = tmp_path / "scene.tif", tmp_path / "p.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=480, height=320, count=4, dtype="uint16",
        crs=UTM33, transform=PLACE, sparse_ok=True, **TILED,
    ) as dst:  # fmt: skip
        for place, window in dst.block_windows(1):
            if place != (9, 12):
                dst.write(np.full((4, 16, 16), DARK, "uint16"), window=window)
        dst.descriptions = NAMES
    out = ("--out", tmp_path / "smoke.gpkg", "--prob", prob)
    note = r"Warning: scene\.tif: whole blocks of pixels are 0 in every band"
    assert_done(run("predict", path, *out, "--model", model), note)
    expected = np.zeros((320, 480), bool)
    expected[144:160, 192:208] = True
    with rasterio.open(prob) as src:
        np.testing.assert_array_equal(src.read(1) == 255, expected)


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 200), (200, 1), (2, 3), (31, 33), (64, 64), (65, 129)]
)
def test_every_size_works(size, tmp_path, model, bright, run) -> None:
    """Rows 36 and 37."""
    smoke = np.zeros(size, bool)
    smoke[size[0] // 2 :, size[1] // 2 :] = True
    path = write_scene(tmp_path / "scene.tif", smoke)
    out = tmp_path / "smoke.gpkg"
    assert_done(run("predict", path, "--out", out, "--model", model, "--edges", "pixel"))
    np.testing.assert_array_equal(pixels_of(out, PLACE, size), smoke)


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".fgb", ".parquet"])
@pytest.mark.parametrize(
    ("pixels", "note"),
    [
        (np.full((4, 20, 20), 9, "uint16"), "holds no valid pixels"),
        (np.full((4, 20, 20), DARK, "uint16"), "0 smoke polygons"),
    ],
    ids=["28 nothing valid", "47 no smoke"],
)
def test_no_polygons_are_a_whole_file(pixels, note, suffix, tmp_path, model, bright, run) -> None:
    path = write_scene(tmp_path / "scene.tif", pixels, nodata=9)
    out = tmp_path / f"smoke{suffix}"
    assert_done(run("predict", path, "--out", out, "--model", model), note)
    if suffix == ".parquet":
        import geopandas

        assert len(geopandas.read_parquet(out)) == 0
    else:
        assert len(polygons(out)) == 0


def test_pixels_as_coordinates_claim_no_place_on_earth(tmp_path, model, bright, run) -> None:
    """Row 17: a picture without georeference, on the user's word."""
    pixels = cube(FULL, 3, "uint8", 30, 200)
    nowhere = {"crs": None, "transform": None, "names": None}
    path = write_scene(tmp_path / "photo.png", pixels, driver="PNG", **nowhere)
    out = tmp_path / "smoke.gpkg"
    args = ("--pixel-coords", "--edges", "pixel", "--model", model)
    assert_done(run("predict", path, "--out", out, *args))
    frame = polygons(out)
    assert frame.crs is None or "Undefined" in frame.crs.name
    assert frame["area_m2"].isna().all()
    np.testing.assert_array_equal(pixels_of(out, PICTURE, SIZE), FULL)


def test_pieces_that_touch_at_a_corner_are_valid_polygons(tmp_path, model, bright, run) -> None:
    """Row 48: a chessboard, the worst there is."""
    smoke = np.indices((40, 40)).sum(axis=0) % 2 == 0
    smoke[10:30, 10:30] |= np.indices((20, 20))[0] % 3 == 0
    path = write_scene(tmp_path / "scene.tif", smoke)
    for edges in ("pixel", "smooth"):
        for suffix in (".gpkg", ".geojson"):
            out = tmp_path / f"{edges}{suffix}"
            assert_done(run("predict", path, "--out", out, "--model", model, "--edges", edges))
            assert len(polygons(out)) >= (100 if edges == "pixel" else 1)  # each asserted valid
    np.testing.assert_array_equal(pixels_of(tmp_path / "pixel.gpkg", PLACE, (40, 40)), smoke)


def test_no_polygon_is_cut_at_a_tile_seam(tmp_path, model, bright, run) -> None:
    """Row 49."""
    smoke = np.zeros((200, 200), bool)
    smoke[3:-3, 90:110] = True
    smoke[90:110, 3:-3] = True
    path = write_scene(tmp_path / "scene.tif", smoke)
    for tile, overlap in ((32, 0), (32, 8), (64, 16), (199, 3)):
        out = tmp_path / f"{tile}-{overlap}.gpkg"
        tiling = ("--tile", tile, "--overlap", overlap, "--edges", "pixel")
        assert_done(run("predict", path, "--out", out, "--model", model, *tiling))
        assert polygons(out)["pixels"].tolist() == [smoke.sum()]


def test_very_many_polygons_bring_a_hint(tmp_path, model, bright, run, monkeypatch) -> None:
    """Row 51."""
    monkeypatch.setattr("smokegeo.writing.write._MANY", 1)
    path = write_scene(tmp_path / "scene.tif")
    result = run("predict", path, "--out", tmp_path / "a.geojson", "--model", model)
    assert_done(result, r"2 polygons: QGIS opens \.gpkg")


def test_an_output_is_replaced_on_request_only(tmp_path, model, bright, run) -> None:
    """Row 40."""
    path, out = write_scene(tmp_path / "scene.tif"), write_text(tmp_path / "a.geojson", "old")
    assert_done(run("predict", path, "--out", out, "--model", model, "--overwrite"))
    assert len(polygons(out)) == 2


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".fgb", ".parquet"])
def test_the_same_input_gives_the_same_bytes_anywhere(suffix, tmp_path, model, bright, run) -> None:
    found = []
    for place in ("here", "there"):
        folder = tmp_path / place
        path = write_scene(folder / "scene.tif")
        prob = ("--prob", folder / "p.tif", "--map", folder / "m.html")
        out = folder / f"smoke{suffix}"
        assert_done(run("predict", path, "--out", out, "--model", model, *prob))
        found.append(contents(folder))
    assert found[0] == found[1]


def test_a_picture_of_the_network_itself(tmp_path, model, run) -> None:
    """With the real network: sizes that are no multiple of 32, one pixel, NaN, absent bands."""
    pixels = cube(plume((45, 77)), dtype="float32")
    pixels[1, 5, 5] = np.nan
    odd = write_scene(tmp_path / "odd.tif", pixels)
    one = write_scene(tmp_path / "one.tif", cube(np.ones((1, 1), bool), 3))
    line = write_scene(tmp_path / "line.tif", cube(np.ones((1, 90), bool)))
    blank = write_scene(tmp_path / "blank.tif", np.full((4, 9, 9), 7, "uint16"), nodata=7)
    out = tmp_path / "out"
    result = run(
        "predict", odd, one, line, blank, "--out-dir", out, "--model", model, "--threads", 1
    )
    assert_done(result, "4 of 4 scenes done", "holds no valid pixels", "lacks nir")
    prob = tmp_path / "p.tif"
    again = ("--out", tmp_path / "a.gpkg", "--model", model, "--threads", "1", "--prob", prob)
    assert_done(run("predict", odd, *again))
    with rasterio.open(prob) as src:
        stored = src.read(1)
        assert (src.width, src.height, src.nodata) == (77, 45, 255)
    assert stored[5, 5] == 255  # the one pixel that is not a number
    assert (stored != 255).sum() == stored.size - 1  # and it alone
    shutil.rmtree(out)
