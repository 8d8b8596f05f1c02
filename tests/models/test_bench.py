"""The benchmark script runs and prints its two tables."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench_model.py"


@pytest.mark.slow
def test_the_benchmark_runs():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, check=True
    )
    for start in ("| realtime | folded |", "| accuracy | paper |", "| routers | ours |"):
        assert start in done.stdout
