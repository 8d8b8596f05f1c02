"""The benchmark scripts run and print their tables."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.slow
def test_the_benchmark_runs():
    done = subprocess.run(
        [sys.executable, SCRIPTS / "bench_model.py", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    for start in ("| realtime | folded |", "| accuracy | paper |", "| routers | ours |"):
        assert start in done.stdout


@pytest.mark.slow
def test_the_cost_of_a_method_is_told_before_it_is_trained():
    words = ["--models", "segformer", "--variants", "realtime", "--size", "64"]
    command = [sys.executable, SCRIPTS / "bench_methods.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| SegFormer | realtime | 3.75 | 0.14 |" in done.stdout
