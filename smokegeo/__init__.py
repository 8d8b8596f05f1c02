"""Find smoke in multispectral and hyperspectral rasters.

Importing this package is cheap: the public names load their modules on first use,
so that `smokegeo --help` never waits for torch.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

try:
    __version__ = version("smokegeo")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

#: Public name -> the module that defines it.
_HOMES = {
    "Band": "smokegeo.bands",
    "BandSet": "smokegeo.bands",
    "HSS": "smokegeo.datasets",
    "MSS": "smokegeo.datasets",
    "MoP": "smokegeo.models.mop",
    "MoPSegmentationTask": "smokegeo.task",
    "load_model": "smokegeo.modelfile",
    "predict": "smokegeo.runs",
}

__all__ = [
    "HSS",
    "MSS",
    "Band",
    "BandSet",
    "MoP",
    "MoPSegmentationTask",
    "__version__",
    "load_model",
    "predict",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'smokegeo' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
