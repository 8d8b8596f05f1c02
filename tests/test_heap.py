from __future__ import annotations

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
