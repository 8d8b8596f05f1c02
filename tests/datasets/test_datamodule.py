"""The data module under a real Lightning trainer."""

from __future__ import annotations

from types import SimpleNamespace

import lightning
import pytest
import torch

from smokegeo.datasets.datamodule import SmokeDataModule
from smokegeo.errors import UsageError


class Recorder(lightning.LightningModule):
    """A network of one parameter that remembers what it was fed."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.train_shapes, self.val_shapes = [], []

    def training_step(self, batch, _):
        self.train_shapes.append(tuple(batch["image"].shape))
        return (self.weight * batch["image"].mean()).sum()

    def validation_step(self, batch, _):
        self.val_shapes.append(tuple(batch["image"].shape))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def fit(datamodule, tmp_path):
    model = Recorder()
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, datamodule=datamodule)
    return model


@pytest.mark.parametrize("workers", [0, 2])
def test_a_trainer_sees_crops_in_training_and_whole_frames_in_validation(
    make_dataset, tmp_path, workers
):
    root = make_dataset(10).root
    model = fit(
        SmokeDataModule(root, "hss", batch_size=2, crop_px=32, num_workers=workers), tmp_path
    )
    assert model.train_shapes == [(2, 25, 32, 32)] * 3
    assert model.val_shapes == [(1, 25, 24, 40)] * 2


def test_large_rasters_are_cut_by_torchgeos_samplers(make_dataset, tmp_path):
    root = make_dataset(5, size=(64, 64)).root
    model = fit(
        SmokeDataModule(root, "hss", batch_size=2, crop_px=16, patch_px=16, length=6), tmp_path
    )
    assert model.train_shapes == [(2, 25, 16, 16)] * 3
    assert set(model.val_shapes) == {(1, 25, 16, 16)}


def test_patches_larger_than_the_rasters_are_refused_not_silently_none(make_dataset):
    module = SmokeDataModule(make_dataset().root, "hss", patch_px=64)
    with pytest.raises(UsageError, match="do not fit rasters of 24 px"):
        module.setup("fit")


def test_bands_are_normalised_with_the_train_splits_statistics(make_dataset):
    module = SmokeDataModule(make_dataset(10).root, "hss", batch_size=6)
    module.setup("validate")
    assert module.statistics is not None
    assert module.statistics.names[0] == "600nm"
    images = torch.cat([batch["image"] for batch in module.val_dataloader()])
    assert abs(float(images.mean())) < 0.02
    assert abs(float(images.std()) - 1) < 0.02


def numbers(module):
    return [batch["frame"].flatten().tolist() for batch in module.train_dataloader()]


def test_passes_are_shuffled_anew_and_repeat_with_the_seed(make_dataset):
    root = make_dataset(10).root

    def frames(seed):
        module = SmokeDataModule(root, "hss", batch_size=3, crop_px=8, iterations=4, seed=seed)
        module.setup("fit")
        return numbers(module)

    first = frames(1)
    assert first == frames(1)
    assert first != frames(2)
    # Two passes of six frames, each frame once a pass, in different orders.
    assert sorted(first[0] + first[1]) == sorted(first[2] + first[3]) == list(range(6))
    assert first[:2] != first[2:]


@pytest.mark.parametrize("patch_px", [None, 12])
def test_sample_n_is_the_same_however_one_gets_to_it(make_dataset, patch_px):
    root = make_dataset(10).root
    kwargs = {"batch_size": 2, "crop_px": 16, "iterations": 6, "patch_px": patch_px, "length": 5}
    straight = SmokeDataModule(root, "hss", **kwargs)
    straight.setup("fit")
    expected = [batch["image"] for batch in straight.train_dataloader()]
    torch.rand(7)  # what others draw from the global generator does not matter
    for workers, start in ((2, 0), (0, 4)):
        module = SmokeDataModule(root, "hss", num_workers=workers, **kwargs)
        module.setup("fit")
        module.trainer = SimpleNamespace(global_step=start, global_rank=0, world_size=1)
        got = [batch["image"] for batch in module.train_dataloader()]
        assert len(got) == 6 - start
        assert all(torch.equal(a, b) for a, b in zip(got, expected[start:], strict=True))


def test_processes_share_the_samples_between_them(make_dataset):
    root = make_dataset(10).root

    def samples(rank, world, batch_size, steps):
        module = SmokeDataModule(root, "hss", batch_size=batch_size, crop_px=8, iterations=steps)
        module.setup("fit")
        module.trainer = SimpleNamespace(global_step=0, global_rank=rank, world_size=world)
        frames = [int(batch["frame"]) for batch in module.val_dataloader()]
        return numbers(module), frames

    one, all_val = samples(0, 1, 4, 3)
    (left, left_val), (right, right_val) = (samples(rank, 2, 2, 3) for rank in (0, 1))
    assert [a + b for a, b in zip(left, right, strict=True)] == one
    assert sorted(left_val + right_val) == sorted(all_val)


def test_unknown_kinds_are_refused(tmp_path):
    with pytest.raises(UsageError, match="'fog' is not one of hss, mss, satellite"):
        SmokeDataModule(tmp_path, "fog")
