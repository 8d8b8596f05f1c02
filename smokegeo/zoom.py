"""Look at an image enlarged, too, or from afar: networks know smoke of some sizes only.

Plumes of few pixels are lost at a quarter of the resolution; clouds are mistaken for smoke less
often from afar; and in a photograph of ten times as many pixels as those of the training smoke is
so large that no tile shows more than its inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from smokegeo.looks import ONCE, Looks


def smoke_seen(
    network: Callable[[Tensor, Tensor | None], Tensor],
    images: Tensor,
    available: Tensor | None,
    looks: Looks = ONCE,
    place: int = 1,
    reduction: int = 1,
) -> Tensor:
    """Return the smoke (B, H, W) that is seen in images (B, C, H, W), with all looks.

    `place` is that of smoke among the network's classes; images are first brought to one part in
    `reduction` of their size.
    """
    seen = reduced(images, reduction)
    maps = [network(look, available).softmax(dim=1)[:, place] for look in as_seen(seen, looks)]
    return restored(together(maps, looks, seen.shape[2:]), reduction, images.shape[2:])


def as_seen(images: Tensor, looks: Looks) -> Iterator[Tensor]:
    """Yield images (B, C, H, W) at the size of each look, in the order of `looks.all`."""
    for size in looks.all:
        yield enlarge(images, int(size)) if size >= 1 else reduced(images, round(1 / size))


def together(maps: Sequence[Tensor], looks: Looks, shape: Sequence[int]) -> Tensor:
    """Return the smoke (B, H, W) of all looks, given a map of each, in the order of `looks.all`.

    `shape` is (H, W), that of the images before any look.
    """
    seen = dict(zip(looks.all, maps, strict=True))
    mean = _mean([_back(seen[size], size, shape) for size in looks.sizes])
    less = math.exp(-looks.margin)
    close = [
        _back(less * seen[size] / (1 - (1 - less) * seen[size]), size, shape)
        for size in looks.closer
    ]
    return torch.stack([mean, *close]).amax(dim=0)


def _mean(maps: Sequence[Tensor]) -> Tensor:
    """Return the mean of what maps (B, H, W) say, as votes: one that is sure counts for more."""
    if len(maps) == 1:
        return maps[0]
    return torch.stack([torch.logit(smoke, eps=1e-6) for smoke in maps]).mean(dim=0).sigmoid()


def _back(smoke: Tensor, size: float, shape: Sequence[int]) -> Tensor:
    """Return maps (B, h, w) of images at another size at the size (H, W) these came from."""
    return shrink(smoke, int(size)) if size >= 1 else restored(smoke, round(1 / size), shape)


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
