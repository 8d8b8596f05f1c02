"""From a probability raster on disk to polygons with attributes, a strip of rows at a time.

Memory is that of one strip and of the plumes that go on below it. Strips share a row of pixel
centres, and the result does not depend on their height.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from smokegeo.errors import UsageError
from smokegeo.outlines.cells import Edges
from smokegeo.outlines.contours import trace
from smokegeo.outlines.rings import batches, linear_rings, polygons, split_touching
from smokegeo.outlines.seams import Rings, Seams
from smokegeo.probability import NODATA, STEPS, Rows, first_smoke_value
from smokegeo.progress import track

Progress = Callable[[Iterable[int], str, int], Iterable[int]]

#: About this many pixels are worked on at once.
_STRIP_PX = 2_000_000


@dataclass(frozen=True)
class Shapes:
    """Smoke polygons and what is known of each, one entry per polygon in each array.

    Outlines are in pixel coordinates: x is the column, y the row, (0, 0) the outer corner of the
    first pixel. Shells have positive area in this frame (counter-clockwise were y to point up).
    Probabilities are those of the smoke pixels, whose centres lie inside.
    """

    outlines: NDArray[np.object_]
    pixels: NDArray[np.int64]
    mean_prob: NDArray[np.float64]
    max_prob: NDArray[np.float64]
    touches_edge: NDArray[np.bool_]
    touches_nodata: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.outlines)

    def take(self, keep: NDArray[Any]) -> Shapes:
        """Return some of the polygons, chosen by a boolean or an index array."""
        return Shapes(*(getattr(self, field.name)[keep] for field in fields(self)))


def vectorize(
    raster: Rows,
    threshold: float,
    *,
    edges: Edges = "smooth",
    core: float | None = None,
    strip_rows: int | None = None,
    progress: Progress = track,
) -> Shapes:
    """Return the connected areas of at least the threshold's probability, from top to bottom.

    Args:
        raster: an open probability raster, or any other map of stored values.
        threshold: the smallest probability that is smoke, above 0 and up to 1.
        edges: "smooth" interpolates outlines between pixel centres; "pixel" follows pixel edges.
            Neither reaches into pixels that were not analysed.
        core: keep a polygon only if somewhere in it the probability is at least this.
        strip_rows: rows to work on at once; changes time and memory, never the result.
        progress: wraps the strips as they are worked on, like `smokegeo.progress.track`.
    """
    found = _joined(
        list(
            outline_strips(
                raster, threshold, edges=edges, core=core, strip_rows=strip_rows, progress=progress
            )
        )
    )
    return found.take(np.lexsort(first_vertices(found.outlines).T))  # by y, then x


def outline_strips(
    raster: Rows,
    threshold: float,
    *,
    edges: Edges = "smooth",
    core: float | None = None,
    strip_rows: int | None = None,
    progress: Progress = track,
) -> Iterator[Shapes]:
    """Yield, strip by strip, the areas that end there; see `vectorize`."""
    if edges not in ("smooth", "pixel"):
        raise UsageError(f"edges {edges!r} is not known. Choose smooth or pixel.")
    if strip_rows is not None and strip_rows < 1:
        raise UsageError(f"strip height {strip_rows} is not positive.")
    smoke_from = first_smoke_value(threshold)
    core_from = 0 if core is None else first_smoke_value(core)
    strip_rows = strip_rows or max(16, _STRIP_PX // (raster.width + 2))

    seams = Seams()
    starts = range(0, raster.height + 1, strip_rows)
    kept = _outside(raster, 2)
    for start in progress(starts, "strips outlined", len(starts)):
        # Counted with padding, the strip goes from row `start` to row `stop`, both shared.
        stop = min(start + strip_rows, raster.height + 1)
        rows = np.concatenate([kept, _padded_rows(raster, start, stop)])
        near = _near_nodata(rows, start - 1, raster.height)
        chains = trace(rows[1:], start, smoke_from, edges, near)
        # No name for the rings: they would be kept while the caller works on the shapes.
        yield _finish(seams.add(chains, stop * rows.shape[1]), edges, core_from, raster)
        kept = rows[-2:].copy()  # the row above the next strip, and its first one


def first_vertices(outlines: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return the vertex each outline begins with, its topmost and leftmost: no two share one."""
    corners = np.empty((len(outlines), 2))
    for some in batches(np.append(0, np.cumsum(shapely.get_num_coordinates(outlines)))):
        rings = shapely.get_exterior_ring(outlines[some])  # copies
        corners[some] = shapely.get_coordinates(shapely.get_point(rings, 0))
    return corners


def _outside(raster: Rows, rows: int) -> NDArray[np.uint8]:
    return np.full((rows, raster.width + 2), NODATA, np.uint8)


def _padded_rows(raster: Rows, start: int, stop: int) -> NDArray[np.uint8]:
    """Return rows start..stop-1 with padding at both sides, and below where the raster ends."""
    rows = _outside(raster, stop - start)
    inside = min(stop, raster.height) - start
    if inside:
        rows[:inside, 1:-1] = raster.rows(start, start + inside)
    return rows


def _near_nodata(rows: NDArray[np.uint8], first_row: int, height: int) -> NDArray[np.bool_] | None:
    """Return which pixels below the first row have a not-analysed neighbour; None if none has.

    Padding is not a pixel. The last row is not right as yet: its lower neighbours are to come.
    """
    nodata = rows > STEPS
    nodata[:, [0, -1]] = False
    nodata[: max(0, 1 - first_row)] = False
    nodata[max(0, height + 1 - first_row) :] = False
    if not nodata.any():
        return None
    beside = nodata.copy()
    beside[:, 1:] |= nodata[:, :-1]
    beside[:, :-1] |= nodata[:, 1:]
    near = beside[1:] | beside[:-1]
    near[:-1] |= beside[2:]
    return near


def _finish(rings: Rings, edges: Edges, core_from: int, raster: Rows) -> Shapes:
    """Return whole pieces of smoke as shapes.

    What is done with is let go: one plume may hold most of the points of a scene.
    """
    points, offsets, piece, sums = rings.points, rings.offsets, rings.piece, rings.sums
    del rings
    if edges == "pixel":
        points, offsets, piece = split_touching(points, offsets, piece)
    made, owner = linear_rings(points, offsets, piece)
    del points
    outlines = polygons(made, owner)
    del made
    bounds = shapely.bounds(outlines).reshape(-1, 4)
    at_edge = (bounds[:, :2] <= 0).any(axis=1)
    at_edge |= (bounds[:, 2:] >= (raster.width, raster.height)).any(axis=1)
    shapes = Shapes(
        outlines,
        sums.pixels,
        sums.total / sums.pixels / STEPS,
        sums.peak / STEPS,
        at_edge,
        sums.by_nodata,
    )
    return shapes.take(sums.peak >= core_from)


def _joined(found: list[Shapes]) -> Shapes:
    names = [field.name for field in fields(Shapes)]
    return Shapes(*(np.concatenate([getattr(part, name) for part in found]) for name in names))
