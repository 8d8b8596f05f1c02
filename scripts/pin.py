"""Resolve smokegeo[dev] anew and write the constraints file of the running Python.

Run by hand when a dependency changes, once with each supported interpreter:

    python3.11 scripts/pin.py torch==2.14.1 torchvision==0.29.1
    python3.13 scripts/pin.py torch==2.15.0 torchvision==0.29.2
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# The whole dependency tree of smokegeo[dev] as tested on Python {minor}; made by scripts/pin.py.
# torch and torchvision must be a pair; the rest is the newest that resolved with them.
"""


def main() -> None:
    """Ask pip what it would install, and pin it."""
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += ["--quiet", "--report", str(report), f"{ROOT}[dev]", "setuptools", *sys.argv[1:]]
        subprocess.run(command, check=True)
        installed = json.loads(report.read_text())["install"]
    pins = {item["metadata"]["name"].lower().replace("_", "-"): item for item in installed}
    lines = [
        f"{name}=={item['metadata']['version']}\n"
        for name, item in sorted(pins.items())
        if name != "smokegeo"
    ]
    path = ROOT / "constraints" / f"python{minor}.txt"
    path.write_text(HEAD.format(minor=minor) + "".join(lines))
    print(f"wrote {path.relative_to(ROOT)}: {len(lines)} packages")


if __name__ == "__main__":
    main()
