"""Numbers on features of pixels: how far apart, how correlated, how contrasted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from smokegeo.errors import InputError, UsageError
from smokegeo.explain.tsne import squared_distances

T = TypeVar("T")
Array = NDArray[Any]

#: The fewest points of a class that say something about it.
FEWEST_PIXELS = 5
_TINY = 1e-12


def silhouette(points: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """Return the mean silhouette of labelled points: 1 far apart, 0 mixed, below 0 wrong way.

    For each point, a is its mean distance to others of its label, b the smallest mean distance to
    another label, and (b - a) / max(a, b) its silhouette; a point alone with its label counts 0.
    """
    distances = np.sqrt(squared_distances(points))
    kinds, own = np.unique(labels, return_inverse=True)
    if len(kinds) < 2:
        raise UsageError("a silhouette needs points of two labels at least.")
    sizes = np.bincount(own)
    sums = np.stack([distances[:, own == kind].sum(axis=1) for kind in range(len(kinds))], axis=1)
    rows = np.arange(len(points))
    inside = sums[rows, own] / np.maximum(sizes[own] - 1, 1)
    means = sums / sizes
    means[rows, own] = np.inf
    outside = means.min(axis=1)
    values = (outside - inside) / np.maximum(np.maximum(inside, outside), _TINY)
    return float(np.where(sizes[own] > 1, values, 0.0).mean())


def unit_per_band(features: Array, bands: int) -> Array:
    """Scale the part of each band in (N, D) features to length 1."""
    shaped = features.reshape(len(features), bands, -1)
    lengths = np.linalg.norm(shaped, axis=2, keepdims=True)
    return np.asarray((shaped / np.maximum(lengths, 1e-12)).reshape(features.shape))


def correlations(features: Array) -> Array:
    """Return the (D, D) correlations of the columns; NaN where a column is constant."""
    centred = features - features.mean(axis=0, dtype=np.float64)
    lengths = np.linalg.norm(centred, axis=0)
    constant = lengths <= 1e-6 * np.maximum(np.abs(features).max(axis=0), 1e-12)
    unit = centred / np.where(constant, 1.0, lengths)
    result = np.clip(unit.T @ unit, -1, 1)
    result[constant] = result[:, constant] = np.nan
    return np.asarray(result)


def pairs(matrix: Array, band_dim: int) -> tuple[Array, Array]:
    """Return |r| of the pairs of channels of different bands, and of the same band."""
    rows, columns = np.triu_indices(len(matrix), k=1)
    values = np.abs(matrix[rows, columns])
    same, known = rows // band_dim == columns // band_dim, np.isfinite(values)
    return values[~same & known], values[same & known]


def balanced(labels: Array, count: int) -> Array:
    """Return positions of as many 0s as 1s, at most `count` of each, drawn at random."""
    positions = [np.flatnonzero(labels == value) for value in (0, 1)]
    size = min(count, *map(len, positions))
    if size < FEWEST_PIXELS:
        raise InputError(
            f"the sampled frames have only {size} pixels of smoke or of background at the size of "
            "the features. Choose another split."
        )
    rng = np.random.default_rng(0)
    return np.concatenate([rng.choice(found, size, replace=False) for found in positions])


def contrast(values: Array, mask: Array) -> float | None:
    """Return by how many standard deviations smoke lies above background; None without one."""
    smoke, clear = values[mask == 1], values[mask == 0]
    if not len(smoke) or not len(clear):
        return None
    deviation = float(np.sqrt((smoke.var() + clear.var()) / 2))
    return float((smoke.mean() - clear.mean()) / max(deviation, 1e-12))


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return up to `count` items, evenly spread from the first to the last."""
    if len(items) <= count:
        return list(items)
    return [items[int(i)] for i in np.linspace(0, len(items) - 1, count).round()]
