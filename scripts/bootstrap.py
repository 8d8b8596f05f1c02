"""Make a virtual environment with the pinned dependencies and smokegeo in it.

Called by the Makefile. Runs on any Python 3, so that an old one gets a clear line instead of a
syntax error; a second call with nothing changed returns at once.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUPPORTED = ((3, 11), (3, 12), (3, 13))
# torch's Linux wheels bring CUDA with them.
NEEDED_GB = 12


def main():
    """Check the machine, then install what is missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--venv", default=".venv")
    parser.add_argument("--dev", action="store_true", help="with the test extras")
    args = parser.parse_args()
    venv = ROOT / args.venv
    minor = sys.version_info[:2]
    if minor not in SUPPORTED:
        names = ", ".join("%d.%d" % pair for pair in SUPPORTED)
        stop(
            "Python %d.%d is not supported, only %s. Name one: make PYTHON=python3.11"
            % (minor[0], minor[1], names)
        )
    constraints = ROOT / "constraints" / ("python%d.%d.txt" % minor)
    wanted = fingerprint(constraints)
    if is_current(venv, wanted, args.dev):
        return
    if not has_python(venv, minor):
        check_disk(venv.parent)
        say("making %s with Python %d.%d" % (args.venv, minor[0], minor[1]))
        shutil.rmtree(str(venv), ignore_errors=True)
        run([sys.executable, "-m", "venv", str(venv)], "python -m venv failed")
    say("installing the pinned dependencies (several GB the first time)")
    python = str(venv_python(venv))
    pip = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    pip += ["--constraint", str(constraints)]
    # The build backend is pinned too, so nothing unpinned is fetched for an isolated build.
    run([*pip, "setuptools"], "pip could not install setuptools")
    target = str(ROOT) + ("[dev]" if args.dev else "")
    run([*pip, "--no-build-isolation", "--editable", target], "pip could not install smokegeo")
    (venv / stamp_name(args.dev)).write_text(wanted)


def venv_python(venv):
    """Return the interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def has_python(venv, minor):
    """Say whether the environment exists and runs the same Python minor version."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        found = subprocess.check_output([str(venv_python(venv)), "-c", code])
    except (OSError, subprocess.CalledProcessError):
        return False
    return found.decode().strip() == "%d.%d" % minor


def is_current(venv, wanted, dev):
    """Say whether an earlier call already installed exactly this."""
    stamps = [venv / stamp_name(True)] + ([] if dev else [venv / stamp_name(False)])
    return any(stamp.is_file() and stamp.read_text() == wanted for stamp in stamps)


def stamp_name(dev):
    """Return the name of the file that remembers a finished installation."""
    return "smokegeo-dev.stamp" if dev else "smokegeo.stamp"


def fingerprint(constraints):
    """Return a hash of all that decides what is installed."""
    digest = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", constraints):
        digest.update(path.read_bytes())
    digest.update(sys.version.encode())
    return digest.hexdigest()


def check_disk(folder):
    """Stop if the disk cannot hold the environment."""
    free_gb = shutil.disk_usage(str(folder)).free / 1e9
    if free_gb < NEEDED_GB:
        stop(
            "%.1f GB free in %s, about %d GB needed. Free some space."
            % (free_gb, folder, NEEDED_GB)
        )


def run(command, failure):
    """Run a command; stop with one line if it fails."""
    if subprocess.call(command) != 0:
        stop(failure + " (see the lines above).")


def say(text):
    """Tell the user what takes time."""
    sys.stderr.write("smokegeo: " + text + "\n")


def stop(text):
    """End with one clear line."""
    sys.stderr.write("Error: " + text + "\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
