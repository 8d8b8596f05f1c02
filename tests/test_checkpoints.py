"""Checkpoints go on where Lightning's own would forget."""

from __future__ import annotations

import tempfile

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from smokegeo.checkpoints import MovableCheckpoint, Patience, WholeCheckpoints


def kept(folder, kind=ModelCheckpoint):
    return kind(folder, "best", monitor="val_f1", mode="max")


def test_checkpoints_of_lightnings_own_classes_are_read(tmp_path):
    assert kept(tmp_path, MovableCheckpoint).state_key == kept(tmp_path).state_key
    ours, theirs = (kind("val_f1", mode="max") for kind in (Patience, EarlyStopping))
    assert ours.state_key == theirs.state_key


def test_the_best_score_is_known_wherever_its_file_lies(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    old, path = kept(there), str(there / "best.ckpt")
    old.best_model_score = old.kth_value = torch.tensor(0.7)
    old.best_model_path = old.kth_best_model_path = path
    old.best_k_models = {path: torch.tensor(0.7)}
    here.mkdir()
    (here / "best.ckpt").touch()
    new = kept(here, MovableCheckpoint)
    new.load_state_dict(old.state_dict())
    assert new.best_model_score == 0.7
    assert new.best_model_path == new.kth_best_model_path == str(here / "best.ckpt")
    assert new.best_k_models == {str(here / "best.ckpt"): torch.tensor(0.7)}


def test_a_score_without_its_file_is_forgotten(tmp_path):
    old = kept(tmp_path)
    old.best_model_score, old.best_model_path = torch.tensor(0.7), str(tmp_path / "best.ckpt")
    new = kept(tmp_path, MovableCheckpoint)
    new.load_state_dict(old.state_dict())
    assert new.best_model_score is None
    assert new.best_model_path == ""


def test_a_checkpoint_is_written_beside_its_place_and_nowhere_else(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "another disk"))  # that is not there
    path, files = tmp_path / "checkpoints" / "last.ckpt", WholeCheckpoints()
    files.save_checkpoint({"step": 3, "weights": torch.ones(2)}, path)
    assert files.load_checkpoint(path, weights_only=True)["step"] == 3
    assert list(path.parent.iterdir()) == [path]


def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path, monkeypatch):
    path, files = tmp_path / "last.ckpt", WholeCheckpoints()
    files.save_checkpoint({"step": 3}, path)

    def half(checkpoint, handle):
        handle.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KeyboardInterrupt):
        files.save_checkpoint({"step": 4}, path)
    assert files.load_checkpoint(path, weights_only=True)["step"] == 3
    assert list(tmp_path.iterdir()) == [path]
