"""Every switch of MoP in one frozen record, checked, with the widths that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from smokegeo.errors import UsageError

Variant = Literal["realtime", "accuracy"]
Fusion = Literal["mean", "sum", "concat", "common", "spectral"]
Update = Literal["momentum", "gradient", "none"]
WidthRule = Literal["total", "equal"]

#: Encoder blocks per stage; the common branch has as many as the individual one.
DEPTHS: Mapping[str, tuple[int, int, int, int]] = {
    "realtime": (2, 2, 2, 2),
    "accuracy": (3, 4, 16, 3),
}
#: Stage-wise channels of both branches for the paper's 25 bands.
STAGE_CHANNELS = (25, 50, 125, 200)
#: Of the four stages of any MiT: attention heads, and how far the map they look at is reduced.
HEADS = (1, 2, 5, 8)
REDUCTIONS = (8, 4, 2, 1)
#: Unit vectors in fewer dimensions cannot hold three prototypes of two classes apart.
MIN_BAND_CHANNELS = 4
#: From and to how many of each there may be. A card comes from anyone and must not ask for more
#: memory than there is.
_RANGES = {"bands": (1, 1000), "prototypes": (1, 100), "dim": (1, 10_000), "classes": (2, 10)}


@dataclass(frozen=True)
class MoPConfig:
    """What makes one MoP differ from another; the defaults are the paper's network.

    bands: input bands, 1 to several hundred.
    variant: "realtime" (2,2,2,2 blocks) or "accuracy" (3,4,16,3).
    prototypes: K, prototypes per class and band.
    dim: D, feature channels, shared out among the bands.
    classes: background and smoke.
    band_split, psr, f_router, p_router: the rows of the paper's ablation table.
    fusion: how the two branches meet; "common" and "spectral" keep one of them.
    prototype_update: by momentum (the paper), by gradient, or not at all.
    momentum, tau: of the prototype update and of its loss.
    width_rule: "total" keeps the total channels of a stage near the paper's for any number of
        bands, "equal" keeps the number of parameters.
    band_groups: bands are processed in this many groups of neighbours; None means one group per
        band unless that leaves a band fewer than 4 channels.
    shared_p_router: one P-Router for all bands (the paper writes no band index), or one each.
    rescale: multiply the routed features by the number of bands, since the F-Router's softmax
        divides them by about as much.
    update_correct_only: only pixels the head classifies correctly move the prototypes.
    drop_path, dropout: regularisation of both encoders and of the head.
    """

    bands: int = 25
    variant: Variant = "realtime"
    prototypes: int = 3
    dim: int = 250
    classes: int = 2
    band_split: bool = True
    psr: bool = True
    f_router: bool = True
    p_router: bool = True
    fusion: Fusion = "mean"
    prototype_update: Update = "momentum"
    momentum: float = 0.999
    tau: float = 0.1
    width_rule: WidthRule = "total"
    band_groups: int | None = None
    shared_p_router: bool = True
    rescale: bool = False
    update_correct_only: bool = False
    drop_path: float = 0.1
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for item in fields(self):
            _check_type(item.name, getattr(self, item.name), item.default)
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value < low:
                raise UsageError(f"MoP: {name}={value} is too small; at least {low}.")
            if value > high:
                raise UsageError(f"MoP: {name}={value} is too large; at most {high}.")
        _one_of("variant", self.variant, DEPTHS)
        _one_of("fusion", self.fusion, ("mean", "sum", "concat", "common", "spectral"))
        _one_of("prototype_update", self.prototype_update, ("momentum", "gradient", "none"))
        _one_of("width_rule", self.width_rule, ("total", "equal"))
        if not 0 <= self.momentum <= 1:
            raise UsageError(f"MoP: momentum={self.momentum} is not between 0 and 1.")
        if not 0 < self.tau < math.inf:
            raise UsageError(f"MoP: tau={self.tau} is not a positive number.")
        for name in ("drop_path", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"MoP: {name}={getattr(self, name)} is not from 0 to below 1.")
        if self.band_groups is not None and not 1 <= self.band_groups <= self.bands:
            raise UsageError(f"MoP: {self.band_groups} groups of {self.bands} bands do not exist.")
        self._check_switches()

    def _check_switches(self) -> None:
        """Refuse combinations in which a part would have no input or no consumer."""
        if self.p_router and not (self.psr and self.f_router):
            raise UsageError("MoP: the P-Router needs prototypes (psr) and feeds the F-Router.")
        for name in ("psr", "f_router"):
            if getattr(self, name) and not self.band_split:
                raise UsageError(f"MoP: {name} works on separate bands; it needs band_split.")
        if self.band_split and self.fusion == "common":
            raise UsageError("MoP: fusion='common' leaves the individual branch without use.")
        if not self.band_split and self.fusion != "common":
            raise UsageError("MoP: without band_split only fusion='common' is left.")
        if not self.psr and self.prototype_update == "gradient":
            raise UsageError("MoP: there are no prototypes to update by gradient without psr.")
        if self.update_correct_only and not (self.psr and self.prototype_update == "momentum"):
            raise UsageError("MoP: update_correct_only is about prototypes updated by momentum.")
        if self.rescale and not self.f_router:
            raise UsageError("MoP: rescale undoes the F-Router's softmax; it needs f_router.")
        if not self.shared_p_router and not self.p_router:
            raise UsageError("MoP: without p_router there is no P-Router to have one of per band.")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MoPConfig:
        """Build a configuration from plain values, refusing unknown names."""
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise UsageError(f"MoP has no option {', '.join(unknown)}.")
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return all switches as plain values."""
        return asdict(self)

    @property
    def depths(self) -> tuple[int, int, int, int]:
        """Encoder blocks per stage."""
        return DEPTHS[self.variant]

    @property
    def groups(self) -> int:
        """How many band groups are kept apart: as many as bands, unless there are too many."""
        if self.band_groups is not None:
            return self.band_groups
        return min(self.bands, max(1, self.dim // MIN_BAND_CHANNELS))

    @property
    def band_dim(self) -> int:
        """D/d, the feature channels of one band group."""
        return max(1, round(self.dim / self.groups))

    @property
    def feature_dim(self) -> int:
        """D as built: a multiple of the number of band groups."""
        return self.band_dim * self.groups if self.band_split else self.dim

    @property
    def stage_widths(self) -> tuple[int, ...]:
        """Channels of one band group in each stage of the individual branch."""
        paper = (c / 25 for c in STAGE_CHANNELS)
        if self.width_rule == "equal":
            return tuple(max(1, round(c * (25 / self.groups) ** 0.5)) for c in paper)
        return tuple(max(1, round(channels / self.groups)) for channels in STAGE_CHANNELS)

    def group_members(self) -> tuple[tuple[int, ...], ...]:
        """Return the bands of each group: neighbours, in sizes that differ by one at most."""
        edges = [round(i * self.bands / self.groups) for i in range(self.groups + 1)]
        return tuple(tuple(range(start, stop)) for start, stop in pairwise(edges))

    def membership(self) -> Tensor:
        """Return (bands, groups) with 1 where a band belongs to a group."""
        members = torch.zeros(self.bands, self.groups)
        for group, bands in enumerate(self.group_members()):
            members[list(bands), group] = 1
        return members


#: The rows of the paper's ablation table.
ABLATION: Mapping[str, Mapping[str, Any]] = {
    "bl": {
        "band_split": False,
        "psr": False,
        "f_router": False,
        "p_router": False,
        "fusion": "common",
    },
    "a": {"psr": False, "f_router": False, "p_router": False},
    "b": {"f_router": False, "p_router": False},
    "c": {"psr": False, "p_router": False},
    "d": {"p_router": False},
    "e": {},
}


def _check_type(name: str, value: Any, default: Any) -> None:
    """Refuse a value of another kind than the default; a card or a YAML file may hold anything."""
    wanted = int if default is None else type(default)
    accepted = (int, float) if wanted is float else wanted
    if value is None and default is None:
        return
    if not isinstance(value, accepted) or (isinstance(value, bool) and wanted is not bool):
        raise UsageError(f"MoP: {name}={value!r} is not {_KINDS[wanted]}.")


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def _one_of(name: str, value: str, choices: Any) -> None:
    if value not in choices:
        raise UsageError(f"MoP: {name}={value!r} is not one of {', '.join(choices)}.")
