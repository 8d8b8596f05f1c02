"""SegFormer: a hierarchical transformer with an all-MLP head.

Xie et al., "SegFormer: Simple and Efficient Design for Semantic Segmentation with Transformers",
NeurIPS 2021. MiT-B0 with a head of 256 channels (realtime), MiT-B3 with 768 (accuracy), as its
authors have them; only the first layer differs, by the number of bands.

Deviations: none but the lack of ImageNet weights. This is not row bl of the ablation, whose encoder
has MoP's narrower stages.
"""

from __future__ import annotations

from torch import Tensor, nn

from smokegeo.models.baselines.blocks import resize
from smokegeo.models.baselines.mit import HEAD_DIM, WIDTHS, MLPHead, mit


class SegFormer(nn.Module):
    """(B, bands, H, W) to logits (B, classes, H, W)."""

    def __init__(self, bands: int, variant: str, classes: int = 2) -> None:
        super().__init__()
        self.encoder = mit(bands, variant)
        self.head = MLPHead(WIDTHS[variant], HEAD_DIM[variant])
        self.dropout = nn.Dropout2d(0.1)
        self.classify = nn.Conv2d(HEAD_DIM[variant], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return resize(self.classify(self.dropout(self.head(self.encoder(x)))), x)


def build(bands: int, variant: str = "realtime") -> nn.Module:
    """Return a SegFormer with weights at their random start."""
    return SegFormer(bands, variant)
