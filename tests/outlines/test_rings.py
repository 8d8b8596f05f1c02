from __future__ import annotations

import numpy as np
import pytest
import shapely

from smokegeo.outlines.rings import drop_straight, linear_rings, polygons, split_touching


def packed(*rings):
    return np.concatenate([np.array(ring, float) for ring in rings]), np.cumsum(
        [0, *map(len, rings)]
    )


SQUARE = [(0, 0), (9, 0), (9, 9), (0, 9)]
SMALL = [(20, 0), (21, 0), (21, 1), (20, 1)]


def test_vertices_within_level_and_upright_sides_go_also_over_the_start():
    ring = [(0, 4), (0, 0), (2, 0), (5, 0), (9, 0), (9, 9), (4.5, 9), (0, 9), (0, 6)]
    points, offsets = drop_straight(*packed(ring, SMALL))
    assert offsets.tolist() == [0, 4, 8]
    assert sorted(map(tuple, points[:4].tolist())) == sorted(SQUARE)
    assert points[4:].tolist() == [list(p) for p in SMALL]


def test_a_ring_that_comes_back_to_a_vertex_is_cut_there():
    eight = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (1, 2), (1, 1), (0, 1)]
    points, offsets, piece = split_touching(*packed(SMALL, eight), np.array([5, 7]))
    assert offsets.tolist() == [0, 4, 8, 12]
    assert piece.tolist() == [5, 7, 7]
    areas = [shapely.Polygon(points[a : a + 4]).area for a in offsets[:-1]]
    assert areas == [1, 1, 1]


def test_two_rings_that_share_a_vertex_stay_as_they_are():
    other = [(9, 9), (10, 9), (10, 10), (9, 10)]
    points, offsets = packed(SQUARE, other)
    assert split_touching(points, offsets, np.array([0, 1]))[1].tolist() == [0, 4, 8]


@pytest.mark.parametrize("batch", [1, 6, 200_000])
def test_polygons_have_the_same_bytes_wherever_their_rings_begin(batch, monkeypatch):
    monkeypatch.setattr("smokegeo.outlines.rings._BATCH_POINTS", batch)
    hole, late = [(2, 2), (2, 3), (3, 3), (3, 2)], [(2, 5), (2, 6), (3, 6), (3, 5)]
    made = set()
    for turn in range(4):
        rings = [late, SMALL, hole, SQUARE]
        turned = [np.roll(ring, turn, axis=0) for ring in rings]
        outlines = polygons(*linear_rings(*packed(*turned), np.array([0, 1, 0, 0])))
        made.add(tuple(shapely.to_wkt(outlines, rounding_precision=0)))
    assert made == {
        (
            "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (2 2, 2 3, 3 3, 3 2, 2 2), "
            "(2 5, 2 6, 3 6, 3 5, 2 5))",
            "POLYGON ((20 0, 21 0, 21 1, 20 1, 20 0))",
        )
    }


def test_nothing_gives_no_polygons():
    rings = linear_rings(np.zeros((0, 2)), np.array([0]), np.zeros(0, np.int64))
    assert len(polygons(*rings)) == 0
