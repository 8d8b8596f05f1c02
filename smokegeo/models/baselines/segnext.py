"""SegNeXt: a convolutional encoder whose attention is strips, and a head that factorises the map.

Guo et al., "SegNeXt: Rethinking Convolutional Attention Design for Semantic Segmentation", NeurIPS
2022, with the Hamburger of Geng et al., "Is Attention Better Than Matrix Decomposition?", ICLR
2021. MSCAN-T (realtime) or MSCAN-B (accuracy); the head joins the three coarser maps at 1/8 of the
size.

Deviations: the factorisation starts from bases that are drawn once and kept with the weights, not
anew for every image, so that the same image always gives the same answer; gradients pass through
its last update alone, as in the Hamburger, where mmsegmentation's SegNeXt takes all of them. No
ImageNet weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from timm.layers.drop import DropPath
from timm.layers.norm import LayerNorm2d
from torch import Tensor, nn

from smokegeo.models.baselines.blocks import resize

#: Side of the strips that look far: 1 x k, then k x 1.
STRIPS = (7, 11, 21)
#: Where the learnt scale of a residual starts.
RESIDUAL_SCALE = 0.01
#: Rounds of the factorisation in training and after.
ROUNDS = {True: 6, False: 7}


@dataclass(frozen=True)
class Size:
    """Widths and depths of the encoder, width of the head, rank of its factorisation."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    dim: int
    rank: int


SIZES = {
    "realtime": Size((32, 64, 160, 256), (3, 3, 5, 2), 256, 16),
    "accuracy": Size((64, 128, 320, 512), (3, 3, 12, 3), 512, 64),
}


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


class Hamburger(nn.Module):
    """Keep of a map what a product of two small non-negative matrices can say."""

    def __init__(self, dim: int, rank: int) -> None:
        super().__init__()
        self.before = nn.Conv2d(dim, dim, 1)
        self.after = nn.Sequential(nn.Conv2d(dim, dim, 1, bias=False), nn.GroupNorm(32, dim))
        self.bases: Tensor
        self.register_buffer("bases", F.normalize(torch.rand(1, dim, rank), dim=1))

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the same shape."""
        flat = F.relu(self.before(x)).float().flatten(2)
        with torch.autocast(x.device.type, enabled=False):  # quotients of sums over all pixels
            kept = factorised(flat, self.bases, ROUNDS[self.training]).view_as(x)
        return F.relu(x + self.after(kept))


def factorised(x: Tensor, start: Tensor, rounds: int) -> Tensor:
    """Return the product of bases and weights found for x (B, C, N) by multiplicative updates.

    Gradients flow through the last update of the weights alone, as in the Hamburger: through all of
    them they might vanish or explode.
    """
    with torch.no_grad():
        bases = start.expand(len(x), -1, -1)
        weights = (x.transpose(1, 2) @ bases).softmax(dim=2)  # B, N, rank
        for _ in range(rounds):
            weights = _better_weights(x, bases, weights)
            over = bases @ (weights.transpose(1, 2) @ weights)
            bases = bases * (x @ weights) / (over + 1e-6)
    weights = _better_weights(x, bases, weights)
    return bases @ weights.transpose(1, 2)


def _better_weights(x: Tensor, bases: Tensor, weights: Tensor) -> Tensor:
    over = weights @ (bases.transpose(1, 2) @ bases)
    return weights * (x.transpose(1, 2) @ bases) / (over + 1e-6)


class SegNeXt(nn.Module):
    """(B, bands, H, W) to logits (B, classes, H, W)."""

    def __init__(self, bands: int, size: Size, classes: int = 2) -> None:
        super().__init__()
        self.encoder = MSCAN(bands, size.widths, size.depths)
        dim = size.dim
        self.squeeze = _conv_group_relu(sum(size.widths[1:]), dim)
        self.hamburger = Hamburger(dim, size.rank)
        self.align = nn.Sequential(_conv_group_relu(dim, dim), nn.Dropout2d(0.1))
        self.classify = nn.Conv2d(dim, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        _, *maps = self.encoder(x)
        joined = self.squeeze(torch.cat([resize(m, maps[0]) for m in maps], dim=1))
        return resize(self.classify(self.align(self.hamburger(joined))), x)


def _conv_group_relu(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, bias=False), nn.GroupNorm(32, outputs), nn.ReLU()
    )


def build(bands: int, variant: str = "realtime") -> nn.Module:
    """Return a SegNeXt with weights at their random start."""
    return SegNeXt(bands, SIZES[variant])
