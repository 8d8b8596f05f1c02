"""Cubes on disk: what is written is what is read, and any GDAL program finds the wavelengths."""

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from rasterio.transform import Affine

from smokegeo.bands import Band, BandSet
from smokegeo.cubes import cube_bands, make_cube, read_cube, write_cube
from smokegeo.errors import InputError
from smokegeo.sensors import sensor

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")

UTM = CRS.from_epsg(32632)
NORTH_UP = Affine(10.0, 0.0, 500000.1, 0.0, -10.0, 5400000.7)
ROTATED = Affine(0.123456789, 0.05, 500000.1, 0.05, -0.123456789, 5400000.7)


def values(dtype, bands, height=5, width=7):
    rng = np.random.default_rng(0)
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal((bands, height, width)).astype(dtype)
    limits = np.iinfo(dtype)
    out = rng.integers(limits.min, limits.max, (bands, height, width), dtype, endpoint=True)
    out[0, 0, :2] = limits.min, limits.max
    return out


def round_trip(cube, path):
    write_cube(cube, path)
    return read_cube(path)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("preset", ["mss", "hss", "satellite"])
def test_a_round_trip_keeps_every_bit_and_every_band(tmp_path, dtype, preset):
    bands = sensor(preset).bands
    data = values(dtype, len(bands))
    got = round_trip(make_cube(data, bands), tmp_path / "c.tif")
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.values, data)
    assert cube_bands(got).bands == bands.bands


def test_not_a_number_and_infinity_survive(tmp_path):
    data = values("float32", 4)
    data[0, 0, :3] = np.nan, np.inf, -np.inf
    got = round_trip(make_cube(data, sensor("mss").bands), tmp_path / "c.tif")
    assert got.values.tobytes() == data.tobytes()


def test_four_bytes_per_pixel_are_four_bands_not_colour_and_transparency(tmp_path):
    bands = BandSet(tuple(Band(name) for name in ("vv", "vh", "hv", "hh")))
    data = values("uint8", 4)
    got = round_trip(make_cube(data, bands), tmp_path / "c.tif")
    np.testing.assert_array_equal(got.values, data)
    assert cube_bands(got).names == bands.names


nanometres = st.none() | st.floats(300, 15000).map(lambda x: round(x, 3))
widths = st.none() | st.floats(1, 5000).map(lambda x: round(x, 3))


@settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(nanometres, widths), min_size=1, max_size=5))
def test_wavelengths_and_widths_survive_to_the_picometre(tmp_path, rows):
    # A width says something only next to a wavelength.
    rows = [(nm, fwhm if nm else None) for nm, fwhm in rows]
    bands = BandSet(tuple(Band(f"ch-{'abcde'[i]}", *row) for i, row in enumerate(rows)))
    got = round_trip(make_cube(values("uint8", len(rows), 2, 3), bands), tmp_path / "c.tif")
    assert cube_bands(got).bands == bands.bands


@pytest.mark.parametrize("transform", [NORTH_UP, ROTATED])
def test_the_place_on_the_map_is_kept(tmp_path, transform):
    cube = make_cube(values("uint16", 4), sensor("mss").bands, crs=UTM, transform=transform)
    got = round_trip(cube, tmp_path / "c.tif")
    assert got.rio.crs == UTM
    assert got.rio.transform() == transform
    with rasterio.open(tmp_path / "c.tif") as src:
        assert src.crs == UTM
        assert src.transform == transform


def test_no_place_is_invented(tmp_path):
    got = round_trip(make_cube(values("uint16", 4), sensor("mss").bands), tmp_path / "c.tif")
    assert got.rio.crs is None
    with rasterio.open(tmp_path / "c.tif") as src:
        assert src.crs is None
        assert src.transform == Affine.identity()


