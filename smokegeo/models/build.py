"""Build a network by name: MoP, or one of TorchGeo's as a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from smokegeo.errors import UsageError

#: Baselines TorchGeo builds, each with a backbone of a free licence (MiT's own file has none).
BASELINES: Mapping[str, str] = {
    "unet": "resnet18",
    "deeplabv3+": "resnet18",
    "fcn": "resnet18",
    "upernet": "resnet18",
    "segformer": "tu-pvt_v2_b0",
}
ARCHITECTURES = ("mop", *BASELINES)


class Padded(nn.Module):
    """A network that needs sizes divisible by 32, made to take any size."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, available: Tensor | None = None) -> Tensor:
        """Return logits (B, classes, H, W); absent bands are set to 0, their mean."""
        if available is not None:
            # Not a product: an absent band may hold NaN.
            x = torch.where(available.bool()[:, :, None, None], x, torch.zeros((), device=x.device))
        height, width = x.shape[2:]
        padding = (0, -width % 32, 0, -height % 32)
        logits: Tensor = self.network(F.pad(x, padding, mode="replicate"))
        return logits[:, :, :height, :width]


def build_network(name: str, bands: int, options: Mapping[str, Any] | None = None) -> nn.Module:
    """Return a new network for this many bands; `options` are the architecture's own."""
    options = dict(options or {})
    if name == "mop":
        from smokegeo.models.mop import MoP

        return MoP(**{**options, "bands": bands})
    if name not in BASELINES:
        raise UsageError(f"model {name!r} is not one of {', '.join(ARCHITECTURES)}.")
    if unknown := sorted(set(options) - {"backbone"}):
        raise UsageError(f"model {name} has no option {', '.join(unknown)}.")
    from smokegeo.torchgeo_api import torchgeo_network

    backbone = str(options.get("backbone", BASELINES[name]))
    return Padded(torchgeo_network(name, backbone, bands))
