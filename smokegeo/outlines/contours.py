"""Trace the outlines of smoke in one strip of a probability raster, all of them at once.

Nodes are pixel centres. Wherever two neighbouring nodes differ (smoke or not) an outline crosses
the line between them. A crossing leads into one cell and from there, by a table, to the next one.
Following these links gives chains: closed rings, and open ones from seam to seam. Smoke lies on
the right, so that in pixel coordinates shells have positive area and holes negative.

One engine makes both kinds of edges. "smooth" puts a vertex on each crossing, interpolated between
the two probabilities; "pixel" puts one on each pixel corner where the outline turns. Nothing
depends on how the raster is cut into strips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smokegeo.outlines.cells import (
    BEND,
    BOTTOM,
    CENTRE,
    LEFT,
    NO_ELBOW,
    RIGHT,
    TOP,
    Edges,
    Ints,
    interpolation,
    routes,
    states,
)
from smokegeo.probability import STEPS


@dataclass(frozen=True)
class Sums:
    """Pixels, sum and maximum of their values, and whether nodata is near, per piece of smoke."""

    pixels: Ints
    total: Ints
    peak: Ints
    by_nodata: NDArray[np.bool_]

    def take(self, keep: NDArray[np.bool_]) -> Sums:
        """Return those of some pieces."""
        return Sums(self.pixels[keep], self.total[keep], self.peak[keep], self.by_nodata[keep])


@dataclass(frozen=True)
class Chains:
    """Outlines in one strip, and the smoke they enclose.

    Chain c has the points `offsets[c]` to `offsets[c + 1]`. An open chain begins and ends on a
    seam, at the crossings numbered `starts[c]` and `ends[c]`, and lacks its last point, which is
    the first of another; both numbers are -1 for a closed ring. Open chains come first. Chains
    around one connected piece of smoke share a number in `piece`, their place in `sums`.
    """

    points: NDArray[np.float64]
    offsets: Ints
    starts: Ints
    ends: Ints
    piece: Ints
    sums: Sums


def trace(
    nodes: NDArray[np.uint8],
    first_row: int,
    smoke_from: int,
    edges: Edges,
    near_nodata: NDArray[np.bool_] | None,
) -> Chains:
    """Trace the smoke in some rows of the raster, padded all around with one pixel of NODATA.

    Args:
        nodes: stored values, at least two rows; the strips above and below share the outer ones.
        first_row: number of the first row in the padded raster.
        smoke_from: smallest stored value that is smoke.
        edges: where to put vertices.
        near_nodata: True where a node has a not-analysed neighbour; None if none has.
    """
    height, width = nodes.shape
    seam = (height - 1) * width
    # One comparison for smoke_from <= value <= STEPS: unsigned numbers wrap around.
    smoke = np.subtract(nodes, np.uint8(smoke_from)) <= STEPS - smoke_from
    crossings = _cross(nodes, smoke, first_row, smoke_from, edges)
    across, count = crossings.node[: crossings.count], crossings.count

    at_top = int(np.searchsorted(across, width))
    at_bottom = int(np.searchsorted(across, seam))
    # Outlines go down on the right of smoke and up on its left.
    open_from = np.concatenate([np.arange(1, at_top, 2), np.arange(at_bottom, count, 2)])
    order, stops = _follow(crossings.following, open_from)
    place = _pixel_points if edges == "pixel" else _smooth_points
    points, before = place(crossings, order, smoke_from)

    chains = stops.size - 1
    chain_of = np.empty(order.size, np.int64)
    chain_of[order] = np.repeat(np.arange(chains), np.diff(stops))
    starts, ends = np.full((2, chains), -1, np.int64)
    cut = slice(0, open_from.size)
    starts[cut] = crossings.node[order[stops[:-1][cut]]] + first_row * width
    ends[cut] = crossings.node[order[stops[1:][cut] - 1]] + first_row * width

    # Both ends of a run of smoke bound the same piece, and every ring is at the end of some run.
    begin, end = chain_of[0:count:2], chain_of[1:count:2]
    links = coo_array((np.ones(begin.size, np.int8), (begin, end)), shape=(chains, chains))
    pieces, piece = connected_components(links, directed=False) if chains else (0, chain_of)
    runs = at_bottom // 2  # a shared row counts in the strip that begins with it
    inside = smoke[:-1]
    sums = _sum_up(
        piece[begin[:runs]],
        (across[1::2] - across[0::2])[:runs],
        nodes[:-1][inside],
        None if near_nodata is None else near_nodata[:-1][inside],
        pieces,
    )
    return Chains(points, before[stops], starts, ends, piece.astype(np.int64), sums)


@dataclass(frozen=True)
class _Crossings:
    """The crossings of a strip: first `count` on horizontal lines in order, then the others.

    `node` is the left or upper node of each, `cell` where it leads to, `following` the next
    crossing (-1 where that is in another strip), `elbow` what comes between the two.
    """

    values: NDArray[np.uint8]
    width: int
    first_row: int
    count: int
    node: Ints
    cell: Ints
    following: NDArray[np.int32]
    elbow: NDArray[np.uint8]


def _cross(
    nodes: NDArray[np.uint8],
    smoke: NDArray[np.bool_],
    first_row: int,
    smoke_from: int,
    edges: Edges,
) -> _Crossings:
    """Find all crossings and link each to the next."""
    height, width = nodes.shape
    values, flat = nodes.ravel(), smoke.ravel()
    # Rows begin and end outside, so no difference is seen from one row's end to the next row.
    across = np.flatnonzero(flat[:-1] != flat[1:])
    down = np.flatnonzero(flat[:-width] != flat[width:])
    count = across.size
    node = np.concatenate([across, down])
    # In a row, crossings into and out of smoke take turns.
    side = np.empty(node.size, np.uint8)
    side[0:count:2], side[1:count:2] = BOTTOM, TOP
    side[count:] = np.where(flat[down], RIGHT, LEFT)
    cell = node.copy()
    cell[0:count:2] -= width
    cell[count:] -= flat[down]
    leaves = (cell < 0) | (cell >= (height - 1) * width)
    cell[leaves] = 0

    state = states(values, flat, cell, width, smoke_from)
    exits, elbows = routes(edges)
    number = np.empty(2 * nodes.size, np.int32)  # of the crossing right of a node, and below it
    number[across] = np.arange(count)
    number[nodes.size + down] = np.arange(count, node.size)
    from_cell = np.array([0, nodes.size + 1, width, nodes.size])
    following = number[cell + from_cell[exits[state, side]]]
    elbow = elbows[state, side]
    following[leaves], elbow[leaves] = -1, NO_ELBOW
    return _Crossings(values, width, first_row, count, node, cell, following, elbow)


def _follow(following: NDArray[np.int32], open_from: Ints) -> tuple[Ints, Ints]:
    """Return the crossings in the order of travel, and where each chain begins in it.

    A plain loop: list ranking with array operations is slower.
    """
    after: list[int] = following.tolist()
    order: list[int] = []
    stops = [0]
    for here in open_from.tolist():
        at = here
        while at >= 0:
            order.append(at)
            after[at], at = -2, after[at]
        stops.append(len(order))
    for here in range(len(after)):
        at, then = here, after[here]
        if then < 0:  # was there already
            continue
        while then >= 0:
            order.append(at)
            after[at] = -2
            at, then = then, after[then]
        stops.append(len(order))
    return np.array(order, np.int64), np.array(stops, np.int64)


def _pixel_points(
    crossings: _Crossings, order: Ints, smoke_from: int
) -> tuple[NDArray[np.float64], Ints]:
    """Return a vertex for each turn, and how many come before each place in the order."""
    turns = crossings.elbow[order] != NO_ELBOW
    return _centres(crossings, order[turns]), np.concatenate([[0], np.cumsum(turns)])


def _smooth_points(
    crossings: _Crossings, order: Ints, smoke_from: int
) -> tuple[NDArray[np.float64], Ints]:
    """Return vertices on crossings and elbows, and how many come before each place in the order."""
    count, node, width = crossings.count, crossings.node, crossings.width
    row, column = np.divmod(node, width)
    xy = np.column_stack([column - 0.5, row + (crossings.first_row - 0.5)])
    share, values = interpolation(smoke_from), crossings.values
    xy[:count, 0] += share[values[node[:count]], values[node[:count] + 1]]
    xy[count:, 1] += share[values[node[count:]], values[node[count:] + width]]

    kind = crossings.elbow[order]
    stays = crossings.following[order] >= 0
    before = np.concatenate([[0], np.cumsum(stays.astype(np.int64) + (kind != NO_ELBOW))])
    points = np.empty((int(before[-1]), 2))
    points[before[:-1][stays]] = xy[order[stays]]
    last = before[1:] - 1
    points[last[kind == CENTRE]] = _centres(crossings, order[kind == CENTRE])
    here = order[kind == BEND]
    then = crossings.following[here]
    level = np.where(here < count, here, then)  # of the two, the one on a horizontal line
    points[last[kind == BEND], 0] = xy[level, 0]
    points[last[kind == BEND], 1] = xy[here + then - level, 1]
    return points, before


def _centres(crossings: _Crossings, of: Ints) -> NDArray[np.float64]:
    """Return the centres of the cells that crossings lead to: all of them pixel corners."""
    row, column = np.divmod(crossings.cell[of], crossings.width)
    return np.column_stack([column, row + crossings.first_row]).astype(np.float64)


def _sum_up(
    owner: Ints,
    length: Ints,
    values: NDArray[np.uint8],
    near_nodata: NDArray[np.bool_] | None,
    pieces: int,
) -> Sums:
    """Sum up runs of smoke by the piece that owns them; `values` are their pixels in order."""
    pixels, total, peak = np.zeros((3, pieces), np.int64)
    by_nodata = np.zeros(pieces, np.bool_)
    if owner.size:
        at = np.cumsum(length) - length
        np.add.at(pixels, owner, length)
        np.add.at(total, owner, np.add.reduceat(values, at, dtype=np.int64))
        np.maximum.at(peak, owner, np.maximum.reduceat(values, at).astype(np.int64))
        if near_nodata is not None:
            np.logical_or.at(by_nodata, owner, np.logical_or.reduceat(near_nodata, at))
    return Sums(pixels, total, peak, by_nodata)
