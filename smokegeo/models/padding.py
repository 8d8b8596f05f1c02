"""The smallest input the encoders take, and how a smaller one is brought to it."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from smokegeo.datasets.layout import IGNORE

#: The common branch reduces a stride-4 map eightfold more.
MIN_SIZE_PX = 32


def pad_small(x: Tensor) -> Tensor:
    """Repeat the border of an image that is too small for the encoder."""
    down, right = max(0, MIN_SIZE_PX - x.shape[2]), max(0, MIN_SIZE_PX - x.shape[3])
    return F.pad(x, (0, right, 0, down), mode="replicate") if down or right else x


def pad_small_labels(labels: Tensor) -> Tensor:
    """Bring labels (B, H, W) to the size `pad_small` gives their image; the rest is ignored."""
    down, right = max(0, MIN_SIZE_PX - labels.shape[1]), max(0, MIN_SIZE_PX - labels.shape[2])
    return F.pad(labels, (0, right, 0, down), value=IGNORE) if down or right else labels
