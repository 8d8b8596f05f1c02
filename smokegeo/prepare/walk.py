"""Walk a source folder: its archives, its files, and the folder they really lie in."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from smokegeo.errors import InputError
from smokegeo.prepare.archive import is_archive
from smokegeo.prepare.names import DATA_SUFFIXES

log = logging.getLogger(__name__)

_KINDS = frozenset({"hss", "mss"})
#: Files that describe data, and may lie beside archives without being data themselves.
_PAPERS = frozenset(
    {".md", ".txt", ".rst", ".json", ".yaml", ".yml", ".csv", ".sha256", ".pdf", ""}
)


def archives_in(src: Path, kind: str) -> list[Path]:
    """Return the archives to unpack: `src` itself, or those of a folder that holds nothing else."""
    if src.is_file():
        if not is_archive(src):
            raise InputError(f"{src} is neither a folder nor a .zip, .tar, .tar.gz or .tgz file.")
        return [src]
    files = list(_walk(src))
    archives = [path for path in files if is_archive(path)]
    if archives and any(
        path.suffix.lower() not in _PAPERS for path in files if path not in archives
    ):
        log.warning(
            "%s ignored: data lies beside it.", ", ".join(sorted(path.name for path in archives))
        )
        return []
    return sorted(_of_kind(src, archives, kind))


def only_folder(root: Path) -> Path:
    """Descend through folders that hold nothing but one folder, as archives often do."""
    inside = [path for path in root.iterdir() if not _is_hidden(path.name)]
    if len(inside) != 1 or inside[0].is_symlink() or not inside[0].is_dir():
        return root
    return only_folder(inside[0])


def files_below(root: Path, kind: str) -> list[Path]:
    """Return all visible files; where HSS and MSS lie side by side, those of `kind` only."""
    return sorted(_of_kind(root, list(_walk(root)), kind))


def say_what_is_ignored(files: Iterable[Path]) -> None:
    """Name the kinds of files nobody reads, so that no frame is missed without a word."""
    understood = DATA_SUFFIXES | _PAPERS | {".parquet"}
    counts = Counter(p.suffix.lower() for p in files if p.suffix.lower() not in understood)
    if counts:
        shown = ", ".join(f"{count} {suffix}" for suffix, count in counts.most_common())
        log.warning("Files of a form that is not understood are ignored: %s.", shown)


def _of_kind(root: Path, paths: list[Path], kind: str) -> Iterable[Path]:
    mine = [path for path in paths if _names_kind(root, path, kind)]
    others = {
        path
        for other in _KINDS - {kind}
        for path in paths
        if _names_kind(root, path, other) and path not in mine
    }
    return (path for path in paths if not (mine and path in others))


def _names_kind(root: Path, path: Path, kind: str) -> bool:
    relative = path.relative_to(root)
    parts = relative.parts if is_archive(path) else relative.parts[:-1]
    return any(re.search(rf"(?<![a-z]){kind}", part.casefold()) for part in parts)


def _walk(root: Path) -> Iterable[Path]:
    seen: set[str] = set()
    for folder, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a link back up would never end
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (Path(folder) / name for name in names if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _refuse(error: OSError) -> NoReturn:
    raise InputError(
        f"{error.filename}: cannot be read ({error.strerror}). Make it readable or move it away."
    ) from error
