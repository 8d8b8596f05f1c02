"""Signals, kills, full disks and two runs at once: an output is there and whole, or not there."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from faults.judging import contents
from faults.scenes import cube, plume, write_scene

pytestmark = pytest.mark.slow

SIZE = (300, 300)
TILES = 36
SERVER = Path(__file__).with_name("forking.py")


@dataclass
class Run:
    """A run of `smokegeo predict` in a process of its own."""

    server: subprocess.Popen[str]
    pid: int
    log: Path
    started: Path

    def wait_for_work(self) -> None:
        """Return when tiles are being worked on."""
        until = time.monotonic() + 20
        while not self.started.exists():
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.002)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Return the exit code, negative for a signal that killed it."""
        return ask(self.server, {"wait": self.pid})

    @property
    def said(self) -> str:
        return self.log.read_text()


def ask(server: subprocess.Popen[str], order: dict[str, object]) -> int:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(order) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


@pytest.fixture
def begin(server, model, tmp_path):
    """Return a function that begins a run and returns at once."""
    number = 0

    def call(*args: object, seconds: float = 0.02, **order: object) -> Run:
        nonlocal number
        number += 1
        state = tmp_path / "state"
        state.mkdir(exist_ok=True)
        log, started = state / f"{number}.log", state / f"{number}.started"
        full = ["predict", *map(str, args), "--model", str(model), "--threads", "2"]
        pid = ask(
            server,
            {"args": full, "seconds": seconds, "log": str(log), "started": str(started), **order},
        )
        return Run(server, pid, log, started)

    return call


@pytest.fixture
def scene(tmp_path) -> Path:
    return write_scene(tmp_path / "scene.tif", plume(SIZE))


