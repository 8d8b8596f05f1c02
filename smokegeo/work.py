"""Unfinished work: the probability map of one scene while it grows, and how far it has got.

The map is a plain file of one byte a pixel, written line by line and never held in memory. With
`--resume` it lies in a folder beside the output that survives an interruption, with a journal
that says which scene, model and settings it belongs to.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from smokegeo.errors import OutputError
from smokegeo.files import atomic_file

log = logging.getLogger(__name__)

_RASTER = "probability.bin"


@dataclass(frozen=True)
class RowFile:
    """A map of stored probabilities in a plain file, written and read by lines."""

    handle: BinaryIO
    width: int
    height: int

    def write(self, start: int, lines: NDArray[np.uint8]) -> None:
        """Write lines from `start` on."""
        try:
            self.handle.seek(start * self.width)
            self.handle.write(lines.tobytes())
            self.handle.flush()
        except OSError as error:
            raise OutputError(
                f"the map of probabilities cannot be kept ({error.strerror}). Nothing was written; "
                "free some space or choose another disk."
            ) from error

    def rows(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return lines start..stop-1."""
        self.handle.seek(start * self.width)
        data = self.handle.read((stop - start) * self.width)
        return np.frombuffer(data, np.uint8).reshape(stop - start, self.width)

    def sync(self) -> int:
        """Return the file's size when everything written is on the disk."""
        self.handle.flush()
        os.fsync(self.handle.fileno())
        return os.fstat(self.handle.fileno()).st_size


@dataclass
class Work:
    """A folder of unfinished work; `rows_done` rows of tiles are safely on disk."""

    folder: Path
    raster: RowFile
    fingerprint: Mapping[str, Any]
    resumable: bool
    rows_done: int = 0

    def save(self, rows_done: int) -> None:
        """Note that this many rows of tiles are finished, after their lines are on disk."""
        self.rows_done = rows_done
        if not self.resumable:
            return
        journal = {
            "rows_done": rows_done,
            "bytes": self.raster.sync(),
            "fingerprint": self.fingerprint,
        }
        with atomic_file(self.folder / "journal.json") as part:
            part.write_text(json.dumps(journal, indent=1), "utf-8")


@contextmanager
def open_work(
    out: Path, width: int, height: int, fingerprint: Mapping[str, Any], *, resume: bool
) -> Iterator[Work]:
    """Yield the work for an output, what is left of an earlier run if `resume`; then remove it.

    After an error or an interruption a resumable folder stays; any other is always removed.
    """
    if not resume:
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".work", dir=out.parent))
        try:
            with _raster(folder, width, height) as raster:
                yield Work(folder, raster, fingerprint, resumable=False)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    folder = work_path(out)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}).") from error
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OutputError(
            f"another smokegeo run is using {folder}. Wait for it, or choose another --out."
        ) from None
    try:
        rows_done = _rows_done(folder, fingerprint)
        with _raster(folder, width, height) as raster:
            yield Work(folder, raster, fingerprint, resumable=True, rows_done=rows_done)
    finally:
        lock.release()
    shutil.rmtree(folder, ignore_errors=True)


def work_path(out: Path) -> Path:
    """Return the folder in which resumable work for an output lies."""
    return out.with_name(out.name + ".work")


@contextmanager
def _raster(folder: Path, width: int, height: int) -> Iterator[RowFile]:
    path = folder / _RASTER
    path.touch()
    with path.open("r+b") as handle:
        yield RowFile(handle, width, height)


def _rows_done(folder: Path, fingerprint: Mapping[str, Any]) -> int:
    """Return how far an earlier run with the same fingerprint got, 0 if there is none."""
    try:
        journal = json.loads((folder / "journal.json").read_text("utf-8"))
        theirs, rows_done = dict(journal["fingerprint"]), int(journal["rows_done"])
        if (folder / _RASTER).stat().st_size < int(journal["bytes"]):
            raise ValueError
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError):
        log.warning("%s is damaged; starting afresh", folder)
        return 0
    ours = json.loads(json.dumps(fingerprint))
    changed = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
    if changed:
        log.warning("%s is of another run (%s); starting afresh", folder, ", ".join(changed))
        return 0
    return rows_done
