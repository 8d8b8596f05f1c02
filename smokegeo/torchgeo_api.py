"""Everything in which TorchGeo 0.8 (Python 3.11) and 0.10 (3.12 and later) differ for us."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import torch
import torchgeo.samplers
from torch import nn
from torch.utils.data import Sampler

if TYPE_CHECKING:
    from torchgeo.datasets import GeoDataset

#: True from 0.9 on, where samples lost `crs` and gained `transform`.
NEW_SAMPLES = tuple(int(part) for part in version("torchgeo").split(".")[:2]) >= (0, 9)


def random_patches(dataset: GeoDataset, size_px: int, length: int | None, seed: int) -> list[Any]:
    """Return queries of random patches from TorchGeo's sampler, the same for the same seed."""
    if NEW_SAMPLES:
        sampler = _sampler(
            "RandomPatchSampler", dataset, size=size_px, length=length, generator=seed
        )
        return list(sampler)
    # This version draws which file to take from torch's global generator, whatever it is given.
    with torch.random.fork_rng(devices=[]):
        generator = torch.manual_seed(seed)
        return list(_sampler("RandomGeoSampler", dataset, size_px, length, generator=generator))


def grid_patches(dataset: GeoDataset, size_px: int, stride_px: int) -> list[Any]:
    """Return queries of patches on a grid from TorchGeo's sampler."""
    if NEW_SAMPLES:
        return list(_sampler("GriddedPatchSampler", dataset, size=size_px, stride=stride_px))
    return list(_sampler("GridGeoSampler", dataset, size_px, stride_px))


def tensors_only(sample: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Drop what cannot move to a device and differs between versions: `crs`, `bounds`, ..."""
    drop = {"crs", "bounds", "transform"}
    return {key: value for key, value in sample.items() if key not in drop}


def frame_slices(dataset: GeoDataset) -> Iterator[tuple[slice, slice, slice]]:
    """Yield the query that covers each file of the dataset, in index order."""
    for time, geometry in zip(dataset.index.index, dataset.index.geometry, strict=True):
        west, south, east, north = geometry.bounds
        yield slice(west, east), slice(south, north), slice(time.left, time.right)


def segmentation_task() -> type[Any]:
    """Return TorchGeo's segmentation task class, under whichever name it has."""
    if NEW_SAMPLES:
        module, name = importlib.import_module("torchgeo.tasks"), "SemanticSegmentation"
    else:
        module, name = importlib.import_module("torchgeo.trainers"), "SemanticSegmentationTask"
    task: type[Any] = getattr(module, name)
    return task


def torchgeo_network(model: str, backbone: str, bands: int, classes: int = 2) -> nn.Module:
    """Return the network TorchGeo's segmentation task builds, without pretrained weights."""
    task = segmentation_task()(
        model=model, backbone=backbone, weights=None, in_channels=bands, num_classes=classes
    )
    network: nn.Module = task.model
    return network


def _sampler(name: str, *args: Any, **kwargs: Any) -> Sampler[Any]:
    """Build a sampler by name: neither version knows all of the names above."""
    sampler: Sampler[Any] = getattr(torchgeo.samplers, name)(*args, **kwargs)
    return sampler
