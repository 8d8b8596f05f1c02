"""How an outline runs through one cell, the square between four neighbouring pixel centres.

All that decides it is in the cell's own four values. Corners and sides are counted clockwise from
the top left and the top; side k lies between corners k and k + 1. Outlines keep smoke on their
right, so one enters by a side whose corner k is smoke and whose corner k + 1 is not.

Not-analysed pixels are a wall along their pixel edges. A straight line through a cell that has one
at a corner could cut into it, hence it gets an elbow.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smokegeo.probability import STEPS

Edges = Literal["smooth", "pixel"]
Ints = NDArray[np.int64]

TOP, RIGHT, BOTTOM, LEFT = range(4)
#: An elbow's place: level with the crossings before and after it, or the centre of the cell.
NO_ELBOW, BEND, CENTRE = range(3)
_SADDLES = (0b0101, 0b1010)


def states(
    values: NDArray[np.uint8], smoke: NDArray[np.bool_], cell: Ints, width: int, smoke_from: int
) -> NDArray[np.uint16]:
    """Return per cell: smoke corners (4 bits), not-analysed corners (4 bits), mean is smoke (1).

    Args:
        values: stored values of a grid `width` wide, row after row.
        smoke: which of them are smoke.
        cell: the cells, each given by the place of its top left corner.
        width: columns of the grid.
        smoke_from: smallest stored value that is smoke.
    """
    state = np.zeros(cell.size, np.uint16)
    total = np.zeros(cell.size, np.int16)
    for bit, step in enumerate((0, 1, width + 1, width)):
        corner = values[cell + step]
        state |= smoke[cell + step].astype(np.uint16) << bit
        state |= (corner > STEPS).astype(np.uint16) << (bit + 4)
        total += corner
    state |= (total > 4 * smoke_from - 2).astype(np.uint16) << 8
    return state


@cache
def routes(edges: Edges) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return by state and side of entry: the side of exit, and the elbow on the way.

    Smoke at two opposite corners is one area if the mean of the four is smoke too, the rule of
    contourpy; never with pixel edges, nor beside a wall.
    """
    exits = np.zeros((512, 4), np.uint8)
    elbows = np.zeros((512, 4), np.uint8)
    for state in range(512):
        smoke = [bool(state >> bit & 1) for bit in range(4)]
        wall = [bool(state >> bit & 1) for bit in range(4, 8)]
        saddle = state & 15 in _SADDLES
        joined = saddle and state >= 256 and not any(wall) and edges == "smooth"
        for side in range(4):
            left, far, right = (side + 1) % 4, (side + 2) % 4, (side + 3) % 4
            if joined or (smoke[right] and smoke[far]):  # around the corner that is not smoke
                leave, elbow = left, BEND if wall[left] else NO_ELBOW
            elif smoke[right]:  # straight on
                leave, elbow = far, CENTRE if wall[left] != wall[far] else NO_ELBOW
            else:  # around the corner of smoke
                bent = (wall[left] or wall[right]) and not saddle
                leave, elbow = right, BEND if bent else NO_ELBOW
            if edges == "pixel":
                elbow = NO_ELBOW if leave == far else CENTRE
            exits[state, side], elbows[state, side] = leave, elbow
    return exits, elbows


@cache
def interpolation(smoke_from: int) -> NDArray[np.float64]:
    """Return where, from 0 to 1, an outline crosses between two stored values.

    The level is half a step below the first smoke value, so that no value lies on it. Beside a wall
    it is half way, on the pixel edge.
    """
    value = np.arange(256.0)
    gap = value[None, :] - value[:, None]
    gap[gap == 0] = 1  # never asked for
    share: NDArray[np.float64] = (smoke_from - 0.5 - value[:, None]) / gap
    share[STEPS + 1 :] = 0.5
    share[:, STEPS + 1 :] = 0.5
    return share
