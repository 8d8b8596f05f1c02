from __future__ import annotations

import numpy as np

from smokegeo.outlines.contours import trace
from smokegeo.outlines.seams import Seams

COMB = np.array(  # teeth that only meet in the last row
    [
        [255, 255, 255, 255, 255, 255, 255],
        [255, 200, 0, 210, 0, 220, 255],
        [255, 200, 0, 200, 0, 200, 255],
        [255, 200, 0, 200, 0, 200, 255],
        [255, 200, 200, 200, 200, 200, 255],
        [255, 255, 255, 255, 255, 255, 255],
    ],
    np.uint8,
)


def strips(nodes, seams):
    width = nodes.shape[1]
    for row in range(len(nodes) - 1):
        chains = trace(nodes[row : row + 2], row, 125, "pixel", None)
        yield seams.add(chains, (row + 1) * width)


def test_a_piece_is_given_out_once_when_its_last_strip_is_in():
    given = list(strips(COMB, Seams()))
    assert [rings.sums.pixels.tolist() for rings in given] == [[], [], [], [], [14]]
    assert given[-1].sums.peak.tolist() == [220]
    assert given[-1].sums.total.tolist() == [14 * 200 + 30]
    assert np.diff(given[-1].offsets).tolist() == [12]


def test_pieces_that_end_earlier_are_given_out_earlier_with_their_holes():
    nodes = np.full((8, 5), 255, np.uint8)
    nodes[1:4, 1:4] = 200
    nodes[2, 2] = 0
    nodes[6, 2] = 150
    given = list(strips(nodes, Seams()))
    assert [rings.sums.pixels.tolist() for rings in given] == [[], [], [], [8], [], [], [1]]
    assert given[3].piece.tolist() == [0, 0]


def test_a_turned_comb_joins_at_once_and_parts_below():
    given = list(strips(COMB[::-1].copy(), Seams()))
    assert [rings.sums.pixels.tolist() for rings in given] == [[], [], [], [], [14]]