@pytest.fixture
def out(tmp_path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def whole(begin, scene: Path, folder: Path, *options: object, suffix: str = ".gpkg") -> str:
    """Return the checksum of an uninterrupted result."""
    folder.mkdir(exist_ok=True)
    run = begin(scene, "--out", folder / f"smoke{suffix}", *options, seconds=0.0)
    assert run.wait() == 0, run.said
    return contents(folder)[f"smoke{suffix}"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_cleans_up_and_says_how_to_go_on(number, code, begin, scene, out) -> None:
    """Rows 43 and 44."""
    run = begin(scene, "--out", out / "smoke.gpkg", "--prob", out / "p.tif")
    run.wait_for_work()
    assert contents(out)  # there is something to clean up
    run.send(number)
    assert run.wait() == code, run.said
    assert f"of {TILES} tiles; nothing was kept; with --resume it could go on" in run.said
    assert "Traceback" not in run.said
    assert contents(out) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("suffix", [".gpkg", ".geojson"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(
    number, suffix, begin, scene, out, tmp_path
) -> None:
    expected = whole(begin, scene, tmp_path / "whole", suffix=suffix)
    target = out / f"smoke{suffix}"
    run = begin(scene, "--out", target, "--resume")
    run.wait_for_work()
    while not (out / f"smoke{suffix}.work" / "journal.json").exists():
        time.sleep(0.005)
    run.send(number)
    assert run.wait() != 0
    assert not target.exists()
    assert [p.name for p in out.iterdir()] == [f"smoke{suffix}.work"]
    if number != signal.SIGKILL:
        assert "run the same command again" in run.said
    again = begin(scene, "--out", target, "--resume", seconds=0.0)
    assert again.wait() == 0, again.said
    assert "going on after" in again.said
    found = contents(out)
    assert found.pop(f"smoke{suffix}") == expected
    assert set(found) <= {"smoke.qml"}  # the work is gone


def test_another_scene_or_setting_starts_afresh_and_says_why(begin, scene, out, tmp_path) -> None:
    run = begin(scene, "--out", out / "smoke.gpkg", "--resume")
    run.wait_for_work()
    while not (out / "smoke.gpkg.work" / "journal.json").exists():
        time.sleep(0.005)
    run.send(signal.SIGKILL)
    run.wait()
    write_scene(scene, np.flipud(plume(SIZE)))
    expected = whole(begin, scene, tmp_path / "whole")
    again = begin(scene, "--out", out / "smoke.gpkg", "--resume", seconds=0.0)
    assert again.wait() == 0, again.said
    assert "is of another run (scene); starting afresh" in again.said
    assert contents(out) == {"smoke.gpkg": expected}


@pytest.mark.parametrize("suffix", [".gpkg", ".geojson"])
def test_killed_at_any_moment_the_output_is_absent_or_whole(
    suffix, begin, scene, out, tmp_path
) -> None:
    """Row 45; ten times each."""
    options = ("--prob", tmp_path / "whole" / "p.tif")
    expected = whole(begin, scene, tmp_path / "whole", *options, suffix=suffix)
    expected_prob = contents(tmp_path / "whole")["p.tif"]
    rng = random.Random(suffix)
    target, prob = out / f"smoke{suffix}", out / "p.tif"
    outcomes = set()
    trial = begin(scene, "--out", target, "--prob", prob)
    trial.wait_for_work()
    started = time.monotonic()
    assert trial.wait() == 0
    lasts = time.monotonic() - started
    for moment in [rng.uniform(0, 1.05 * lasts) for _ in range(6)] + [
        rng.uniform(0.75, 1.02) * lasts for _ in range(4)
    ]:
        for path in out.iterdir():
            if path.is_file():
                path.unlink()
        run = begin(scene, "--out", target, "--prob", prob)
        run.wait_for_work()
        time.sleep(moment)
        run.send(signal.SIGKILL)
        assert run.wait() in (-signal.SIGKILL, 0)
        found = contents(out)
        assert found.get(target.name, expected) == expected
        assert found.get("p.tif", expected_prob) == expected_prob
        outcomes.add(target.name in found)
    assert False in outcomes  # or the clock is wrong
    # What a kill leaves behind does not stand in the way of the next run.
    final = begin(scene, "--out", target, "--prob", prob, "--overwrite", seconds=0.0)
    assert final.wait() == 0, final.said
    assert contents(out)[target.name] == expected
    assert not list(out.glob(".smokegeo-*"))  # half-written files


def test_two_runs_on_one_output_leave_one_whole_result(begin, scene, out, tmp_path) -> None:
    """Row 46: the last complete one."""
    other = write_scene(tmp_path / "other" / "scene.tif", np.fliplr(plume(SIZE)))
    expected = {
        whole(begin, scene, tmp_path / "one", suffix=".geojson"),
        whole(begin, other, tmp_path / "two", suffix=".geojson"),
    }
    assert len(expected) == 2
    for _ in range(3):
        target = ("--out", out / "smoke.geojson", "--overwrite")
        runs = [begin(path, *target, seconds=0.005) for path in (scene, other)]
        assert [run.wait() for run in runs] == [0, 0], runs[0].said + runs[1].said
        found = contents(out)
        assert found["smoke.geojson"] in expected
        assert set(found) == {"smoke.geojson", "smoke.qml"}


def test_two_runs_that_resume_one_work_do_not_mix(begin, scene, out) -> None:
    first = begin(scene, "--out", out / "smoke.gpkg", "--resume", seconds=0.05)
    first.wait_for_work()
    second = begin(scene, "--out", out / "smoke.gpkg", "--resume")
    assert second.wait() == 5, second.said
    (line,) = [line for line in second.said.splitlines() if line.startswith("Error:")]
    assert "another smokegeo run is using" in line
    assert first.wait() == 0, first.said
    assert list(contents(out)) == ["smoke.gpkg"]


@pytest.mark.parametrize("resume", [False, True], ids=["once", "resumable"])
@pytest.mark.parametrize(
    ("limit_bytes", "suffix", "options"),
    [
        (1_000, ".gpkg", ()),
        (50_000, ".geojson", ()),
        (95_000, ".gpkg", ()),
        (95_000, ".geojson", ()),
        (95_000, ".fgb", ()),
        (95_000, ".parquet", ()),
        (95_000, ".geojson", ("--prob",)),
    ],
)
def test_a_full_disk_is_said_and_leaves_nothing(
    limit_bytes, suffix, options, resume, begin, out, tmp_path
) -> None:
    """Row 42: files may not grow beyond a limit, as on a full disk."""
    smoke = np.random.default_rng(0).random(SIZE) < 0.3
    scene = write_scene(tmp_path / "scene.tif", cube(smoke))
    more = ["--prob", out / "p.tif"] if options else []
    more += ["--resume"] if resume else []
    run = begin(scene, "--out", out / f"smoke{suffix}", *more, seconds=0.0, limit_bytes=limit_bytes)
    assert run.wait() == 5, run.said
    lines = [line for line in run.said.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1, run.said
    assert "Traceback" not in run.said
    left = {name for name in contents(out) if not name.startswith(f"smoke{suffix}.work")}
    assert left == set()
    if not resume:
        assert contents(out) == {}


def test_the_real_program_ends_on_sigterm(model, tmp_path, out) -> None:
    """The installed command with the real network, no stand-in anywhere."""
    scene = write_scene(tmp_path / "scene.tif", plume((900, 900)))
    args = ["predict", scene, "--out", out / "smoke.gpkg", "--model", model, "--yes"]
    with subprocess.Popen(
        [sys.executable, "-m", "smokegeo", *map(str, args)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        until = time.monotonic() + 60
        while not contents(out):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.2)
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert "interrupted after" in said
    assert contents(out) == {}
