"""What every run is judged by."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import geopandas
import numpy as np
import pyogrio
from click.testing import Result
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.transform import Affine


def contents(folder: Path) -> dict[str, str]:
    """Return every file, folder and link below a folder with what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder"
    return found


def assert_refused(
    result: Result, code: int, match: str, before: Mapping[str, Mapping[str, str]]
) -> str:
    """Assert the five things all refusals share; return the one line. `before`: folder -> contents.

    Both the scene's folder and the output's belong into `before`.
    """
    text = result.stdout + result.stderr
    lines = [line for line in text.splitlines() if line.startswith("Error:")]
    assert result.exit_code == code, text
    assert len(lines) == 1, text
    assert re.search(match, lines[0]), lines[0]
    assert "Traceback" not in text
    assert "internal error" not in text
    for folder, files in before.items():
        assert contents(Path(folder)) == files  # nothing new, nothing lost, no byte changed
    return lines[0]


def assert_done(result: Result, *notes: str) -> str:
    """Assert that a run ended well and said these things; return all it said."""
    text = result.stdout + result.stderr
    assert result.exit_code == 0, text
    for note in notes:
        assert re.search(note, text), text
    assert "Traceback" not in text
    return text


def polygons(path: Path) -> geopandas.GeoDataFrame:
    """Read what was written, in the coordinates of the file."""
    layer = "smoke" if path.suffix == ".gpkg" else None
    frame = pyogrio.read_dataframe(path, layer=layer)
    assert frame.geometry.is_valid.all()
    return frame


def pixels_of(path: Path, transform: Affine, shape: tuple[int, int], crs=None) -> NDArray[np.bool_]:
    """Return which pixels of a scene's grid have their centre inside the polygons of a file."""
    frame = polygons(path)
    if crs is not None:
        frame = frame.to_crs(crs)
    if len(frame) == 0:
        return np.zeros(shape, bool)
    # Into pixel coordinates first: rasterio's grid then needs no rotation.
    a, b, c, d, e, f = tuple(~transform)[:6]
    inside = frame.geometry.affine_transform((a, b, d, e, c, f))
    return rasterize(inside, shape, transform=Affine.identity()).astype(bool)
