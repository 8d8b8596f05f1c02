"""Look at an image enlarged, too: plumes of few pixels are lost at a quarter of its resolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def smoke_seen(
    network: Callable[[Tensor, Tensor | None], Tensor],
    images: Tensor,
    available: Tensor | None,
    zooms: Sequence[int],
    place: int = 1,
) -> Tensor:
    """Return the smoke (B, H, W) in images (B, C, H, W): the most that is seen with any zoom.

    `place` is that of smoke among the network's classes.
    """
    return reduce(
        torch.maximum,
        (
            shrink(network(enlarge(images, zoom), available).softmax(dim=1)[:, place], zoom)
            for zoom in zooms
        ),
    )


def enlarge(images: Tensor, zoom: int) -> Tensor:
    """Return images (B, C, H, W) at so many times their size."""
    if zoom == 1:
        return images
    return F.interpolate(images, scale_factor=zoom, mode="bilinear", align_corners=False)


def shrink(smoke: Tensor, zoom: int) -> Tensor:
    """Return maps (B, H, W) of enlarged images at the size these came from: means of pixels."""
    return smoke if zoom == 1 else F.avg_pool2d(smoke[:, None], zoom)[:, 0]
