"""What GDAL, SQLite or the system say of a failed write, in one line."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rasterio.errors import RasterioError

from smokegeo.errors import OutputError, deepest_cause


@contextmanager
def said_plainly(path: Path, size_bytes: int) -> Iterator[None]:
    """Turn a failed write of `path`, which needs about so much room, into an error of ours.

    GDAL does not always tell a full disk from a broken one; the room that is left does.
    """
    try:
        yield
    except (OSError, RuntimeError, RasterioError, sqlite3.Error) as error:
        reason = deepest_cause(error)
        code = error.errno if isinstance(error, OSError) else None
        full = code in (errno.ENOSPC, errno.EDQUOT)
        full = full or any(hint in reason.lower() for hint in ("no space left", "is full"))
        if full or (code is None and 0 <= _free_bytes(path.parent) < size_bytes):
            raise OutputError(
                f"{path}: no space left in {path.parent}. Nothing was written."
            ) from error
        raise OutputError(f"{path}: cannot be written ({reason}). Nothing was written.") from error


def _free_bytes(folder: Path) -> int:
    """Return the room on the disk of a folder, or -1 where that cannot be known."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return -1
    return usage.free if usage.total > 0 else -1
