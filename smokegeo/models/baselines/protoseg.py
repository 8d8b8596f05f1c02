"""ProtoSeg: pixels are classified by their nearest prototype, of which a class has several.

Zhou et al., "Prototype-based Semantic Segmentation", TPAMI 2024 (first as "Rethinking Semantic
Segmentation: A Prototype View", CVPR 2022). MiT-B0 (realtime) or MiT-B3 (accuracy) with SegFormer's
head, a projection, and 10 prototypes a class. Sinkhorn matching, momentum and contrastive loss are
those of MoP (`smokegeo.models.prototypes`), over all bands together: one group of 256 channels.

Deviations: assignments are the transport plan's largest entry, in the update too, where the
original's code draws them almost at random; the contrastive loss has the temperature of 0.1 its
text gives and its code lacks; logits are scaled by learnt numbers, not normalised over classes, for
of two numbers a norm leaves only the sign; the projection has a batch norm between its two
convolutions, and features no layer norm before the match. No ImageNet weights.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.baselines.blocks import ConvNormReLU, resize
from smokegeo.models.baselines.mit import HEAD_DIM, WIDTHS, MLPHead, mit
from smokegeo.models.config import MoPConfig
from smokegeo.models.objective import segmentation_loss
from smokegeo.models.prototypes import Prototypes, assign, contrastive_loss, nearest

DIM, PROTOTYPES = 256, 10
#: The distance loss counts a tenth of the contrastive one.
DISTANCE_WEIGHT = 0.1


class ProtoSeg(nn.Module):
    """(B, bands, H, W) to logits (B, 2, H, W)."""

    def __init__(self, bands: int, variant: str, momentum: float) -> None:
        super().__init__()
        width = HEAD_DIM[variant]
        self.encoder = mit(bands, variant)
        self.head = MLPHead(WIDTHS[variant], width)
        self.project = nn.Sequential(ConvNormReLU(width, width), nn.Conv2d(width, DIM, 1))
        # To the prototypes, all bands together are one.
        self.prototypes = Prototypes(
            MoPConfig(bands=1, dim=DIM, prototypes=PROTOTYPES, momentum=momentum)
        )
        self.scale = nn.Parameter(torch.full((2, 1, 1), 10.0))
        self.bias = nn.Parameter(torch.zeros(2, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return resize(self._classify(self._embed(x)), x)

    def terms(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return cross-entropy and prototype loss; in training, move the prototypes."""
        unit = self._embed(x)
        logits = self._classify(unit)
        prototype = self._prototype_loss(unit.float(), logits.argmax(dim=1), labels)
        return {
            "segmentation": segmentation_loss(resize(logits, x), labels),
            "prototype": prototype,
        }

    def _embed(self, x: Tensor) -> Tensor:
        """Return a unit vector per pixel, (B, DIM, H/4, W/4)."""
        return F.normalize(self.project(self.head(self.encoder(x))), dim=1)

    def _classify(self, unit: Tensor) -> Tensor:
        """Return logits (B, 2, H/4, W/4): the likeness of the nearest prototype of each class."""
        vectors = self.prototypes()[:, 0]  # classes, K, DIM
        likeness = torch.einsum("bcyx,okc->bokyx", unit, vectors)
        logits: Tensor = likeness.amax(dim=2) * self.scale + self.bias
        return logits

    def _prototype_loss(self, unit: Tensor, predicted: Tensor, labels: Tensor) -> Tensor:
        """Return contrastive plus distance loss; pixels classified rightly move the prototypes."""
        small = nearest(labels, unit.shape[2:])
        masks = self.prototypes.masks(small, None)  # classes, one group, N
        with torch.autocast(unit.device.type, enabled=False):  # exp(20) overflows in half
            cosines = self.prototypes.cosines(unit)
            with torch.no_grad():
                target = assign(cosines, masks)
            contrast = contrastive_loss(cosines, target, masks, self.prototypes.config.tau)
            truth = small.flatten()
            own = cosines[0, truth.clamp(max=1), target[0], torch.arange(len(truth))]
            known = masks.any(dim=0)[0]
            distance = ((1 - own).square() * known).sum() / known.sum().clamp(min=1)
            if self.training:
                right = (predicted.flatten() == truth)[None, None]
                self.prototypes.update(unit.detach(), target, masks & right)
        total: Tensor = contrast + DISTANCE_WEIGHT * distance
        return total


def build(bands: int, variant: str = "realtime", momentum: float = 0.999) -> nn.Module:
    """Return a ProtoSeg with weights at their random start."""
    return ProtoSeg(bands, variant, momentum)
