from __future__ import annotations

import numpy as np
import pytest

from smokegeo.outlines.cells import (
    BEND,
    CENTRE,
    LEFT,
    NO_ELBOW,
    RIGHT,
    TOP,
    interpolation,
    routes,
    states,
)

EDGES = pytest.mark.parametrize("edges", ["smooth", "pixel"])


@EDGES
def test_every_way_into_a_cell_leads_out_by_another_side(edges):
    exits, _ = routes(edges)
    for state in range(512):
        smoke = [state >> bit & 1 for bit in range(4)]
        entries = [side for side in range(4) if smoke[side] and not smoke[(side + 1) % 4]]
        leaving = [side for side in range(4) if not smoke[side] and smoke[(side + 1) % 4]]
        assert sorted(exits[state, entries].tolist()) == leaving


def state_of(top_left, top_right, bottom_right, bottom_left, smoke_from=125):
    values = np.array([top_left, top_right, bottom_left, bottom_right], np.uint8)
    smoke = (values >= smoke_from) & (values <= 250)
    return states(values, smoke, np.array([0]), 2, smoke_from)[0]


def test_a_saddle_is_joined_only_where_its_mean_is_smoke_and_all_is_analysed():
    exits, _ = routes("smooth")
    assert exits[state_of(250, 124, 250, 124), TOP] == RIGHT
    assert exits[state_of(250, 0, 130, 0), TOP] == LEFT
    assert exits[state_of(250, 255, 250, 124), TOP] == LEFT
    assert routes("pixel")[0][state_of(250, 124, 250, 124), TOP] == LEFT


def test_elbows_are_where_a_straight_line_would_cut_into_nodata():
    _, elbows = routes("smooth")
    assert elbows[state_of(250, 255, 250, 250), TOP] == BEND
    assert elbows[state_of(250, 0, 255, 250), TOP] == CENTRE
    assert elbows[state_of(250, 255, 255, 250), TOP] == NO_ELBOW
    assert elbows[state_of(250, 0, 0, 255), TOP] == BEND
    assert elbows[state_of(250, 0, 255, 0), TOP] == NO_ELBOW
    assert elbows[state_of(250, 0, 0, 0), TOP] == NO_ELBOW


@pytest.mark.parametrize("smoke_from", [1, 125, 250])
def test_crossings_lie_strictly_between_and_on_the_pixel_edge_beside_nodata(smoke_from):
    share = interpolation(smoke_from)
    between = share[:smoke_from, smoke_from:251]
    assert between.min() > 0.001
    assert between.max() < 0.999
    np.testing.assert_allclose(between + share[smoke_from:251, :smoke_from].T, 1)
    assert (share[smoke_from:251, 255] == 0.5).all()
    assert (share[255, smoke_from:251] == 0.5).all()