def test_plain_rasterio_finds_wavelengths_names_and_tags(tmp_path):
    bands = sensor("satellite").bands
    write_cube(make_cube(values("uint16", 6), bands), tmp_path / "c.tif", tags={"FRAME": "f1"})
    with rasterio.open(tmp_path / "c.tif") as src:
        assert src.driver == "GTiff"
        assert src.descriptions == bands.names
        assert src.tags(1, ns="IMAGERY") == {"CENTRAL_WAVELENGTH_UM": "0.49", "FWHM_UM": "0.065"}
        assert float(src.tags(6, ns="IMAGERY")["CENTRAL_WAVELENGTH_UM"]) == 2.2
        assert src.tags()["FRAME"] == "f1"
        assert src.tags()["SENSOR"] == "satellite"
        assert src.compression.name == "deflate"


def test_the_profile_can_be_chosen(tmp_path):
    write_cube(
        make_cube(values("uint8", 4), sensor("mss").bands), tmp_path / "c.tif", compress="lzw"
    )
    with rasterio.open(tmp_path / "c.tif") as src:
        assert src.compression.name == "lzw"


def test_writing_does_not_change_the_cube(tmp_path):
    cube = make_cube(values("uint8", 4), sensor("mss").bands)
    before = cube.copy(deep=True)
    write_cube(cube, tmp_path / "c.tif")
    assert cube.identical(before)


def test_only_the_files_asked_for_are_written(tmp_path):
    write_cube(make_cube(values("uint8", 4), sensor("mss").bands), tmp_path / "c.tif")
    assert [path.name for path in tmp_path.iterdir()] == ["c.tif"]


def test_a_transparent_picture_is_read_without_its_alpha(tmp_path):
    data = values("uint8", 4)
    with rasterio.open(
        tmp_path / "rgba.tif", "w", driver="GTiff", width=7, height=5, count=4, dtype="uint8"
    ) as dst:
        dst.write(data)
    got = read_cube(tmp_path / "rgba.tif")
    np.testing.assert_array_equal(got.values, data[:3])
    assert cube_bands(got).names == ("red", "green", "blue")


def test_a_cube_has_its_wavelengths_as_coordinates():
    cube = make_cube(values("uint8", 25), sensor("hss").bands)
    assert cube.dims == ("band", "y", "x")
    assert float(cube["wavelength"][10]) == 760
    picked = cube.isel(band=[3, 1])
    assert cube_bands(picked).names == ("647nm", "616nm")
    assert cube_bands(picked).sensor == "hss"


def test_a_cube_without_widths_has_bands_still():
    cube = make_cube(values("uint8", 4), sensor("mss").bands).drop_vars("fwhm")
    assert [band.fwhm_nm for band in cube_bands(cube)] == [None] * 4
    assert cube_bands(cube).names == sensor("mss").bands.names


@pytest.mark.parametrize("shape", [(3, 5, 7), (4, 5), (4, 5, 7, 1)])
def test_values_that_do_not_fit_the_bands_are_refused(shape):
    with pytest.raises(InputError, match="does not hold 4 bands"):
        make_cube(np.zeros(shape, "uint8"), sensor("mss").bands)


def damage_nothing_there(path):
    path.unlink()


def damage_empty(path):
    path.write_bytes(b"")


def damage_text(path):
    path.write_text("this is no picture\n")


def damage_truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_other_format(path):
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))


def damage_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        damage_nothing_there,
        damage_empty,
        damage_text,
        damage_truncated,
        damage_other_format,
        damage_folder,
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, damage):
    path = tmp_path / "c.tif"
    write_cube(make_cube(values("uint16", 4, 300, 300), sensor("mss").bands), path)
    damage(path)
    with pytest.raises(InputError, match=r"c\.tif: cannot be read \(.+\)\.$") as caught:
        read_cube(path)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_virtual_raster_in_disguise_is_not_followed(tmp_path):
    write_cube(make_cube(values("uint8", 4), sensor("mss").bands), tmp_path / "secret.tif")
    (tmp_path / "c.tif").write_text(
        '<VRTDataset rasterXSize="7" rasterYSize="5"><VRTRasterBand dataType="Byte" band="1">'
        '<SimpleSource><SourceFilename relativeToVRT="1">secret.tif</SourceFilename>'
        "<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    with pytest.raises(InputError):
        read_cube(tmp_path / "c.tif")
