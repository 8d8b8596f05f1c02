"""A process that has imported everything and forks a run of `smokegeo` whenever it is asked to.

    python tests/faults/forking.py

Importing torch takes seconds and a killed run does not; with this, twenty runs are killed in the
time of two. It reads one JSON object a line and answers each with one number.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import geopandas  # noqa: F401  # what a run would import later
import pyarrow.parquet  # noqa: F401
import pyogrio  # noqa: F401
from bright_engine import BrightEngine

import smokegeo.cli.predict
import smokegeo.pipeline
import smokegeo.runs
from smokegeo.cli.main import main


def start(order: dict[str, Any]) -> int:
    """Fork a run; return its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        BrightEngine.seconds_per_tile = order.get("seconds", 0.0)
        BrightEngine.started = Path(order["started"])
        smokegeo.pipeline.Engine = BrightEngine  # type: ignore[misc, assignment]
        if "limit_bytes" in order:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["limit_bytes"],) * 2)
        sys.argv = ["smokegeo", *order["args"]]
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException as error:
        os.write(2, f"Traceback: {error!r}".encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def answer(value: object) -> None:
    """Write one line."""
    sys.stdout.write(f"{value}\n")
    sys.stdout.flush()


def serve() -> None:
    """Answer orders until there are none."""
    answer("ready")
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer(os.waitstatus_to_exitcode(status))
        else:
            answer(start(order))


if __name__ == "__main__":
    serve()
