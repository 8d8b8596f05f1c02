"""What the machine is called, for the foot of a table."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def processor() -> str:
    """Return the processor's name and how many cores there are."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text("utf-8").splitlines()
        models = [line for line in lines if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{os.cpu_count()} cores of {name}"
