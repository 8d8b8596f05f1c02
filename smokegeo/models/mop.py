"""MoP, the mixture of prototypes: bands kept apart, weighted per pixel, beside a common branch."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.bandsplit import BandSplitEncoder
from smokegeo.models.common import CommonBranch
from smokegeo.models.config import MIN_BAND_CHANNELS, MoPConfig
from smokegeo.models.padding import pad_small, pad_small_labels
from smokegeo.models.prototypes import Prototypes
from smokegeo.models.routers import FRouter, PRouter

if TYPE_CHECKING:
    from smokegeo.models.folded import FoldedMoP

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Routed:
    """What a forward pass leaves for the loss and for explanation; None where a part is off."""

    logits: Tensor
    individual: Tensor | None = None
    routed: Tensor | None = None
    common: Tensor | None = None
    alpha: Tensor | None = None
    beta: Tensor | None = None
    present: Tensor | None = None


class MoP(nn.Module):
    """Segment smoke in images of any number of bands.

    Takes (B, bands, H, W), any size, and returns logits (B, classes, H, W). `available` (B, bands)
    says which bands a sample has: an absent band is left out of the band weights and contributes
    nothing, whatever its pixels hold. The switches are those of `MoPConfig`.
    """

    def __init__(
        self,
        bands: int = 25,
        variant: str = "realtime",
        prototypes: int = 3,
        dim: int = 250,
        classes: int = 2,
        **switches: Any,
    ) -> None:
        super().__init__()
        self.config = MoPConfig.from_dict(
            {
                "bands": bands,
                "variant": variant,
                "prototypes": prototypes,
                "dim": dim,
                "classes": classes,
                **switches,
            }
        )
        config = self.config
        _warn_of_thin_bands(config)
        self.common = CommonBranch(config) if config.fusion != "spectral" else None
        self.individual = BandSplitEncoder(config) if config.band_split else None
        self.prototypes = Prototypes(config) if config.psr else None
        self.p_router = PRouter(config) if config.p_router else None
        self.f_router = FRouter(config) if config.f_router else None
        self.dropout = nn.Dropout2d(config.dropout)
        both = 2 if config.fusion == "concat" else 1
        self.head = nn.Conv2d(both * config.feature_dim, config.classes, 1)
        self.members: Tensor
        self.register_buffer("members", config.membership(), persistent=False)

    def forward(self, x: Tensor, available: Tensor | None = None) -> Tensor:
        """Return logits (B, classes, H, W)."""
        return self.run(x, available).logits

    def routing(self, x: Tensor, available: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return alpha (B, bands, classes * K, h, w) and beta (B, bands, h, w)."""
        done = self.run(x, available)
        if done.alpha is None or done.beta is None:
            raise ValueError("this MoP has no P-Router or no F-Router, so there is no routing")
        return done.alpha, done.beta

    def run(self, x: Tensor, available: Tensor | None = None) -> Routed:
        """Run the network and keep what the loss and the figures need."""
        height, width = x.shape[2:]
        present = None
        if available is not None:
            available = available.to(x.device)
            # Before anything else, so that no later step can see what an absent band holds.
            x = torch.where(available.bool()[:, :, None, None], x, torch.zeros((), device=x.device))
            present = (available.to(self.members.dtype) @ self.members > 0).to(x.dtype)
        x = pad_small(x)
        common = None if self.common is None else self.common(x)
        individual = alpha = beta = routed = None
        if self.individual is not None:
            individual = self.individual(x, present)
            alpha, beta, routed = self._route(individual, present)
        logits = self.head(self.dropout(self._fuse(common, routed)))
        size = x.shape[2:]
        logits = F.interpolate(logits, size=size, mode="bilinear")[:, :, :height, :width]
        return Routed(logits, individual, routed, common, alpha, beta, present)

    def loss(self, done: Routed, labels: Tensor) -> Tensor:
        """Return the prototype loss L_P of a pass, and move the prototypes when training."""
        if self.prototypes is None or done.individual is None:
            return done.logits.new_zeros(())
        labels = pad_small_labels(labels)
        predicted = None
        if self.config.update_correct_only:
            predicted = pad_small_labels(done.logits.argmax(dim=1))
        loss: Tensor = self.prototypes.loss(done.individual, labels, done.present, predicted)
        return loss

    def fold(self) -> FoldedMoP:
        """Return the same function as a smaller, faster network for inference."""
        from smokegeo.models.folded import FoldedMoP

        return FoldedMoP(self.config, self.state_dict()).to(self.head.weight.device)

    def _route(
        self, individual: Tensor, present: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor]:
        config = self.config
        if self.f_router is None:
            if present is None:
                return None, None, individual
            gate = present.repeat_interleave(config.band_dim, dim=1)[..., None, None]
            return None, None, individual * gate
        prototypes = None if self.prototypes is None else self.prototypes()
        alpha = None
        if self.p_router is not None and prototypes is not None:
            alpha = self.p_router(individual, prototypes)
        beta = self.f_router(individual, alpha, prototypes, present)
        weight = beta
        if config.rescale:
            count = config.groups if present is None else present.sum(1)[:, None, None, None]
            weight = beta * count
        b, _, h, w = individual.shape
        shaped = individual.view(b, config.groups, config.band_dim, h, w)
        return alpha, beta, (shaped * weight[:, :, None]).view_as(individual)

    def _fuse(self, common: Tensor | None, routed: Tensor | None) -> Tensor:
        if common is None or routed is None:
            only = routed if common is None else common
            assert only is not None  # noqa: S101  (the configuration leaves one branch at least)
            return only
        if self.config.fusion == "concat":
            return torch.cat([common, routed], dim=1)
        total = common + routed
        return total / 2 if self.config.fusion == "mean" else total


def _warn_of_thin_bands(config: MoPConfig) -> None:
    """Say when D/d leaves a band too few channels, and what is done about it."""
    if not config.band_split or config.dim / config.bands >= MIN_BAND_CHANNELS:
        return
    if config.groups < config.bands:
        remedy = f"neighbouring bands are processed in {config.groups} groups"
    else:
        remedy = "leave out band_groups to have neighbouring bands grouped"
    log.warning(
        "%d features for %d bands are fewer than %d a band, too few to keep prototypes apart; %s",
        config.dim,
        config.bands,
        MIN_BAND_CHANNELS,
        remedy,
    )
