"""The errors smokegeo raises on purpose, each with the exit code its user sees.

A message is one line: the file or value at fault, the fact, and what to do about it.
"""

from __future__ import annotations


class SmokegeoError(Exception):
    """Anything smokegeo refuses or cannot finish."""

    exit_code = 1


class UsageError(SmokegeoError):
    """The command or call was put together wrongly."""

    exit_code = 2


class InputError(SmokegeoError):
    """A scene, dataset or archive cannot be used."""

    exit_code = 3


class ModelError(SmokegeoError):
    """A model file cannot be used, or does not fit the data."""

    exit_code = 4


class OutputError(SmokegeoError):
    """A result cannot be written."""

    exit_code = 5


class Terminated(SystemExit):
    """SIGTERM arrived; raised in the main thread so that open work is cleaned up."""

    def __init__(self) -> None:
        super().__init__(143)


def printable(text: str) -> str:
    """Return text in one line that cannot steer a terminal: names in files are strangers' words."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def deepest_cause(error: BaseException) -> str:
    """Return the message of the innermost cause, in one line.

    rasterio wraps GDAL's useful sentence two or three causes deep.
    """
    while inner := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = inner
    text = " ".join(str(error).split())
    return text or type(error).__name__
