"""The common branch: a reduced MiT over all bands together, with SegFormer's all-MLP head."""

from __future__ import annotations

from typing import cast

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.config import HEADS, REDUCTIONS, STAGE_CHANNELS, MoPConfig
from smokegeo.models.resize import sum_resized


class CommonBranch(nn.Module):
    """(B, bands, H, W) to X_com (B, D, H/4, W/4).

    The encoder is timm's `pvt_v2` with MiT's widths: the same network, layer by layer, under a
    free licence.
    """

    def __init__(self, config: MoPConfig) -> None:
        super().__init__()
        import timm  # heavy, and not needed where a folded network runs

        self.encoder = timm.create_model(
            "pvt_v2_b0",
            features_only=True,
            in_chans=config.bands,
            embed_dims=STAGE_CHANNELS,
            depths=config.depths,
            num_heads=HEADS,
            sr_ratios=REDUCTIONS,
            mlp_ratios=(4, 4, 4, 4),
            drop_path_rate=config.drop_path,
        )
        dim = config.feature_dim
        self.align = nn.ModuleList(nn.Conv2d(width, dim, 1) for width in STAGE_CHANNELS)
        self.fuse = nn.Conv2d(4 * dim, dim, 1, bias=False)
        self.norm = nn.BatchNorm2d(dim)
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Encode, align, fuse; the two linear steps are done as one, at each map's own size."""
        maps = []
        for i, (module, features) in enumerate(zip(self.align, self.encoder(x), strict=True)):
            align = cast("nn.Conv2d", module)
            weight = self.fuse.weight[:, i * self.dim : (i + 1) * self.dim, 0, 0]
            # A bias of `align` passes through `fuse`; 1x1 convolutions commute with resizing.
            merged = weight @ align.weight[:, :, 0, 0]
            bias = weight @ cast("Tensor", align.bias)
            maps.append(F.conv2d(features, merged[:, :, None, None], bias))
        return F.relu(self.norm(sum_resized(maps)))
