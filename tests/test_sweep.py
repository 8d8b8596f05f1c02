"""A scene is swept tile by tile, and it does not show."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_models import StubEngine, constant, pixelwise, stub_plan, swept
from toy_scenes import scene_of

from smokegeo.probability import NODATA
from smokegeo.scene.scene import Scene
from smokegeo.stitch import FULL
from smokegeo.sweep import sweep


def field(height, width, seed=0):
    """Return two bands of small whole numbers, of which sums are exact."""
    return np.random.default_rng(seed).integers(1, 50, (2, height, width)).astype(np.float32)


layouts = st.tuples(st.integers(1, 90), st.integers(1, 90), st.integers(16, 64), st.integers(0, 12))


@given(layouts, st.integers(0, FULL))
@settings(max_examples=25, deadline=None)
def test_a_constant_network_gives_that_constant_in_every_corner(layout, value):
    height, width, tile, overlap = layout
    plan = stub_plan(scene_of(field(height, width)), tile, overlap)
    found = swept(plan, StubEngine(constant(value), plan.fit.card))
    assert found.shape == (height, width)
    assert (found == (value + 128) // 256).all()


@given(layouts)
@settings(max_examples=25, deadline=None)
def test_a_pixelwise_network_gives_its_own_result_whatever_the_tiling(layout):
    height, width, tile, overlap = layout
    values = field(height, width)
    plan = stub_plan(scene_of(values), tile, overlap)
    found = swept(plan, StubEngine(pixelwise, plan.fit.card))
    assert (found == (pixelwise(values[None])[0].astype(int) + 128) // 256).all()


@given(st.sets(st.integers(1, 6), max_size=4), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_portions_join_to_the_same_bytes(cuts, batch, threads):
    plan = stub_plan(scene_of(field(120, 50)), 24, 8)
    assert len(plan.grid.rows) == 7

    def blurred(tiles):  # looks around, so that rows of tiles depend on their overlap
        return (tiles[:, 0] + np.roll(tiles[:, 1], 3, axis=1)) * 500 + tiles.mean() * 100

    whole = swept(plan, StubEngine(blurred, plan.fit.card))
    engine = StubEngine(blurred, plan.fit.card, batch=batch, threads=threads)
    assert (swept(plan, engine, *sorted(cuts)) == whole).all()


def test_a_portion_sweeps_only_its_rows_and_the_one_before():
    plan = stub_plan(scene_of(field(120, 50)), 24, 8)
    seen = []

    def watch(tiles):
        for tile in tiles:
            seen.append(tile.row)
            yield tile

    engine = StubEngine(pixelwise, plan.fit.card)
    rows = [row for row, _, _ in sweep(plan, engine, 3, 5, watch)]
    assert rows == [3, 4]
    assert sorted(set(seen)) == [2, 3, 4]


def test_every_line_is_given_out_once_and_in_order():
    plan = stub_plan(scene_of(field(100, 30)), 32, 10)
    at = 0
    for number, (row, start, lines) in enumerate(
        sweep(plan, StubEngine(constant(5), plan.fit.card), 0, len(plan.grid.rows))
    ):
        assert (row, start) == (number, at)
        at += len(lines)
    assert at == 100


def test_a_sweep_that_is_given_up_leaves_no_thread_and_no_open_scene(monkeypatch):
    open_now = []
    real = Scene.open

    def counted(scene):
        reader = real(scene)
        open_now.append(reader)
        leave = type(reader).__exit__

        class Counted(type(reader)):
            def __exit__(self, *args):
                open_now.remove(self)
                return leave(self, *args)

        reader.__class__ = Counted
        return reader

    monkeypatch.setattr(Scene, "open", counted)
    plan = stub_plan(scene_of(field(200, 60)), 24, 8)
    before = threading.active_count()
    run = sweep(plan, StubEngine(pixelwise, plan.fit.card, threads=2), 0, len(plan.grid.rows))
    next(run)
    assert open_now
    run.close()
    gc.collect()
    assert not open_now
    assert threading.active_count() == before


def test_what_stops_a_tile_stops_the_sweep():
    def broken(tiles):
        raise RuntimeError("no more")

    plan = stub_plan(scene_of(field(60, 60)))
    with pytest.raises(RuntimeError, match="no more"):
        swept(plan, StubEngine(broken, plan.fit.card))


def test_a_scene_without_valid_pixels_is_all_nodata():
    plan = stub_plan(scene_of(np.full((2, 70, 50), np.nan, np.float32)))
    engine = StubEngine(constant(9), plan.fit.card)
    assert (swept(plan, engine) == NODATA).all()
    assert not engine.batches
