"""Exact t-SNE, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.errors import UsageError

Array = NDArray[Any]

#: Every pair is held in memory and visited in every step.
MAX_POINTS = 1000
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
