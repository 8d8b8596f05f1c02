"""What every method of a comparison gets: the same steps or minutes, crops, batches and rates."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, fields, replace

import torch

from smokegeo.engine import pick_device
from smokegeo.errors import UsageError
from smokegeo.task import MoPSegmentationTask
from smokegeo.train import TrainConfig

#: Steps on noise that say how many fit into a budget of minutes: some to warm up, some to time.
_WARM_UP, _TIMED = 1, 3


@dataclass(frozen=True)
class Budget:
    """One budget for all; the defaults are the paper's recipe.

    iterations: training steps; or minutes: as many steps as fit into them on this machine.
    batch, crop: samples a step, and the side of their crops in pixels.
    lr, warmup: learning rate at the start, and steps until it is reached.
    momentum: of the prototypes of MoP and ProtoSeg; 0.999 needs thousands of steps to move them.
    """

    iterations: int = 40_000
    minutes: float | None = None
    batch: int = 4
    crop: int = 512
    lr: float = 6e-5
    warmup: int = 0
    momentum: float = 0.999

    def __post_init__(self) -> None:
        for name, low in (("iterations", 1), ("batch", 1), ("crop", 1), ("warmup", 0)):
            if getattr(self, name) < low:
                raise UsageError(f"budget: {name} {getattr(self, name)} must be {low} or more.")
        for name in ("lr", "minutes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"budget: {name} {value} must be above 0.")
        if not 0 <= self.momentum <= 1:
            raise UsageError(f"budget: momentum {self.momentum} is not in 0 to 1.")

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read `paper`, or settings such as `iterations=600,crop=96,lr=5e-4`."""
        if text == "paper":
            return cls()
        kinds = {item.name: float if "float" in str(item.type) else int for item in fields(cls)}
        chosen: dict[str, float] = {}
        for part in text.split(","):
            name, found, number = part.strip().partition("=")
            if not found or name not in kinds:
                raise UsageError(
                    f"budget {part.strip()!r} is not understood. Write `paper`, or NAME=VALUE of "
                    f"{', '.join(kinds)}, separated by commas."
                )
            try:
                chosen[name] = kinds[name](number)
            except ValueError:
                raise UsageError(f"budget: {name} {number!r} is not a number.") from None
        if {"minutes", "iterations"} <= set(chosen):
            raise UsageError("budget: give iterations or minutes, not both.")
        return cls(**chosen)  # type: ignore[arg-type]  # whole numbers where they must be

    @property
    def is_papers(self) -> bool:
        """Whether this is the paper's recipe."""
        return self == Budget()

    def words(self) -> str:
        """Return the budget as a sentence would have it."""
        length = f"{self.iterations} iterations"
        if self.minutes is not None:
            length = f"as many iterations as {self.minutes:g} minutes hold"
        return (
            f"{length} of {self.batch} crops of {self.crop} pixels, learning rate {self.lr:g}, "
            f"{self.warmup} steps of warm-up, prototype momentum {self.momentum:g}"
        )


def with_steps(config: TrainConfig, iterations: int) -> TrainConfig:
    """Return a training of this many steps, validated a few times on the way."""
    often = max(1, min(1000, math.ceil(iterations / 5)))
    return replace(config, iterations=iterations, val_every=often)


def steps_within(minutes: float, config: TrainConfig, bands: int, accelerator: str) -> int:
    """Return how many training steps fit into this time, by timing a few on noise.

    They are timed in single precision. Reading data and validating come on top: they are the same
    for all.
    """
    device = pick_device("cpu" if accelerator == "cpu" else "auto")
    task = MoPSegmentationTask(config.model, bands, dict(config.options)).to(device).train()
    image = torch.randn(config.batch_size, bands, config.crop_px, config.crop_px, device=device)
    labels = torch.randint(0, 2, image[:, 0].shape, device=device)
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-9)
    times = []
    for _ in range(_WARM_UP + _TIMED):
        start = time.perf_counter()
        loss = torch.stack(list(task.loss_terms(image, labels, None).values())).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if device != "cpu":
            torch.accelerator.synchronize()
        times.append(time.perf_counter() - start)
    return max(1, int(60 * minutes / statistics.median(times[_WARM_UP:])))
