"""Every configuration in `configs/` is complete, and trains from end to end with a tiny budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from smokegeo.modelfile import load_model
from smokegeo.models.config import ABLATION
from smokegeo.train import Machine, TrainConfig, read_config, train

ROOT = Path(__file__).resolve().parent.parent / "configs"
CONFIGS = sorted(ROOT.rglob("*.yaml"))
IDS = [str(path.relative_to(ROOT)) for path in CONFIGS]
CPU = Machine(accelerator="cpu", devices="1")


@pytest.mark.parametrize("path", CONFIGS, ids=IDS)
def test_it_is_the_papers_recipe(path):
    config = TrainConfig.from_dict(read_config(path))
    dataset, _, setting = path.stem.partition("_")
    recipe = {
        "dataset": dataset,
        "model": "mop",
        "iterations": 40_000,
        "batch_size": 4,
        "crop_px": 512,
        "scale": (0.5, 2.0),
        "lr": 6e-5,
        "weight_decay": 0.01,
        "power": 0.9,
        "warmup": 0,
        "prototype_weight": 0.01,
        "band_dropout": 0.0,
        "bands": None,
        "patch_px": None,
        "patience": None,
    }
    assert {name: getattr(config, name) for name in recipe} == recipe
    assert config.options == options(path.parent.name, setting)


def options(folder, setting):
    """Return the options that the name of a file promises."""
    if folder == "configs":
        return {"variant": setting}
    others = {
        "gradient": {"prototype_update": "gradient"},
        "spectral": {"fusion": "spectral"},
        "concat": {"fusion": "concat"},
        "d50": {"dim": 50, "band_groups": 25},  # by itself smokegeo would form groups of bands
    }
    if folder == "sweep" and setting not in others:
        others[setting] = {{"k": "prototypes", "d": "dim"}[setting[0]]: int(setting[1:])}
    rows = ABLATION if folder == "ablation" else {}
    return {"variant": "accuracy", **{**rows, **others}[setting]}


@pytest.mark.slow
@pytest.mark.parametrize("path", CONFIGS, ids=IDS)
def test_it_trains_to_a_model_file(path, make_dataset, tmp_path):
    config = TrainConfig.from_dict(read_config(path))
    layout = make_dataset(10, config.dataset, size=(16, 20))
    options = dict(config.options)
    if path.parent != ROOT:
        options["variant"] = "realtime"  # the switch in question is another, and this is quicker
    tiny = replace(
        config, root=str(layout.root), options=options, iterations=1, batch_size=2, crop_px=32
    )
    model = load_model(train(tiny, tmp_path / "run", CPU))
    for name, value in options.items():
        assert model.card.options[name] == value
    logits = model.for_inference()(torch.zeros(1, len(layout.bands), 16, 20))
    assert torch.isfinite(logits).all()


def test_the_settings_of_the_paper_are_all_there():
    names = {path.relative_to(ROOT).as_posix() for path in CONFIGS}
    for dataset in ("hss", "mss"):
        assert {f"{dataset}_realtime.yaml", f"{dataset}_accuracy.yaml"} <= names
        rows = ("bl", "a", "b", "c", "d", "gradient", "spectral", "concat")
        assert {f"ablation/{dataset}_{row}.yaml" for row in rows} <= names
    assert {f"sweep/hss_k{k}.yaml" for k in (1, 2, 4, 5)} <= names
    assert {f"sweep/hss_d{d}.yaml" for d in (50, 100, 150, 200, 300, 500)} <= names
