"""Train a network on a prepared dataset: the second flow, on one page."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import lightning
import torch
import yaml
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger

from smokegeo.checkpoints import MovableCheckpoint, Patience, WholeCheckpoints
from smokegeo.datasets.datamodule import SmokeDataModule
from smokegeo.datasets.layout import load_layout
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.datasets.verify import require_sound
from smokegeo.errors import (
    InputError,
    OutputError,
    SmokegeoError,
    UsageError,
    deepest_cause,
    printable,
)
from smokegeo.files import atomic_file, check_output
from smokegeo.modelfile import Card, save_model
from smokegeo.models.build import full_options
from smokegeo.progress import duration
from smokegeo.stopping import SaveWhenStopped, plain_interrupts
from smokegeo.task import MoPSegmentationTask, TrainingDivergedError
from smokegeo.trainconfig import Machine, TrainConfig, read_config, refuse_changes

__all__ = [
    "Machine",
    "TrainConfig",
    "data_module",
    "hush_lightning",
    "new_task",
    "read_config",
    "train",
]

log = logging.getLogger(__name__)

#: Seconds between two lines of progress when stderr is no terminal.
_LINE_EVERY_S = 30.0


def train(config: TrainConfig, out: Path, machine: Machine, *, resume: bool = False) -> Path:
    """Train, keep the best checkpoint, choose the threshold, and write the model file."""
    hush_lightning()
    model_file, last = out / "model.safetensors", out / "checkpoints" / "last.ckpt"
    if resume:
        _check_resume(config, out, last)
    require_sound(load_layout(config.folder, config.dataset), deep=True)

    started = time.monotonic()
    data = data_module(config, machine)
    data.setup("fit")
    if data.statistics is None:
        raise InputError(f"{config.folder}: no statistics of the train split.")
    task = new_task(config, len(data.statistics.names))
    stop = SaveWhenStopped(last, _val_every(config))
    try:
        trainer = _trainer(config, out, machine, stop)
    except (MisconfigurationException, ValueError, TypeError, ImportError) as error:
        raise UsageError(
            f"Lightning refuses to train ({printable(deepest_cause(error)).rstrip('.')}). Check "
            "--accelerator, --devices, --strategy and --precision."
        ) from error
    # Nothing is written before all of this is known to fit.
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be made ({error.strerror}).") from error
    check_output(model_file, overwrite=True)
    if trainer.is_global_zero:
        _begin(config, out, resume=resume)
    with stop.listening():
        _fit(trainer, task, data, last, resume=resume)

    trainer.save_checkpoint(last)
    _take_best(trainer, task, data)
    if trainer.is_global_zero:
        card = _card(config, task, data, out.name, time.monotonic() - started)
        save_model(model_file, card, task.model.state_dict())
    return model_file


def _check_resume(config: TrainConfig, out: Path, last: Path) -> None:
    """Refuse to go on with what is not there, is of other settings, or is done already."""
    if not last.is_file():
        raise InputError(f"{last} does not exist, so there is nothing to resume.")
    refuse_changes(TrainConfig.from_dict(read_config(out / "config.yaml")), config, out)
    try:
        # Mapped: all it is asked for here is a number.
        state = torch.load(last, map_location="cpu", weights_only=True, mmap=True)
        step = int(state["global_step"])
    except Exception as error:  # whatever torch makes of a broken file
        raise InputError(f"{last} is damaged. Start anew with --overwrite.") from error
    if step > config.iterations:
        raise UsageError(
            f"{out} is at step {step} already; iterations {config.iterations} must not be fewer."
        )


def _begin(config: TrainConfig, out: Path, *, resume: bool) -> None:
    """Write the settings; before them goes what an earlier training with others has left."""
    if not resume:
        for path in [*(out / "checkpoints").glob("*.ckpt"), out / "model.safetensors"]:
            path.unlink(missing_ok=True)
    with atomic_file(out / "config.yaml") as part:
        part.write_text(yaml.safe_dump(config.to_dict(), sort_keys=False), "utf-8")


def hush_lightning() -> None:
    """Silence Lightning's tips and notes on hardware; what matters, smokegeo says itself."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*LeafSpec.*")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message="The number of training batches.*")
    # We resume, and our loader starts at the trainer's step.
    warnings.filterwarnings("ignore", message="Checkpoint directory .* exists")
    warnings.filterwarnings("ignore", message="You're resuming from a checkpoint that ended")


