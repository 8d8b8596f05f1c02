"""Unfinished work survives if asked to, and is only taken up by the run it belongs to."""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import contextmanager

import numpy as np
import pytest

from smokegeo.errors import OutputError
from smokegeo.scene.layers import Box
from smokegeo.work import open_work, work_path

PRINT = {"model": "abc", "tiles": [64, 16], "scene": [["a.tif", 5, 6, "00"]]}
LINES = np.arange(50, dtype=np.uint8).reshape(5, 10)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "smoke.gpkg"


@contextmanager
def broken_off(out, fingerprint=PRINT, *, resume=True):
    """Yield work that is interrupted at the end of the block."""
    try:
        with open_work(out, 10, 8, fingerprint, resume=resume) as work:
            yield work
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass


def interrupted(out, fingerprint=PRINT, rows=2):
    """Leave work behind: the first lines of two rows of tiles."""
    with broken_off(out, fingerprint) as work:
        work.raster.write(0, LINES)
        work.save(rows)


def taken_up(out, caplog, fingerprint=PRINT):
    """Return how far the work is taken to be done, and what was said; leave it as it is."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "smokegeo"), broken_off(out, fingerprint) as work:
        rows = work.rows_done
    return rows, [record.getMessage() for record in caplog.records]


def test_lines_come_back_in_any_order_of_writing(out):
    with open_work(out, 10, 8, PRINT, resume=False) as work:
        work.raster.write(3, LINES)
        work.raster.write(0, LINES[:3] + 100)
        assert (work.raster.rows(0, 8) == np.concatenate([LINES[:3] + 100, LINES])).all()
        assert (work.raster.rows(4, 5) == LINES[1]).all()
        assert work.raster.rows(2, 2).shape == (0, 10)
        work.raster.write(4, LINES[:1])
        assert (work.raster.rows(3, 5) == LINES[0]).all()


@pytest.mark.parametrize("resume", [False, True])
def test_nothing_is_left_of_finished_work(out, resume):
    with open_work(out, 10, 8, PRINT, resume=resume) as work:
        work.raster.write(0, LINES)
        work.save(1)
        assert work.folder.parent == out.parent
        assert work.folder.is_dir()
    assert list(out.parent.iterdir()) == []


def test_interrupted_work_is_removed_unless_it_is_to_be_resumed(out):
    with broken_off(out, resume=False) as work:
        work.save(1)
        assert work.folder.is_dir()
    assert list(out.parent.iterdir()) == []


def test_interrupted_work_is_taken_up_where_it_stopped(out):
    interrupted(out)
    assert work_path(out).is_dir()
    with open_work(out, 10, 8, PRINT, resume=True) as work:
        assert work.rows_done == 2
        assert (work.raster.rows(0, 5) == LINES).all()
    assert not work_path(out).exists()


def test_lines_that_were_never_noted_as_done_do_not_count(out, caplog):
    with broken_off(out) as work:
        work.raster.write(0, LINES)
    assert taken_up(out, caplog) == (0, [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "xyz"}, "(model)"),
        ({"tiles": [32, 16]}, "(tiles)"),
        ({"scene": [["a.tif", 5, 7, "00"]], "model": "xyz"}, "(model, scene)"),
        ({"new": 1}, "(new)"),
    ],
)
def test_the_work_of_another_run_is_not_taken_up(out, change, reason, caplog):
    interrupted(out)
    rows, said = taken_up(out, caplog, {**PRINT, **change})
    assert rows == 0
    assert said == [f"{work_path(out)} is of another run {reason}; starting afresh"]


def test_tuples_and_lists_are_the_same_in_a_fingerprint(out, caplog):
    interrupted(out, {"tiles": (64, 16), "x": (1, (2, None))})
    assert taken_up(out, caplog, {"tiles": [64, 16], "x": [1, [2, None]]}) == (2, [])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rows_done": 2}', "null", "\udcff"])
def test_a_damaged_journal_means_starting_afresh(out, text, caplog):
    interrupted(out)
    (work_path(out) / "journal.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    rows, said = taken_up(out, caplog)
    assert rows == 0
    assert said == [f"{work_path(out)} is damaged; starting afresh"]


def test_a_map_cut_short_means_starting_afresh(out, caplog):
    interrupted(out)
    raster = work_path(out) / "probability.bin"
    raster.write_bytes(raster.read_bytes()[:-1])
    assert taken_up(out, caplog) == (0, [f"{work_path(out)} is damaged; starting afresh"])


def test_the_journal_is_written_only_after_the_lines(out):
    interrupted(out)
    journal = json.loads((work_path(out) / "journal.json").read_text("utf-8"))
    assert journal == {"rows_done": 2, "bytes": 50, "damaged": [], "fingerprint": PRINT}


def test_two_runs_do_not_share_a_folder(out):
    with (
        open_work(out, 10, 8, PRINT, resume=True),
        pytest.raises(OutputError, match="another smokegeo run"),
        open_work(out, 10, 8, PRINT, resume=True),
    ):
        pass
    with open_work(out, 10, 8, PRINT, resume=True) as work:  # free again
        assert work.rows_done == 0


def test_a_file_in_the_way_is_said(out):
    work_path(out).write_text("mine")
    with (
        pytest.raises(OutputError, match="cannot be made"),
        open_work(out, 10, 8, PRINT, resume=True),
    ):
        pass
    assert work_path(out).read_text() == "mine"


def test_blocks_that_could_not_be_read_are_remembered(out):
    first, second = (0, Box(64, 0, 64, 64)), (1, Box(0, 128, 64, 64))
    with broken_off(out) as work:
        work.raster.write(0, LINES)
        work.save(1, {first})
    with broken_off(out) as work:
        work.save(2, {second, first})
    with open_work(out, 10, 8, PRINT, resume=True) as work:
        assert work.damaged == {first, second}


def test_an_output_may_have_as_long_a_name_as_there_is_room_for(tmp_path):
    with open_work(tmp_path / f"{'x' * 250}.gpkg", 10, 8, PRINT, resume=False) as work:
        assert work.folder.parent == tmp_path
        assert len(work.folder.name) < 50


def left_by_a_killed_run(out, age_s=60.0):
    """Make a hidden folder of unfinished work that nobody uses any more."""
    with open_work(out, 10, 8, PRINT, resume=False) as work:
        folder = work.folder
    folder.mkdir()
    (folder / "lock").touch()
    (folder / "probability.bin").write_bytes(bytes(80))
    old = time.time() - age_s
    os.utime(folder, (old, old))
    return folder


@pytest.mark.parametrize("resume", [False, True])
def test_the_next_run_for_an_output_clears_away_what_a_killed_one_left(out, resume):
    stale = left_by_a_killed_run(out)
    other = left_by_a_killed_run(out.with_name("other.gpkg"))
    with open_work(out, 10, 8, PRINT, resume=resume):
        assert not stale.exists()
    assert other.exists()
    assert [path.name for path in out.parent.iterdir()] == [other.name]


def test_work_of_a_run_that_is_still_going_on_is_left_alone(out):
    with open_work(out, 10, 8, PRINT, resume=False) as going_on:
        going_on.raster.write(0, LINES)
        old = time.time() - 3600
        os.utime(going_on.folder, (old, old))
        with open_work(out, 10, 8, PRINT, resume=False) as other:
            assert other.folder != going_on.folder
        assert (going_on.raster.rows(0, 5) == LINES).all()
        assert going_on.folder.exists()


def test_a_folder_that_a_run_is_about_to_lock_is_left_alone(out):
    young = left_by_a_killed_run(out, age_s=0)
    with open_work(out, 10, 8, PRINT, resume=False):
        assert young.exists()


def test_interrupted_work_that_can_be_resumed_is_not_cleared_away(out):
    interrupted(out)
    with open_work(out, 10, 8, PRINT, resume=False):
        pass
    assert work_path(out).exists()
