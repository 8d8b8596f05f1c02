"""Many-to-one annotation: merge several annotators' masks and say how far they agreed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from smokegeo.errors import InputError, UsageError


@dataclass(frozen=True)
class Agreement:
    """How many pixels exactly 1, 2, ... n annotators marked; unmarked pixels do not count.

    Agreements of several images add up.
    """

    pixels_by_votes: tuple[int, ...]

    @property
    def annotators(self) -> int:
        """The number of annotators."""
        return len(self.pixels_by_votes)

    @property
    def needed(self) -> int:
        """The votes that make a pixel smoke: at least two thirds."""
        return votes_needed(self.annotators)

    def shares(self) -> dict[int, float]:
        """Return votes -> share of the pixels marked by anyone, most votes first."""
        return _shares(self.pixels_by_votes, 1)

    def mask_shares(self) -> dict[int, float]:
        """Return votes -> share of the pixels in the final mask, most votes first."""
        return _shares(self.pixels_by_votes, self.needed)

    def __add__(self, other: Agreement) -> Agreement:
        if other.annotators != self.annotators:
            raise UsageError("agreements of different numbers of annotators do not add up.")
        pairs = zip(self.pixels_by_votes, other.pixels_by_votes, strict=True)
        return Agreement(tuple(a + b for a, b in pairs))


@dataclass(frozen=True)
class Consensus:
    """The merged mask (0 or 1) and the votes behind it, both (y, x) uint8."""

    mask: NDArray[np.uint8]
    votes: NDArray[np.uint8]
    annotators: int

    @cached_property
    def agreement(self) -> Agreement:
        """The agreement statistics of this image."""
        counts = np.bincount(self.votes.ravel(), minlength=self.annotators + 1)
        return Agreement(tuple(int(n) for n in counts[1:]))


def votes_needed(annotators: int) -> int:
    """Return the smallest vote count that is at least two thirds."""
    return -(-2 * annotators // 3)


def merge_masks(masks: Sequence[NDArray[np.generic]]) -> Consensus:
    """Vote per pixel: smoke where at least two thirds of three or more annotators say so."""
    if len(masks) < 3:
        raise UsageError(f"{len(masks)} masks given; a majority needs three annotators or more.")
    if len(masks) > 254:
        raise UsageError(f"{len(masks)} masks given; at most 254 can be counted.")
    shapes = {mask.shape for mask in masks}
    if len(shapes) != 1:
        sizes = ", ".join(f"{width}x{height}" for height, width in sorted(shapes))
        raise InputError(f"masks differ in size ({sizes}). They must show the same image.")
    votes = np.zeros(masks[0].shape, np.uint8)
    for mask in masks:
        votes += mask != 0
    return Consensus((votes >= votes_needed(len(masks))).astype(np.uint8), votes, len(masks))


def band_average(cube: xr.DataArray) -> NDArray[np.uint8]:
    """Return the grey image annotators see: the mean of all bands, stretched to 8 bit.

    The stretch runs from the 1st to the 99th percentile, so that one glint does not darken
    everything else.
    """
    grey = cube.values.astype(np.float64).mean(axis=0)
    finite = grey[np.isfinite(grey)]
    low, high = np.percentile(finite, (1, 99)) if finite.size else (0.0, 1.0)
    scaled = (np.nan_to_num(grey, nan=low) - low) / max(high - low, 1e-12)
    return np.asarray((np.clip(scaled, 0, 1) * 255).round(), np.uint8)


def _shares(pixels_by_votes: Sequence[int], least: int) -> dict[int, float]:
    kept = {votes: n for votes, n in enumerate(pixels_by_votes, start=1) if votes >= least}
    total = sum(kept.values())
    return {votes: kept[votes] / total if total else 0.0 for votes in sorted(kept, reverse=True)}
