"""What several tests need: small datasets on disk and the command line in-process."""

from __future__ import annotations

import os
import signal

# A shell that starts the suite in the background makes it deaf to Ctrl-C, which tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Tests never ask the hub, and matplotlib never opens a window.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# One thread per test process: two of them fighting for two cores are many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from random_data import random_frame

from smokegeo.cli import cli
from smokegeo.datasets.layout import Layout, finish_layout, write_frame
from smokegeo.datasets.splits import RATIOS, make_splits
from smokegeo.sensors import sensor


@pytest.fixture
def make_dataset(tmp_path: Path) -> Callable[..., Layout]:
    """Return a function that writes a prepared dataset of random frames."""

    def make(
        count: int = 10,
        kind: str = "hss",
        name: str = "data",
        size: tuple[int, int] = (24, 40),
        ship_splits: bool = True,
    ) -> Layout:
        root = tmp_path / name
        root.mkdir()
        records = [write_frame(root, random_frame(n, kind, size), n) for n in range(count)]
        ids = [record.id for record in records]
        splits = make_splits(ids, RATIOS.get(kind, (6, 2, 2))) if ship_splits else {}
        return finish_layout(root, kind, sensor(kind).bands, records, splits)

    return make


@pytest.fixture
def run() -> Callable[..., Result]:
    """Return a function that runs the command line in this process."""

    def invoke(*args: object) -> Result:
        return CliRunner().invoke(cli, [str(arg) for arg in args])

    return invoke
