"""A baseline made to take what MoP takes: images of any size, and absent bands."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.datasets.layout import IGNORE
from smokegeo.models.bandsplit import BandNorm
from smokegeo.models.objective import OwnTerms

#: The encoders halve a map five times.
MULTIPLE_PX = 32


class Padded(nn.Module):
    """A network that needs sizes divisible by 32, made to take any size.

    It mixes all bands from its first layer on, so an absent band cannot be left out: it is set to
    0, the mean of a normalised band.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        _allow_single_values(network)
        self.network = network

    def forward(self, x: Tensor, available: Tensor | None = None) -> Tensor:
        """Return logits (B, classes, H, W); absent bands are set to 0, their mean."""
        height, width = x.shape[2:]
        logits: Tensor = self.network(self._ready(x, available))
        return logits[:, :, :height, :width]

    def _ready(self, x: Tensor, available: Tensor | None) -> Tensor:
        if available is not None:
            # Not a product: an absent band may hold NaN.
            x = torch.where(available.bool()[:, :, None, None], x, torch.zeros((), device=x.device))
        padding = _padding(x)
        return F.pad(x, padding, mode="replicate") if any(padding) else x  # it copies even then


class PaddedWithTerms(Padded):
    """The same for a network that has loss terms of its own."""

    def terms(
        self, x: Tensor, labels: Tensor, available: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return the network's terms; pixels added at the border are ignored."""
        labels = F.pad(labels, _padding(labels), value=IGNORE)
        return cast("OwnTerms", self.network).terms(self._ready(x, available), labels)


def padded(network: nn.Module) -> Padded:
    """Wrap a network, with its own terms if it has any."""
    return PaddedWithTerms(network) if isinstance(network, OwnTerms) else Padded(network)


def _padding(x: Tensor) -> tuple[int, int, int, int]:
    height, width = x.shape[-2:]
    return (0, -width % MULTIPLE_PX, 0, -height % MULTIPLE_PX)


def _allow_single_values(network: nn.Module) -> None:
    """Let batch norms train on a map of one pixel and a batch of one, which torch refuses."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) is nn.BatchNorm2d:
                norm = BandNorm(child.num_features, child.eps, child.momentum)
                norm.load_state_dict(child.state_dict())
                setattr(module, name, norm)
