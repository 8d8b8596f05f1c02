"""Unpack dataset archives that strangers made: regular files only, inside one folder, bounded."""

from __future__ import annotations

import gzip
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from smokegeo.errors import InputError, OutputError
from smokegeo.files import need_space
from smokegeo.progress import track

T = TypeVar("T")

_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_CHUNK = 1 << 20
_MAX_PADDING_BYTES = 1 << 24
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)
_DISTRUST = "Do not trust it; get the dataset from its maker."


@dataclass(frozen=True)
class Limits:
    """How much an archive may unpack to, against decompression bombs.

    The ratio counts only past `free_bytes`: an empty mask compresses a thousandfold.
    """

    total_bytes: int = 500 * 10**9
    members: int = 2_000_000
    ratio: float = 200.0
    free_bytes: int = 64 * 2**20


@dataclass(frozen=True)
class _Member:
    """A regular file in an archive: its checked name and how to open it."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def is_archive(path: Path) -> bool:
    """Tell whether a file is an archive, by its name."""
    return path.is_file() and path.name.lower().endswith(_SUFFIXES)


def stem(path: Path) -> str:
    """Return the name of an archive without its suffixes."""
    lowered = path.name.lower()
    suffix = max((s for s in _SUFFIXES if lowered.endswith(s)), key=len, default="")
    return path.name[: len(path.name) - len(suffix)]


@contextmanager
def unpacked(archives: Sequence[Path], beside: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `beside` with the archives' files; remove it afterwards.

    Of several archives each gets a folder of its name: `images.zip` and `masks.zip` stay apart.
    """
    home = beside.parent
    while not home.is_dir():
        home = home.parent
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", suffix=".unpacked", dir=home))
    except OSError as error:
        raise OutputError(
            f"{home}: cannot unpack there ({error.strerror}). Choose another folder to write to."
        ) from error
    try:
        for archive in track(archives, "unpacking", len(archives)):
            target = folder if len(archives) == 1 else folder / stem(archive)
            target.mkdir(exist_ok=True)
            extract(archive, target)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def extract(archive: Path, folder: Path, limits: Limits | None = None) -> int:
    """Unpack an archive into an existing empty folder and return the bytes written.

    Nothing the archive says about itself is trusted: names are checked, links and devices
    refused, and the bytes that really come out are counted as they are written.
    """
    limits = limits or Limits()
    try:
        with _opened(archive, limits) as members:
            return _write_all(archive, members, folder, limits)
    except _DAMAGE as error:
        raise InputError(f"{archive} is damaged ({error}). Fetch it again.") from error
    except RuntimeError as error:  # zipfile's word for "needs a password"
        raise InputError(
            f"{archive} cannot be unpacked ({error}). Unpack it yourself and give the folder."
        ) from error


@contextmanager
def _opened(archive: Path, limits: Limits) -> Iterator[Iterator[_Member]]:
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as file:
            yield _zip_members(archive, _counted(archive, file.infolist(), limits), file)
    else:
        mode = "r:" if archive.suffix.lower() == ".tar" else "r:gz"
        with tarfile.open(archive, mode) as file:  # type: ignore[call-overload]
            yield _tar_members(archive, _counted(archive, file, limits), file)


def _counted(archive: Path, infos: Iterable[T], limits: Limits) -> Iterator[T]:
    for count, info in enumerate(infos, start=1):
        if count > limits.members:
            raise InputError(f"{archive} holds more than {limits.members} members. {_DISTRUST}")
        yield info


def _zip_members(
    archive: Path, infos: Iterable[zipfile.ZipInfo], file: zipfile.ZipFile
) -> Iterator[_Member]:
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise InputError(f"{archive} holds a link or device, {info.filename!r}. {_DISTRUST}")
        name = _safe_name(archive, info.filename)
        if not info.is_dir():
            yield _Member(name, info.file_size, lambda info=info: file.open(info))  # type: ignore[misc]


def _tar_members(
    archive: Path, infos: Iterable[tarfile.TarInfo], file: tarfile.TarFile
) -> Iterator[_Member]:
    for info in infos:
        if not (info.isreg() or info.isdir()):
            raise InputError(f"{archive} holds a link or device, {info.name!r}. {_DISTRUST}")
        name = _safe_name(archive, info.name)
        if info.isreg():
            yield _Member(name, info.size, lambda info=info: _tar_open(file, info))  # type: ignore[misc]
    # tarfile takes a damaged header for the end, and gzip's checksum comes after the end: both
    # show only to who reads on. Nothing but zeros may follow.
    if (stream := file.fileobj) is not None:
        stream.seek(file.offset)
        if stream.read(_MAX_PADDING_BYTES).strip(b"\0"):
            raise tarfile.ReadError("a header inside is damaged")


def _tar_open(file: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    handle = file.extractfile(info)
    if handle is None:
        raise tarfile.ReadError(f"{info.name} has no content")
    return handle


def _safe_name(archive: Path, name: str) -> str:
    """Return a member's name with forward slashes; refuse one that could leave the folder."""
    plain = name.replace("\\", "/")
    rooted = plain.startswith("/") or re.match(r"[A-Za-z]:", plain) is not None
    if rooted or "\0" in plain or ".." in plain.split("/"):
        raise InputError(f"{archive} holds {name!r}, which would leave the folder. {_DISTRUST}")
    return plain


def _write_all(archive: Path, members: Iterator[_Member], folder: Path, limits: Limits) -> int:
    packed = archive.stat().st_size
    allowed = min(limits.total_bytes, max(limits.free_bytes, int(limits.ratio * packed)))
    written = 0
    for member in members:
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if not parts or "__MACOSX" in parts or parts[-1].startswith("._"):
            continue
        need_space(folder, min(member.size, allowed))
        written = _write(archive, member, folder.joinpath(*parts), written, allowed)
    return written


def _write(archive: Path, member: _Member, target: Path, written: int, allowed: int) -> int:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # "x": a second member of the same name is refused, not written over the first.
        with member.open() as source, target.open("xb") as sink:
            while chunk := source.read(_CHUNK):
                written += len(chunk)
                if written > allowed:
                    raise InputError(
                        f"{archive} unpacks to more than {allowed / 1e6:.0f} MB from "
                        f"{archive.stat().st_size / 1e6:.1f} MB. {_DISTRUST}"
                    )
                sink.write(chunk)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"{archive} holds {member.name!r} twice. {_DISTRUST}") from error
    except _DAMAGE:
        raise
    except OSError as error:
        raise OutputError(f"{target}: cannot be unpacked ({error.strerror or error}).") from error
    return written
