"""Smoke datasets for TorchGeo; the classes load on first use, because TorchGeo is heavy."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smokegeo.errors import UsageError

if TYPE_CHECKING:
    from smokegeo.datasets.smoke import SmokeDataset

#: Dataset kind (as in `--dataset`) -> class name.
KINDS = {"hss": "HSS", "mss": "MSS", "satellite": "Satellite"}

_HOMES = {
    "HSS": "smokegeo.datasets.hss",
    "MSS": "smokegeo.datasets.mss",
    "Satellite": "smokegeo.datasets.satellite",
    "SmokeDataset": "smokegeo.datasets.smoke",
    "SmokeDataModule": "smokegeo.datasets.datamodule",
}

__all__ = ["HSS", "KINDS", "MSS", "Satellite", "SmokeDataModule", "SmokeDataset"]


def dataset_class(kind: str) -> type[SmokeDataset]:
    """Return the class that reads a kind of dataset."""
    if kind not in KINDS:
        raise UsageError(f"dataset {kind!r} is not one of {', '.join(KINDS)}.")
    found: type[SmokeDataset] = __getattr__(KINDS[kind])
    return found


def default_root(kind: str) -> Path:
    """Return where a dataset lies if nobody says otherwise, seen from a checkout."""
    return Path("datasets") / kind / "data"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'smokegeo.datasets' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
