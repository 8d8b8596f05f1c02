import logging
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.crs import CRS
from rasterio.transform import from_origin

from smokegeo.bands import Band, BandSet
from smokegeo.cubes import make_cube, write_cube
from smokegeo.errors import InputError
from smokegeo.sensors import sensor
from smokegeo.simulate import simulate_frame
from smokegeo.simulate.backgrounds import find_backgrounds

BANDS = sensor("satellite").bands
SHAPE = (40, 48)


def raster(path: Path, values: np.ndarray, bands: BandSet = BANDS, **profile) -> None:
    place = {"crs": CRS.from_epsg(32633), "transform": from_origin(5e5, 5e6, 10, 10)}
    write_cube(make_cube(values, BandSet(bands.bands), **place), path, **profile)


def stripes(unit: float, dtype: type, shape=(60, 64)) -> np.ndarray:
    """Return six bands of vertical stripes of reflectance 0.1 and 0.4."""
    row = np.where(np.arange(shape[1]) % 8 < 4, 0.1, 0.4)
    return np.broadcast_to(row * unit, (6, *shape)).astype(dtype)


@pytest.mark.parametrize(("unit", "dtype"), [(10000, np.uint16), (1, np.float32), (255, np.uint8)])
def test_crops_become_reflectance_whatever_the_number_type(tmp_path, unit, dtype):
    raster(tmp_path / "a.tif", stripes(unit, dtype))
    view = find_backgrounds(tmp_path, BANDS, SHAPE).crop(SHAPE, np.random.default_rng(0))
    assert view.shape == SHAPE
    red = view.radiance(BANDS[2])
    assert sorted({round(float(v), 2) for v in np.unique(red)}) == [0.1, 0.4]


def test_a_frame_shows_the_users_background(tmp_path):
    raster(tmp_path / "a.tif", stripes(10000, np.uint16))
    found = find_backgrounds(tmp_path, BANDS, SHAPE)
    frame = simulate_frame(
        "satellite", 0, 0, size=(48, 40), backgrounds=found, smoke=False,
        scenarios=["complex_background"],
    )  # fmt: skip
    columns = frame.cube.values[4].mean(axis=0)
    assert np.corrcoef(columns[:-8], columns[8:])[0, 1] > 0.8


def test_bands_are_found_by_wavelength_in_any_order(tmp_path):
    order = [5, 3, 0, 1, 4, 2]
    bands = BandSet(tuple(Band(f"b{n}", BANDS[n].wavelength_nm, BANDS[n].fwhm_nm) for n in order))
    values = np.stack([np.full((60, 64), 1000 * (n + 1), np.uint16) for n in order])
    raster(tmp_path / "a.tif", values, bands)
    view = find_backgrounds(tmp_path, BANDS, SHAPE).crop(SHAPE, np.random.default_rng(0))
    means = [round(float(view.radiance(band).mean()), 3) for band in BANDS]
    assert means == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_unusable_files_are_named_with_the_reason(tmp_path, caplog):
    raster(tmp_path / "good.tif", stripes(10000, np.uint16))
    raster(tmp_path / "small.tif", stripes(10000, np.uint16, (20, 20)))
    raster(tmp_path / "colour.tif", stripes(10000, np.uint16)[:3], BandSet(BANDS.bands[:3]))
    (tmp_path / "broken.tif").write_bytes(b"not a raster")
    (tmp_path / "vrt.tif").write_text("<VRTDataset rasterXSize='9' rasterYSize='9'></VRTDataset>")
    with caplog.at_level(logging.WARNING):
        logging.getLogger("smokegeo").propagate = True
        found = find_backgrounds(tmp_path, BANDS, SHAPE)
    assert [r.path.name for r in found.rasters] == ["good.tif"]
    assert "small.tif is 20x20" in caplog.text
    assert "colour.tif lacks nir, swir1, swir2" in caplog.text
    assert "broken.tif cannot be read" in caplog.text
    assert "vrt.tif cannot be read" in caplog.text


def test_no_usable_background_is_refused(tmp_path):
    with pytest.raises(InputError, match="no usable background"):
        find_backgrounds(tmp_path, BANDS, SHAPE)
    with pytest.raises(InputError, match="not a folder"):
        find_backgrounds(tmp_path / "missing", BANDS, SHAPE)


def test_gaps_in_the_data_are_avoided(tmp_path):
    values = stripes(10000, np.uint16).copy()
    values[:, :, :10] = 0
    raster(tmp_path / "a.tif", values)
    with rasterio.open(tmp_path / "a.tif", "r+") as dst:
        dst.nodata = 0
    found = find_backgrounds(tmp_path, BANDS, SHAPE)
    for seed in range(5):
        assert found.crop(SHAPE, np.random.default_rng(seed)).radiance(BANDS[0]).min() > 0.05
    with pytest.raises(InputError, match="without nodata"):
        found.crop((60, 60), np.random.default_rng(0))


def test_undeclared_nan_does_not_change_the_unit(tmp_path):
    values = stripes(1, np.float32).copy()
    values[:, :, :10] = np.nan
    raster(tmp_path / "a.tif", values)
    view = find_backgrounds(tmp_path, BANDS, SHAPE).crop(SHAPE, np.random.default_rng(0))
    assert view.radiance(BANDS[2]).min() == pytest.approx(0.1)


def test_a_thermal_band_need_not_be_there(tmp_path):
    mss = sensor("mss").bands
    raster(tmp_path / "a.tif", stripes(255, np.uint8)[:3], BandSet(mss.bands[:3]))
    found = find_backgrounds(tmp_path, mss, SHAPE)
    frame = simulate_frame("mss", 0, 0, size=(48, 40), backgrounds=found)
    assert frame.cube.shape == (4, 40, 48)
