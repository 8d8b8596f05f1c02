"""The command group: quick help, one-line errors, exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

import smokegeo
from smokegeo.cli import cli
from smokegeo.cli.main import COMMANDS, LazyGroup, command
from smokegeo.errors import InputError, ModelError, OutputError, SmokegeoError, UsageError

#: Packages that take long to import; none may be touched before a command really works.
HEAVY = {
    "torch", "torchgeo", "lightning", "numpy", "rasterio", "xarray", "rioxarray", "pandas",
    "geopandas", "scipy", "matplotlib", "shapely", "huggingface_hub", "rich",
}  # fmt: skip


def imported_by(*args: str) -> set[str]:
    """Return the top-level packages a fresh interpreter has imported after running smokegeo."""
    code = (
        "import sys\n"
        "from smokegeo.cli import cli\n"
        f"cli({list(args)!r}, standalone_mode=False)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("args", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(args):
    packages = imported_by(*args)
    assert "click" in packages
    assert not packages & HEAVY


def test_importing_the_package_imports_nothing_heavy():
    code = "import smokegeo, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & HEAVY


def test_every_command_is_listed_and_explains_itself_with_an_example(run):
    overview = run("--help").output
    for name in COMMANDS:
        assert f"\n  {name} " in overview
        text = run(name, "--help").output
        assert f"smokegeo {name} " in text.replace("Usage: smokegeo", "") or name == "predict"


def test_public_names_resolve():
    for name in smokegeo.__all__:
        assert getattr(smokegeo, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'fog'"):
        _ = smokegeo.fog


def test_unknown_commands_are_usage_errors(run):
    result = run("burn")
    assert result.exit_code == 2
    assert "No such command 'burn'" in result.output


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["burn"], "Error: No such command 'burn' (smokegeo --help).\n"),
        (["vectorize", "p.tif"], "Error: Missing option '--out' (smokegeo vectorize --help).\n"),
        (
            ["predict", "a.tif"],
            "Error: Say where the polygons go: --out FILE, or --out-dir FOLDER "
            "(smokegeo predict --help).\n",
        ),
    ],
)
def test_a_usage_error_is_one_line_that_leads_to_the_help(args, line):
    result = CliRunner().invoke(cli, args, prog_name="smokegeo")
    assert result.exit_code == 2
    assert result.output == line


def test_without_a_command_there_is_the_help(run):
    assert "Commands:" in run().output


@pytest.fixture
def failing(monkeypatch):
    """Return a function that runs a command which raises the given error."""

    def run_failing(error: BaseException, before=(), after=()):
        @command()
        def boom() -> None:
            raise error

        monkeypatch.setattr(LazyGroup, "get_command", lambda self, ctx, name: boom, raising=True)
        return CliRunner().invoke(cli, [*before, "boom", *after])

    return run_failing


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SmokegeoError, 1),
        (UsageError, 2),
        (InputError, 3),
        (ModelError, 4),
        (OutputError, 5),
    ],
)
def test_each_error_is_one_line_with_its_exit_code(failing, error, code):
    result = failing(error("scene.tif is\nbroken. Copy it again."))
    assert result.exit_code == code
    assert result.output == "Error: scene.tif is broken. Copy it again.\n"


def test_an_unexpected_error_is_one_line_that_says_how_to_learn_more(failing):
    result = failing(ZeroDivisionError("division by zero"))
    assert result.exit_code == 1
    assert result.output.count("\n") == 1
    assert "division by zero" in result.output
    assert "--debug" in result.output


@pytest.mark.parametrize("where", ["before", "after"])
def test_debug_before_or_after_the_command_shows_the_traceback(failing, where):
    result = failing(InputError("broken."), **{where: ("--debug",)})
    assert result.exit_code == 3
    assert "Traceback" in result.output
    assert result.output.rstrip().endswith("Error: broken.")


def test_ctrl_c_exits_130(failing):
    assert failing(KeyboardInterrupt()).exit_code == 130


def test_sigterm_exits_143_and_leaves_nothing(tmp_path):
    out = tmp_path / "data"
    frames = ["--count", "4000", "--size", "64x64"]  # many, yet room for them on any disk
    process = subprocess.Popen(
        [sys.executable, "-m", "smokegeo", "simulate", "hss", "--out", out, *frames],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    for _ in range(600):  # until it is at work
        if any(tmp_path.rglob("*.tif")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    assert list(tmp_path.iterdir()) == []


def test_version_is_told(run):
    result = run("--version")
    assert result.exit_code == 0
    assert smokegeo.__version__ in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_works(shell):
    done = subprocess.run(
        [sys.executable, "-m", "smokegeo"],
        env={"_SMOKEGEO_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "_SMOKEGEO_COMPLETE" in done.stdout
