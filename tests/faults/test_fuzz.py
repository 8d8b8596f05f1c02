"""Thousands of damaged rasters: never a crash, a hang or an exception that is not ours."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from faults.fuzzing import mutated, originals

FUZZING = Path(__file__).with_name("fuzzing.py")


@pytest.mark.slow
def test_damaged_rasters_are_read_or_refused(tmp_path) -> None:
    """In a process of its own, where a crash of GDAL is a failure and no end of everything."""
    done = subprocess.run(
        [sys.executable, str(FUZZING), str(tmp_path), "20261116", "3000"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-3000:], done.stderr[-2000:])
    assert "'read'" in done.stdout  # some survive, some do not: the damage is of the right size
    assert "'refused'" in done.stdout


def test_a_few_damaged_scenes_through_the_command_line(tmp_path, model, bright, run) -> None:
    rng = random.Random(3)
    files = originals(tmp_path / "whole")
    codes = set()
    for number, original in enumerate([f for f in files if f.suffix != ".dat"] * 4):
        path = tmp_path / f"{number}{original.suffix}"
        path.write_bytes(mutated(original.read_bytes(), rng))
        result = run("predict", path, "--out", tmp_path / f"{number}.gpkg", "--model", model)
        codes.add(result.exit_code)
        assert result.exit_code in (0, 3), (original.name, result.output)
        assert (tmp_path / f"{number}.gpkg").exists() == (result.exit_code == 0)
    assert codes == {0, 3}
