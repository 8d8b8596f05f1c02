"""What a user installs: a wheel that works on its own, and pins that fit the metadata."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build the wheel without touching the network or the source tree."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_only_the_package_is_packaged_with_its_data(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"smokegeo"}
    assert "smokegeo/py.typed" in names
    for preset in (ROOT / "smokegeo" / "presets").glob("*.toml"):
        assert f"smokegeo/presets/{preset.name}" in names


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_folder(wheel, tmp_path):
    # The dependencies come from the running environment; smokegeo only from the wheel.
    target, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, "--target", target, wheel], check=True)

    def python(*args):
        env = {**os.environ, "PYTHONPATH": str(target)}
        command = [sys.executable, *args]
        done = subprocess.run(command, cwd=empty, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(target) in python("-c", "import smokegeo; print(smokegeo.__file__)")
    program = target / "bin" / "smokegeo"
    assert "simulate" in python(program, "--help")
    python(program, "simulate", "mss", "--out", "data", "--count", "3", "--size", "64x48")
    assert (empty / "data" / "dataset.json").is_file()


@pytest.mark.parametrize("minor", ["3.11", "3.12", "3.13"])
def test_constraints_pin_every_dependency(minor):
    pins = {}
    for line in (ROOT / "constraints" / f"python{minor}.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            pins[name] = version
    assert "torch" in pins
    assert "torchvision" in pins
    extras = [item for group in PROJECT["optional-dependencies"].values() for item in group]
    for requirement in [*PROJECT["dependencies"], *extras]:
        name = re.match(r"[A-Za-z0-9._-]+", requirement).group().lower().replace("_", "-")
        assert name == "smokegeo" or name in pins, f"{name} is not pinned for Python {minor}"


def test_transforms_multiply_as_the_floor_of_affine_allows():
    (floor,) = (item for item in PROJECT["dependencies"] if item.startswith("affine"))
    assert floor == "affine>=3.0"  # 2.4 has no `@`


def test_every_floor_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    block = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    for line in block.splitlines():
        if re.match(r'\s+"[a-z].*>=', line) and '"smokegeo[' not in line:
            in_dev = text.index(line) > text.index("dev = [")
            assert "#" in line or in_dev, f"no reason given: {line.strip()}"


def test_classifiers_name_the_pythons_with_constraints():
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    pinned = {path.stem.removeprefix("python") for path in (ROOT / "constraints").glob("*.txt")}
    assert named == pinned


def test_top_level_folders_are_not_packages():
    # `import datasets` from here must not shadow Hugging Face's package.
    for folder in ("datasets", "configs", "scripts"):
        assert not (ROOT / folder / "__init__.py").exists()
