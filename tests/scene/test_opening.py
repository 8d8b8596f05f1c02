"""Files and arrays become scenes; what they do not say themselves, a user may."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import numpy as np
import pytest
import rasterio
import rioxarray
import xarray as xr
from products import S2_NATIVE_M, safe_product, write_band
from rasterio.enums import ColorInterp
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import Affine
from toy_scenes import PLACE, SATELLITE, UTM, landscape, write_scene

from smokegeo.cubes import make_cube
from smokegeo.errors import InputError, UsageError
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.scene.scene import SENTINELS
from smokegeo.sensors import sensor
from smokegeo.survey import survey


@pytest.fixture
def values():
    return landscape(6, (30, 40))


@pytest.fixture
def path(values, tmp_path):
    return write_scene(tmp_path / "scene.tif", values)


def pixels(scene):
    with scene.open() as reader:
        return reader.read(scene.whole, range(len(scene.bands)))


# Files


def test_a_file_says_what_it_is(path, values):
    scene = open_scene(path)
    assert (scene.name, scene.width, scene.height, scene.dtype) == ("scene.tif", 40, 30, "uint16")
    assert (scene.crs, scene.transform) == (UTM, PLACE)
    assert scene.bands.names == SATELLITE
    assert scene.bands_from == "band descriptions"
    assert scene.paths == (str(path),)
    assert scene.sentinels == SENTINELS
    assert not scene.physical
    assert scene.acquired is None
    found, valid = pixels(scene)
    assert (found == values).all()
    assert valid.all()


def test_scale_tags_make_the_values_physical_unless_raw(tmp_path, values):
    path = write_scene(tmp_path / "s.tif", values, scale=1e-4, offset=-0.1)
    scene = open_scene(path)
    assert scene.physical
    np.testing.assert_allclose(pixels(scene)[0], values * 1e-4 - 0.1, atol=1e-6)
    raw = open_scene(path, SceneOptions(raw=True))
    assert not raw.physical
    assert (pixels(raw)[0] == values).all()


def test_some_bands_of_light_with_a_scale_tag_and_some_without_are_refused(tmp_path, values):
    scales = (1e-4, 1e-4, 1e-4, 1.0, 1e-4, 1.0)
    path = write_scene(tmp_path / "s.tif", values, scale=scales)
    with pytest.raises(
        InputError, match=r"s\.tif has bands with a scale tag and without: nir, swir2"
    ):
        open_scene(path)
    assert not open_scene(path, SceneOptions(raw=True)).physical
    # Heat and masks have units of their own.
    names = ("blue", "green", "red", "thermal", "swir1", "QA")
    assert open_scene(write_scene(tmp_path / "h.tif", values, names, scale=scales)).physical


S2_FILE = "S2A_MSIL2A_20220902T143751_N0400_R096_T20LMR_20220902T200000.tif"


@pytest.mark.parametrize(
    ("name", "facts", "coding"),
    [
        (S2_FILE, {}, (1e-4, -0.1)),
        ("s.tif", {"tags": {"PROCESSING_BASELINE": "04.00"}}, (1e-4, -0.1)),
        ("s.tif", {"tags": {"BOA_ADD_OFFSET": "-1000"}}, (1e-4, -0.1)),
        ("s.tif", {"names": [f"SR_B{n}" for n in range(2, 8)]}, (2.75e-5, -0.2)),
        ("s.tif", {"names": [*(f"SR_B{n}" for n in range(2, 7)), "QA_PIXEL"]}, (2.75e-5, -0.2)),
        ("LC08_L1TP_cut.tif", {}, (2e-5, -0.1)),
        ("s.tif", {}, None),
    ],
)
def test_a_file_s_name_tags_and_bands_say_how_reflectances_are_stored(
    tmp_path, values, name, facts, coding
):
    path = write_scene(tmp_path / name, values, **facts)
    found = open_scene(path).coding
    assert (None if found is None else (found.scale, found.offset)) == coding
    assert open_scene(path, SceneOptions(raw=True)).coding is None
    with rioxarray.open_rasterio(path) as array:
        array.name = name
        again = open_scene(array).coding
    assert (None if again is None else (again.scale, again.offset)) == coding


def test_a_user_s_names_of_bands_say_how_reflectances_are_stored(path):
    names = ",".join(f"SR_B{n}" for n in range(2, 8))
    assert open_scene(path, SceneOptions(bands=names)).coding is not None


def test_a_folder_of_colours_says_by_its_name_or_tags_how_reflectances_are_stored(tmp_path, values):
    for folder, prefix, tags in (
        (S2_FILE.removesuffix(".tif"), "", {}),
        ("prefix", S2_FILE.removesuffix(".tif") + "_", {}),
        ("tags", "", {"BOA_ADD_OFFSET": "-1000"}),
        ("bare", "", {}),
    ):
        (tmp_path / folder).mkdir()
        for band, word in zip(values, ("blue", "green", "red"), strict=False):
            path = tmp_path / folder / f"{prefix}{word}.tif"
            write_scene(path, band[None], None, tags=tags)
        coding = open_scene(tmp_path / folder).coding
        assert (coding is None) == (folder == "bare")
        assert open_scene(tmp_path / folder, SceneOptions(raw=True)).coding is None


def test_the_user_may_say_what_bands_there_are(path):
    named = open_scene(path, SceneOptions(bands="red,green,blue,nir,490nm,1610nm"))
    assert named.bands_from == "explicit choice"
    assert named.bands[4].wavelength_nm == 490
    by_sensor = open_scene(path, SceneOptions(sensor="satellite"))
    assert by_sensor.bands == sensor("satellite").bands


@pytest.mark.parametrize(
    ("nodata", "holes", "sentinels"),
    [(None, [0], SENTINELS), ("7", [7], ()), ("none", [], ()), ("NONE", [], ()), ("-5", [], ())],
)
def test_the_user_may_say_what_is_missing(tmp_path, values, nodata, holes, sentinels):
    values[:, 0, 0], values[:, 1, 1] = 0, 7
    path = write_scene(tmp_path / "s.tif", values, nodata=0)
    scene = open_scene(path, SceneOptions(nodata=nodata))
    assert scene.sentinels == sentinels
    _, valid = pixels(scene)
    wanted = ~np.isin(values, holes).any(axis=0)
    assert (valid == wanted).all()


@pytest.mark.parametrize(
    ("nodata", "said"), [("-9999", True), ("0.5", True), ("70000", True), ("7", False)]
)
def test_a_nodata_that_no_pixel_can_be_is_told(path, caplog, nodata, said):
    open_scene(path, SceneOptions(nodata=nodata))
    assert (f"--nodata {nodata} is no number that uint16 can hold" in caplog.text) == said


def test_bands_of_a_file_may_be_left_out(path, values):
    scene = open_scene(path, SceneOptions(bands="-,green,-,SR_B5,-,-"))
    assert (pixels(scene)[0] == values[[1, 3]]).all()


def test_none_is_missing_means_masks_and_alpha_neither(tmp_path, values):
    there = np.ones((30, 40), bool)
    there[3] = False
    masked = write_scene(tmp_path / "m.tif", values, valid=there)
    colours = (*[ColorInterp.gray] * 5, ColorInterp.alpha)
    values[5, 4] = 0
    names = (*SATELLITE[:5], "alpha")
    alpha = write_scene(tmp_path / "a.tif", values, names, colours=colours)
    for path, line in ((masked, 3), (alpha, 4)):
        assert not pixels(open_scene(path))[1][line].any()
        assert pixels(open_scene(path, SceneOptions(nodata="none")))[1].all()
    assert len(open_scene(alpha).bands) == 5


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"nodata": "many"}, "neither a number nor `none`"),
        ({"bbox": "1,2,3,4", "window": "1,2,3,4"}, "give one"),
        ({"bands": "red,nir"}, "names 2 bands"),
        ({"sensor": "eye"}, "'eye' is not known"),
        ({"crs": "EPSG:4326"}, "has a coordinate system already"),
        ({"crs": "EPSG:4326", "pixel_coords": True}, "drop it or --crs"),
    ],
)
def test_what_a_user_cannot_mean_is_refused(path, options, fact):
    with pytest.raises(UsageError, match=fact):
        open_scene(path, SceneOptions(**options))


def test_a_part_of_a_scene_is_a_scene(path, values):
    part = open_scene(path, SceneOptions(window="5,6,10,8"))
    assert (pixels(part)[0] == values[:, 6:14, 5:15]).all()
    assert part.transform @ (0, 0) == PLACE @ (5, 6)
    by_degrees = open_scene(path, SceneOptions(bbox="15.001,49.64,15.002,49.66"))
    assert 0 < by_degrees.width < 12


def test_pixels_may_be_the_only_coordinates(path, tmp_path, values):
    scene = open_scene(path, SceneOptions(pixel_coords=True))
    assert scene.crs is None
    assert scene.transform @ (3, 4) == (3, -4)  # as QGIS shows a picture
    part = open_scene(path, SceneOptions(pixel_coords=True, window="5,6,10,8"))
    assert part.transform @ (0, 0) == (5, -6)


def test_a_scene_without_system_is_given_one(tmp_path, values):
    path = write_scene(tmp_path / "s.tif", values, crs=None)
    with pytest.raises(InputError, match="no coordinate system"):
        open_scene(path)
    assert open_scene(path, SceneOptions(crs="EPSG:32633")).crs == UTM


@pytest.mark.parametrize(
    ("tags", "moment"),
    [
        ({"ACQUISITIONDATETIME": "2024-08-30T10:05:59Z"}, (10, 5, 59)),
        ({"ACQUISITIONDATETIME": "2024-08-30T12:05:59+02:00"}, (10, 5, 59)),
        ({"TIFFTAG_DATETIME": "2024:08:30 10:05:59"}, (10, 5, 59)),
        ({"acquisition_time": "2024-08-30 10:05"}, (10, 5)),
        (
            {
                "TIFFTAG_DATETIME": "2025:01:01 00:00:00",
                "ACQUISITIONDATETIME": "2024-08-30T10:05:59Z",
            },
            (10, 5, 59),
        ),
        ({"TIFFTAG_DATETIME": "30/08/2024"}, None),
        ({"ACQUISITIONDATETIME": "2024-08-30"}, None),  # a day is not its midnight
        ({"TIFFTAG_DATETIME": "0001:01:01 00:00:00+14:00"}, None),  # before all time
        ({"TIFFTAG_DATETIME": "2024:13:45 10:05:59"}, None),
        ({}, None),
    ],
)
def test_the_time_of_the_picture_is_read_in_utc_if_it_is_clear(tmp_path, values, tags, moment):
    path = write_scene(tmp_path / "s.tif", values, tags=tags)
    wanted = None if moment is None else datetime(2024, 8, 30, *moment, tzinfo=UTC)
    assert open_scene(path).acquired == wanted


@pytest.mark.parametrize(
    ("name", "tags", "moment"),
    [
        (S2_FILE, {}, (14, 37, 51)),
        (f"cut_of_{S2_FILE}", {}, (14, 37, 51)),
        ("T20LMR_20220902T143741_stack.tif", {}, (14, 37, 41)),
        ("20220902T143741_20220902T143738_T20LMR.tif", {}, (14, 37, 41)),
        (S2_FILE, {"ACQUISITIONDATETIME": "2022-09-02T14:00:00Z"}, (14, 0)),
        ("field_20220902T143741.tif", {}, None),  # perhaps when it was made
        ("T20LMR_20220902.tif", {}, None),
        ("T20LMR_20229999T143741.tif", {}, None),
    ],
)
def test_a_name_of_sentinel_2_says_when_the_picture_was_taken(tmp_path, values, name, tags, moment):
    path = write_scene(tmp_path / name, values, tags=tags)
    wanted = None if moment is None else datetime(2022, 9, 2, *moment, tzinfo=UTC)
    assert open_scene(path).acquired == wanted


@pytest.mark.parametrize("scale", [0.0, float("nan"), float("inf")])
def test_a_scale_tag_that_leads_nowhere_is_refused(tmp_path, values, scale):
    path = write_scene(tmp_path / "s.tif", values, scale=(1e-4,) * 5 + (scale,))
    with pytest.raises(InputError, match=r"s\.tif has scale .* no usable numbers\. .*--raw"):
        open_scene(path)
    assert not open_scene(path, SceneOptions(raw=True)).physical


def mixed_safe(folder):
    """Write a Sentinel-2 product of 120 m, its bands of 10, 20 and 60 m."""
    safe = safe_product(folder, "L1C")
    for path in safe.glob("GRANULE/*/IMG_DATA/*_B*.jp2"):
        gsd_m = S2_NATIVE_M[path.stem[-3:]]
        path.unlink()
        write_band(path, gsd_m=gsd_m, size_px=120 // gsd_m)
    return safe


def test_bands_of_several_resolutions_share_the_finest_grid(tmp_path):
    scene = open_scene(mixed_safe(tmp_path))
    factors = {
        band.name: source.factor for band, source in zip(scene.bands, scene.sources, strict=True)
    }
    assert (factors["B02"], factors["B11"], factors["B01"]) == (1, 2, 6)
    assert (scene.width, scene.height) == (12, 12)
    assert scene.physical
    found, valid = pixels(scene)
    assert found.shape == (len(factors), 12, 12)
    assert not valid[:6, :6].any()  # the first pixel of 60 m is nodata
    assert valid[6:].all()
    assert valid[:, 6:].all()


def test_nodata_of_band_files_is_heeded_and_not_called_undeclared(tmp_path):
    for band in ("B02", "B03", "B04"):
        path = tmp_path / f"T20LMR_20220902T143741_{band}_20m.tif"
        write_band(path, gsd_m=20, dtype="int16", nodata=-9999)
        with rasterio.open(path, "r+") as dst:
            pixels_of = dst.read(1)
            pixels_of[2, 3] = -9999
            dst.write(pixels_of, 1)
    scene = open_scene(tmp_path)
    _, valid = pixels(scene)
    assert not valid[2, 3]
    assert valid.sum() == valid.size - 1  # 0 is no longer what is missing
    assert survey(scene, range(3)).sentinel_share == 0


def test_files_named_by_colour_are_opened_as_one_scene(tmp_path, values):
    for band, word in zip(values, ("blue", "green", "red", "nir", "swir16", "swir22"), strict=True):
        coarse = word.startswith("swir")
        write_scene(
            tmp_path / f"{word}.tif",
            band[None, ::2, ::2] if coarse else band[None],
            None,
            transform=PLACE @ Affine.scale(2) if coarse else PLACE,
            scale=1e-4,
            offset=-0.1,
        )
    scene = open_scene(tmp_path)
    assert scene.bands.names == SATELLITE
    assert (scene.crs, scene.transform) == (UTM, PLACE)
    found, valid = pixels(scene)
    assert valid.all()
    np.testing.assert_allclose(found[:4], values[:4] * 1e-4 - 0.1, atol=1e-6)
    assert found[4, 2, 2] == pytest.approx(values[4, 2, 2] * 1e-4 - 0.1)
    raw, _ = pixels(open_scene(tmp_path, SceneOptions(raw=True)))
    np.testing.assert_array_equal(raw[:4], values[:4])


def test_masks_of_files_named_by_colour_are_heeded_unless_none_is_missing(tmp_path, values):
    for line, (band, word) in enumerate(zip(values, ("blue", "green", "red"), strict=False)):
        there = np.ones((30, 40), bool)
        there[line] = False
        write_scene(tmp_path / f"{word}.tif", band[None], None, valid=there)
    _, valid = pixels(open_scene(tmp_path))
    assert not valid[:3].any()
    assert valid[3:].all()
    assert pixels(open_scene(tmp_path, SceneOptions(nodata="none")))[1].all()


@pytest.mark.parametrize(
    ("shift_px", "size", "same"),
    [(0.0, 1.0, True), (0.05, 1.0, True), (9.0, 1.0, False), (0.2, 1.0, False), (0.0, 1.01, False)],
)
@pytest.mark.parametrize(("crs", "pixel"), [("EPSG:4326", 1e-4), ("EPSG:32633", 10.0)])
def test_bands_share_a_grid_if_their_pixels_do_whatever_the_unit(
    tmp_path, values, crs, pixel, shift_px, size, same
):
    grid = Affine(pixel, 0, 10, 0, -pixel, 50)
    write_scene(tmp_path / "red.tif", values[:1], None, crs=crs, transform=grid)
    other = grid @ Affine.translation(shift_px, 0) @ Affine.scale(size)
    write_scene(tmp_path / "nir.tif", values[:1], None, crs=crs, transform=other)
    if same:
        assert open_scene(tmp_path).transform == grid
    else:
        with pytest.raises(InputError, match="lies on another grid"):
            open_scene(tmp_path)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({}, "rio warp swir16.tif OUT.tif --like red.tif"),
        ({"pixel_coords": True}, "gdal_translate -outsize 40 30 swir16.tif OUT.tif"),
    ],
)
def test_a_band_on_another_grid_is_refused_with_the_way_to_the_others(
    tmp_path, values, options, remedy
):
    write_scene(tmp_path / "red.tif", values[:1], None)
    coarse = PLACE @ Affine.scale(2)
    write_scene(tmp_path / "swir16.tif", values[:1, :14, :19], None, transform=coarse)
    with pytest.raises(InputError, match=r"swir16\.tif lies on another grid") as caught:
        open_scene(tmp_path, SceneOptions(**options))
    assert str(caught.value).endswith(remedy)


def test_a_picture_with_a_palette_is_refused_with_the_way_to_its_colours(tmp_path):
    path = write_scene(tmp_path / "s.tif", np.ones((1, 8, 8), np.uint8), None)
    with rasterio.open(path, "r+") as dst:
        dst.write_colormap(1, {1: (250, 0, 0, 255)})
    with pytest.raises(InputError, match=r"gdal_translate -expand rgb s\.tif OUT\.tif"):
        open_scene(path)


@pytest.mark.parametrize(
    ("driver", "suffix", "world"),
    [("PNG", "png", "pngw"), ("JPEG", "jpg", "jpgw"), ("GTiff", "tif", "tifw")],
)
def test_world_files_with_a_long_ending_place_a_picture(tmp_path, driver, suffix, world, caplog):
    picture = np.full((3, 30, 40), 90, np.uint8)
    path = tmp_path / f"s.{suffix}"
    profile = {"driver": driver, "width": 40, "height": 30, "count": 3, "dtype": "uint8"}
    with pytest.warns(NotGeoreferencedWarning), rasterio.open(path, "w", **profile) as dst:
        dst.write(picture)
    (tmp_path / f"s.{world}").write_text("10\n0\n0\n-10\n500005\n5499995\n")
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        assert open_scene(path, SceneOptions(crs="EPSG:32633")).transform == PLACE
    assert f"georeference from s.{world}" in caplog.text


def test_a_fourth_band_that_is_marked_alpha_is_used_when_the_user_says_what_it_is(tmp_path, caplog):
    picture = np.random.default_rng(1).integers(0, 200, (4, 30, 40)).astype(np.uint8)
    path = write_scene(tmp_path / "s.tif", picture, None, photometric="rgb", alpha="yes")
    assert open_scene(path).bands.names == ("red", "green", "blue")
    assert "s.tif: band 4 is marked alpha and taken for a mask" in caplog.text
    caplog.clear()
    scene = open_scene(path, SceneOptions(bands="red,green,blue,nir"))
    assert scene.bands.names == ("red", "green", "blue", "nir")
    found, valid = pixels(scene)
    np.testing.assert_array_equal(found, picture)
    assert valid.all()  # its zeros are dark, not missing
    assert not caplog.records


def test_values_wanted_as_stored_bring_no_word_on_an_offset(tmp_path, caplog):
    for band in ("B02", "B03"):
        write_band(tmp_path / "dated" / f"T20LMR_20220902T143741_{band}_20m.tif", gsd_m=20)
        write_band(tmp_path / "bare" / f"{band}.tif", gsd_m=20)
    for folder, coded in (("dated", True), ("bare", False)):
        assert (open_scene(tmp_path / folder).coding is not None) == coded
        assert "MTD_MSIL*.xml" in caplog.text
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="smokegeo"):
            scene = open_scene(tmp_path / folder, SceneOptions(raw=True))
        assert not scene.physical
        assert scene.coding is None
        assert pixels(scene)[0].max() == 2000
        assert "offset" not in caplog.text
        assert not [record for record in caplog.records if record.levelno > logging.INFO]
        caplog.clear()


def test_an_alpha_band_that_is_a_mask_is_said(tmp_path, caplog):
    picture = np.full((4, 30, 40), 255, np.uint8)
    path = write_scene(tmp_path / "s.tif", picture, None, photometric="rgb", alpha="yes")
    with caplog.at_level(logging.INFO, logger="smokegeo"):
        open_scene(path)
    (record,) = [record for record in caplog.records if "marked alpha" in record.getMessage()]
    assert record.levelno == logging.INFO


def test_what_the_numbers_of_a_file_are_is_known_by_its_name_and_sensor(tmp_path, values, path):
    radiance = write_scene(tmp_path / "x_3B_AnalyticMS.tif", values[:4], SATELLITE[:4])
    assert open_scene(radiance).radiance
    assert not open_scene(radiance, SceneOptions(raw=True)).radiance
    assert not open_scene(path).radiance
    micasense = write_scene(tmp_path / "m.tif", values[:5], None)
    assert open_scene(micasense, SceneOptions(sensor="rededge_mx")).coding is not None
    assert open_scene(micasense, SceneOptions(sensor="rededge_mx", raw=True)).coding is None


def test_the_header_of_an_envi_file_tells_of_radiances(tmp_path, path):
    with rasterio.open(path) as src:
        profile = {"driver": "ENVI", "crs": src.crs, "transform": src.transform}
        with rasterio.open(
            tmp_path / "c.img", "w", count=6, width=40, height=30, dtype="uint16", **profile
        ) as dst:
            dst.write(src.read())
            dst.descriptions = src.descriptions
    header = tmp_path / "c.hdr"
    lines = [line for line in header.read_text().splitlines() if "c.img" not in line]
    text = "\n".join(line for line in lines if not line.startswith("description"))
    header.write_text(text + "\ndescription = {Measured Radiances in uW nm-1 cm-2 sr-1}\n")
    assert open_scene(tmp_path / "c.img").radiance


# Arrays


def placed(values, **extra):
    array = xr.DataArray(values, dims=("band", "y", "x"), **extra)
    return array.rio.write_crs(UTM).rio.write_transform(PLACE)


def test_a_cube_of_ours_brings_its_bands(values):
    cube = make_cube(values, sensor("satellite").bands, crs=UTM, transform=PLACE)
    scene = open_scene(cube)
    assert scene.bands == sensor("satellite").bands
    assert scene.bands_from == "the array's coordinates"
    assert (scene.crs, scene.transform) == (UTM, PLACE)
    assert (scene.width, scene.height, scene.dtype, scene.name) == (40, 30, "uint16", "array")
    assert (pixels(scene)[0] == values).all()


def test_what_rioxarray_opened_is_what_the_file_is(path, values):
    for options in ({}, {"chunks": {"x": 16, "y": 16}}, {"masked": True}):
        with rioxarray.open_rasterio(path, **options) as array:
            scene = open_scene(array)
            assert scene.bands.names == SATELLITE
            assert (scene.crs, scene.transform) == (UTM, PLACE)
            found, valid = pixels(scene)
            assert (found == values).all()
            assert valid.all()


def test_band_names_may_be_the_coordinate_or_the_long_name(values):
    by_coordinate = placed(values[:2], coords={"band": ["red", "nir"]})
    by_attribute = placed(values[:2], attrs={"long_name": ("red", "nir")})
    for array in (by_coordinate, by_attribute):
        assert open_scene(array).bands.names == ("red", "nir")
    by_user = open_scene(by_coordinate, SceneOptions(bands="blue,green"))
    assert by_user.bands.names == ("blue", "green")


def test_the_coordinate_of_bands_may_be_their_wavelengths(values):
    for numbers in ([490, 842], [0.49, 0.842]):
        scene = open_scene(placed(values[:2], coords={"band": numbers}))
        assert scene.bands.wavelengths_nm == (490, 842)


@pytest.mark.parametrize("key", ["wavelength", "wavelengths"])
@pytest.mark.parametrize("numbers", [[490.0, 842.0], [0.49, 0.842], [490, 842]])
@pytest.mark.parametrize("extra", [{}, {"name": ("band", ["b", "n"])}, {"band": ["b", "n"]}])
def test_wavelengths_may_be_a_coordinate_of_their_own(values, key, numbers, extra):
    coords = {"band": [1, 2], key: ("band", numbers), **extra}
    scene = open_scene(placed(values[:2], coords=coords))
    assert scene.bands.wavelengths_nm == (490, 842)
    assert scene.bands.names == (("b", "n") if extra else ("490nm", "842nm"))
    assert [band.fwhm_nm for band in scene.bands] == [None, None]
    assert scene.bands_from == "the array's coordinates"


def test_the_dimension_of_bands_may_be_wavelength(values):
    coords = {"wavelength": [490.0, np.nan], "fwhm": ("wavelength", [60.0, 10.0])}
    array = xr.DataArray(values[:2], dims=("wavelength", "y", "x"), coords=coords)
    scene = open_scene(array.rio.write_crs(UTM).rio.write_transform(PLACE))
    assert scene.bands.names == ("490nm", "band 2")
    assert scene.bands[0].fwhm_nm == 60


def test_a_wavelength_of_the_whole_array_is_not_that_of_its_bands(values):
    coords = {"band": ["red", "nir"], "wavelength": 500.0, "name": "smoke"}
    assert open_scene(placed(values[:2], coords=coords)).bands.names == ("red", "nir")


def test_bands_of_several_files_are_not_all_named_like_the_first(values, caplog):
    red, nir = (placed(values[:1], coords={"band": [1]}, attrs={"long_name": "red"}) for _ in "ab")
    joined = xr.concat([red, nir], "band")
    joined.attrs["long_name"] = "red"
    assert open_scene(joined).bands.wavelengths_nm == (None, None)
    assert "say which they are with --bands" in caplog.text


def test_an_array_of_one_band_may_be_flat(values):
    array = xr.DataArray(values[0], dims=("y", "x"), name="heat")
    array = array.rio.write_crs(UTM).rio.write_transform(PLACE)
    scene = open_scene(array, SceneOptions(bands="red"))
    assert scene.name == "heat"
    assert (pixels(scene)[0] == values[:1]).all()


def test_nodata_of_an_array_is_heeded(values):
    values[1, 3, 3], values[1, 4, 4] = 0, 9
    array = placed(values).rio.write_nodata(0)
    options = {"sensor": "satellite"}
    assert np.argwhere(~pixels(open_scene(array, SceneOptions(**options)))[1]).tolist() == [[3, 3]]
    by_user = open_scene(array, SceneOptions(nodata="9", **options))
    assert np.argwhere(~pixels(by_user)[1]).tolist() == [[4, 4]]
    every = open_scene(array, SceneOptions(nodata="none", **options))
    assert pixels(every)[1].all()


def test_coordinates_alone_place_an_array(values):
    x, y = 500_005 + 10 * np.arange(40), 5_499_995 - 10 * np.arange(30)
    array = xr.DataArray(values, dims=("band", "y", "x"), coords={"x": x, "y": y})
    scene = open_scene(array.rio.write_crs(UTM), SceneOptions(sensor="satellite"))
    assert scene.transform.almost_equals(PLACE)
    array = array.rio.write_crs(None) if array.rio.crs else array
    scene = open_scene(array, SceneOptions(sensor="satellite", crs="EPSG:32633"))
    assert scene.crs == UTM


def test_a_part_of_an_array_lies_where_it_was_cut(path, values):
    with rioxarray.open_rasterio(path) as array:
        scene = open_scene(array[:, 6:20, 5:25])
    assert scene.transform @ (0, 0) == PLACE @ (5, 6)
    assert (pixels(scene)[0] == values[:, 6:20, 5:25]).all()


def test_a_thinned_array_has_larger_pixels(path):
    with rioxarray.open_rasterio(path) as array:
        scene = open_scene(array[:, ::2, ::2])
    assert (scene.transform.a, scene.transform.e) == (20, -20)


def test_an_array_with_its_bands_last_is_turned(path, values):
    with rioxarray.open_rasterio(path) as array:
        scene = open_scene(array.transpose("y", "x", "band"))
    assert (scene.width, scene.height) == (40, 30)
    assert (pixels(scene)[0] == values).all()


def test_scale_tags_count_in_arrays_too(tmp_path, values):
    path = write_scene(tmp_path / "s.tif", values, scale=1e-4, offset=-0.1)
    with rioxarray.open_rasterio(path) as array:
        scene = open_scene(array)
        assert scene.physical
        np.testing.assert_allclose(pixels(scene)[0], values * 1e-4 - 0.1, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.* differ across bands:UserWarning")
def test_scale_tags_that_differ_count_in_arrays_as_in_files(tmp_path, values):
    facts = {"scale": (1e-4,) * 5 + (0.01,), "offset": (-0.1,) * 5 + (200.0,)}
    names = (*SATELLITE[:5], "thermal")
    path = write_scene(tmp_path / "s.tif", values, names, **facts)
    of_file, _ = pixels(open_scene(path))
    with rioxarray.open_rasterio(path) as array:
        scene = open_scene(array)
        assert scene.physical
        np.testing.assert_array_equal(pixels(scene)[0], of_file)
        assert scene.as_read(5, 100) == pytest.approx(201)
        np.testing.assert_array_equal(pixels(open_scene(array, SceneOptions(raw=True)))[0], values)
        turned = open_scene(array[::-1])  # the attributes are not
        assert turned.bands.names == names[::-1]
        np.testing.assert_array_equal(pixels(turned)[0], of_file[::-1])
        one = open_scene(array[5])
        assert one.bands.names == ("thermal",)
        np.testing.assert_array_equal(pixels(one)[0], of_file[5:])
    mixed = write_scene(tmp_path / "m.tif", values, scale=(1e-4,) * 5 + (1.0,))
    with (
        rioxarray.open_rasterio(mixed) as array,
        pytest.raises(InputError, match="with a scale tag and without: swir2"),
    ):
        open_scene(array)


@pytest.mark.parametrize(
    ("attribute", "fact"),
    [
        ({"scale_factor": (1e-4, 1e-4)}, "attribute scale_factor is .* for each of 6 bands"),
        ({"add_offset": "much"}, "attribute add_offset is 'much', which is no number"),
        ({"scale_factor": 0}, "has scale 0 and offset 0, no usable numbers"),
    ],
)
def test_a_scale_of_an_array_that_leads_nowhere_is_refused(values, attribute, fact):
    array = placed(values, attrs={"long_name": SATELLITE, **attribute})
    with pytest.raises(InputError, match=fact):
        open_scene(array)
    assert not open_scene(array, SceneOptions(raw=True)).physical


def test_the_attributes_of_an_array_say_when_it_was_taken(values):
    array = placed(values, attrs={"TIFFTAG_DATETIME": "2024:08:30 10:05:59"})
    scene = open_scene(array, SceneOptions(sensor="satellite"))
    assert scene.acquired == datetime(2024, 8, 30, 10, 5, 59, tzinfo=UTC)


def test_bands_of_an_array_may_be_left_out(values):
    scene = open_scene(placed(values), SceneOptions(bands="-,green,-,nir,-,-"))
    assert scene.bands.names == ("green", "nir")
    assert (pixels(scene)[0] == values[[1, 3]]).all()


def test_coordinates_that_are_not_even_are_refused(values):
    x, y = 500_005 + 10.0 * np.arange(40), 5_499_995 - 10.0 * np.arange(30)
    coords = {"band": list(SATELLITE), "y": y, "x": x}
    array = xr.DataArray(values, dims=("band", "y", "x"), coords=coords).rio.write_crs(UTM)
    for shift, fine in ((0.5, True), (2.0, False)):
        y[7] = 5_499_995 - 70 + shift
        moved = array.assign_coords(y=y)
        if fine:
            assert open_scene(moved).height == 30
        else:
            with pytest.raises(InputError, match="its y coordinates are not evenly spaced"):
                open_scene(moved)


@pytest.mark.parametrize("dims", [("lat", "lon"), ("latitude", "longitude")])
def test_degrees_may_be_named_without_attributes(values, dims):
    coords = {dims[0]: 50 - 0.001 * np.arange(30), dims[1]: 10 + 0.001 * np.arange(40)}
    array = xr.DataArray(values, dims=("band", *dims), coords=coords)
    scene = open_scene(array, SceneOptions(sensor="satellite", crs="EPSG:4326"))
    assert scene.transform.almost_equals(Affine(0.001, 0, 9.9995, 0, -0.001, 50.0005), 1e-9)


def test_what_is_no_array_is_refused_with_the_way_to_one(values):
    dataset = placed(values).to_dataset(name="smoke")
    with pytest.raises(
        UsageError, match=r'not a Dataset\. Make one: dataset\.to_dataarray\("band"\)'
    ):
        open_scene(dataset)
    with pytest.raises(UsageError, match=r"not a ndarray\.$"):
        open_scene(values)


@pytest.mark.parametrize(
    ("array", "fact"),
    [
        (xr.DataArray(np.zeros((2, 3, 4, 5))), r"is not \(band, y, x\)"),
        (
            xr.DataArray(np.zeros((2, 3, 4, 5)), dims=("time", "band", "y", "x")),
            r"is not \(band, y, x\)\. Pick one: \.isel\(time=0\)$",
        ),
        (xr.DataArray(np.zeros(5)), r"is not \(band, y, x\)\.$"),
        (xr.DataArray(np.zeros((1, 4, 4), complex), dims=("band", "y", "x")), "is no scene"),
        (xr.DataArray(np.array([[["a"]]]), dims=("band", "y", "x")), "is no scene"),
        (xr.DataArray(np.zeros((3, 4, 4)), dims=("band", "y", "x")), "has no georeference"),
        (xr.DataArray(np.zeros((3, 0, 4)), dims=("band", "y", "x")), "holds no pixels"),
    ],
)
def test_arrays_that_are_no_scenes_are_refused(array, fact):
    with pytest.raises(InputError, match=fact):
        open_scene(array)


def test_an_array_that_has_a_system_is_given_no_other(values):
    with pytest.raises(UsageError, match="has a coordinate system already"):
        open_scene(placed(values), SceneOptions(sensor="satellite", crs="EPSG:4326"))


def test_an_array_in_pixels_needs_no_place(values):
    array = xr.DataArray(values, dims=("band", "y", "x"))
    scene = open_scene(array, SceneOptions(pixel_coords=True, sensor="satellite"))
    assert scene.crs is None
    assert (pixels(scene)[0] == values).all()
