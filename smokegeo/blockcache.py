"""GDAL's cache of decoded blocks: as large as the work needs, and only while it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rasterio
from rasterio.env import get_gdal_config, set_gdal_config

_KEY = "GDAL_CACHEMAX"


@contextmanager
def block_cache(size_bytes: int) -> Iterator[None]:
    """Bound the cache, which by itself grows to 5 % of the machine's memory; then set it back.

    GDAL takes small numbers for megabytes, rasterio always passes bytes on, and leaving its `Env`
    changes nothing: 64 would mean no cache at all, for the rest of the process.
    """
    with rasterio.Env():
        before = get_gdal_config(_KEY)
        set_gdal_config(_KEY, size_bytes)
        try:
            yield
        finally:
            set_gdal_config(_KEY, before)
