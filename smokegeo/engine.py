"""The network at work: which device, which backend, and normalised tiles in, smoke out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from smokegeo.errors import ModelError, UsageError
from smokegeo.fitting import Fit
from smokegeo.modelfile import Model, load_model
from smokegeo.stitch import FULL
from smokegeo.zoom import smoke_seen

if TYPE_CHECKING:
    Network = Callable[[Tensor, Tensor | None], Tensor]

DEVICES = ("auto", "cpu", "cuda", "mps")
BACKENDS = ("torch", "onnx")
#: Turns and flips a tile is also looked at with; each is (quarter turns, mirrored).
TTA = {
    "none": ((0, False),),
    "flip": ((0, False), (0, True)),
    "full": tuple((turns, mirrored) for mirrored in (False, True) for turns in range(4)),
}
_MAX_THREADS = 16


@dataclass(frozen=True)
class Effort:
    """How to run the network; `batch` and `threads` do not change the result.

    fast: do not look at a scene enlarged, even if the model's card asks for it.
    """

    device: str = "auto"
    backend: str = "torch"
    tta: str = "none"
    fast: bool = False
    batch: int | None = None
    threads: int | None = None

    def resolved(self) -> Effort:
        """Return the effort with everything decided for this machine."""
        device = "cpu" if self.backend == "onnx" else pick_device(self.device)
        on_cpu = device == "cpu"
        return replace(
            self,
            device=device,
            batch=self.batch or (1 if on_cpu else 8),
            threads=self.threads or (min(cores(), _MAX_THREADS) if on_cpu else 1),
        )


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pick_device(name: str) -> str:
    """Return the device to run on; `auto` takes the fastest there is."""
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return next(device for device in ("cuda", "mps", "cpu") if there[device])
    if not there[name]:
        raise UsageError(f"--device {name}: this machine has none that torch can use. Use cpu.")
    return name


class Engine:
    """A loaded model that turns tiles (B, channels, H, W) into whole-number smoke.

    `available` says which channels are there; by default those of the bands the scene has. Tiles
    are seen at one part in `reduction` of their size.
    """

    def __init__(
        self,
        fit: Fit,
        effort: Effort,
        available: Sequence[bool] | None = None,
        reduction: int = 1,
    ) -> None:
        self.effort, self.reduction = effort, reduction
        self.card = fit.card
        self.looks = self.card.looks.without_enlarged() if effort.fast else self.card.looks
        self._network: Network
        with torch_threads(1):  # folding is many small products: threads would wait for each other
            model = load_model(fit.path)
            if effort.backend == "onnx":
                self._network = _onnx(model)
            else:
                self._network = model.for_inference().to(effort.device)
        row = torch.tensor([fit.matching.available if available is None else available])
        self._available = None if bool(row.all()) else row.to(effort.device)

    def __call__(self, tiles: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return smoke (B, H, W) from 0 to FULL."""
        try:
            with torch.inference_mode():
                return self._run(torch.from_numpy(tiles).to(self.effort.device))
        except RuntimeError as error:  # a card's memory has a class of its own, a CPU's words
            full = isinstance(error, torch.OutOfMemoryError) or "can't allocate" in str(error)
            if not full:
                raise
            if len(tiles) == 1:
                other = "" if self.effort.device == "cpu" else ", or --device cpu"
                raise ModelError(
                    f"a tile of {tiles.shape[2]} pixels does not fit into memory "
                    f"({self.effort.device}). Choose a smaller --tile{other}."
                ) from None
        half = len(tiles) // 2
        return np.concatenate([self(tiles[:half]), self(tiles[half:])])

    def _run(self, x: Tensor) -> NDArray[np.uint16]:
        available = self._available
        if available is not None:
            available = available.expand(len(x), -1)
        views = TTA[self.effort.tta]
        total = torch.zeros((), device=x.device)
        for turns, mirrored in views:
            turned = torch.rot90(x.flip(3) if mirrored else x, turns, (2, 3)).contiguous()
            smoke = smoke_seen(
                self._network,
                turned,
                available,
                self.looks,
                self.card.smoke,
                self.reduction,
            )
            smoke = torch.rot90(smoke, -turns, (1, 2))
            total = total + (smoke.flip(2) if mirrored else smoke)
        mean = total / len(views)
        if not bool(torch.isfinite(mean).all()):
            raise ModelError(
                f"model '{self.card.name}' gives results that are no numbers; its weights are bad."
            )
        return (mean * FULL).round().to(torch.int32).cpu().numpy().astype(np.uint16)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch work in so many threads, and in as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _onnx(model: Model) -> Network:
    """Export the folded network to a temporary ONNX file and load it."""
    import tempfile

    from smokegeo.models.folded import FoldedMoP
    from smokegeo.models.onnx import OnnxNetwork, export_onnx

    network = model.for_inference()
    if not isinstance(network, FoldedMoP):
        raise UsageError("--backend onnx runs MoP models only. Use --backend torch.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(network, path)
        return OnnxNetwork(path, threads=1)
