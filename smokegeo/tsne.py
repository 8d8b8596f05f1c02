"""Measures of pixel features and their pictures: t-SNE maps, silhouettes, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from smokegeo.errors import InputError, UsageError

T = TypeVar("T")
Array = NDArray[Any]

#: The fewest points of a class that say something about it.
FEWEST_PIXELS = 5
#: Every pair is held in memory and visited in every step.
MAX_POINTS = 1000
DPI = 110
COLOURS = {"smoke": "#d95f02", "edge": "#e6ab02", "background": "#4575b4"}
BRANCHES = {
    "common": "common branch, $X_{com}$ (no band split)",
    "individual": "individual branch, $X_{indi}$ (band split)",
    "without_split": "model without band split, $X_{com}$",
}
_EXAGGERATION = 12.0
_EXAGGERATED_STEPS = 250
_TINY = 1e-12


def tsne(
    points: NDArray[np.floating], *, perplexity: float = 30.0, steps: int = 600, seed: int = 0
) -> Array:
    """Return (N, 2) positions in which points near each other in (N, D) stay near.

    Exact t-SNE after van der Maaten and Hinton (2008), started from the two principal components
    so that the large picture is not left to chance; the same for the same seed.
    """
    count = len(points)
    if not 4 <= count <= MAX_POINTS:
        raise UsageError(f"t-SNE takes 4 to {MAX_POINTS} points, not {count}.")
    wanted = neighbour_shares(squared_distances(points), min(perplexity, (count - 1) / 3))
    wanted = np.maximum((wanted + wanted.T) / (2 * count), _TINY)
    exaggerated = _EXAGGERATION * wanted
    place = _start(np.asarray(points, np.float64), seed)
    speed, gain = np.zeros_like(place), np.ones_like(place)
    rate = max(50.0, count / _EXAGGERATION)
    for step in range(steps):
        early = step < _EXAGGERATED_STEPS
        slope = _slope(place, exaggerated if early else wanted)
        # A direction that persists gets faster, one that flips gets slower.
        gain = np.where(slope * speed < 0, gain + 0.2, np.maximum(0.8 * gain, 0.01))
        speed = (0.5 if early else 0.8) * speed - rate * gain * slope
        place = place + speed
        place -= place.mean(axis=0)
    return place


def neighbour_shares(squared: Array, perplexity: float) -> Array:
    """Return, row by row, Gaussian shares of the other points with the perplexity asked for."""
    count = len(squared)
    others = squared + np.diag(np.full(count, np.inf))
    others = others - others.min(axis=1, keepdims=True)  # the nearest at 0: exp cannot vanish
    scale = np.where(np.isfinite(others), others, 0.0).mean(axis=1) + _TINY
    low, high, precision = np.zeros(count), np.full(count, np.inf), 1 / scale
    for _ in range(64):
        shares = np.exp(-others * precision[:, None])
        shares /= shares.sum(axis=1, keepdims=True)
        entropy = -(shares * np.log(np.maximum(shares, _TINY))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, precision, low), np.where(wide, high, precision)
        precision = np.where(np.isinf(high), 2 * low, (low + high) / 2)
    return np.asarray(shares)


def squared_distances(points: NDArray[np.floating]) -> Array:
    """Return the (N, N) squared Euclidean distances of (N, D) points."""
    centred = np.asarray(points, np.float64) - np.mean(points, axis=0, dtype=np.float64)
    square = (centred**2).sum(axis=1)
    distances = np.maximum(square[:, None] + square[None] - 2 * centred @ centred.T, 0)
    np.fill_diagonal(distances, 0)
    return np.asarray(distances)


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


def draw_map(panels: Mapping[str, tuple[Array, Array, Mapping[str, float]]], path: Path) -> None:
    """Draw t-SNE maps of pixels, smoke and background coloured, with their silhouettes."""
    figure = Figure(figsize=(5.6 * len(panels), 5.6), layout="constrained")
    for axis, (name, (place, labels, facts)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for value, region in ((0, "background"), (1, "smoke")):
            x, y = place[labels == value].T
            axis.scatter(x, y, s=14, alpha=0.75, linewidths=0, c=COLOURS[region], label=region)
        silhouettes = "silhouette {features:.3f} of the features, {map:.3f} of the map"
        bare(axis, f"{name}\n{silhouettes.format(**facts)}")
        axis.set_aspect("equal", "datalim")
    axis.legend(loc="lower right", markerscale=2)
    figure.suptitle("t-SNE of pixel features, each band of length 1", weight="bold")
    figure.savefig(path, dpi=DPI)


def draw_correlations(
    panels: Mapping[str, tuple[Array, Array, Array]],
    band_dim: int,
    bands: Sequence[str],
    path: Path,
) -> None:
    """Draw the correlations of each branch, and histograms of |r| between and within bands."""
    figure = Figure(figsize=(5 * len(panels) + 0.8, 8), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False, height_ratios=(5, 3))
    bins = np.linspace(0, 1, 41)
    for axis in axes[1, 1:]:
        axis.sharey(axes[1, 0])
    ticks = spread(range(len(bands)), 9)
    for (matrix_axis, axis), (name, (matrix, between, within)) in zip(
        axes.T, panels.items(), strict=True
    ):
        picture = matrix_axis.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu_r", interpolation="none")
        matrix_axis.set_title(BRANCHES[name])
        if name == "individual":
            places = [(i + 0.5) * band_dim - 0.5 for i in ticks]
            matrix_axis.set_xticks(places, [bands[i] for i in ticks], rotation=60)
            matrix_axis.set_yticks(places, [bands[i] for i in ticks])
        else:
            matrix_axis.set_xlabel("channel")
        pairs_of = "bands" if name == "individual" else "blocks"
        for values, colour, words in (
            (between, "#4477aa", f"different {pairs_of}"),
            (within, "#ee7733", f"same {pairs_of[:-1]}"),
        ):
            if values.size:
                share = np.full(values.size, 1 / values.size)
                label = f"{words}, mean {values.mean():.3f}"
                axis.hist(values, bins, weights=share, alpha=0.65, color=colour, label=label)
                axis.axvline(float(values.mean()), color=colour, linestyle="--", linewidth=1.5)
        axis.set(xlim=(0, 1), xlabel="|r| of two channels", ylabel="share of pairs")
        axis.legend(frameon=False, fontsize=9)
    figure.colorbar(picture, ax=list(axes[0]), label="correlation r", fraction=0.03, pad=0.02)
    figure.suptitle("Correlation between feature channels", weight="bold")
    figure.savefig(path, dpi=DPI)


def bare(axis: Any, title: str) -> None:
    """Show a title and no ticks."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(title, fontsize=10)


def _start(points: Array, seed: int) -> Array:
    """Return the two principal components, tiny, with some noise to part equal points."""
    left, size, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    plane = np.zeros((len(points), 2))
    plane[:, : min(2, left.shape[1])] = left[:, :2] * size[:2]
    noise = np.random.default_rng(seed).standard_normal(plane.shape)
    return np.asarray(1e-4 * (plane / max(float(plane[:, 0].std()), _TINY) + 0.01 * noise))


def _slope(place: Array, wanted: Array) -> Array:
    """Return the gradient of the divergence between wanted and present neighbour shares."""
    # In place, since these (N, N) passes are nearly all the time t-SNE takes; without BLAS, whose
    # threads cost more than they bring here.
    across, down = (np.subtract.outer(axis, axis) for axis in place.T)
    across *= across
    down *= down
    near = across
    near += down
    near += 1
    np.reciprocal(near, out=near)
    np.fill_diagonal(near, 0)
    pull = near * (-1 / near.sum())
    pull += wanted
    pull *= near
    pulled = np.stack([np.einsum("ij,j->i", pull, axis) for axis in place.T.copy()], axis=1)
    return np.asarray(4 * (pull.sum(axis=1)[:, None] * place - pulled))
