"""Tiles cover a scene exactly once, by weight."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smokegeo.errors import UsageError
from smokegeo.tiles import WEIGHT, Grid, spans

lengths = st.integers(1, 3000)
tiles = st.integers(1, 600)


@st.composite
def layouts(draw):
    tile = draw(tiles)
    return draw(lengths), tile, draw(st.integers(0, tile - 1))


@given(layouts())
@settings(max_examples=300, deadline=None)
def test_the_weights_of_every_pixel_sum_to_one(layout):
    length, tile, overlap = layout
    total = np.zeros(length, np.int64)
    for span in spans(length, tile, overlap):
        total[span.used_start : span.used_stop] += span.weights
    assert (total == WEIGHT).all()


@given(layouts())
@settings(max_examples=300, deadline=None)
def test_tiles_stay_inside_the_scene_and_use_only_what_they_see(layout):
    length, tile, overlap = layout
    for span in spans(length, tile, overlap):
        assert 0 <= span.start <= span.used_start < span.used_stop <= span.stop <= length
        assert span.stop - span.start == min(tile, length)
        assert len(span.weights) == span.used_stop - span.used_start


@given(layouts())
@settings(max_examples=300, deadline=None)
def test_no_weight_is_zero_and_the_border_is_decided_by_one_tile(layout):
    length, tile, overlap = layout
    found = spans(length, tile, overlap)
    assert all((span.weights > 0).all() and (span.weights <= WEIGHT).all() for span in found)
    assert found[0].weights[0] == WEIGHT
    assert found[-1].weights[-1] == WEIGHT


@given(layouts())
@settings(max_examples=300, deadline=None)
def test_neighbours_overlap_at_least_as_asked_and_none_is_superfluous(layout):
    length, tile, overlap = layout
    found = spans(length, tile, overlap)
    for left, right in pairwise(found):
        assert left.stop - right.start >= overlap
    if len(found) > 1:  # one tile fewer could not cover the scene
        assert (len(found) - 1) * (tile - overlap) + overlap < length


@given(layouts())
@settings(max_examples=200, deadline=None)
def test_at_most_two_tiles_share_a_pixel(layout):
    length, tile, overlap = layout
    sharing = np.zeros(length, int)
    for span in spans(length, tile, overlap):
        sharing[span.used_start : span.used_stop] += 1
    assert sharing.max() <= 2


def test_a_pixel_near_a_tile_edge_is_decided_by_the_tile_that_sees_more_around_it():
    first, second = spans(20, 12, 4)
    assert (first.stop, second.start) == (12, 8)
    assert (first.used_stop, second.used_start) == (12, 8)
    first, second = spans(14, 12, 4)  # they overlap by ten, but hand over in the middle
    assert (second.start, first.stop) == (2, 12)
    assert (second.used_start, first.used_stop) == (5, 9)


def test_a_small_scene_is_one_tile_of_its_own_size():
    grid = Grid(3, 1, 512, 128)
    assert len(grid) == 1
    (tile,) = grid.row_tiles(0)
    assert (tile.x.stop, tile.y.stop) == (3, 1)


def test_lines_are_settled_when_no_later_tile_touches_them():
    grid = Grid(10, 20, 12, 4)
    assert [grid.settled(row) for row in range(len(grid.rows))] == [8, 20]


@pytest.mark.parametrize(("tile", "overlap"), [(0, 0), (-1, 0), (4, 4), (4, 5), (4, -1)])
def test_impossible_tilings_are_refused(tile, overlap):
    with pytest.raises(UsageError):
        Grid(10, 10, tile, overlap)
