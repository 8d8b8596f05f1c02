"""Train a network on a prepared dataset: the second flow, on one page."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import lightning
import torch
import yaml
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger

from smokegeo.datasets import dataset_class, default_root
from smokegeo.datasets.datamodule import SmokeDataModule
from smokegeo.datasets.layout import load_layout
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.datasets.verify import require_sound
from smokegeo.errors import InputError, UsageError
from smokegeo.files import check_output
from smokegeo.modelfile import Card, save_model
from smokegeo.models.build import full_options, refuse_unknown
from smokegeo.stopping import SaveWhenStopped, plain_interrupts
from smokegeo.task import MoPSegmentationTask, TrainingDivergedError

log = logging.getLogger(__name__)

#: Seconds between two lines of progress when stderr is no terminal.
_LINE_EVERY_S = 30.0


@dataclass(frozen=True)
class TrainConfig:
    """A training as a YAML file holds it; the defaults are the paper's recipe."""

    dataset: str = "hss"
    root: str | None = None
    model: str = "mop"
    options: Mapping[str, Any] = field(default_factory=dict)
    bands: tuple[str, ...] | None = None
    iterations: int = 40_000
    batch_size: int = 4
    crop_px: int = 512
    scale: tuple[float, float] = (0.5, 2.0)
    patch_px: int | None = None
    lr: float = 6e-5
    weight_decay: float = 0.01
    power: float = 0.9
    warmup: int = 0
    prototype_weight: float = 0.01
    band_dropout: float = 0.0
    val_every: int = 1000
    patience: int | None = None
    by_scene: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        dataset_class(self.dataset)  # refuses what it does not know
        refuse_unknown(self.model)
        for name in ("iterations", "batch_size", "crop_px", "val_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)} must be 1 or more.")
        if not 0 <= self.band_dropout < 1:
            raise UsageError(f"band_dropout {self.band_dropout} is not in 0 to 1.")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainConfig:
        """Build a configuration from plain values, refusing unknown names."""
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise UsageError(f"training has no option {', '.join(unknown)}.")
        plain = dict(data)
        for name in ("bands", "scale"):
            if isinstance(plain.get(name), list):
                plain[name] = tuple(plain[name])
        return cls(**plain)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that YAML can hold."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @property
    def folder(self) -> Path:
        """Where the data lie."""
        return Path(self.root) if self.root else default_root(self.dataset)


@dataclass(frozen=True)
class Machine:
    """What the training runs on, as Lightning names it."""

    accelerator: str = "auto"
    devices: str = "auto"
    strategy: str = "auto"
    precision: str = "32-true"
    workers: int = 0


def read_config(path: Path) -> dict[str, Any]:
    """Read a YAML configuration as plain data."""
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read ({' '.join(str(error).split())}).") from error
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no settings; see configs/ for examples.")
    return data


def train(config: TrainConfig, out: Path, machine: Machine, *, resume: bool = False) -> Path:
    """Train, keep the best checkpoint, choose the threshold, and write the model file."""
    hush_lightning()
    layout = load_layout(config.folder, config.dataset)
    require_sound(layout, deep=True)
    model_file, last = out / "model.safetensors", out / "checkpoints" / "last.ckpt"
    if resume and not last.is_file():
        raise InputError(f"{last} does not exist, so there is nothing to resume.")
    out.mkdir(parents=True, exist_ok=True)
    check_output(model_file, overwrite=True)
    (out / "config.yaml").write_text(yaml.safe_dump(config.to_dict(), sort_keys=False), "utf-8")

    started = time.monotonic()
    data = data_module(config, machine)
    data.setup("fit")
    if data.statistics is None:
        raise InputError(f"{config.folder}: no statistics of the train split.")
    task = new_task(config, len(data.statistics.names))
    stop = SaveWhenStopped(last, _val_every(config))
    trainer = _trainer(config, out, machine, stop)
    with stop.listening():
        _fit(trainer, task, data, last, resume=resume)

    trainer.save_checkpoint(last)
    _take_best(trainer, task, data)
    if trainer.is_global_zero:
        card = _card(config, task, data, out.name, time.monotonic() - started)
        save_model(model_file, card, task.model.state_dict())
    return model_file


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


def _val_every(config: TrainConfig) -> int:
    return min(config.val_every, config.iterations)


def _trainer(
    config: TrainConfig, out: Path, machine: Machine, stop: SaveWhenStopped
) -> lightning.Trainer:
    callbacks: list[Callback] = [
        ModelCheckpoint(
            out / "checkpoints",
            "best",
            monitor="val_f1",
            mode="max",
            enable_version_counter=False,
        ),
        # At every validation, whatever the score; `save_last` of the other follows the best one.
        ModelCheckpoint(out / "checkpoints", "last", enable_version_counter=False),
        stop,
    ]
    if config.patience is not None:
        callbacks.append(EarlyStopping("val_f1", patience=config.patience, mode="max"))
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
    state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
    task.load_state_dict(state, strict=True)
    trainer.validate(task, datamodule=data, verbose=False)


class ProgressLines(Callback):
    """Say now and then how far the training is, where a bar would be noise."""

    def __init__(self) -> None:
        self.said = self.started = 0.0
        self.first_step = 0

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
            "step %d of %d, loss %s, about %d min left",
            trainer.global_step,
            trainer.max_steps,
            "-" if loss is None else f"{float(loss):.4f}",
            round(left / 60),
        )

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Print the validation score."""
        score = trainer.callback_metrics.get("val_f1")
        if score is not None:
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
            "config": config.to_dict(),
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
