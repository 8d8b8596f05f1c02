"""What every method of a comparison gets: the same steps or minutes, crops, batches and rates."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields, replace
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from smokegeo.errors import InputError, UsageError
from smokegeo.stopping import plain_interrupts
from smokegeo.train import Machine, TrainConfig, data_module, hush_lightning, new_task

#: Steps that say how many fit into a budget of minutes: some to warm up, some to time.
_WARM_UP, _TIMED = 1, 5
#: Batches torch's loader has each of its processes load ahead.
_AHEAD = 2


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


def steps_within(minutes: float, config: TrainConfig, machine: Machine) -> int:
    """Return how many steps of a training fit into this time; validating comes on top.

    A few are timed as they will be done: with the frames, the loader processes, the device and
    the precision of the training. What they learn is thrown away.
    """
    hush_lightning()
    # Batches that were loaded ahead cost no time; the first timed one must not be among them.
    warm_up = _WARM_UP + _AHEAD * machine.workers
    timed = max(_TIMED, _AHEAD * machine.workers)
    config = replace(config, iterations=warm_up + timed)
    data = data_module(config, machine)
    data.setup("fit")
    if data.statistics is None:
        raise InputError(f"{config.folder}: no statistics of the train split.")
    clock = _Clock()
    trainer = lightning.Trainer(
        max_steps=config.iterations,
        max_epochs=-1,
        accelerator=machine.accelerator,
        devices=machine.devices,
        strategy=machine.strategy,
        precision=machine.precision,  # type: ignore[arg-type]  # checked by Lightning
        callbacks=[clock],
        logger=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with plain_interrupts(trainer):
        trainer.fit(new_task(config, len(data.statistics.names)), datamodule=data)
    # The mean, not the median: loader processes hand over several batches at once, then none.
    seconds = (clock.ends[-1] - clock.ends[warm_up - 1]) / timed
    return max(1, int(60 * minutes / seconds))


class _Clock(Callback):
    """Note when each step ends."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())
