"""Decoded blocks are kept while they are of use, and no setting outlives the work."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
from rasterio.env import get_gdal_config
from toy_scenes import landscape, write_scene

from smokegeo.blockcache import block_cache
from smokegeo.scene.layers import Box
from smokegeo.scene.opening import open_scene

TILED = {"tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "deflate"}


def read_twice(path, cache_bytes):
    """Read a file, spoil its bytes behind GDAL's back, and read it again."""
    with block_cache(cache_bytes), rasterio.open(path) as src:
        first = src.read()
        path.write_bytes(b"\0" * path.stat().st_size)
        return first, src.read()


def test_a_block_that_fits_is_decoded_once(tmp_path):
    path = write_scene(tmp_path / "s.tif", landscape(size=(200, 200)), **TILED)
    first, again = read_twice(path, 1_000_000)
    assert (first == again).all()


def test_the_size_is_in_bytes(tmp_path):
    path = write_scene(tmp_path / "s.tif", landscape(size=(200, 200)), **TILED)
    with pytest.raises(rasterio.errors.RasterioIOError):
        read_twice(path, 64)


def test_the_setting_of_the_process_comes_back_also_after_an_error():
    with rasterio.Env():
        before = get_gdal_config("GDAL_CACHEMAX")
        with block_cache(5_000_000):
            assert get_gdal_config("GDAL_CACHEMAX") == 5_000_000
            with pytest.raises(KeyError), block_cache(7_000_000):
                raise KeyError
            assert get_gdal_config("GDAL_CACHEMAX") == 5_000_000
        assert get_gdal_config("GDAL_CACHEMAX") == before


def cache_bytes(path, tile_px):
    scene = open_scene(path)
    with scene.open() as reader:
        return reader.cache_bytes(tile_px, tuple(range(len(scene.bands))))


@pytest.mark.parametrize("block_px", [16, 64])
def test_a_row_of_tiles_finds_the_blocks_of_the_row_above(tmp_path, block_px):
    layout = TILED | {"blockxsize": block_px, "blockysize": block_px}
    values = landscape(size=(128, 1024))
    path = write_scene(tmp_path / "s.tif", values, **layout)
    scene = open_scene(path)
    bands = tuple(range(len(scene.bands)))
    with scene.open() as reader, block_cache(reader.cache_bytes(64, bands)):
        for top, height in ((20, 64), (60, 20)):  # the second row needs no other blocks
            for left in range(0, 1024, 64):
                found, _ = reader.read(Box(left, top, 64, height), bands)
                part = values[:, top : top + height, left : left + 64]
                assert (found == part.astype(np.float32)).all()
            path.write_bytes(b"\0" * path.stat().st_size)


def test_blocks_that_would_be_dropped_before_the_next_row_are_not_kept(tmp_path):
    profile = {"driver": "GTiff", "dtype": "uint16", "count": 6, "crs": "EPSG:32633"}
    profile |= {"transform": rasterio.Affine(10, 0, 5e5, 0, -10, 5e6), "sparse_ok": True}
    sizes = {}
    for name, layout in (("tiles", TILED), ("strips", {"blockysize": 8})):
        for width in (20_000, 60_000):
            path = tmp_path / f"{name}{width}.tif"
            with rasterio.open(path, "w", width=width, height=600, **layout, **profile):
                pass
            sizes[name, width] = cache_bytes(path, 512)
    assert sizes["tiles", 20_000] > 9 * 64 * 20_000 * 6 * 2  # a row of tiles touches nine of blocks
    assert sizes["tiles", 60_000] < 20_000_000  # 415 MB would be needed: two tiles
    assert sizes["strips", 60_000] > 65 * 8 * 60_000 * 6 * 2  # under any tile are all of them


def test_every_block_is_given_out_as_it_is_stored(tmp_path):
    values = landscape(size=(300, 280))
    scene = open_scene(write_scene(tmp_path / "s.tif", values, **TILED))
    with scene.open() as reader, block_cache(200_000):
        found, _ = reader.read(scene.whole, (0, 3))
    assert (found == values[[0, 3]].astype(np.float32)).all()
