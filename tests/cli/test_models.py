"""`smokegeo models`: what the cards say, and what to do next."""

from __future__ import annotations

import pytest
from toy_models import save_toy


@pytest.mark.parametrize("kind", ["hss", "mss", "satellite"])
def test_the_next_step_of_a_model_is_with_data_of_its_kind(run, kind, tmp_path):
    shown = run("models", "show", save_toy(tmp_path / "m.safetensors", kind)).output
    assert f"--dataset {kind} --root DATA" in shown
    trained = {"config": {"dataset": "mss"}}
    path = save_toy(tmp_path / "t.safetensors", kind, training=trained)
    assert "--dataset mss --root DATA" in run("models", "show", path).output


def test_a_model_of_no_known_kind_names_no_dataset(run, tmp_path):
    path = save_toy(tmp_path / "m.safetensors", "naip", training={"config": {}})
    shown = run("models", "show", path)
    assert shown.exit_code == 0, shown.output
    assert "smokegeo predict" in shown.output
    assert "--dataset" not in shown.output
