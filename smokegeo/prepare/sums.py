"""Verify the SHA-256 sums a dataset ships, before any of it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from smokegeo.errors import InputError
from smokegeo.files import sha256
from smokegeo.prepare.faults import named
from smokegeo.progress import track

_LISTS = frozenset({"checksums.sha256", "sha256sums", "sha256sums.txt"})
_LINE = re.compile(r"^(?P<digest>[0-9a-fA-F]{64})(?:\s+\*?(?P<name>.+))?$")


def verify_sums(root: Path, only: Path | None = None) -> int:
    """Check the files listed in `root`'s sum files, or `only` one of them; return how many.

    All that differ are told at once.
    """
    try:
        expected = {path: digest for path, digest in _expected(root) if only in (None, path)}
        for path in expected:
            if not path.is_relative_to(root) or ".." in path.relative_to(root).parts:
                raise InputError(
                    f"{root} has a SHA-256 sum of {path}, which lies outside of it. Take its line "
                    "out."
                )
        wrong = list(_wrong(root, expected)) if expected else []
    except OSError as error:
        raise InputError(f"{error.filename or root}: cannot be read ({error.strerror}).") from error
    if wrong:
        raise InputError(
            f"{root}: {len(wrong)} of {len(expected)} files differ from their SHA-256 sums: "
            f"{named(wrong)}. Fetch them again."
        )
    return len(expected)


def _wrong(root: Path, expected: Mapping[Path, str]) -> Iterator[str]:
    for path, digest in track(expected.items(), "verifying", len(expected)):
        if not path.is_file():
            yield f"{path.relative_to(root)} (missing)"
        elif sha256(path) != digest:
            yield str(path.relative_to(root))


def _expected(root: Path) -> Iterator[tuple[Path, str]]:
    for listing in sorted(root.iterdir()):
        lowered = listing.name.casefold()
        if not listing.is_file() or not (lowered in _LISTS or lowered.endswith(".sha256")):
            continue
        for line in listing.read_text("utf-8", errors="replace").splitlines():
            match = _LINE.match(line.strip())
            if match is None:
                continue
            name = (match["name"] or listing.stem).strip()
            yield root / name, match["digest"].lower()
