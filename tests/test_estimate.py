"""The cost is told before it is paid."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from toy_models import StubEngine, constant, toy_card
from toy_scenes import scene_of

from smokegeo.errors import InputError
from smokegeo.estimate import Estimate, estimate, refuse_unpayable
from smokegeo.tiles import Grid

CARD = toy_card("mss")


def engine(seconds=0.0, **effort):
    def slow(tiles):
        time.sleep(seconds)
        return constant(1)(tiles)

    return StubEngine(slow, CARD, **effort)


def scene(width=1000, height=500):
    return scene_of(np.broadcast_to(np.uint16(1), (4, height, width)), "mss")


def test_time_is_that_of_one_tile_times_their_number_over_the_threads():
    grid = Grid(1000, 500, 100, 0)
    assert len(grid) == 50
    alone = estimate(scene(), grid, engine(0.02))
    assert alone.tiles == 50
    assert 1.0 <= alone.seconds < 3.0
    assert alone.seconds / 2 == pytest.approx(
        estimate(scene(), grid, engine(0.02, threads=2)).seconds, rel=0.5
    )


def test_a_tile_is_timed_as_it_will_run_and_torch_is_left_as_it_was():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        one = engine(threads=2)
        estimate(scene(), Grid(1000, 500, 100, 0), one)
        assert one.torch_threads == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_timed_tile_has_the_size_of_the_real_ones():
    for grid, shape in ((Grid(1000, 500, 128, 32), (128, 128)), (Grid(40, 500, 128, 0), (128, 40))):
        one = engine()
        estimate(scene(), grid, one)
        assert {tiles.shape for tiles in one.batches} == {(1, 4, *shape)}


def test_a_huge_tile_is_refused_before_it_takes_the_memory(monkeypatch):
    monkeypatch.setattr("smokegeo.estimate._physical_memory", lambda: 8 * 10**9)
    one, size = engine(0.001), (20_000, 20_000)
    cost = estimate(scene(*size), Grid(*size, 20_000, 0), one)
    assert {tiles.shape for tiles in one.batches} == {(1, 4, 512, 512)}
    assert cost.seconds >= 0.001 * (20_000 / 512) ** 2
    with pytest.raises(InputError, match="GB of memory"):
        refuse_unpayable(scene(*size), cost)


def test_memory_grows_with_tile_threads_and_batch_but_hardly_with_the_scene():
    def memory(tile=256, size=(1000, 1000), **effort):
        grid = Grid(*size, tile, 0)
        return estimate(scene(*size), grid, engine(**effort)).memory_bytes

    assert memory(512) > memory(256)
    assert memory(threads=8) > memory(threads=1)
    assert memory(batch=8) > 2 * memory(batch=1) - 500_000_000
    assert memory(size=(1000, 50_000)) == memory(size=(1000, 1000))


def test_disk_grows_with_the_scene():
    assert estimate(scene(), Grid(1000, 500, 256, 0), engine()).disk_bytes == 1_000_000


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Estimate(3, 0.2, 5, 520_000_000), "3 tiles, about 1 s, 1 MB of disk and 520 MB of memory"),
        (Estimate(9, 89.4, 2 * 10**9, 10**9), "9 tiles, about 89 s, 2.0 GB of disk and 1.0 GB"),
        (Estimate(9, 600, 10**6, 10**6), "about 10 min"),
        (Estimate(9, 7200, 10**6, 10**6), "about 2 h"),
        (Estimate(9, 5 * 86_400, 3 * 10**12, 10**6), "about 5 days, 3.0 TB of disk"),
    ],
)
def test_the_cost_is_told_as_people_say_it(cost, words):
    assert words in cost.words()


def test_half_a_day_or_all_of_the_memory_needs_the_user_s_word(monkeypatch):
    monkeypatch.setattr("smokegeo.estimate._physical_memory", lambda: 8 * 10**9)
    refuse_unpayable(scene(), Estimate(10, 11 * 3600, 1, 10**9))
    for cost in (Estimate(10, 13 * 3600, 1, 10**9), Estimate(10, 60, 1, 8 * 10**9)):
        with pytest.raises(InputError, match=r"array is 1000 x 500 pixels: 10 tiles.*--yes\."):
            refuse_unpayable(scene(), cost)
    monkeypatch.setattr("smokegeo.estimate._physical_memory", lambda: None)
    refuse_unpayable(scene(), Estimate(10, 60, 1, 10**15))


def test_memory_is_that_of_the_tiles_there_are():
    one = estimate(scene(100, 100), Grid(100, 100, 100, 0), engine(threads=8)).memory_bytes
    many = estimate(scene(1000, 1000), Grid(1000, 1000, 100, 0), engine(threads=8)).memory_bytes
    assert one < many < 2 * one
    assert one < 0.8e9  # no scene takes less: torch alone is most of it
