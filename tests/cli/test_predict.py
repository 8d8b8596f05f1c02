"""`smokegeo predict`, `vectorize` and `info`: simple mistakes are told at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: What runs the network and takes seconds to import.
HEAVY = {"torch", "xarray", "pandas", "scipy"}
#: Runs smokegeo and says what it has imported.
CODE = """
import sys
from smokegeo.cli import cli
try:
    cli(sys.argv[1:])
finally:
    print(*sys.modules)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("scene.tif", "there.gpkg"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("predict scene.tif", "--out FILE"),
        ("predict none.tif --out smoke.gpkg", "none.tif: no such file"),
        ("predict scene.tif --out smoke.shp", "no vector format for .shp"),
        ("predict scene.tif --out there.gpkg", "exists already"),
        ("predict scene.tif --out a.fgb --format gpkg", "--format is for --out-dir"),
        ("predict scene.tif --out smoke.gpkg --prob scene.tif --overwrite", "the scene itself"),
        ("predict scene.tif --out none/smoke.gpkg", "folder none does not exist"),
        ("vectorize none.tif --out smoke.gpkg", "none.tif: no such file"),
        ("vectorize scene.tif --out there.gpkg", "exists already"),
        ("info none.tif", "none.tif: no such file"),
    ],
)
def test_a_simple_mistake_is_told_before_torch_is_imported(folder, line, words):
    done = subprocess.run(
        [sys.executable, "-c", CODE, *line.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not HEAVY & set(done.stdout.split())
    assert sorted(path.name for path in folder.iterdir()) == ["scene.tif", "there.gpkg"]
