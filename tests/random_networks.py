"""Networks whose every number matters: no norm, bias or router is left at a trivial start."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from smokegeo.models.mop import MoP


def random_network(seed: int = 0, **switches: Any) -> MoP:
    """Return a MoP in evaluation, of 5 bands unless told otherwise, with random statistics.

    A fresh batch norm is almost the identity and fresh biases are 0: folding them wrongly would
    change nothing.
    """
    torch.manual_seed(seed)
    defaults = {"bands": 5, "dim": 40, "width_rule": "equal", "drop_path": 0.0, "dropout": 0.0}
    model = MoP(**{**defaults, **switches}).eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.5, 2)
            if isinstance(module, nn.BatchNorm2d | nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5)
            if isinstance(getattr(module, "bias", None), nn.Parameter):
                module.bias.normal_(0, 0.3)
        for router in (model.p_router, model.f_router):
            if router is not None:
                router.weight.mul_(3)
        model.head.weight.mul_(10)  # logits far enough apart for tolerances to mean something
    return model


def random_image(model: MoP, size: tuple[int, int] = (64, 64), batch: int = 2) -> Tensor:
    """Return an image (batch, bands, *size), the same for the same shape."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(batch, model.config.bands, *size, generator=generator)


def random_labels(size: tuple[int, int] = (64, 64), batch: int = 2, classes: int = 2) -> Tensor:
    """Return labels (batch, *size) of all classes, with a few ignored pixels."""
    generator = torch.Generator().manual_seed(8)
    labels = torch.randint(0, classes, (batch, *size), generator=generator)
    labels[:, :3, :5] = 255
    return labels


def last_absent(model: MoP, batch: int = 2) -> Tensor:
    """Return `available`: all bands for the first sample, all but two for the others."""
    available = torch.ones(batch, model.config.bands, dtype=torch.bool)
    available[1:, -2:] = False
    return available
