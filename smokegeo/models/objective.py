"""What a training step minimises: the cross-entropy of the logits, and what a network adds."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from smokegeo.datasets.layout import IGNORE


@runtime_checkable
class OwnTerms(Protocol):
    """A network that is trained with more than, or other than, the cross-entropy of its logits."""

    def terms(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the terms of the loss by name; their sum is minimised.

        They carry their weights, but for `prototype`, which the training weights by its setting.
        """


def segmentation_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy over the pixels that are not ignored; 0 if all are."""
    losses = F.cross_entropy(logits.float(), labels, ignore_index=IGNORE, reduction="sum")
    return losses / (labels != IGNORE).sum().clamp(min=1)
