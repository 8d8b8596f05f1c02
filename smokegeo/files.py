"""Write files and folders so that a reader sees all of them or nothing."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from smokegeo.errors import OutputError, UsageError

#: What GDAL keeps beside a raster and would take for the next one's of the same name.
_SIDECARS = (".aux.xml", ".ovr", ".msk")


def check_output(path: Path, *, overwrite: bool = False) -> None:
    """Refuse an output that could not be written later: wrong folder, no rights, in the way."""
    if not path.parent.is_dir():
        raise UsageError(f"{path}: folder {path.parent} does not exist. Make it first.")
    try:
        path.lstat()
        exists = True
    except FileNotFoundError:
        exists = False
    except OSError as error:  # a name that is too long, say
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from error
    if exists and path.is_dir():
        raise OutputError(f"{path} is a folder. Name a file in it.")
    if exists and not overwrite:
        raise UsageError(f"{path} exists already. Choose another name or pass --overwrite.")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: no permission to write in {path.parent}.")
    for changes in (f"{path.name}-wal", f"{path.name}-journal"):
        if exists and path.suffix.lower() == ".gpkg" and _holds_something(path.with_name(changes)):
            raise OutputError(
                f"{path} is open in another program ({changes} holds its changes). Close it there."
            )


def _holds_something(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block succeeds."""
    with atomic_files((path,)) as (part,):
        yield part


@contextmanager
def atomic_files(paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Yield a temporary path beside each of `paths`; all take their places if the block succeeds.

    They do so together and in order: the last file is there only if all are. The suffix stays
    last, so that drivers which go by it still work; the rest of the name is ours, because some of
    them trip over odd ones.
    """
    parts = {path: _part(path) for path in paths}
    old = [path for path in paths if os.path.lexists(path)]
    path, placed = paths[-1], []
    try:
        yield tuple(parts.values())
        for path in paths:
            with parts[path].open("rb") as handle:
                os.fsync(handle.fileno())
        for path in paths:
            os.replace(parts[path], path)
            placed.append(path)
    except BaseException as error:
        for there in placed:
            if there not in old:
                there.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise OutputError(f"{path}: cannot be written ({reason}).") from error
        raise
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
            for sidecar in (f"{part}.aux.xml", f"{part}-journal", f"{part}-wal", f"{part}-shm"):
                Path(sidecar).unlink(missing_ok=True)
    for path in old:
        _clear_sidecars(path)


def _part(path: Path) -> Path:
    absolute = Path(os.path.abspath(path))
    owner = _part_owner(absolute)
    _clear_parts(absolute.parent, owner)
    return absolute.with_name(f"{owner}{os.getpid()}-{secrets.token_hex(4)}.part{path.suffix}")


def _clear_sidecars(path: Path) -> None:
    """Remove what lies beside a raster that was replaced: the old one's statistics, overviews."""
    if path.suffix.lower() in (".tif", ".tiff"):
        for suffix in _SIDECARS:
            with suppress(OSError):
                path.with_name(path.name + suffix).unlink()


def _part_owner(path: Path) -> str:
    """Return how the names begin of parts that this machine makes of an output."""
    of = f"{platform.node()}/{path.name}".encode("utf-8", "surrogateescape")
    return f".smokegeo-{hashlib.sha256(of).hexdigest()[:12]}-"


def _clear_parts(folder: Path, owner: str) -> None:
    """Remove what runs of this machine left of an output that were killed while they wrote it."""
    if os.name != "posix":  # elsewhere there is no harmless way to ask for a process
        return
    for left in folder.glob(f"{owner}*"):
        number = left.name.removeprefix(owner).partition("-")[0]
        if number.isdecimal() and not _is_running(int(number)):
            with suppress(OSError):
                left.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's
        return True
    return True


@contextmanager
def atomic_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty folder beside `path` that takes its place when the block succeeds.

    An existing folder is replaced only with `overwrite`, and only after the new one is whole.
    """
    path = Path(os.path.abspath(path))
    if path.exists() and not overwrite and not _is_empty_folder(path):
        raise UsageError(f"{path} exists already. Choose another folder or pass --overwrite.")
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file, not a folder.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except OSError as error:
        raise OutputError(f"{path}: cannot be made ({error.strerror}).") from error
    try:
        fresh = part / "new"
        fresh.mkdir(0o755)  # mkdtemp makes `part` private; a dataset is to be shared
        yield fresh
        if path.exists():
            os.replace(path, part / "old")  # deleted only once the new one is in place
        try:
            os.replace(fresh, path)
        except OSError:
            if (part / "old").exists():
                os.replace(part / "old", path)
            raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def need_space(folder: Path, size_bytes: int) -> None:
    """Refuse to start work that would not fit on the disk of `folder`."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < size_bytes:
        raise OutputError(
            f"{folder}: {_size(free)} free, about {_size(size_bytes)} needed. "
            "Free some space or choose another disk."
        )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
