"""The Lightning data module: any smoke dataset, normalised, in batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler
from torchgeo.datamodules import GeoDataModule
from torchgeo.datasets import stack_samples

from smokegeo import datasets as registry
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.datasets.statistics import BandStatistics, band_statistics
from smokegeo.datasets.transforms import Compose, Normalise, RandomCrop, RandomFlip, RandomScale
from smokegeo.errors import UsageError
from smokegeo.torchgeo_api import frame_slices, grid_patches, random_patches, tensors_only

log = logging.getLogger(__name__)


class FrameSampler(Sampler[Any]):
    """Visit every file of a dataset once as a whole, in order or shuffled by torch's generator."""

    def __init__(self, dataset: SmokeDataset, *, shuffle: bool = False) -> None:
        self.queries = list(frame_slices(dataset))
        self.shuffle = shuffle

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Any]:
        order = torch.randperm(len(self)) if self.shuffle else torch.arange(len(self))
        for index in order.tolist():
            yield self.queries[index]


class SmokeDataModule(GeoDataModule):
    """Loaders for a prepared dataset of any kind.

    Training samples are whole frames, scaled, cropped to `crop_px` and flipped, as in the paper;
    with `patch_px`, TorchGeo's samplers cut patches first, for rasters larger than a frame.
    Validation and test see each frame once, whole and unscaled.
    """

    def __init__(
        self,
        root: str | Path,
        kind: str = "hss",
        *,
        batch_size: int = 4,
        crop_px: int = 512,
        scale: tuple[float, float] = (0.5, 2.0),
        patch_px: int | None = None,
        length: int | None = None,
        num_workers: int = 0,
        **kwargs: Any,
    ) -> None:
        """Describe the loaders; `kwargs` go to the dataset class.

        Args:
            root: Folder in the prepared layout.
            kind: "hss", "mss" or "satellite".
            batch_size: Samples per training batch.
            crop_px: Side of the training crops.
            scale: Range of random scaling in training.
            patch_px: Side of the patches cut from large rasters; None for whole frames.
            length: Patches per epoch, with `patch_px`.
            num_workers: Loader processes.
            **kwargs: Arguments of the dataset class, `bands` or `by_scene` for example.
        """
        if kind not in registry.KINDS:
            raise UsageError(f"dataset {kind!r} is not one of {', '.join(registry.KINDS)}.")
        dataset_class = getattr(registry, registry.KINDS[kind])
        super().__init__(
            dataset_class, batch_size, patch_px or crop_px, length, num_workers, **kwargs
        )
        self.root = Path(root)
        self.crop_px, self.scale, self.patch_px = crop_px, scale, patch_px
        # A satellite has no up and down, a camera has.
        self.flip_vertically = kind == "satellite"
        self.statistics: BandStatistics | None = None

    def setup(self, stage: str) -> None:
        """Open the splits a stage needs; statistics always come from the train split."""
        train = self._open("train", None)
        ids = [record.id for record in train.records]
        self.statistics = band_statistics(train.layout, ids, train.band_set)
        normalise = Normalise(self.statistics)
        if stage == "fit":
            augment = Compose(
                normalise,
                RandomScale(*self.scale),
                RandomCrop(self.crop_px),
                RandomFlip(self.flip_vertically),
            )
            self.train_dataset = self._open("train", augment)
            self.train_sampler = self._sampler(self.train_dataset, train=True)
        if stage in ("fit", "validate"):
            self.val_dataset = self._open("val", normalise)
            self.val_sampler = self._sampler(self.val_dataset, train=False)
        if stage == "test":
            self.test_dataset = self._open("test", normalise)
            self.test_sampler = self._sampler(self.test_dataset, train=False)

    def _open(self, split: str, transforms: Any) -> SmokeDataset:
        dataset_class = cast("type[SmokeDataset]", self.dataset_class)
        return dataset_class(self.root, split, transforms=transforms, **self.kwargs)

    def _sampler(self, dataset: SmokeDataset, *, train: bool) -> Any:
        if self.patch_px is None:
            return FrameSampler(dataset, shuffle=train)
        smallest = min(min(record.width, record.height) for record in dataset.records)
        if self.patch_px > smallest:
            # TorchGeo would give no patches at all, without a word.
            raise UsageError(
                f"patches of {self.patch_px} px do not fit rasters of {smallest} px. "
                f"Leave patch_px out to use whole frames."
            )
        if train:
            return random_patches(dataset, self.patch_px, self.length)
        return grid_patches(dataset, self.patch_px, self.patch_px)

    def _dataloader_factory(self, split: str) -> DataLoader[dict[str, Any]]:
        train = split == "train"
        dataset = self._valid_attribute(f"{split}_dataset")
        sampler = self._valid_attribute(f"{split}_sampler")
        return DataLoader(
            dataset,
            # Frames of different sizes do not stack; only training crops are all alike.
            batch_size=self.batch_size if train else 1,
            sampler=sampler,
            num_workers=self.num_workers,
            collate_fn=_collate,
            drop_last=train and len(sampler) >= self.batch_size,
            persistent_workers=self.num_workers > 0,
        )

    def transfer_batch_to_device(
        self, batch: dict[str, Tensor], device: torch.device, dataloader_idx: int
    ) -> dict[str, Tensor]:
        """Move a batch to a device."""
        return {key: value.to(device) for key, value in batch.items()}

    def on_after_batch_transfer(
        self, batch: dict[str, Tensor], dataloader_idx: int
    ) -> dict[str, Tensor]:
        """Return the batch as it is: normalising and augmenting happened in the workers."""
        return batch


def _collate(samples: list[dict[str, Any]]) -> dict[str, Tensor]:
    batch: dict[str, Tensor] = stack_samples([tensors_only(sample) for sample in samples])
    return batch
