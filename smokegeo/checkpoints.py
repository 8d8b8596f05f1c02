"""Lightning's checkpoints and patience, made to go on after a folder moved or a setting changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from smokegeo.files import atomic_file


class WholeCheckpoints(TorchCheckpointIO):
    """Lightning's checkpoint files, written beside their place and renamed when complete.

    Lightning itself writes them to the folder for temporary files; from another disk they are
    copied into place, and a machine that stops meanwhile leaves half of one.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint, whole or not at all."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(Path(path)) as part, part.open("wb") as handle:
            torch.save(checkpoint, handle)


class MovableCheckpoint(ModelCheckpoint):
    """Lightning's checkpoint that still knows its best score where its folder was moved or copied.

    Lightning keeps absolute paths and forgets the score if they have changed: a resumed training
    would then take any weights for its best.
    """

    @property
    def state_key(self) -> str:
        """The name in checkpoints, that of Lightning's own class: older ones are read, too."""
        return _lightnings(self, ModelCheckpoint, super().state_key)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a score and its file, as long as the file is there."""
        state = {**state_dict, "dirpath": self.dirpath}
        for name in ("best_model_path", "kth_best_model_path", "last_model_path"):
            state[name] = self._here(state.get(name, ""))
        scores = state.get("best_k_models", {})
        state["best_k_models"] = {self._here(path): score for path, score in scores.items()}
        if Path(state["best_model_path"]).is_file():
            super().load_state_dict(state)

    def _here(self, path: str) -> str:
        return str(Path(self.dirpath or "") / Path(path).name) if path else ""


class Patience(EarlyStopping):
    """Lightning's early stopping that goes on with the patience of today."""

    @property
    def state_key(self) -> str:
        """The name in checkpoints, that of Lightning's own class: older ones are read, too."""
        return _lightnings(self, EarlyStopping, super().state_key)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the best score and how long ago it was."""
        super().load_state_dict({**state_dict, "patience": self.patience})


def _lightnings(callback: object, base: type, key: str) -> str:
    return base.__qualname__ + key.removeprefix(type(callback).__qualname__)
