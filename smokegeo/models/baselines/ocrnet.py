"""OCRNet: every pixel is described by the object regions it is similar to.

Yuan, Chen and Wang, "Object-Contextual Representations for Semantic Segmentation", ECCV 2020. A
coarse prediction gathers one vector per class from the pixels it believes in; attention of each
pixel to these vectors gives its context. Over HRNet-W18-small-v2 (realtime) or HRNet-W48
(accuracy) from timm, with 512 channels for pixels and 256 for keys.

Deviations: no ImageNet weights. With two classes there are two regions, smoke and background.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from smokegeo.models.baselines.blocks import ConvNormReLU, channels, resize
from smokegeo.models.objective import segmentation_loss

ENCODERS = {"realtime": "hrnet_w18_small_v2", "accuracy": "hrnet_w48"}
#: Weight of the coarse prediction's loss.
COARSE_WEIGHT = 0.4


class ObjectContext(nn.Module):
    """Context of each pixel from one vector per class."""

    def __init__(self, dim: int, key_dim: int) -> None:
        super().__init__()
        self.query = nn.Sequential(ConvNormReLU(dim, key_dim), ConvNormReLU(key_dim, key_dim))
        self.key = nn.Sequential(ConvNormReLU(dim, key_dim), ConvNormReLU(key_dim, key_dim))
        self.value = ConvNormReLU(dim, key_dim)
        self.out = ConvNormReLU(key_dim, dim)

    def forward(self, pixels: Tensor, coarse: Tensor) -> Tensor:
        """Take pixels (B, C, h, w) and coarse logits (B, classes, h, w); return (B, C, h, w)."""
        share = coarse.flatten(2).softmax(dim=2)  # of each pixel in its class
        regions = torch.einsum("bkn,bcn->bck", share, pixels.flatten(2))[..., None]
        query = self.query(pixels).flatten(2)
        key, value = self.key(regions)[..., 0], self.value(regions)[..., 0]
        likeness = torch.einsum("bcn,bck->bnk", query, key) * key.shape[1] ** -0.5
        context = torch.einsum("bnk,bck->bcn", likeness.softmax(dim=2), value)
        out: Tensor = self.out(context.view(*context.shape[:2], *pixels.shape[2:]))
        return out


class OCRNet(nn.Module):
    """(B, bands, H, W) to logits (B, classes, H, W)."""

    def __init__(self, bands: int, variant: str, classes: int = 2, dim: int = 512) -> None:
        super().__init__()
        import timm

        self.encoder = timm.create_model(
            ENCODERS[variant],
            features_only=True,
            feature_location="",  # the four branches as they are, without a classifier's layers
            out_indices=(1, 2, 3, 4),
            in_chans=bands,
        )
        total = sum(channels(self.encoder))
        self.coarse = nn.Sequential(ConvNormReLU(total, total), nn.Conv2d(total, classes, 1))
        self.pixels = ConvNormReLU(total, dim, 3)
        self.context = ObjectContext(dim, dim // 2)
        self.join = nn.Sequential(ConvNormReLU(2 * dim, dim), nn.Dropout2d(0.05))
        self.classify = nn.Conv2d(dim, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return self._both(x)[0]

    def terms(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the losses of the prediction and of the coarse one."""
        logits, coarse = self._both(x)
        return {
            "segmentation": segmentation_loss(logits, labels),
            "coarse": COARSE_WEIGHT * segmentation_loss(coarse, labels),
        }

    def _both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        maps = self.encoder(x)
        features = torch.cat([resize(m, maps[0]) for m in maps], dim=1)
        coarse, pixels = self.coarse(features), self.pixels(features)
        joined = self.join(torch.cat([self.context(pixels, coarse), pixels], dim=1))
        return resize(self.classify(joined), x), resize(coarse, x)


def build(bands: int, variant: str = "realtime") -> nn.Module:
    """Return an OCRNet with weights at their random start."""
    return OCRNet(bands, variant)
