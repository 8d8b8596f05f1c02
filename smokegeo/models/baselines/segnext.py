"""SegNeXt: a convolutional encoder whose attention is strips, and a head that factorises the map.

Guo et al., "SegNeXt: Rethinking Convolutional Attention Design for Semantic Segmentation", NeurIPS
2022, with the Hamburger of Geng et al., "Is Attention Better Than Matrix Decomposition?", ICLR
2021. MSCAN-T (realtime) or MSCAN-B (accuracy); the head joins the three coarser maps at 1/8 of the
size.

Deviations: the factorisation starts from bases that are drawn once and kept with the weights, not
anew for every image, so that the same image always gives the same answer. No ImageNet weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.baselines.blocks import resize
from smokegeo.models.baselines.mscan import MSCAN

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

    Gradients flow through the last update of the weights alone, as in the original: through all of
    them they would vanish or explode.
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
