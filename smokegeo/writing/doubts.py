"""What was warned of on the way to a result: whoever gets its files was not there to read it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from smokegeo.errors import printable


@contextmanager
def heard() -> Iterator[list[str]]:
    """Yield a list that grows by the warnings of smokegeo that this thread gives in the block.

    Those of other threads belong to another scene, or say which of several was first to see
    something, and that by chance.
    """
    ear = _Ear()
    logger = logging.getLogger("smokegeo")
    logger.addHandler(ear)
    try:
        yield ear.heard
    finally:
        logger.removeHandler(ear)


class _Ear(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []
        self._thread = get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.WARNING and record.thread == self._thread:
            self.heard.append(printable(record.getMessage()))
