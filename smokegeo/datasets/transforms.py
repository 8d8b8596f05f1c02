"""What happens to a sample between disk and network: normalise, scale, crop, flip.

Each is a callable from sample to sample, on CPU tensors, in the loader's workers. Randomness
comes from torch's global generator, which `EndlessSamples` seeds anew for every sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (torch's own convention)
from torch import Tensor

from smokegeo.blanks import fill_blanks
from smokegeo.datasets.layout import IGNORE
from smokegeo.datasets.statistics import BandStatistics

Sample = dict[str, Any]


class Compose:
    """Apply several transforms in order."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps

    def __call__(self, sample: Sample) -> Sample:
        """Return the sample after all steps."""
        for step in self.steps:
            sample = step(sample)
        return sample


class Normalise:
    """Bring each band to mean 0 and spread 1; pixels without a value are filled as in `predict`."""

    def __init__(self, statistics: BandStatistics) -> None:
        self.mean = torch.tensor(statistics.mean, dtype=torch.float32)[:, None, None]
        std = torch.tensor(statistics.std, dtype=torch.float32)[:, None, None]
        self.std = torch.where(std > 0, std, torch.ones_like(std))  # a constant band stays 0

    def __call__(self, sample: Sample) -> Sample:
        """Return the sample with a normalised image."""
        image = (sample["image"] - self.mean) / self.std
        fill_blanks(image.numpy(), ~without_value(sample["image"], sample["mask"]).numpy())
        return {**sample, "image": image}


def without_value(image: Tensor, mask: Tensor) -> Tensor:
    """Return which pixels (H, W) of a dataset's sample the sensor has no value for."""
    return (mask == IGNORE) & (image == 0).all(dim=0)


class RandomScale:
    """Resize the sample by a random factor, image bilinear, mask nearest."""

    def __init__(self, low: float = 0.5, high: float = 2.0) -> None:
        self.low, self.high = low, high

    def __call__(self, sample: Sample) -> Sample:
        """Return the resized sample."""
        factor = float(torch.empty(1).uniform_(self.low, self.high))
        size = [max(1, round(side * factor)) for side in sample["mask"].shape]
        return resize(sample, size)


class RandomCrop:
    """Cut a square at random; a sample that is too small is padded with ignored pixels."""

    def __init__(self, size_px: int) -> None:
        self.size_px = size_px

    def __call__(self, sample: Sample) -> Sample:
        """Return a sample of size_px x size_px."""
        image, mask = pad_to(sample["image"], sample["mask"], self.size_px)
        top, left = (int(torch.randint(side - self.size_px + 1, (1,))) for side in mask.shape)
        window = (slice(top, top + self.size_px), slice(left, left + self.size_px))
        return {**sample, "image": image[:, window[0], window[1]], "mask": mask[window]}


class RandomFlip:
    """Mirror left and right with probability one half; also up and down if the view allows."""

    def __init__(self, vertical: bool = False) -> None:
        self.vertical = vertical

    def __call__(self, sample: Sample) -> Sample:
        """Return the sample, mirrored or not."""
        image, mask = sample["image"], sample["mask"]
        if torch.rand(1) < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        if self.vertical and torch.rand(1) < 0.5:
            image, mask = image.flip(-2), mask.flip(-2)
        return {**sample, "image": image, "mask": mask}


def resize(sample: Sample, size: Sequence[int]) -> Sample:
    """Resize a sample to (height, width), image bilinear, mask nearest."""
    image = F.interpolate(sample["image"][None], size=tuple(size), mode="bilinear")[0]
    # Nearest in float32 is exact for labels up to 255; there is no integer kernel.
    mask = F.interpolate(sample["mask"][None, None].float(), size=tuple(size), mode="nearest-exact")
    return {**sample, "image": image, "mask": mask[0, 0].long()}


def pad_to(image: Tensor, mask: Tensor, size_px: int) -> tuple[Tensor, Tensor]:
    """Pad right and below to at least size_px: image with 0, the band mean, mask with 255."""
    down, right = (max(0, size_px - side) for side in mask.shape)
    padding = (0, right, 0, down)
    return F.pad(image, padding), F.pad(mask, padding, value=IGNORE)
