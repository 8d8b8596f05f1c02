"""Unfinished work: the probability map of one scene while it grows, and how far it has got.

The map is a plain file of one byte a pixel, written line by line and never held in memory. With
`--resume` it lies in a folder beside the output that survives an interruption, with a journal
that says which scene, model and settings it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from smokegeo.errors import OutputError
from smokegeo.files import atomic_file
from smokegeo.scene.layers import Box

log = logging.getLogger(__name__)

_RASTER = "probability.bin"
_LOCK = "lock"
_SUFFIX = ".work"
#: A folder as young as this may belong to a run that is about to lock it.
_YOUNG_S = 2.0


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
    damaged: set[tuple[int, Box]] = field(default_factory=set)  # blocks not read, by layer

    def save(self, rows_done: int, damaged: Iterable[tuple[int, Box]] = ()) -> None:
        """Note that this many rows of tiles are finished, after their lines are on disk."""
        self.rows_done = rows_done
        self.damaged.update(damaged)
        if not self.resumable:
            return
        journal = {
            "rows_done": rows_done,
            "bytes": self.raster.sync(),
            "damaged": sorted((layer, *astuple(box)) for layer, box in self.damaged),
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
    _clear_stale(out)
    if not resume:
        folder = _new_folder(out)
        try:
            with FileLock(folder / _LOCK), _raster(folder, width, height) as raster:
                yield Work(folder, raster, fingerprint, resumable=False)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    folder = work_path(out)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}).") from error
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OutputError(
            f"another smokegeo run is using {folder}. Wait for it, or choose another --out."
        ) from None
    try:
        rows_done, damaged = _done(folder, fingerprint)
        with _raster(folder, width, height) as raster:
            yield Work(folder, raster, fingerprint, True, rows_done, damaged)
    finally:
        lock.release()
    shutil.rmtree(folder, ignore_errors=True)


def work_path(out: Path) -> Path:
    """Return the folder in which resumable work for an output lies."""
    return out.with_name(out.name + _SUFFIX)


def _new_folder(out: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_owner(out), suffix=_SUFFIX, dir=out.parent))
    except OSError as error:
        raise OutputError(f"{out}: no work can be kept beside it ({error.strerror}).") from error


def _owner(out: Path) -> str:
    """Return how the names of an output's folders begin: short, however long its own name is."""
    name = out.name.encode("utf-8", "surrogateescape")
    return f".work-{hashlib.sha256(name).hexdigest()[:12]}."


def _clear_stale(out: Path) -> None:
    """Remove what runs for the same output left that were killed: folders that nobody has locked.

    Those of interrupted runs with `--resume` have another name, and are kept.
    """
    for folder in out.parent.glob(f"{_owner(out)}*{_SUFFIX}"):
        try:
            if time.time() - folder.stat().st_mtime < _YOUNG_S:
                continue
            with FileLock(folder / _LOCK, timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
        except (OSError, Timeout):  # in use, not ours, or gone meanwhile
            continue


@contextmanager
def _raster(folder: Path, width: int, height: int) -> Iterator[RowFile]:
    path = folder / _RASTER
    path.touch()
    with path.open("r+b") as handle:
        yield RowFile(handle, width, height)


def _done(folder: Path, fingerprint: Mapping[str, Any]) -> tuple[int, set[tuple[int, Box]]]:
    """Return how far an earlier run with the same fingerprint got, and what it could not read."""
    try:
        journal = json.loads((folder / "journal.json").read_text("utf-8"))
        theirs, rows_done = dict(journal["fingerprint"]), int(journal["rows_done"])
        damaged = {(int(layer), Box(*map(int, box))) for layer, *box in journal["damaged"]}
        if (folder / _RASTER).stat().st_size < int(journal["bytes"]):
            raise ValueError
    except FileNotFoundError:
        return 0, set()
    except (OSError, ValueError, KeyError, TypeError):
        log.warning("%s is damaged; starting afresh", folder)
        return 0, set()
    ours = json.loads(json.dumps(fingerprint))
    changed = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
    if changed:
        log.warning("%s is of another run (%s); starting afresh", folder, ", ".join(changed))
        return 0, set()
    return rows_done, damaged
