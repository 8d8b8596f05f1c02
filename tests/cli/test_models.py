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


STEERING = "\x1bcred\r"


def test_a_strangers_words_cannot_steer_the_terminal(run, tmp_path, monkeypatch):
    path = save_toy(tmp_path / "m.safetensors", name=STEERING, summary=STEERING)
    (tmp_path / "odd\x1bc.safetensors").write_bytes(b"x" * 100)
    for order in (("list", "--folder", tmp_path), ("show", path)):
        shown = run("models", *order)
        assert shown.exit_code == 0, shown.output
        assert "red" in shown.output
        assert not {"\x1b", "\r"} & set(shown.output)
    monkeypatch.setattr("smokegeo.modelfile.bundled_models", dict)
    assert "\x1b" not in run("models", "--folder", tmp_path / "none\x1b").output
