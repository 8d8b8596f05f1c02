"""Prototypes: matched to pixels by optimal transport, pulled after them by momentum."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.config import MoPConfig

#: Sharpness and rounds of the Sinkhorn iteration.
EPSILON = 0.05
ROUNDS = 3


class Prototypes(nn.Module):
    """K unit vectors per class and band group: `vectors` (classes, groups, K, D/d)."""

    def __init__(self, config: MoPConfig) -> None:
        super().__init__()
        self.config = config
        shape = (config.classes, config.groups, config.prototypes, config.band_dim)
        start = F.normalize(nn.init.trunc_normal_(torch.empty(shape), std=0.02), dim=-1)
        self.vectors: Tensor
        if config.prototype_update == "gradient":
            self.vectors = nn.Parameter(start)
        else:
            self.register_buffer("vectors", start)

    def forward(self) -> Tensor:
        """Return the unit prototypes, safe from a later update in place.

        Averages of weights over steps or trainings hold shorter vectors.
        """
        return F.normalize(self.vectors, dim=-1)

    def loss(
        self,
        features: Tensor,
        labels: Tensor,
        present: Tensor | None = None,
        predicted: Tensor | None = None,
    ) -> Tensor:
        """Return the pixel-prototype contrastive loss; in training, move the prototypes after it.

        features: X_indi (B, D, h, w). labels: (B, H, W) with 255 ignored, any size. present:
        (B, groups), 1 where a band exists. predicted: (B, H, W) argmax of the head, used only
        with `update_correct_only`.
        """
        with torch.autocast(features.device.type, enabled=False):  # exp(20) overflows in half
            features = features.float()
            small = nearest(labels, features.shape[2:])
            masks = self.masks(small, present)
            cosines = self.cosines(features)
            with torch.no_grad():
                target = assign(cosines, masks)
            loss = contrastive_loss(cosines, target, masks, self.config.tau)
            if self.training and self.config.prototype_update == "momentum":
                if self.config.update_correct_only and predicted is not None:
                    right = nearest(predicted, features.shape[2:]) == small
                    masks = masks & right.reshape(1, 1, -1)
                self.update(features.detach(), target, masks)
        return loss

    def cosines(self, features: Tensor) -> Tensor:
        """Return how alike pixels and prototypes are: (groups, classes, K, N).

        Products are divided by the lengths of the features afterwards: unit vectors of all pixels,
        D numbers each, are never made.
        """
        shaped = self._by_band(features)
        flat = self().float().transpose(0, 1).flatten(1, 2)  # groups, classes * K, D/d
        cosines = torch.matmul(flat, shaped) / lengths(shaped)
        return cosines.permute(1, 2, 0, 3).reshape(len(flat), *self.vectors.shape[::2], -1)

    @torch.no_grad()
    def update(self, features: Tensor, target: Tensor, masks: Tensor) -> None:
        """Move each prototype towards the mean of the pixels assigned to it (Eq. 5).

        Under DDP the sums and counts of all ranks are added first, so that every rank makes the
        same update, that of the joined batch.
        """
        classes, groups, count, band_dim = self.vectors.shape
        chosen = target[:, None] == torch.arange(count, device=target.device)[:, None]
        picked = (chosen[None] & masks[:, :, None]).to(features.dtype)  # classes, groups, K, N
        shaped = self._by_band(features)
        by_image = picked.view(classes, groups, count, len(features), -1)
        weights = by_image.permute(3, 1, 0, 2, 4).flatten(2, 3) / lengths(shaped)
        sums = torch.matmul(weights, shaped.transpose(2, 3)).sum(dim=0)
        sums = sums.view(groups, classes, count, band_dim).transpose(0, 1).contiguous()
        counts = _over_ranks(picked.sum(dim=3))
        mean = F.normalize(_over_ranks(sums), dim=-1)
        mu = self.config.momentum
        moved = F.normalize(mu * self.vectors + (1 - mu) * mean, dim=-1)
        self.vectors.copy_(torch.where(counts[..., None] > 0, moved, self.vectors))

    def _by_band(self, features: Tensor) -> Tensor:
        """Return the features (B, D, h, w) as (B, groups, D/d, h * w)."""
        return features.reshape(len(features), self.config.groups, self.config.band_dim, -1)

    def masks(self, labels: Tensor, present: Tensor | None) -> Tensor:
        """Return (classes, groups, N): True where a pixel of that class counts for that band."""
        classes = torch.arange(self.config.classes, device=labels.device)
        masks = labels.reshape(1, 1, -1) == classes[:, None, None]
        masks = masks.expand(-1, self.config.groups, -1)
        if present is not None:
            pixels = labels.shape[1] * labels.shape[2]
            masks = masks & present.bool().T.repeat_interleave(pixels, dim=1)[None]
        return masks


def lengths(features: Tensor) -> Tensor:
    """Return the lengths (B, groups, 1, N) of feature vectors (B, groups, D/d, N), never 0."""
    # Some ten times as fast on CPUs as a norm over an axis that is not the last.
    return features.square().sum(dim=2, keepdim=True).clamp(min=1e-24).sqrt()


def assign(cosines: Tensor, masks: Tensor) -> Tensor:
    """Match pixels to the prototypes of their own class; return (groups, N) indexes 0..K-1."""
    target = torch.zeros(masks.shape[1:], dtype=torch.long, device=cosines.device)
    for own, mask in zip(cosines.unbind(dim=1), masks, strict=True):
        # On CPUs argmax takes several times as long as max.
        target = torch.where(mask, sinkhorn(own, mask).max(dim=1).indices, target)
    return target


def sinkhorn(similarity: Tensor, mask: Tensor, rounds: int = ROUNDS) -> Tensor:
    """Return the transport plan (groups, K, N) that gives every prototype an equal share.

    Pixels outside `mask` (groups, N) take no part. Shapes stay fixed whatever the mask, so that
    all bands go through at once. Rows sum to 1/K, columns to 1/n in the limit. Under DDP the
    pixels of all ranks share one plan, of which each rank holds its own columns.
    """
    keep = mask[:, None].to(similarity.dtype)
    peak = similarity.masked_fill(~mask[:, None], -torch.inf).amax(dim=(1, 2), keepdim=True)
    peak = _over_ranks(peak, dist.ReduceOp.MAX)
    peak = torch.where(torch.isfinite(peak), peak, 0.0)  # a class without pixels
    plan = torch.exp((similarity - peak).clamp(max=0) / EPSILON) * keep
    pixels = _over_ranks(keep.sum(dim=2, keepdim=True)).clamp(min=1)
    plan = plan / _over_ranks(plan.sum(dim=(1, 2), keepdim=True)).clamp(min=1e-30)
    for _ in range(rounds):
        share = _over_ranks(plan.sum(dim=2, keepdim=True)).clamp(min=1e-30)
        plan = plan / (share * plan.shape[1])
        plan = plan / (plan.sum(dim=1, keepdim=True).clamp(min=1e-30) * pixels)
    return plan


def contrastive_loss(cosines: Tensor, target: Tensor, masks: Tensor, tau: float) -> Tensor:
    """Return the mean cross-entropy of each pixel against all prototypes of its band."""
    classes, prototypes = cosines.shape[1:3]
    owner = torch.arange(classes, device=cosines.device)[:, None, None] * prototypes
    wanted = (masks * (owner + target[None])).sum(dim=0)  # a pixel has one class, or none
    valid = masks.any(dim=0)
    losses = F.cross_entropy(cosines.flatten(1, 2) / tau, wanted, reduction="none")
    return (losses * valid).sum() / valid.sum().clamp(min=1)


def _over_ranks(value: Tensor, how: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> Tensor:
    """Return the sum (or maximum) over all processes that train together; one is its own sum."""
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(value, how)
    return value


def nearest(labels: Tensor, size: torch.Size | tuple[int, ...]) -> Tensor:
    """Bring labels (B, H, W) to the features' size by nearest neighbour."""
    if labels.shape[1:] == tuple(size):
        return labels
    return F.interpolate(labels[:, None].float(), size=tuple(size), mode="nearest")[:, 0].long()