def data_module(config: TrainConfig, machine: Machine) -> SmokeDataModule:
    """Return the loaders of a training."""
    return SmokeDataModule(
        config.folder,
        config.dataset,
        batch_size=config.batch_size,
        crop_px=config.crop_px,
        scale=config.scale,
        patch_px=config.patch_px,
        iterations=config.iterations,
        num_workers=machine.workers,
        seed=config.seed,
        bands=config.bands,
        by_scene=config.by_scene,
    )


def new_task(config: TrainConfig, bands: int) -> MoPSegmentationTask:
    """Return the network of a training with its first weights, its loss and its optimiser."""
    torch.manual_seed(config.seed)  # the initial weights
    try:
        return MoPSegmentationTask(
            config.model,
            bands,
            dict(config.options),
            iterations=config.iterations,
            lr=config.lr,
            weight_decay=config.weight_decay,
            power=config.power,
            warmup=config.warmup,
            prototype_weight=config.prototype_weight,
            band_dropout=config.band_dropout,
            seed=config.seed,
        )
    except SmokegeoError:
        raise
    except Exception as error:
        if not config.options:
            raise
        # Each library a baseline comes from has its own error for a value it does not know.
        raise UsageError(
            f"model {config.model} cannot be built with options {dict(config.options)} "
            f"({printable(deepest_cause(error))[:200]})."
        ) from error


def _val_every(config: TrainConfig) -> int:
    return min(config.val_every, config.iterations)


def _trainer(
    config: TrainConfig, out: Path, machine: Machine, stop: SaveWhenStopped
) -> lightning.Trainer:
    callbacks: list[Callback] = [
        MovableCheckpoint(
            out / "checkpoints",
            "best",
            monitor="val_f1",
            mode="max",
            enable_version_counter=False,
        ),
        # At every validation, whatever the score; `save_last` of the other follows the best one.
        MovableCheckpoint(out / "checkpoints", "last", enable_version_counter=False),
        stop,
    ]
    if config.patience is not None:
        callbacks.append(Patience("val_f1", patience=config.patience, mode="max"))
    quiet = not log.isEnabledFor(logging.INFO)
    terminal = sys.stderr.isatty() and not quiet
    callbacks.append(TQDMProgressBar(leave=True) if terminal else ProgressLines())
    return lightning.Trainer(
        max_steps=config.iterations,
        max_epochs=-1,
        val_check_interval=_val_every(config),
        check_val_every_n_epoch=None,
        accelerator=machine.accelerator,
        devices=machine.devices,
        strategy=machine.strategy,
        precision=machine.precision,  # type: ignore[arg-type]  # checked by Lightning
        logger=CSVLogger(out, name="logs", version=_next_log(out / "logs")),
        log_every_n_steps=min(50, config.iterations),
        callbacks=callbacks,
        plugins=[WholeCheckpoints()],
        num_sanity_val_steps=0,
        use_distributed_sampler=False,  # the data module shares samples out itself
        enable_progress_bar=terminal,
        enable_model_summary=False,
        default_root_dir=out,
    )


def _next_log(folder: Path) -> str:
    """Return a new folder name for each start: the logger deletes what it finds in an old one."""
    return str(sum(path.is_dir() for path in folder.iterdir()) if folder.is_dir() else 0)


