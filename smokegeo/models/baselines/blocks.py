"""Pieces that several baselines are made of."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class ConvNormReLU(nn.Sequential):
    """A convolution that keeps the size, batch norm, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )


def resize(x: Tensor, like: Tensor) -> Tensor:
    """Bring a map to the height and width of another."""
    if x.shape[2:] == like.shape[2:]:
        return x
    return F.interpolate(x, size=like.shape[2:], mode="bilinear")


def channels(encoder: nn.Module) -> Sequence[int]:
    """Return the widths of the maps a timm encoder gives."""
    widths: Sequence[int] = encoder.feature_info.channels()  # type: ignore[union-attr, operator]
    return widths
