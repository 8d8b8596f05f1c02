"""Join what strips cut: chains that end on a seam go on in the next strip.

A connected piece of smoke is kept as it is, in parts, until no chain of it ends on the current
seam; then its chains are linked into rings, once. So a plume over many strips costs no more than
the same outline in small plumes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from smokegeo.outlines.cells import Ints
from smokegeo.outlines.contours import Chains, Sums


@dataclass(frozen=True)
class Rings:
    """Whole rings, and the pieces of smoke they bound: `piece` is a ring's place in `sums`."""

    points: NDArray[np.float64]
    offsets: Ints
    piece: Ints
    sums: Sums


@dataclass
class _Part:
    """A piece of smoke that may go on below."""

    rings: list[NDArray[np.float64]] = field(default_factory=list)
    chains: list[tuple[int, int, NDArray[np.float64]]] = field(default_factory=list)
    pixels: int = 0
    total: int = 0
    peak: int = 0
    by_nodata: bool = False

    def take_in(self, other: _Part) -> None:
        """Add another part to this one."""
        self.rings += other.rings
        self.chains += other.chains
        self.pixels += other.pixels
        self.total += other.total
        self.peak = max(self.peak, other.peak)
        self.by_nodata |= other.by_nodata

    def closed_rings(self) -> list[NDArray[np.float64]]:
        """Give out the rings, with the chains linked, each of which ends where another begins."""
        after = {start: (end, points) for start, end, points in self.chains}
        rings = self.rings
        self.rings, self.chains = [], []  # each point is kept once only
        for first in list(after):
            here, ring = first, []
            while here in after:
                here, points = after.pop(here)
                ring.append(points)
            if ring:
                rings.append(np.concatenate(ring))
        return rings


class Seams:
    """The pieces of smoke that reach the seam below the strips seen so far."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._ends: dict[int, int] = {}

    def add(self, strip: Chains, seam_from: int) -> Rings:
        """Take in the next strip and return all pieces that are whole now.

        Args:
            strip: the chains of the strip below those seen so far.
            seam_from: crossings numbered from here on lie on the strip's lower seam.
        """
        is_open = np.zeros(strip.sums.pixels.size, np.bool_)
        is_open[strip.piece[strip.starts >= 0]] = True
        whole = _whole_pieces(strip, is_open)
        if not self._parts and not is_open.any():
            return whole
        parts = self._parts + _open_parts(strip, is_open)
        numbers = np.cumsum(is_open) - 1 + len(self._parts)
        root = list(range(len(parts)))
        ends: dict[int, int] = {}
        for start, end, piece in zip(
            strip.starts.tolist(), strip.ends.tolist(), strip.piece.tolist(), strict=True
        ):
            if start < 0:
                break  # open chains come first
            for crossing in (start, end):
                if crossing >= seam_from:
                    ends[crossing] = int(numbers[piece])
                else:
                    _unite(root, int(numbers[piece]), self._ends[crossing])
        merged: dict[int, _Part] = {}
        for number, part in enumerate(parts):
            found = _find(root, number)
            known = merged.setdefault(found, part)
            if known is not part:
                big, small = (known, part) if _size(known) >= _size(part) else (part, known)
                big.take_in(small)
                merged[found] = big
        still_open = {_find(root, number) for number in ends.values()}
        renumbered = {found: number for number, found in enumerate(sorted(still_open))}
        self._parts = [merged[found] for found in renumbered]
        self._ends = {key: renumbered[_find(root, number)] for key, number in ends.items()}
        closed = [part for found, part in merged.items() if found not in still_open]
        return _with_parts(whole, closed)


def _size(part: _Part) -> int:
    return len(part.chains) + len(part.rings)


def _find(root: list[int], number: int) -> int:
    while root[number] != number:
        root[number] = root[root[number]]
        number = root[number]
    return number


def _unite(root: list[int], one: int, other: int) -> None:
    one, other = _find(root, one), _find(root, other)
    root[max(one, other)] = min(one, other)


def _whole_pieces(strip: Chains, is_open: NDArray[np.bool_]) -> Rings:
    """Return the pieces that lie in this strip alone."""
    chosen = ~is_open[strip.piece]
    lengths = np.diff(strip.offsets)
    numbers = np.cumsum(~is_open) - 1
    return Rings(
        strip.points[np.repeat(chosen, lengths)],
        np.concatenate([[0], np.cumsum(lengths[chosen])]),
        numbers[strip.piece[chosen]],
        strip.sums.take(~is_open),
    )


def _open_parts(strip: Chains, is_open: NDArray[np.bool_]) -> list[_Part]:
    """Return the other pieces, in order, with copies of their points."""
    sums = strip.sums
    parts = {
        piece: _Part(
            [],
            [],
            int(sums.pixels[piece]),
            int(sums.total[piece]),
            int(sums.peak[piece]),
            bool(sums.by_nodata[piece]),
        )
        for piece in np.flatnonzero(is_open).tolist()
    }
    for chain in np.flatnonzero(is_open[strip.piece]).tolist():
        points = strip.points[strip.offsets[chain] : strip.offsets[chain + 1]].copy()
        part = parts[int(strip.piece[chain])]
        if strip.starts[chain] < 0:
            part.rings.append(points)
        else:
            part.chains.append((int(strip.starts[chain]), int(strip.ends[chain]), points))
    return list(parts.values())


def _with_parts(whole: Rings, parts: list[_Part]) -> Rings:
    """Return whole pieces together with parts that have become whole."""
    rings = [part.closed_rings() for part in parts]
    points = [ring for group in rings for ring in group]
    lengths = [len(ring) for ring in points]
    sums = whole.sums
    first = sums.pixels.size
    numbers = np.repeat(np.arange(first, first + len(parts)), [len(group) for group in rings])
    offsets = np.concatenate([whole.offsets, whole.offsets[-1] + np.cumsum(lengths, dtype=int)])
    return Rings(
        np.concatenate([whole.points, *points]),
        offsets,
        np.concatenate([whole.piece, numbers]),
        Sums(
            np.append(sums.pixels, np.array([part.pixels for part in parts], np.int64)),
            np.append(sums.total, np.array([part.total for part in parts], np.int64)),
            np.append(sums.peak, np.array([part.peak for part in parts], np.int64)),
            np.append(sums.by_nodata, np.array([part.by_nodata for part in parts], np.bool_)),
        ),
    )
