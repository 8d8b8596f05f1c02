"""The same samples come out of every native form, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from prepare.native_files import (
    FORMS,
    IDS,
    WAVELENGTHS,
    cube,
    folder,
    mask,
    raw_mosaic,
    write_envi,
    write_masks,
    write_npy,
    write_tif,
)
from rasterio.crs import CRS
from rasterio.transform import from_origin

from smokegeo.cubes import cube_bands, read_cube
from smokegeo.datasets.layout import FRAME_CRS, load_layout
from smokegeo.errors import InputError
from smokegeo.labels import read_labels
from smokegeo.prepare.run import Options, prepare
from smokegeo.sensors import sensor


@pytest.fixture
def src(tmp_path):
    return folder(tmp_path, "src")


def pixels(root, name):
    return read_cube(root / "images" / f"{name}.tif").values


def labels(root, name):
    return read_labels(root / "masks" / f"{name}.tif").values


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pixels(form, src, tmp_path):
    FORMS[form](src)
    prepare("hss", src, tmp_path / "dst")
    layout = load_layout(tmp_path / "dst", "hss")
    assert sorted(frame.id for frame in layout.frames) == sorted(IDS)
    for name in IDS:
        values = pixels(layout.root, name)
        assert values.dtype == np.uint16
        np.testing.assert_array_equal(values, cube(name))
        np.testing.assert_array_equal(labels(layout.root, name), mask(name))
    camera = "ximea_sm5x5_nir" if form.startswith("mosaic") else "hss"
    assert layout.bands.wavelengths_nm == sensor(camera).bands.wavelengths_nm
    assert {frame.scene for frame in layout.frames} == {"a", "b"}


@pytest.mark.parametrize("unit", ["Nanometers", "Micrometers"])
def test_envi_wavelengths_are_taken_over_with_their_unit(unit, src, tmp_path):
    for name in IDS:
        write_envi(folder(src, "cubes") / f"{name}.bsq", cube(name)[:5], "bsq", unit)
        header = src / "cubes" / f"{name}.hdr"
        waves = header.read_text().split("wavelength = ")
        five = ", ".join(waves[1].strip("{}\n").split(", ")[:5])
        header.write_text(f"{waves[0]}wavelength = {{{five}}}\n")
    write_masks(src)
    done = prepare("hss", src, tmp_path / "dst")
    assert done.bands.wavelengths_nm == tuple(float(nm) for nm in WAVELENGTHS[:5])


def test_band_pictures_are_sorted_by_wavelength_not_by_letters(src, tmp_path):
    for name in IDS:
        for nm, band in zip((1000, 900, 60.5e1), cube(name)[:3], strict=True):
            picture = Image.fromarray(band.astype(np.uint8))
            picture.save(folder(src, "images", name) / f"{nm:g}nm.png")
    write_masks(src)
    done = prepare("hss", src, tmp_path / "dst")
    assert done.bands.wavelengths_nm == (605, 900, 1000)
    expected = cube("a_01")[[2, 1, 0]].astype(np.uint8)
    np.testing.assert_array_equal(pixels(done.root, "a_01"), expected)


def test_own_calibration_of_the_camera_orders_the_bands(src, tmp_path):
    calibration = tmp_path / "mine.toml"
    calibration.write_text(
        'title = "mine"\nbands = [["c", 900, 10], ["a", 700, 10], ["d", 950, 10], ["b", 800, 10]]\n'
        "[mosaic]\nrank = [[1, 2], [3, 4]]\nskip_columns = 1\n"
    )
    raw = np.arange(4 * 7, dtype=np.uint8).reshape(4, 7)
    np.save(folder(src, "images") / "x.npy", raw)
    Image.fromarray(np.eye(2, 3, dtype=np.uint8)).save(folder(src, "masks") / "x.png")
    done = prepare("hss", src, tmp_path / "dst", Options(mosaic=calibration))
    assert done.bands.names == ("a", "b", "c", "d")
    assert pixels(done.root, "x")[0].tolist() == [[2, 4, 6], [16, 18, 20]]
    assert pixels(done.root, "x")[2].tolist() == [[1, 3, 5], [15, 17, 19]]


def test_the_papers_camera_gives_the_papers_size(src, tmp_path):
    np.save(folder(src, "raw") / "x.npy", np.zeros((1088, 2048), np.uint8))
    Image.fromarray(np.zeros((217, 409), np.uint8)).save(folder(src, "masks") / "x.png")
    assert prepare("hss", src, tmp_path / "dst").facts["sizes"] == ["409x217"]
    assert raw_mosaic("x").shape == (63, 82)


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        ("uint8", "uint8"),
        ("float32", "float32"),
        ("float64", "float32"),
        ("int64", "uint16"),
        ("bool", "uint8"),
        (">u2", "uint16"),
        ("int16", "int16"),
        ("float16", "float32"),
    ],
)
def test_data_types_are_kept_or_cast_to_one_that_geotiff_has(stored, kept, src, tmp_path):
    values = (cube("a_01") % 256).astype(stored)
    np.save(folder(src, "images") / "x.npy", values)
    Image.fromarray(mask("a_01")).save(folder(src, "masks") / "x.png")
    done = prepare("hss", src, tmp_path / "dst")
    assert pixels(done.root, "x").dtype == kept
    np.testing.assert_array_equal(pixels(done.root, "x"), values)


def test_named_bands_set_the_band_axis(src, tmp_path):
    np.save(folder(src, "images") / "x.npy", np.moveaxis(cube("x")[:3], 0, 1))
    Image.fromarray(mask("x")).save(folder(src, "masks") / "x.png")
    done = prepare("hss", src, tmp_path / "dst", Options(bands="700, 800nm, nir"))
    assert done.bands.names == ("700nm", "800nm", "nir")
    np.testing.assert_array_equal(pixels(done.root, "x"), cube("x")[:3])


def test_camera_frames_get_a_cell_each_of_the_frame_grid(src, tmp_path):
    done = prepare("hss", write_npy(src), tmp_path / "dst")
    places = [read_labels(done.root / "masks" / f"{name}.tif").place for name in IDS]
    assert all(place.crs == FRAME_CRS for place in places)
    assert len({place.transform for place in places}) == len(IDS)


def test_georeferenced_cubes_keep_their_place(src, tmp_path):
    utm, here = CRS.from_epsg(32633), from_origin(5e5, 5e6, 10, 10)
    write_tif(folder(src, "images") / "x.tif", cube("x"), crs=utm, transform=here)
    Image.fromarray(mask("x")).save(folder(src, "masks") / "x.png")
    done = prepare("hss", src, tmp_path / "dst")
    image = read_cube(done.root / "images" / "x.tif")
    assert (image.rio.crs, image.rio.transform()) == (utm, here)
    assert done.facts["georeferenced"]
    assert cube_bands(image).wavelengths_nm == sensor("hss").bands.wavelengths_nm


def test_pixels_without_data_are_ignored(src, tmp_path):
    values = cube("x").astype(np.float32)
    values[3, 2, 1] = np.nan
    write_tif(folder(src, "images") / "x.tif", values, nodata=float("nan"))
    Image.fromarray(mask("x")).save(folder(src, "masks") / "x.png")
    done = prepare("hss", src, tmp_path / "dst")
    assert labels(done.root, "x")[2, 1] == 255
    assert np.isfinite(pixels(done.root, "x")).all()


def test_no_number_that_stands_for_missing_data_is_left(src, tmp_path):
    values = cube("x").astype(np.int16)
    values[3, 2, 1] = -9999
    write_tif(folder(src, "images") / "x.tif", values, nodata=-9999)
    Image.fromarray(mask("x")).save(folder(src, "masks") / "x.png")
    done = prepare("hss", src, tmp_path / "dst")
    values[:, 2, 1] = 0
    np.testing.assert_array_equal(pixels(done.root, "x"), values)
    assert (labels(done.root, "x") == 255).sum() == 1


HERE = {"crs": CRS.from_epsg(32633), "transform": from_origin(5e5, 5e6, 10, 10)}
ELSEWHERE = {**HERE, "transform": from_origin(6e5, 5e6, 10, 10)}


def write_pair(root, first, second):
    write_tif(folder(root, "rgb") / "x.tif", cube("x")[:3], **first)
    write_tif(folder(root, "thermal") / "x.tif", cube("x")[3:4], **second)


def write_bands(root, first, second):
    for nm, band, profile in zip((600, 700), cube("x")[:2], (first, second), strict=True):
        write_tif(folder(root, "images", "x") / f"{nm}nm.tif", band[None], **profile)


def write_pages(root, first, second):
    write_tif(folder(root, "images") / "x.tif", cube("x")[:1], **first)
    bands = cube("x")[1:]
    for band, profile in zip(bands, (second, *[{}] * (len(bands) - 1)), strict=True):
        page = {**profile, "APPEND_SUBDATASET": "YES"}
        write_tif(root / "images" / "x.tif", band[None], **page)


#: Name -> (kind, writer of a frame in parts, the number of bands).
PARTS = {
    "RGB and thermal": ("mss", write_pair, 4),
    "a file per band": ("hss", write_bands, 2),
    "pages": ("hss", write_pages, 25),
}


@pytest.mark.parametrize("form", PARTS)
def test_frames_in_parts_keep_their_place_and_ignore_missing_data(form, src, tmp_path):
    kind, write, count = PARTS[form]
    x = cube("x")
    first, second = (2, 3), (8, 5)
    last = 3 if kind == "mss" else 1
    write(src, {**HERE, "nodata": x[0][first]}, {**HERE, "nodata": x[last][second]})
    Image.fromarray(mask("x")).save(folder(src, "masks") / "x.png")
    done = prepare(kind, src, tmp_path / "dst")
    image = read_cube(done.root / "images" / "x.tif")
    assert (image.rio.crs, image.rio.transform()) == tuple(HERE.values())
    for pixel in (first, second):
        assert labels(done.root, "x")[pixel] == 255
        assert not image.values[(slice(None), *pixel)].any()
    kept = labels(done.root, "x") != 255
    assert kept.any()
    np.testing.assert_array_equal(image.values[:, kept], x[:count, kept])


@pytest.mark.parametrize("form", PARTS)
def test_a_frame_whose_parts_lie_elsewhere_is_refused(form, src, tmp_path):
    kind, write, _ = PARTS[form]
    write(src, HERE, ELSEWHERE)
    Image.fromarray(mask("x")).save(folder(src, "masks") / "x.png")
    with pytest.raises(InputError, match="parts lie elsewhere: x"):
        prepare(kind, src, tmp_path / "dst")


def test_a_block_of_a_raw_mosaic_that_lacks_a_pixel_is_ignored(src, tmp_path):
    raw = raw_mosaic("x") + 1
    raw[sensor("ximea_sm5x5_nir").mosaic.skip_rows + 5 * 2 + 4, 5 * 3 + 1] = 0
    raw[0, 0] = 0  # before the first block
    write_tif(folder(src, "raw") / "x.tif", raw[None], nodata=0)
    Image.fromarray(mask("x")).save(folder(src, "masks") / "x.png")
    done = prepare("hss", src, tmp_path / "dst")
    expected = mask("x")
    expected[2, 3] = 255
    np.testing.assert_array_equal(labels(done.root, "x"), expected)
    assert not pixels(done.root, "x")[:, 2, 3].any()
    np.testing.assert_array_equal(pixels(done.root, "x")[:, 3], cube("x")[:, 3] + 1)


def test_frames_of_different_pixel_size_are_refused_not_resampled(src, tmp_path):
    for name, size in (("a", 10), ("b", 20)):
        here = {**HERE, "transform": from_origin(5e5, 5e6, size, size)}
        write_tif(folder(src, "images") / f"{name}.tif", cube("x"), **here)
        Image.fromarray(mask("x")).save(folder(src, "masks") / f"{name}.png")
    with pytest.raises(InputError, match=r"10 x 10 \(a\), 20 x 20 \(b\)\. Warp .*gdalwarp"):
        prepare("hss", src, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_frames_with_and_without_place_are_not_mixed(src, tmp_path):
    here = {"crs": CRS.from_epsg(32633), "transform": from_origin(5e5, 5e6, 10, 10)}
    write_npy(src)
    write_tif(folder(src, "images") / "x.tif", cube("x"), **here)
    Image.fromarray(mask("x")).save(src / "masks" / "x.png")
    with pytest.raises(InputError, match=r"1 of 4 frames are georeferenced \(x\)"):
        prepare("hss", src, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_a_preview_beside_the_cubes_is_no_second_image(src, tmp_path):
    write_npy(src)
    for name in IDS:
        Image.fromarray(mask(name)).save(folder(src, "JPEGImages") / f"{name}.jpg")
    assert prepare("hss", src, tmp_path / "dst").facts["samples"] == len(IDS)
