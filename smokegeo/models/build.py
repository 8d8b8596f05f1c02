"""Build a network by name: MoP, or a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from smokegeo.errors import UsageError
from smokegeo.models.baselines.catalog import BASELINES, builder, checked_options
from smokegeo.models.baselines.padded import Padded, padded

ARCHITECTURES = ("mop", *BASELINES)

__all__ = ["ARCHITECTURES", "Padded", "build_network", "full_options"]


def build_network(name: str, bands: int, options: Mapping[str, Any] | None = None) -> nn.Module:
    """Return a new network for this many bands; `options` are the architecture's own."""
    options = dict(options or {})
    if name == "mop":
        from smokegeo.models.mop import MoP

        return MoP(**{**options, "bands": bands})
    refuse_unknown(name)
    return padded(builder(name)(bands, **checked_options(name, options)))


def full_options(network: nn.Module, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options a card must hold: defaults of today may not be those of tomorrow."""
    from smokegeo.models.mop import MoP

    if isinstance(network, MoP):
        return network.config.to_dict()
    return checked_options(name, given)


def refuse_unknown(name: str) -> None:
    """Refuse a name that is no architecture's."""
    if name not in ARCHITECTURES:
        raise UsageError(f"model {name!r} is not one of {', '.join(ARCHITECTURES)}.")
