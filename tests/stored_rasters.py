"""Small probability rasters for the tests of vectorising."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import ArrayLike, NDArray
from rasterio.transform import from_origin

from smokegeo.outlines.vectorize import Shapes, vectorize
from smokegeo.probability import NODATA, ProbabilityRaster, create, open_probability


@contextmanager
def stored(values: ArrayLike) -> Iterator[ProbabilityRaster]:
    """Yield an open probability raster of these stored values."""
    array = np.atleast_2d(np.asarray(values, np.uint8))
    height, width = array.shape
    with TemporaryDirectory() as folder:
        path = Path(folder) / "prob.tif"
        with create(path, width, height, crs=None, transform=from_origin(10, 20, 3, 3)) as dst:
            dst.write(array, 1)
        with open_probability(path) as raster:
            yield raster


@dataclass(frozen=True)
class Held:
    """Stored values in memory, given out by rows as from a file."""

    values: NDArray[np.uint8]

    @property
    def width(self) -> int:
        return self.values.shape[1]

    @property
    def height(self) -> int:
        return self.values.shape[0]

    def rows(self, start: int, stop: int) -> NDArray[np.uint8]:
        assert 0 <= start < stop <= self.height
        return self.values[start:stop]


def shapes_of(values: ArrayLike, threshold: float = 0.5, **options: object) -> Shapes:
    """Vectorise an array of stored values."""
    return vectorize(Held(np.atleast_2d(np.asarray(values, np.uint8))), threshold, **options)


def is_smoke(values: NDArray[np.uint8], first: int = 125) -> NDArray[np.bool_]:
    """Return which stored values are smoke at a threshold of 0.5."""
    return (values >= first) & (values != NODATA)


def rasters(max_side: int = 12, nodata: bool = True) -> st.SearchStrategy[NDArray[np.uint8]]:
    """Return random rasters, most of their values near the threshold, at the ends or missing."""
    special = [0, 1, 123, 124, 125, 126, 249, 250] + [NODATA] * (2 if nodata else 0)
    return hnp.arrays(
        np.uint8,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=max_side),
        elements=st.one_of(st.sampled_from(special), st.integers(0, 250)),
        fill=st.nothing(),
    )


def smooth_field(size: int, seed: int = 0, sigma: float = 4.0) -> NDArray[np.uint8]:
    """Return a smooth random field, about an eighth of it smoke."""
    from scipy.ndimage import gaussian_filter

    field = gaussian_filter(np.random.default_rng(seed).standard_normal((size, size)), sigma)
    return np.rint(250 / (1 + np.exp(-3 * (field / field.std() - 1.2)))).astype(np.uint8)
