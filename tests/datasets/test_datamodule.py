"""The data module under a real Lightning trainer."""

from __future__ import annotations

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


def test_epochs_are_shuffled_and_repeat_with_the_seed(make_dataset):
    module = SmokeDataModule(make_dataset(10).root, "hss", batch_size=3, crop_px=8)
    module.setup("fit")

    def frames(seed):
        torch.manual_seed(seed)
        return [batch["frame"].flatten().tolist() for batch in module.train_dataloader()]

    assert frames(1) == frames(1)
    assert frames(1) != frames(2)


def test_unknown_kinds_are_refused(tmp_path):
    with pytest.raises(UsageError, match="'fog' is not one of hss, mss, satellite"):
        SmokeDataModule(tmp_path, "fog")
