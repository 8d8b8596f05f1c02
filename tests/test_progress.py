"""Progress: nothing when quiet, plain lines in a log, a bar on a terminal; never in the way."""

import logging

import pytest

from smokegeo import progress
from smokegeo.progress import track


@pytest.fixture
def quiet(caplog):
    caplog.set_level(logging.WARNING, logger="smokegeo")


@pytest.fixture
def talking(caplog):
    caplog.set_level(logging.INFO, logger="smokegeo")


class Terminal:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


@pytest.mark.usefixtures("quiet")
def test_says_nothing_when_quiet_even_on_a_terminal(caplog, capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(track(range(5), "Tiles")) == [0, 1, 2, 3, 4]
    assert (terminal.text, caplog.messages) == ("", [])
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("talking")
class TestTalking:
    def test_one_plain_line_for_short_work(self, caplog, capsys):
        assert list(track(range(5), "Tiles", total=5)) == [0, 1, 2, 3, 4]
        assert caplog.messages == ["Tiles: 5 done"]
        assert capsys.readouterr() == ("", "")

    def test_a_line_now_and_then_for_long_work(self, caplog, monkeypatch):
        clock = iter(range(0, 1000, 4))  # four seconds per look at the clock
        monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
        list(track(range(6), "Tiles", total=6))
        assert caplog.messages == ["Tiles: 3 of 6", "Tiles: 6 of 6", "Tiles: 6 done"]

    def test_a_total_need_not_be_known(self, caplog, monkeypatch):
        monkeypatch.setattr(progress, "_PLAIN_EVERY_S", 0.0)
        assert list(track(iter("ab"), "Frames")) == ["a", "b"]
        assert caplog.messages == ["Frames: 1", "Frames: 2", "Frames: 2 done"]

    def test_no_items_at_all(self, caplog):
        assert list(track([], "Frames", total=0)) == []
        assert caplog.messages == ["Frames: 0 done"]

    def test_items_are_taken_one_at_a_time(self):
        taken = []
        items = track((taken.append(i) or i for i in range(3)), "Tiles")
        next(items)
        assert taken == [0]

    def test_an_error_while_working_is_passed_on(self, caplog):
        def broken():
            yield 1
            raise RuntimeError("boom")

        with pytest.raises(RuntimeError, match="boom"):
            list(track(broken(), "Tiles"))
        assert caplog.messages == []

    def test_a_bar_on_a_terminal(self, caplog, capsys, monkeypatch):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        assert list(track(range(3), "Tiles", total=3)) == [0, 1, 2]
        assert "Tiles" in terminal.text
        assert "3/3" in terminal.text
        assert caplog.messages == []
        assert capsys.readouterr().out == ""
