"""Decoded blocks are kept while they are of use, and no setting outlives the work."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
from rasterio.env import get_gdal_config
from toy_scenes import landscape, write_scene

from smokegeo.blockcache import block_cache
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


def test_all_blocks_under_a_row_of_tiles_are_kept_where_that_is_cheap(tmp_path):
    path = write_scene(tmp_path / "s.tif", landscape(size=(500, 600)), **TILED)
    # Tiles of 100 lines touch up to three rows of blocks; ten blocks are 640 columns.
    assert cache_bytes(path, 100) == 3 * 64 * 640 * 6 * 2


def test_blocks_as_wide_as_the_scene_are_kept_at_any_price(tmp_path):
    strips = tmp_path / "strips.tif"
    profile = {"driver": "GTiff", "dtype": "uint16", "count": 6, "crs": "EPSG:32633"}
    profile |= {"transform": rasterio.Affine(10, 0, 5e5, 0, -10, 5e6), "sparse_ok": True}
    size = {"width": 20_000, "height": 600}
    with rasterio.open(strips, "w", blockysize=8, **size, **profile):
        pass
    tiles = tmp_path / "tiles.tif"
    with rasterio.open(tiles, "w", **TILED, **size, **profile):
        pass
    assert cache_bytes(strips, 512) == (512 + 8) * 20_000 * 6 * 2
    assert cache_bytes(tiles, 512) == 64_000_000


def test_every_block_is_given_out_as_it_is_stored(tmp_path):
    values = landscape(size=(300, 280))
    scene = open_scene(write_scene(tmp_path / "s.tif", values, **TILED))
    with scene.open() as reader, block_cache(200_000):
        found, _ = reader.read(scene.whole, (0, 3))
    assert (found == values[[0, 3]].astype(np.float32)).all()
