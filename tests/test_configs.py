"""Every configuration in `configs/` is complete and trains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from smokegeo.models.mop import MoP
from smokegeo.task import MoPSegmentationTask, segmentation_loss
from smokegeo.train import TrainConfig, read_config

ROOT = Path(__file__).resolve().parent.parent / "configs"
CONFIGS = sorted(ROOT.rglob("*.yaml"))
IDS = [str(path.relative_to(ROOT)) for path in CONFIGS]


@pytest.mark.parametrize("path", CONFIGS, ids=IDS)
def test_it_is_the_papers_recipe(path):
    config = TrainConfig.from_dict(read_config(path))
    defaults = TrainConfig()
    for name in ("iterations", "batch_size", "crop_px", "scale", "lr", "weight_decay", "power"):
        assert getattr(config, name) == getattr(defaults, name)
    assert path.stem.startswith(config.dataset)


@pytest.mark.slow
@pytest.mark.parametrize("path", CONFIGS, ids=IDS)
def test_its_network_takes_a_training_step(path):
    config = TrainConfig.from_dict(read_config(path))
    bands = {"hss": 25, "mss": 4}[config.dataset]
    torch.manual_seed(0)
    task = MoPSegmentationTask(config.model, bands, config.options, iterations=2)
    optimizer = task.configure_optimizers()["optimizer"]
    image, labels = torch.randn(2, bands, 32, 32), torch.randint(0, 2, (2, 32, 32))
    assert isinstance(task.model, MoP)
    done = task.model.run(image)
    loss = segmentation_loss(done.logits, labels) + 0.01 * task.model.loss(done, labels)
    loss.backward()
    optimizer.step()
    assert torch.isfinite(loss)
    assert torch.isfinite(task.model(image)).all()
    # Every trainable part is used by some loss.
    unused = [name for name, p in task.model.named_parameters() if p.grad is None]
    assert unused == []


def test_the_settings_of_the_paper_are_all_there():
    names = {path.relative_to(ROOT).as_posix() for path in CONFIGS}
    for dataset in ("hss", "mss"):
        assert {f"{dataset}_realtime.yaml", f"{dataset}_accuracy.yaml"} <= names
        rows = ("bl", "a", "b", "c", "d", "gradient", "spectral", "concat")
        assert {f"ablation/{dataset}_{row}.yaml" for row in rows} <= names
    assert {f"sweep/hss_k{k}.yaml" for k in (1, 2, 4, 5)} <= names
    assert {f"sweep/hss_d{d}.yaml" for d in (50, 100, 150, 200, 300, 500)} <= names
