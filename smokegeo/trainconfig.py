"""What a training is told: the settings a YAML file holds, checked one by one, and the machine."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from smokegeo.datasets import dataset_class, default_root
from smokegeo.errors import InputError, UsageError
from smokegeo.models.build import refuse_unknown

#: Settings a training may be resumed with in another form: where the data lie, and when it ends.
MAY_CHANGE = ("root", "iterations", "val_every", "patience")

#: Whole numbers, and the smallest that makes sense.
_WHOLE = {
    "iterations": 1,
    "batch_size": 1,
    "crop_px": 1,
    "patch_px": 1,
    "warmup": 0,
    "val_every": 1,
    "patience": 1,
    "seed": 0,
}
#: Whole numbers that may be absent.
_OPTIONAL = ("patch_px", "patience")
#: Torch takes no larger seed, and nobody needs more of anything else.
_LARGEST = 2**63 - 1
#: Precisions whose weights are in half: a prototype that moves by a thousandth stays in place.
_TOO_COARSE = ("16-true", "bf16-true")
#: Numbers that are 0 or more.
_FROM_ZERO = ("weight_decay", "power", "prototype_weight")


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
        dataset_class(_word("dataset", self.dataset))  # refuses what it does not know
        refuse_unknown(_word("model", self.model))
        self._put("root", None if self.root is None else _path(self.root))
        self._put("options", _options(self.options))
        self._put("bands", None if self.bands is None else _bands(self.bands))
        self._put("scale", _scale(self.scale))
        for name, low in _WHOLE.items():
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                self._put(name, _whole(name, value, low))
        self._put("lr", _number("lr", self.lr))
        if self.lr <= 0:
            raise UsageError(f"lr {self.lr} must be above 0.")
        for name in _FROM_ZERO:
            self._put(name, _number(name, getattr(self, name)))
            if getattr(self, name) < 0:
                raise UsageError(f"{name} {getattr(self, name)} must be 0 or more.")
        self._put("band_dropout", _number("band_dropout", self.band_dropout))
        if not 0 <= self.band_dropout < 1:
            raise UsageError(f"band_dropout {self.band_dropout} is not from 0 to below 1.")
        if not isinstance(self.by_scene, bool):
            raise UsageError(f"by_scene {self.by_scene!r} is not true or false.")

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the record is frozen from here on

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainConfig:
        """Build a configuration from plain values, refusing unknown names."""
        known = {item.name for item in fields(cls)}
        unknown = sorted(str(name) for name in data if name not in known)
        if unknown:
            raise UsageError(f"training has no option {', '.join(unknown)}.")
        return cls(**data)

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

    def __post_init__(self) -> None:
        if self.precision in _TOO_COARSE:
            raise UsageError(
                f"--precision {self.precision} loses the prototypes' small steps. "
                f"Use {self.precision.replace('true', 'mixed')} or 32-true."
            )


def read_config(path: Path) -> dict[str, Any]:
    """Read a YAML configuration as plain data."""
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read ({' '.join(str(error).split())}).") from error
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no settings; see configs/ for examples.")
    return data


def refuse_changes(saved: TrainConfig, wanted: TrainConfig, out: Path) -> None:
    """Refuse to resume with settings that the weights so far were not trained with."""
    before, now = saved.to_dict(), wanted.to_dict()
    changed = [name for name in now if now[name] != before[name] and name not in MAY_CHANGE]
    if changed:
        facts = ", ".join(f"{name} {before[name]} (now {now[name]})" for name in changed)
        raise UsageError(
            f"{out} was trained with {facts}, which --resume cannot change. Leave that out, or "
            f"train anew with another --out."
        )


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} {value!r} is not a word.")
    return value


def _path(value: Any) -> str:
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"root {value!r} is not a folder; put the name in quotes.")
    return os.fspath(value)


def _options(value: Any) -> dict[str, Any]:
    value = {} if value is None else value  # `options:` with nothing below it
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"options {value!r} are no names with values, {{variant: accuracy}} say.")
    return dict(value)


def _bands(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(band, str) for band in value):
        raise UsageError(f"bands {value!r} is not a list of names, [600nm, 650nm] say.")
    if not value:
        raise UsageError("bands is an empty list; leave it out to train with all bands.")
    return tuple(value)


def _scale(value: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise UsageError(f"scale {value!r} is not two numbers, [0.5, 2.0] say.")
    low, high = (_number("scale", side) for side in value)
    if not 0 < low <= high:
        raise UsageError(f"scale {[low, high]} is not a range above 0, the smaller number first.")
    return low, high


def _whole(name: str, value: Any, low: int) -> int:
    number = value if isinstance(value, int) else _number(name, value, "a whole number")
    if isinstance(value, bool) or number != int(number):
        raise UsageError(f"{name} {value!r} is not a whole number.")
    if number < low:
        raise UsageError(f"{name} {value} must be {low} or more.")
    if number > _LARGEST:
        raise UsageError(f"{name} {value} is too large.")
    return int(number)


def _number(name: str, value: Any, kind: str = "a number") -> float:
    """Return a number; as text, too, because that is what YAML makes of 6e-5."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{name} {value!r} is not {kind}.")
    return number
