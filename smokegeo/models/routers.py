"""The dual-stage router: prototypes weighted per pixel, then bands.

The paper concatenates each pixel's features with all prototypes and convolves. A 1x1 convolution
of a concatenation is the sum of the convolutions of its parts, and the prototypes are the same at
every pixel: their part is a bias (P-Router) or a small matrix times alpha (F-Router). So the
concatenated tensors are never built, in training either; the weights keep the paper's shapes.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.config import MoPConfig


class PRouter(nn.Module):
    """Weights of the prototypes of each band at each pixel: alpha, summing to 1 over class x K."""

    def __init__(self, config: MoPConfig) -> None:
        super().__init__()
        self.config = config
        outputs = config.classes * config.prototypes
        inputs = (outputs + 1) * config.band_dim
        # One convolution for all bands (the paper writes no band index), or one each.
        copies = 1 if config.shared_p_router else config.groups
        self.weight = nn.Parameter(torch.empty(copies, outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(copies, outputs))
        for matrix in self.weight:
            nn.init.kaiming_uniform_(matrix, a=math.sqrt(5))

    def forward(self, features: Tensor, prototypes: Tensor) -> Tensor:
        """Return alpha (B, groups, classes * K, h, w)."""
        b, _, h, w = features.shape
        weight, bias = self.folded(prototypes)
        logits = F.conv2d(features, weight[:, :, None, None], bias, groups=self.config.groups)
        return logits.view(b, self.config.groups, -1, h, w).softmax(dim=2)

    def folded(self, prototypes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights on the features and the bias the prototypes amount to."""
        groups, band_dim = self.config.groups, self.config.band_dim
        on_features, on_prototypes = self.weight[:, :, :band_dim], self.weight[:, :, band_dim:]
        stacked = prototypes.transpose(0, 1).reshape(groups, -1, 1)  # groups, classes*K*D/d
        bias = self.bias + torch.matmul(on_prototypes, stacked)[..., 0]
        weight = on_features.expand(groups, -1, -1).reshape(-1, band_dim)
        return weight, bias.reshape(-1)


class FRouter(nn.Module):
    """Weights of the bands at each pixel: beta, summing to 1 over the bands that exist."""

    def __init__(self, config: MoPConfig) -> None:
        super().__init__()
        self.config = config
        inputs = (1 + config.classes if config.psr else 1) * config.feature_dim
        self.weight = nn.Parameter(torch.empty(config.groups, inputs))
        self.bias = nn.Parameter(torch.zeros(config.groups))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def forward(
        self,
        features: Tensor,
        alpha: Tensor | None,
        prototypes: Tensor | None,
        present: Tensor | None = None,
    ) -> Tensor:
        """Return beta (B, groups, h, w); absent bands get 0 and influence nothing."""
        groups, dim = self.config.groups, self.config.feature_dim
        if present is not None:
            gate = present.to(features.dtype)
            features = features * gate.repeat_interleave(self.config.band_dim, 1)[..., None, None]
        logits = F.conv2d(features, self.weight[:, :dim, None, None], self.bias)
        if prototypes is not None:
            mixing = self.mixing(prototypes)
            if alpha is None:  # no P-Router: the mean of the prototypes, the same everywhere
                part = mixing.view(groups, groups, -1).sum(dim=2) / self.config.prototypes
                if present is None:
                    logits = logits + part.sum(dim=1)[:, None, None]
                else:
                    logits = logits + (gate @ part.T)[..., None, None]
            else:
                if present is not None:
                    alpha = alpha * gate[:, :, None, None, None]
                logits = logits + F.conv2d(alpha.flatten(1, 2), mixing[:, :, None, None])
        if present is not None:
            absent = ~present.bool()[..., None, None]
            logits = logits.masked_fill(absent, torch.finfo(logits.dtype).min)
            return logits.softmax(dim=1).masked_fill(absent, 0.0)
        return logits.softmax(dim=1)

    def mixing(self, prototypes: Tensor) -> Tensor:
        """Return M (groups, groups * classes * K): what alpha adds to the logits of each band."""
        groups, dim = self.config.groups, self.config.feature_dim
        on_prototypes = self.weight[:, dim:].view(groups, self.config.classes, groups, -1)
        mixing = torch.einsum("owgc,wgkc->ogwk", on_prototypes, prototypes)
        return mixing.reshape(groups, -1)
