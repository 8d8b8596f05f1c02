"""MSCAN, the encoder of SegNeXt: attention made of long, thin depth-wise convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from timm.layers.drop import DropPath
from timm.layers.norm import LayerNorm2d
from torch import Tensor, nn

#: Side of the strips that look far: 1 x k, then k x 1.
STRIPS = (7, 11, 21)
#: Where the learnt scale of a residual starts.
RESIDUAL_SCALE = 0.01


class StripAttention(nn.Module):
    """Weight each channel at each pixel by what lies around it at several scales."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.Conv2d(width, width, 1), nn.GELU())
        self.near = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.strips = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, (1, k), padding=(0, k // 2), groups=width),
                nn.Conv2d(width, width, (k, 1), padding=(k // 2, 0), groups=width),
            )
            for k in STRIPS
        )
        self.mix = nn.Conv2d(width, width, 1)
        self.after = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same shape, with the input added."""
        y = self.before(x)
        near = self.near(y)
        weight = self.mix(near + sum(strip(near) for strip in self.strips))
        out: Tensor = self.after(weight * y) + x
        return out


class Feed(nn.Sequential):
    """Two 1x1 convolutions with a depth-wise 3x3 between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__(
            nn.Conv2d(width, inner, 1),
            nn.Conv2d(inner, inner, 3, padding=1, groups=inner),
            nn.GELU(),
            nn.Conv2d(inner, width, 1),
        )


class Block(nn.Module):
    """Attention, then feed-forward, each as a scaled residual."""

    def __init__(self, width: int, ratio: int, drop_path: float) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.BatchNorm2d(width), StripAttention(width))
        self.feed = nn.Sequential(nn.BatchNorm2d(width), Feed(width, ratio * width))
        self.scale = nn.Parameter(torch.full((2, width, 1, 1), RESIDUAL_SCALE))
        self.drop = DropPath(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same shape."""
        x = x + self.drop(self.scale[0] * self.attention(x))
        out: Tensor = x + self.drop(self.scale[1] * self.feed(x))
        return out


class MSCAN(nn.Module):
    """Four stages: maps at 1/4, 1/8, 1/16 and 1/32 of the size."""

    def __init__(
        self, bands: int, widths: Sequence[int], depths: Sequence[int], drop_path: float = 0.1
    ) -> None:
        super().__init__()
        rates = iter(torch.linspace(0, drop_path, sum(depths)).tolist())
        self.downs, self.stages = nn.ModuleList(), nn.ModuleList()
        for i, (width, depth, ratio) in enumerate(zip(widths, depths, (8, 8, 4, 4), strict=True)):
            self.downs.append(_stem(bands, width) if i == 0 else _halve(widths[i - 1], width))
            self.stages.append(
                nn.Sequential(*(Block(width, ratio, next(rates)) for _ in range(depth)))
            )
        self.norms = nn.ModuleList(LayerNorm2d(width) for width in widths)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the maps of the four stages."""
        maps = []
        for down, stage, norm in zip(self.downs, self.stages, self.norms, strict=True):
            x = norm(stage(down(x)))
            maps.append(x)
        return maps


def _halve(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs)
    )


def _stem(bands: int, width: int) -> nn.Sequential:
    return nn.Sequential(*_halve(bands, width // 2), nn.GELU(), *_halve(width // 2, width))
