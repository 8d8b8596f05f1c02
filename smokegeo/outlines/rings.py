"""Make polygons of rings, in one fixed form: the same outline always gives the same bytes.

No vertex in the middle of a straight side of the grid, rings begin with their topmost, leftmost
vertex, shells run one way and holes the other, holes are sorted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import shapely
from numpy.typing import NDArray

from smokegeo.outlines.cells import Ints

Points = NDArray[np.float64]

#: Rings of about this many points are worked on at once.
_BATCH_POINTS = 200_000


def drop_straight(points: Points, offsets: Ints) -> tuple[Points, Ints]:
    """Drop vertices that lie in the middle of a horizontal or vertical side."""
    if not len(points):
        return points, offsets
    first, last = offsets[:-1], offsets[1:] - 1
    # Whether a point is level with the one after it, and with the one before it.
    on, back = np.empty((2, *points.shape), np.bool_)
    np.equal(points[:-1], points[1:], out=on[:-1])
    on[last] = points[last] == points[first]
    back[1:], back[first] = on[:-1], on[last]
    kept = ~(on & back).any(axis=1)
    return points[kept], np.append(0, np.cumsum(np.add.reduceat(kept, first, dtype=np.int64)))


def split_touching(points: Points, offsets: Ints, piece: Ints) -> tuple[Points, Ints, Ints]:
    """Cut rings that touch themselves at a pixel corner into rings that do not.

    Two pixels that meet at a corner only, of smoke that is connected elsewhere, make such a ring;
    a polygon is valid only if the loop beyond the corner is a hole (or shell) of its own.
    """
    ring = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((points[:, 0], points[:, 1], ring))
    same = (points[order[1:]] == points[order[:-1]]).all(axis=1)
    same &= ring[order[1:]] == ring[order[:-1]]
    touching = np.unique(ring[order[1:][same]])
    if not touching.size:
        return points, offsets, piece
    simple = np.ones(len(offsets) - 1, np.bool_)
    simple[touching] = False
    loops: list[list[tuple[float, float]]] = []
    pieces: list[int] = []
    for number in touching.tolist():
        found = _loops([(x, y) for x, y in points[offsets[number] : offsets[number + 1]].tolist()])
        loops += found
        pieces += [int(piece[number])] * len(found)
    lengths = np.diff(offsets)
    sizes = np.concatenate([lengths[simple], [len(loop) for loop in loops]])
    return (
        np.concatenate([points[np.repeat(simple, lengths)], *(np.array(loop) for loop in loops)]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([piece[simple], pieces]).astype(np.int64),
    )


def linear_rings(points: Points, offsets: Ints, piece: Ints) -> tuple[NDArray[np.object_], Ints]:
    """Return the rings as geometries, each shell before its holes, and the piece of each."""
    if len(offsets) == 1:
        return np.zeros(0, np.object_), piece
    made = np.empty(len(piece), np.object_)
    first, area = np.empty((len(piece), 2)), np.empty(len(piece))
    for some in batches(offsets):
        ends = offsets[some.start : some.stop + 1]
        xy, ends = drop_straight(points[ends[0] : ends[-1]], ends - ends[0])
        begin, lengths = _first_vertices(xy, ends), np.diff(ends)
        first[some], area[some] = xy[begin], _areas(xy, ends, xy[begin])
        # Each ring from its first vertex on, around, and that vertex again.
        owner = np.repeat(np.arange(len(lengths)), lengths + 1)
        place = np.arange(len(owner)) - (ends[:-1] + np.arange(len(lengths)))[owner]
        place = (place + (begin - ends[:-1])[owner]) % lengths[owner] + ends[:-1][owner]
        made[some] = shapely.linearrings(xy[place], indices=owner)
    rank = np.lexsort((first[:, 0], first[:, 1], area < 0, piece))
    return made[rank], piece[rank]


def polygons(rings: NDArray[np.object_], piece: Ints) -> NDArray[np.object_]:
    """Return one polygon per piece, of rings as `linear_rings` gives them."""
    if len(rings) == 0:
        return rings
    return np.asarray(shapely.polygons(rings, indices=piece), np.object_)


def batches(offsets: Ints) -> Iterator[slice]:
    """Cut rings, given by where each begins and the last ends, into parts of some points.

    One plume may have most of the points of a scene, and several copies of them at once would be
    most of the memory that a run takes.
    """
    batch = offsets[:-1] // _BATCH_POINTS
    edges = np.flatnonzero(np.diff(batch, prepend=-1, append=-1)).tolist()
    return itertools.starmap(slice, itertools.pairwise(edges))


def _first_vertices(points: Points, offsets: Ints) -> Ints:
    """Return where each ring's topmost vertex is, the leftmost of them."""
    lengths = np.diff(offsets)
    x, y = points[:, 0], points[:, 1]
    top = y == np.repeat(np.minimum.reduceat(y, offsets[:-1]), lengths)
    left = np.minimum.reduceat(np.where(top, x, np.inf), offsets[:-1])
    return np.flatnonzero(top & (x == np.repeat(left, lengths)))


def _areas(points: Points, offsets: Ints, origin: Points) -> NDArray[np.float64]:
    """Return the signed areas; counted from a near origin, so that small rings are exact."""
    x, y = (points - np.repeat(origin, np.diff(offsets), axis=0)).T
    first, last = offsets[:-1], offsets[1:] - 1
    cross = np.empty(len(points))
    cross[:-1] = x[:-1] * y[1:] - x[1:] * y[:-1]
    cross[last] = x[last] * y[first] - x[first] * y[last]
    areas: NDArray[np.float64] = np.add.reduceat(cross, first) / 2
    return areas


def _loops(ring: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Cut a ring wherever it comes back to a vertex."""
    loops = []
    path: list[tuple[float, float]] = []
    seen: dict[tuple[float, float], int] = {}
    for point in ring:
        if point in seen:
            loop = path[seen[point] :]
            loops.append(loop)
            for left in loop:
                del seen[left]
            del path[len(path) - len(loop) :]
        seen[point] = len(path)
        path.append(point)
    return [*loops, path]
