"""Faults of single samples, gathered so that all of them are told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Names in a line for each kind of fault; a video without masks would fill the screen otherwise.
_MAX_NAMES = 20


class SampleFault(Exception):  # noqa: N818  a fault of the data, not of the program
    """Why one sample cannot be used: a kind shared by many, and this sample's own detail."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.kind} ({self.detail})" if self.detail else self.kind


def describe(faults: Mapping[str, SampleFault], total: int) -> str:
    """Return one line on all faulty samples, grouped by kind of fault."""
    groups: dict[str, list[str]] = {}
    for name, fault in faults.items():
        groups.setdefault(fault.kind, []).append(
            f"{name} ({fault.detail})" if fault.detail else name
        )
    return f"{len(faults)} of {total} samples unusable: " + "; ".join(
        f"{kind}: {named(names)}" for kind, names in groups.items()
    )


def named(names: Sequence[str]) -> str:
    """Return the first names as text, and how many there are besides."""
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
