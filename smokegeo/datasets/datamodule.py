"""The Lightning data module: any smoke dataset, normalised, in batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler
from torchgeo.datamodules import GeoDataModule
from torchgeo.datasets import stack_samples

from smokegeo.datasets import dataset_class
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.datasets.statistics import BandStatistics, band_statistics
from smokegeo.datasets.transforms import Compose, Normalise, RandomCrop, RandomFlip, RandomScale
from smokegeo.errors import UsageError
from smokegeo.torchgeo_api import frame_slices, grid_patches, random_patches, tensors_only

log = logging.getLogger(__name__)


class StepSampler(Sampler[int]):
    """Number the samples one process takes in a whole training run, from the step it starts at."""

    def __init__(
        self, steps: int, batch_size: int, start: int = 0, rank: int = 0, world: int = 1
    ) -> None:
        self.steps, self.batch_size, self.start = steps, batch_size, start
        self.rank, self.world = rank, world

    def __len__(self) -> int:
        return self.steps * self.batch_size

    def __iter__(self) -> Iterator[int]:
        for step in range(self.start, self.steps):
            first = (step * self.world + self.rank) * self.batch_size
            yield from range(first, first + self.batch_size)


class EndlessSamples(Dataset[dict[str, Any]]):
    """The training data as one endless sequence: sample n is the same however one gets to it.

    The sequence goes through the dataset pass after pass, each in a new order (frames) or with new
    random patches (TorchGeo's sampler), and every sample is augmented from a seed of its own. So a
    resumed run sees exactly what an uninterrupted one would, whatever the number of workers.
    """

    def __init__(
        self,
        dataset: SmokeDataset,
        queries: Callable[[int], Sequence[Any]],
        augment: Callable[[dict[str, Any]], dict[str, Any]],
        seed: int,
    ) -> None:
        self.dataset, self.queries, self.augment, self.seed = dataset, queries, augment, seed
        self.per_pass = len(queries(0))
        self._pass: tuple[int, Sequence[Any]] = (0, queries(0))

    def __getitem__(self, number: int) -> dict[str, Any]:
        """Return sample `number` of the sequence."""
        turn, place = divmod(number, self.per_pass)
        if self._pass[0] != turn:
            self._pass = (turn, self.queries(turn))
        sample = self.dataset[self._pass[1][place]]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(mixed_seed(self.seed, number))
            return self.augment(sample)


class SmokeDataModule(GeoDataModule):
    """Loaders for a prepared dataset of any kind.

    Training samples are whole frames, scaled, cropped to `crop_px` and flipped, as in the paper;
    with `patch_px`, TorchGeo's samplers cut patches first, for rasters larger than a frame. They
    come as one sequence of `iterations` batches that resumes where the trainer stands. Validation
    and test see each frame once and unscaled: whole, or with `patch_px` as patches side by side,
    whose counts `smokegeo.task` adds up frame by frame. Several processes share the work between
    them here, so the trainer must not (`use_distributed_sampler=False`).
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
        iterations: int | None = None,
        num_workers: int = 0,
        seed: int = 0,
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
            length: Patches per pass through the data, with `patch_px`.
            iterations: Training batches of each process; by default one pass through the data,
                by each of them.
            num_workers: Loader processes.
            seed: Seed of order, patches and augmentation.
            **kwargs: Arguments of the dataset class, `bands` or `by_scene` for example.
        """
        super().__init__(
            dataset_class(kind), batch_size, patch_px or crop_px, length, num_workers, **kwargs
        )
        self.root = Path(root)
        self.crop_px, self.scale, self.patch_px = crop_px, scale, patch_px
        self.iterations, self.seed = iterations, seed
        # A satellite has no up and down, a camera has.
        self.flip_vertically = kind == "satellite"
        self.statistics: BandStatistics | None = None
        self.queries: dict[str, list[Any]] = {}

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
            self.train_dataset = train
            self.train_samples = EndlessSamples(train, self._queries, augment, self.seed)
        if stage in ("fit", "validate"):
            self.val_dataset = self._open("val", normalise)
            self.queries["val"] = self._whole_or_grid(self.val_dataset)
        if stage == "test":
            self.test_dataset = self._open("test", normalise)
            self.queries["test"] = self._whole_or_grid(self.test_dataset)

    def _open(self, split: str, transforms: Any) -> SmokeDataset:
        reader = cast("type[SmokeDataset]", self.dataset_class)
        return reader(self.root, split, transforms=transforms, **self.kwargs)

    def _queries(self, turn: int) -> Sequence[Any]:
        """Return the queries of one pass through the training data, in order."""
        train = cast("SmokeDataset", self.train_dataset)
        seed = mixed_seed(self.seed, turn)
        if self.patch_px is None:
            frames = list(frame_slices(train))
            order = torch.randperm(len(frames), generator=torch.Generator().manual_seed(seed))
            return [frames[i] for i in order.tolist()]
        self._check_patches(train)
        return random_patches(train, self.patch_px, self.length, seed)

    def _whole_or_grid(self, dataset: SmokeDataset) -> list[Any]:
        if self.patch_px is None:
            return list(frame_slices(dataset))
        self._check_patches(dataset)
        return grid_patches(dataset, self.patch_px, self.patch_px)

    def _check_patches(self, dataset: SmokeDataset) -> None:
        smallest = min(min(record.width, record.height) for record in dataset.records)
        if self.patch_px is not None and self.patch_px > smallest:
            # TorchGeo would give no patches at all, without a word.
            raise UsageError(
                f"patches of {self.patch_px} px do not fit rasters of {smallest} px. "
                f"Leave patch_px out to use whole frames."
            )

    def train_dataloader(self) -> DataLoader[dict[str, Any]]:
        """Return the training batches from the step the trainer stands at."""
        samples = self.train_samples
        steps = self.iterations or max(1, samples.per_pass // self.batch_size)
        start = self.trainer.global_step if self.trainer is not None else 0
        return DataLoader(
            samples,
            batch_size=self.batch_size,
            sampler=StepSampler(steps, self.batch_size, start, *self._rank_and_world()),
            num_workers=self.num_workers,
            collate_fn=_collate,
            persistent_workers=self.num_workers > 0,
        )

    def _dataloader_factory(self, split: str) -> DataLoader[dict[str, Any]]:
        rank, world = self._rank_and_world()
        if len(self.queries[split]) < world:
            raise UsageError(
                f"{self.root}: the {split} split is too small to be shared by {world} processes."
            )
        return DataLoader(
            self._valid_attribute(f"{split}_dataset"),
            batch_size=1,  # frames of different sizes do not stack
            sampler=self.queries[split][rank::world],
            num_workers=self.num_workers,
            collate_fn=_collate,
            persistent_workers=self.num_workers > 0,
        )

    def _rank_and_world(self) -> tuple[int, int]:
        trainer = self.trainer
        return (0, 1) if trainer is None else (trainer.global_rank, trainer.world_size)

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


def mixed_seed(*numbers: int) -> int:
    """Return one well-spread seed from several numbers.

    Zeros at the end change nothing: (s, n) and (s, n, 0) are one seed, so that the dropout of step
    n is drawn like the augmentation of sample n. It stays so, for another rule would change the
    data order of every training.
    """
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
