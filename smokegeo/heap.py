"""Memory that is free already goes back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Hand back what was freed, between two stages of a run that need much at different times.

    glibc keeps small blocks for itself, some hundred megabytes after a large scene, and the next
    stage would come on top of them. Elsewhere nothing is known to be needed.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    if trim is not None:
        trim(0)
