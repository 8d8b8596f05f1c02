"""SegFormer's encoder and head, which several of the paper's methods stand on.

The encoder is timm's `pvt_v2` with MiT's widths and depths: the same network layer by layer, under
a free licence (the file of MiT's authors, which smp ships, forbids commercial use).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.baselines.blocks import resize
from smokegeo.models.config import HEADS, REDUCTIONS

#: MiT-B0 and MiT-B3: channels and blocks of the four stages, channels of SegFormer's head.
WIDTHS = {"realtime": (32, 64, 160, 256), "accuracy": (64, 128, 320, 512)}
DEPTHS = {"realtime": (2, 2, 2, 2), "accuracy": (3, 4, 18, 3)}
HEAD_DIM = {"realtime": 256, "accuracy": 768}


def mit(bands: int, variant: str) -> nn.Module:
    """Return an encoder that gives maps at 1/4, 1/8, 1/16 and 1/32 of the size."""
    import timm

    encoder: nn.Module = timm.create_model(
        "pvt_v2_b0",
        features_only=True,
        in_chans=bands,
        embed_dims=WIDTHS[variant],
        depths=DEPTHS[variant],
        num_heads=HEADS,
        sr_ratios=REDUCTIONS,
        mlp_ratios=(4, 4, 4, 4),
        drop_path_rate=0.1,
    )
    return encoder


class MLPHead(nn.Module):
    """Bring four maps to one width and one size, and mix them: (B, dim, H/4, W/4)."""

    def __init__(self, widths: Sequence[int], dim: int) -> None:
        super().__init__()
        self.align = nn.ModuleList(nn.Conv2d(width, dim, 1) for width in widths)
        self.fuse = nn.Conv2d(len(widths) * dim, dim, 1, bias=False)
        self.norm = nn.BatchNorm2d(dim)

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        """Mix; the 1x1 convolution is done before resizing, with which it commutes."""
        total: Tensor | None = None
        parts = self.fuse.weight.chunk(len(maps), dim=1)
        for align, weight, features in zip(self.align, parts, maps, strict=True):
            y = F.conv2d(align(features), weight)
            total = y if total is None else total + resize(y, total)
        return F.relu(self.norm(total))
