"""Memory that is free already goes back to the system."""

from __future__ import annotations

import ctypes
import sys

#: glibc's M_MMAP_THRESHOLD, and its start, which it no longer changes once it was set.
_MMAP_THRESHOLD, _LARGE = -3, 131_072


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


def keep_nothing() -> None:
    """Make this process hand back large blocks as soon as they are freed, from now on.

    glibc raises the size from which on it does so whenever such a block is freed, and then keeps
    what it was given: the memory of a process becomes that of its past. Slower, so for measuring.
    """
    if sys.platform != "linux":
        return
    if (options := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        options(_MMAP_THRESHOLD, _LARGE)
