"""Everything in which TorchGeo 0.8 (Python 3.11) and 0.10 (3.12 and later) differ for us."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import torch
import torchgeo.samplers
from torch.utils.data import Sampler

if TYPE_CHECKING:
    from torchgeo.datasets import GeoDataset

#: True from 0.9 on, where samples lost `crs` and gained `transform`.
NEW_SAMPLES = tuple(int(part) for part in version("torchgeo").split(".")[:2]) >= (0, 9)


def random_patches(
    dataset: GeoDataset, size_px: int, length: int | None, seed: int | None = None
) -> Sampler[Any]:
    """Return TorchGeo's sampler of random patches."""
    if NEW_SAMPLES:
        return _sampler("RandomPatchSampler", dataset, size=size_px, length=length, generator=seed)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return _sampler("RandomGeoSampler", dataset, size_px, length, generator=generator)


def grid_patches(dataset: GeoDataset, size_px: int, stride_px: int) -> Sampler[Any]:
    """Return TorchGeo's sampler of patches on a grid."""
    if NEW_SAMPLES:
        return _sampler("GriddedPatchSampler", dataset, size=size_px, stride=stride_px)
    return _sampler("GridGeoSampler", dataset, size_px, stride_px)


def tensors_only(sample: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Drop what cannot move to a device and differs between versions: `crs`, `bounds`, ..."""
    drop = {"crs", "bounds", "transform"}
    return {key: value for key, value in sample.items() if key not in drop}


def frame_slices(dataset: GeoDataset) -> Iterator[tuple[slice, slice]]:
    """Yield the query that covers each file of the dataset, in index order."""
    for geometry in dataset.index.geometry:
        west, south, east, north = geometry.bounds
        yield slice(west, east), slice(south, north)


def _sampler(name: str, *args: Any, **kwargs: Any) -> Sampler[Any]:
    """Build a sampler by name: neither version knows all of the names above."""
    sampler: Sampler[Any] = getattr(torchgeo.samplers, name)(*args, **kwargs)
    return sampler
