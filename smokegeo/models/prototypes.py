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
            unit = self._unit(features.float())
            small = nearest(labels, features.shape[2:])
            masks = self.masks(small, present, unit)
            vectors = self().float()
            with torch.no_grad():
                target = assign(unit, vectors, masks)
            loss = contrastive_loss(unit, vectors, target, masks, self.config.tau)
            if self.training and self.config.prototype_update == "momentum":
                if self.config.update_correct_only and predicted is not None:
                    right = nearest(predicted, features.shape[2:]) == small
                    masks = masks & right.reshape(1, 1, -1)
                self.update(unit.detach(), target, masks)
        return loss

    @torch.no_grad()
    def update(self, unit: Tensor, target: Tensor, masks: Tensor) -> None:
        """Move each prototype towards the mean of the pixels assigned to it (Eq. 5).

        Under DDP the sums and counts of all ranks are added first, so that every rank makes the
        same update, that of the joined batch.
        """
        chosen = F.one_hot(target, self.config.prototypes).to(unit.dtype)  # groups, N, K
        picked = chosen[None] * masks[..., None].to(unit.dtype)  # classes, groups, N, K
        sums = torch.einsum("wgnk,gnc->wgkc", picked, unit)
        counts = picked.sum(dim=2)
        counts = _over_ranks(counts)
        mean = F.normalize(_over_ranks(sums), dim=-1)
        mu = self.config.momentum
        moved = F.normalize(mu * self.vectors + (1 - mu) * mean, dim=-1)
        self.vectors.copy_(torch.where(counts[..., None] > 0, moved, self.vectors))

    def _unit(self, features: Tensor) -> Tensor:
        """Return (groups, N, D/d) unit vectors of all pixels of the batch."""
        b, _, h, w = features.shape
        shaped = features.view(b, self.config.groups, self.config.band_dim, h * w)
        flat = shaped.permute(1, 0, 3, 2).reshape(self.config.groups, b * h * w, -1)
        return F.normalize(flat, dim=-1)

    def masks(self, labels: Tensor, present: Tensor | None, unit: Tensor) -> Tensor:
        """Return (classes, groups, N): True where a pixel of that class counts for that band."""
        classes = torch.arange(self.config.classes, device=labels.device)
        masks = (labels.reshape(1, 1, -1) == classes[:, None, None]).expand(-1, unit.shape[0], -1)
        if present is not None:
            pixels = labels.shape[1] * labels.shape[2]
            masks = masks & present.bool().T.repeat_interleave(pixels, dim=1)[None]
        return masks


def assign(unit: Tensor, vectors: Tensor, masks: Tensor) -> Tensor:
    """Match pixels to the prototypes of their own class; return (groups, N) indexes 0..K-1."""
    target = torch.zeros(unit.shape[:2], dtype=torch.long, device=unit.device)
    for own, mask in zip(vectors, masks, strict=True):
        plan = sinkhorn(torch.einsum("gkc,gnc->gkn", own, unit), mask)
        target = torch.where(mask, plan.argmax(dim=1), target)
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


def contrastive_loss(
    unit: Tensor, vectors: Tensor, target: Tensor, masks: Tensor, tau: float
) -> Tensor:
    """Return the mean cross-entropy of each pixel against all prototypes of its band."""
    classes, groups, prototypes, _ = vectors.shape
    flat = vectors.transpose(0, 1).reshape(groups, classes * prototypes, -1)
    logits = torch.einsum("gnc,gkc->gnk", unit, flat) / tau
    owner = torch.arange(classes, device=unit.device)[:, None, None] * prototypes
    wanted = (masks * (owner + target[None])).sum(dim=0)  # a pixel has one class, or none
    valid = masks.any(dim=0)
    losses = F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), wanted.flatten(), reduction="none"
    )
    return (losses * valid.flatten()).sum() / valid.sum().clamp(min=1)


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
