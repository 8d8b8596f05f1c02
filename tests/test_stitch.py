"""Tiles join into one map, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smokegeo.probability import NODATA, STEPS
from smokegeo.stitch import FULL, Stitcher
from smokegeo.tiles import Grid


@st.composite
def grids(draw, side=200):
    sides = st.integers(1, side)
    tile = draw(st.integers(8, 128))  # thousands of smaller tiles would show nothing more
    return Grid(draw(sides), draw(sides), tile, draw(st.integers(0, tile - tile // 4 - 1)))


def joined(grid, smoke, valid, first_row=0):
    """Return the map of a network that gives `smoke` cut to the tile; and where it began."""
    stitcher = Stitcher(grid, first_row)
    lines, begin = [], stitcher.top
    for row in range(first_row, len(grid.rows)):
        for tile in grid.row_tiles(row):
            window = np.s_[tile.y.start : tile.y.stop, tile.x.start : tile.x.stop]
            good = valid[window]
            stitcher.add(tile, smoke[window] if good.any() else None, good)
            assert len(stitcher.sums) <= grid.rows[row].stop - grid.rows[row].start
        start, part = stitcher.finish_row()
        assert start == begin + sum(map(len, lines))
        lines.append(part)
    return np.concatenate(lines), begin


def rounded(smoke):
    """The stored value next to a tile's whole number; halves go up."""
    return ((smoke.astype(int) + 128) // 256).astype(np.uint8)


@given(grids(), st.integers(0, FULL))
@settings(max_examples=150, deadline=None)
def test_a_constant_network_gives_that_constant_everywhere(grid, value):
    shape = (grid.height, grid.width)
    found, begin = joined(grid, np.full(shape, value, np.uint16), np.ones(shape, bool))
    assert begin == 0
    assert found.shape == shape
    assert (found == (value + 128) // 256).all()


@given(grids(), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_a_pixelwise_network_gives_its_whole_scene_result_whatever_the_tiling(grid, seed):
    rng = np.random.default_rng(seed)
    smoke = rng.integers(0, FULL + 1, (grid.height, grid.width)).astype(np.uint16)
    valid = rng.random(smoke.shape) < rng.choice([0.0, 0.3, 1.0])
    found, _ = joined(grid, smoke, valid)
    assert (found == np.where(valid, rounded(smoke), NODATA)).all()


@given(grids(), st.data())
@settings(max_examples=60, deadline=None)
def test_work_taken_up_a_row_early_ends_in_the_same_lines(grid, data):
    rng = np.random.default_rng(0)
    smoke = rng.integers(0, FULL + 1, (grid.height, grid.width)).astype(np.uint16)
    valid = np.ones(smoke.shape, bool)
    row = data.draw(st.integers(0, len(grid.rows) - 1))
    whole, _ = joined(grid, smoke, valid)
    part, begin = joined(grid, smoke, valid, max(0, row - 1))
    settled = 0 if row == 0 else grid.settled(row - 1)
    assert (part[settled - begin :] == whole[settled:]).all()


def test_the_ends_of_the_scale_are_the_ends_of_the_stored_values():
    grid = Grid(50, 40, 32, 8)
    every = np.ones((40, 50), bool)
    for value, stored in ((0, 0), (FULL, STEPS), (127, 0), (128, 1)):
        found, _ = joined(grid, np.full(every.shape, value, np.uint16), every)
        assert set(found.flat) == {stored}


def test_neighbours_that_disagree_are_blended_without_a_step():
    grid = Grid(100, 32, 64, 28)
    stitcher = Stitcher(grid)
    for tile, value in zip(grid.row_tiles(0), (0, FULL), strict=True):
        whole = np.full((32, 64), value, np.uint16)
        stitcher.add(tile, whole, np.ones(whole.shape, bool))
    _, lines = stitcher.finish_row()
    profile = lines[0].astype(int)
    assert (lines == lines[0]).all()
    assert (profile[:36], profile[64:]) == (pytest.approx(0), pytest.approx(STEPS))
    assert (np.diff(profile) >= 0).all()
    assert np.diff(profile).max() <= 10  # 250 steps over a ramp of 28 pixels


def test_a_tile_of_another_row_is_refused():
    grid = Grid(10, 100, 32, 8)
    stitcher = Stitcher(grid)
    tile = next(grid.row_tiles(1))
    with pytest.raises(ValueError, match="row 1 came while row 0 is open"):
        stitcher.add(tile, None, np.zeros((32, 10), bool))
