"""The set-up behind `make`: one clear line when it cannot work, nothing to do the second time."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def bootstrap(monkeypatch, tmp_path):
    """Import scripts/bootstrap.py with an empty project in place of ours."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "scripts" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "constraints").mkdir()
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "constraints" / f"python{minor}.txt").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py"])
    return module


def one_line(capsys) -> str:
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert text.startswith("Error: ")
    return text


def test_an_old_python_is_refused_in_one_line(bootstrap, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(bootstrap, "SUPPORTED", ((3, 99),))
    with pytest.raises(SystemExit) as stopped:
        bootstrap.main()
    assert stopped.value.code == 2
    assert "only 3.99. Name one: make PYTHON=" in one_line(capsys)
    assert not (tmp_path / ".venv").exists()


def test_a_full_disk_is_refused_in_one_line(bootstrap, monkeypatch, capsys, tmp_path):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda _: usage(0, 0, 3_000_000_000))
    with pytest.raises(SystemExit) as stopped:
        bootstrap.main()
    assert stopped.value.code == 2
    assert "3.0 GB free" in one_line(capsys)
    assert not (tmp_path / ".venv").exists()


def test_everything_is_installed_with_the_pins_and_only_once(bootstrap, monkeypatch, tmp_path):
    commands = []
    monkeypatch.setattr(bootstrap, "run", lambda command, _: commands.append(command))
    monkeypatch.setattr(bootstrap, "has_python", lambda *_: True)
    monkeypatch.setattr(bootstrap, "check_disk", lambda _: None)
    (tmp_path / ".venv").mkdir()
    bootstrap.main()
    assert commands
    assert all("--constraint" in command for command in commands)
    commands.clear()
    bootstrap.main()
    assert commands == []
    (tmp_path / "pyproject.toml").write_text("changed")
    bootstrap.main()
    assert commands


def test_the_test_extras_also_serve_the_demo_but_not_the_other_way_round(
    bootstrap, monkeypatch, tmp_path
):
    commands = []
    monkeypatch.setattr(bootstrap, "run", lambda command, _: commands.append(command))
    monkeypatch.setattr(bootstrap, "has_python", lambda *_: True)
    (tmp_path / ".venv").mkdir()
    bootstrap.main()
    commands.clear()
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "--dev"])
    bootstrap.main()
    assert any(command[-1].endswith("[dev]") for command in commands)
    commands.clear()
    monkeypatch.setattr(sys, "argv", ["bootstrap.py"])
    bootstrap.main()
    assert commands == []


def test_make_says_when_an_interpreter_does_not_run():
    done = subprocess.run(
        ["make", "demo", "PYTHON=python3.no"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MAKEFLAGS": ""},
    )
    assert done.returncode != 0
    assert "Error: 'python3.no' does not run." in done.stderr


def test_an_environment_of_another_python_is_made_anew(bootstrap, tmp_path):
    assert not bootstrap.has_python(tmp_path / "nowhere", sys.version_info[:2])
    here = Path(sys.prefix)
    assert bootstrap.has_python(here, sys.version_info[:2])
    assert not bootstrap.has_python(here, (3, 10))
