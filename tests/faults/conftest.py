"""What the fault tests share: a model, the stand-in for its network, and how a run is judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from bright_engine import BrightEngine, save_bright_model


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    """A model file for red, green, blue and near infrared."""
    return save_bright_model(tmp_path_factory.mktemp("model") / "bright.safetensors")


@pytest.fixture
def bright(monkeypatch) -> type[BrightEngine]:
    """Let smoke be what is bright in the first band."""
    monkeypatch.setattr("smokegeo.pipeline.Engine", BrightEngine)
    return BrightEngine
