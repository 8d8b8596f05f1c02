"""Smoke datasets for TorchGeo; the classes load on first use, because TorchGeo is heavy."""

from __future__ import annotations

import importlib
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'smokegeo.datasets' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
