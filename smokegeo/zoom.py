"""Look at an image enlarged, too, or reduced: networks know smoke of some sizes only.

Plumes of few pixels are lost at a quarter of the resolution; and in a photograph of ten times as
many pixels as those of the training smoke is so large that no tile shows more than its inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
    reduction: int = 1,
    margin: float = 0.0,
) -> Tensor:
    """Return the smoke (B, H, W) in images (B, C, H, W): the most that is seen with any zoom.

    `place` is that of smoke among the network's classes; images are first brought to one part in
    `reduction` of their size. For `margin` see `most_seen`.
    """
    seen = reduced(images, reduction)
    looks = (
        (zoom, network(enlarge(seen, zoom), available).softmax(dim=1)[:, place]) for zoom in zooms
    )
    smoke = most_seen(looks, margin)
    return restored(smoke, reduction, images.shape[2:])


def most_seen(looks: Iterable[tuple[int, Tensor]], margin: float = 0.0) -> Tensor:
    """Return the most (B, H, W) that is seen with any zoom, given zooms and maps of their size.

    A closer look must be surer, by a `margin` of votes (log odds): enlarged, more is mistaken for
    smoke, and the higher of two opinions is wrong more often than either.
    """
    less = math.exp(-margin)
    return reduce(
        torch.maximum,
        (
            shrink(less * smoke / (1 - (1 - less) * smoke) if zoom > 1 else smoke, zoom)
            for zoom, smoke in looks
        ),
    )


def reduced(images: Tensor, factor: int) -> Tensor:
    """Return images (B, C, H, W) at one part in `factor` of their size: means of pixels."""
    if factor == 1:
        return images
    height, width = images.shape[2:]
    # The last pixels are repeated where the sides are no multiples.
    beyond = (0, -width % factor, 0, -height % factor)
    return F.avg_pool2d(F.pad(images, beyond, mode="replicate"), factor)


def restored(smoke: Tensor, factor: int, shape: Sequence[int]) -> Tensor:
    """Return maps (B, h, w) of reduced images at the size (H, W) these came from."""
    if factor == 1:
        return smoke
    large = F.interpolate(smoke[:, None], scale_factor=factor, mode="bilinear")
    return large[:, 0, : shape[0], : shape[1]]


def enlarge(images: Tensor, zoom: int) -> Tensor:
    """Return images (B, C, H, W) at so many times their size."""
    if zoom == 1:
        return images
    return F.interpolate(images, scale_factor=zoom, mode="bilinear", align_corners=False)


def shrink(smoke: Tensor, zoom: int) -> Tensor:
    """Return maps (B, H, W) of enlarged images at the size these came from: means of pixels."""
    return smoke if zoom == 1 else F.avg_pool2d(smoke[:, None], zoom)[:, 0]