def _fit(
    trainer: lightning.Trainer,
    task: MoPSegmentationTask,
    data: SmokeDataModule,
    last: Path,
    *,
    resume: bool,
) -> None:
    try:
        start = last if resume else None
        with plain_interrupts(trainer):
            trainer.fit(task, datamodule=data, ckpt_path=start, weights_only=True)
    except TrainingDivergedError as error:
        where = f" The last good checkpoint is {last}." if last.is_file() else ""
        raise TrainingDivergedError(f"{error}{where}") from error


def _take_best(
    trainer: lightning.Trainer, task: MoPSegmentationTask, data: SmokeDataModule
) -> None:
    """Leave the weights of the best validation in the task, with their report and threshold.

    The last steps may not have been validated, so the final weights are, before they are compared.
    """
    (final,) = trainer.validate(task, datamodule=data, verbose=False)
    best = cast("ModelCheckpoint", trainer.checkpoint_callback)
    if best.best_model_score is None or final["val_f1"] > float(best.best_model_score):
        return
    state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)
    task.load_state_dict(state["state_dict"], strict=True)
    trainer.validate(task, datamodule=data, verbose=False)
    if trainer.is_global_zero:
        step, score = int(state["global_step"]), float(best.best_model_score)
        log.info("the weights of step %d are the best, with validation F1 %.4f", step, score)


class ProgressLines(Callback):
    """Say now and then how far the training is, where a bar would be noise."""

    def __init__(self) -> None:
        self.said = self.started = 0.0
        self.first_step = 0
        self.scored: int | None = None

    def on_train_start(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Start the clock."""
        self.started = self.said = time.monotonic()
        self.first_step = trainer.global_step

    def on_train_batch_end(self, trainer: lightning.Trainer, *args: Any, **kwargs: Any) -> None:
        """Print a line every half minute."""
        now = time.monotonic()
        if now - self.said < _LINE_EVERY_S:
            return
        self.said = now
        done = trainer.global_step - self.first_step
        left = (trainer.max_steps - trainer.global_step) * (now - self.started) / max(1, done)
        loss = trainer.callback_metrics.get("train_loss")
        log.info(
            "step %d of %d, loss %s, about %s left",
            trainer.global_step,
            trainer.max_steps,
            "-" if loss is None else f"{float(loss):.4f}",
            duration(left),
        )

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Print the validation score, once for a step: at the end there are more of them."""
        score = trainer.callback_metrics.get("val_f1")
        if score is not None and self.scored != trainer.global_step:
            self.scored = trainer.global_step
            log.info("step %d: validation F1 %.4f", trainer.global_step, float(score))


def _card(
    config: TrainConfig, task: MoPSegmentationTask, data: SmokeDataModule, name: str, seconds: float
) -> Card:
    statistics = data.statistics
    layout = load_layout(config.folder, config.dataset)
    train = cast("SmokeDataset", data.train_dataset)
    if statistics is None or task.val_report is None:
        raise InputError("the training ended before it was validated once.")
    return Card(
        name=name,
        architecture=config.model,
        options=full_options(task.model, config.model, config.options),
        bands=train.band_set,
        statistics=statistics,
        threshold=task.threshold,
        tile_px=config.crop_px,
        overlap_px=config.crop_px // 4,
        input={
            "dtype": _dtype(layout.image(layout.frames[0].id)),
            "minimum": min(statistics.minimum),
            "maximum": max(statistics.maximum),
        },
        training={
            # Without the path of the data: it is of one machine only.
            "config": {k: v for k, v in config.to_dict().items() if k != "root"},
            "frames": len(train.records),
            "data": dict(layout.facts),
            "seconds": round(seconds),
            "date": datetime.now(UTC).date().isoformat(),
            "threshold": "best mean per-image F1 on the validation split, in steps of 0.05",
        },
        metrics={"validation": task.val_report.to_dict()},
        licence="that of the training data; see its card",
    )


def _dtype(path: Path) -> str:
    import rasterio

    with rasterio.open(path, driver="GTiff") as src:
        return str(src.dtypes[0])
