"""Write files and folders so that a reader sees all of them or nothing."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from smokegeo.errors import OutputError, UsageError

log = logging.getLogger(__name__)

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


def same_file(path: Path, other: Path) -> bool:
    """Tell whether two names lead to one file, by links of any kind; False if one is not there."""
    try:
        return path.samefile(other)
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

    They do so together and in order: the last file is there only if all are, and if one finds no
    place, what was there before stays. The suffix stays last, so that drivers which go by it still
    work; the rest of the name is ours, because some of them trip over odd ones.
    """
    parts = {path: _part(path) for path in paths}
    path = paths[-1]
    old: list[Path] = []
    placed: list[Path] = []
    before: dict[Path, Path] = {}  # what was there -> the name it is kept by
    try:
        yield tuple(parts.values())
        for path in paths:
            with parts[path].open("r+b") as handle:  # Windows syncs no file opened for reading
                os.fsync(handle.fileno())
        old = [path for path in paths if os.path.lexists(path)]
        for path in paths:
            if path in old and path != paths[-1] and not path.is_dir():
                before[path] = _part(path)
                _keep(path, before[path])
            os.replace(parts[path], path)
            placed.append(path)
    except BaseException as error:
        for there in placed:
            if there not in old:
                there.unlink(missing_ok=True)
        for there, kept in before.items():
            _put_back(kept, there)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise OutputError(f"{path}: cannot be written ({reason}).") from error
        raise
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
            for sidecar in (f"{part}.aux.xml", f"{part}-journal", f"{part}-wal", f"{part}-shm"):
                Path(sidecar).unlink(missing_ok=True)
    for kept in before.values():
        with suppress(OSError):
            kept.unlink()
    for path in old:
        _clear_sidecars(path)
    for folder in {path.parent for path in paths}:
        _sync_folder(folder)


def _keep(path: Path, kept: Path) -> None:
    """Keep a file under another name until all are replaced; a second link leaves it in place."""
    try:
        os.link(path, kept, follow_symlinks=False)
    except (OSError, NotImplementedError):  # not every disk has links
        os.replace(path, kept)


def _put_back(kept: Path, path: Path) -> None:
    """Undo a replacement, if it came to one."""
    if not os.path.lexists(kept):
        return
    try:
        os.replace(kept, path)
        kept.unlink(missing_ok=True)  # nothing moves between two links of one file
    except OSError as error:
        log.warning("%s could not be put back (%s); it is now %s", path, error.strerror, kept)


def _sync_folder(folder: Path) -> None:
    """Have the new names of files on the disk as well, where a folder can be opened for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
def atomic_folder(
    path: Path, *, overwrite: bool = False, marks: Sequence[str] = ()
) -> Iterator[Path]:
    """Yield an empty folder beside `path` that takes its place when the block succeeds.

    An existing folder is replaced only with `overwrite`, only if it holds the files `marks`, and
    only after the new one is whole.
    """
    path = Path(os.path.abspath(path))
    if path.exists() and not overwrite and not _is_empty_folder(path):
        raise UsageError(f"{path} exists already. Choose another folder or pass --overwrite.")
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file, not a folder.")
    check_replaceable(path, marks)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except OSError as error:
        raise OutputError(f"{path}: cannot be made ({error.strerror}).") from error
    try:
        fresh = part / "new"
        fresh.mkdir(0o755)  # mkdtemp makes `part` private; a dataset is to be shared
        yield fresh
        try:
            if path.exists():
                os.replace(path, part / "old")  # deleted only once the new one is in place
            os.replace(fresh, path)
        except BaseException:
            if os.path.lexists(part / "old") and not os.path.lexists(path):
                os.replace(part / "old", path)
            raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_replaceable(path: Path, marks: Sequence[str]) -> None:
    """Refuse to replace a folder that lacks a file of what it should hold, unless it is empty."""
    missing = [name for name in marks if not (path / name).is_file()]
    if missing and path.is_dir() and not _is_empty_folder(path):
        raise UsageError(
            f"{path} holds something else (no {missing[0]}), and stays as it is. "
            "Choose another folder."
        )


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
