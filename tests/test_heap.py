from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smokegeo.heap import give_back


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_what_was_freed_goes_back():
    small = [np.ones(8000) for _ in range(4000)]  # 256 MB in blocks that the allocator keeps
    last = np.ones(8000)
    del small
    before = resident_mb()
    give_back()
    assert resident_mb() <= before
    assert last.sum() == 8000


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    give_back()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_a_process_that_keeps_nothing_hands_large_blocks_back_at_once():
    # In a process of its own: there is no way back.
    code = """
from pathlib import Path
import numpy as np
from smokegeo.heap import keep_nothing

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

keep_nothing()
for _ in range(3):  # glibc would learn from the first that blocks of this size come again
    blocks = [np.ones(2_000_000) for _ in range(8)]
    above = np.ones(10_000)  # on top of the heap, which could not shrink below it
    held = resident()
    del blocks
    print(held - resident())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert min(map(float, done.stdout.split())) > 120  # of 128 MB
