"""Progress of long work on stderr: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Seconds between two plain lines when stderr is a file or a pipe.
_PLAIN_EVERY_S = 10.0


def duration(seconds: float) -> str:
    """Return a length of time in the unit people would use."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    if seconds < 48 * 3600:
        return f"{round(seconds / 3600)} h"
    return f"{round(seconds / 86400)} days"


def track(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, showing how far along they are; silent below level INFO."""
    if not log.isEnabledFor(logging.INFO):
        yield from items
    elif sys.stderr.isatty():
        yield from _bar(items, label, total)
    else:
        yield from _lines(items, label, total)


def _bar(items: Iterable[T], label: str, total: int | None) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield from progress.track(items, total=total, description=label)


def _lines(items: Iterable[T], label: str, total: int | None) -> Iterator[T]:
    said = time.monotonic()
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - said >= _PLAIN_EVERY_S:
            said = time.monotonic()
            log.info("%s: %s", label, f"{done} of {total}" if total else done)
    log.info("%s: %d done", label, done)
