"""What every method of the paper can do, whoever wrote it: one test for all of them."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from toy_models import toy_card
from toy_scenes import landscape, write_scene

from smokegeo.benchmark.measure import count_flops
from smokegeo.errors import ModelError, UsageError
from smokegeo.modelfile import load_model, save_model
from smokegeo.models.baselines.catalog import METHODS, VARIANTS, checked_options
from smokegeo.models.build import build_network
from smokegeo.task import MoPSegmentationTask

ROOT = Path(__file__).resolve().parents[2]
#: All but MoP, which has tests of its own, in this file's sense too.
BASELINES = [name for name in METHODS if name != "mop"]
#: Parameters in millions at 3 bands: realtime and accuracy, as published where they are.
PUBLISHED = {
    "segnext": (4.3, 27.6),
    "segformer": (3.7, 47.3),
    "ocrnet": (6.3, 70.4),
    "mask2former": (None, 47.4),
}


def made(name, bands=4, variant="realtime", seed=0):
    if name == "mask2former" and importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers")
    torch.manual_seed(seed)
    return build_network(name, bands, {"variant": variant})


def batch(bands=4, size=(37, 45), count=2):
    """Return images in which a bright patch is smoke, and their labels with some ignored."""
    generator = torch.Generator().manual_seed(3)
    image = torch.randn(count, bands, *size, generator=generator)
    labels = torch.zeros(count, *size, dtype=torch.long)
    labels[:, 5:20, 8:30] = 1
    image += 2.0 * (labels == 1)[:, None]
    labels[:, -3:] = 255
    return image, labels


@pytest.mark.parametrize("bands", [3, 4, 13, 25])
@pytest.mark.parametrize("name", METHODS)
def test_any_number_of_bands_and_odd_sizes(name, bands):
    network = made(name, bands).eval()
    for size in ((37, 45), (64, 33)):
        with torch.no_grad():
            logits = network(torch.randn(1, bands, *size))
        assert logits.shape == (1, 2, *size)
        assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", METHODS)
def test_steps_of_training_lower_the_loss_and_reach_every_weight(name):
    made(name)
    torch.manual_seed(0)
    task = MoPSegmentationTask(name, 4, {"variant": "realtime"})
    image, labels = batch()
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-3)
    losses = []
    for _ in range(6):
        torch.manual_seed(1)  # the same dropout each time: only the weights change
        terms = task.loss_terms(image, labels, None)
        loss = sum(value * (0.01 if term == "prototype" else 1) for term, value in terms.items())
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None for p in task.parameters() if p.requires_grad)
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", BASELINES)
def test_a_batch_of_one_small_crop_trains(name):
    network = made(name).train()
    image, labels = batch(size=(20, 20), count=1)
    if hasattr(network, "terms"):
        loss = torch.stack(list(network.terms(image, labels).values())).sum()
    else:
        loss = network(image).square().mean()
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize("name", BASELINES)
def test_it_trains_in_half_precision(name):
    network = made(name).train()
    image, labels = batch()
    with torch.autocast("cpu", torch.bfloat16):
        if hasattr(network, "terms"):
            loss = torch.stack(list(network.terms(image, labels).values())).sum()
        else:
            loss = network(image).float().square().mean()
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize("name", BASELINES)
def test_labels_that_are_all_ignored_teach_nothing_wrong(name):
    network = made(name).train()
    image, _ = batch()
    if not hasattr(network, "terms"):
        pytest.skip("plain cross-entropy, which has a test of its own")
    terms = network.terms(image, torch.full((2, 37, 45), 255))
    assert torch.isfinite(torch.stack(list(terms.values()))).all()
    # A divergence of two latent variables is no term of pixels.
    assert all(value == 0 for name, value in terms.items() if name != "divergence"), terms


@pytest.mark.parametrize("name", METHODS)
def test_saved_and_loaded_it_answers_the_same(name, tmp_path):
    network = made(name, 6)
    image, _ = batch(6)
    network.train()(image)  # statistics of norms leave their start
    network.eval()
    with torch.no_grad():
        before = network(image)
        assert torch.equal(before, network(image)), "the answer depends on chance"
    card = toy_card("satellite", architecture=name, options={"variant": "realtime"})
    path = tmp_path / "model.safetensors"
    save_model(path, card, network.state_dict())
    with torch.no_grad():
        after = load_model(path).for_inference()(image)
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)  # MoP is folded


@pytest.mark.parametrize("name", BASELINES)
def test_an_absent_band_counts_as_its_mean_whatever_it_holds(name):
    network = made(name).eval()
    image, _ = batch(count=1)
    available = torch.tensor([[True, True, False, True]])
    zero = image.clone()
    zero[:, 2] = 0
    image[:, 2] = float("nan")
    with torch.no_grad():
        assert torch.equal(network(image, available), network(zero))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_it_makes_polygons(name, run, tmp_path):
    scene = write_scene(tmp_path / "scene.tif", landscape())
    network = made(name, 6)
    card = toy_card("satellite", architecture=name, options={"variant": "realtime"}, threshold=0.01)
    save_model(tmp_path / "m.safetensors", card, network.state_dict())
    out = tmp_path / "smoke.geojson"
    result = run("predict", scene, "--model", tmp_path / "m.safetensors", "--out", out, "--yes")
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["features"]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_the_accuracy_variant_is_larger_and_trains(name):
    small, large = made(name), made(name, variant="accuracy").train()
    sizes = [sum(p.numel() for p in network.parameters()) for network in (small, large)]
    assert sizes[0] < sizes[1]
    image, labels = batch()
    if hasattr(large, "terms"):
        loss = torch.stack(list(large.terms(image, labels).values())).sum()
    else:
        loss = large(image).square().mean()
    loss.backward()
    assert all(p.grad is not None for p in large.parameters() if p.requires_grad)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_its_size_is_the_published_one(name):
    for variant, published in zip(VARIANTS, PUBLISHED[name], strict=True):
        if published is not None:
            count = sum(p.numel() for p in made(name, 3, variant).parameters())
            assert count / 1e6 == pytest.approx(published, rel=0.03)


@pytest.mark.slow
def test_the_document_tells_the_parameters_and_flops_of_each():
    text = (ROOT / "docs" / "benchmark.md").read_text("utf-8")
    size = r"(.+?) \| ([\d.]+) \| ([\d.]+)"
    row = rf"^\| `([^`]+)` \| {size} \| {size} \|"
    told = {name: rest for name, *rest in re.findall(row, text, re.MULTILINE)}
    assert set(told) == set(METHODS)
    image = torch.zeros(1, 25, 512, 512, device="meta")  # shapes alone say how much is done
    for name, facts in told.items():
        assert tuple(facts[::3]) == METHODS[name].encoders
        for variant, parameters, flops in zip(VARIANTS, facts[1::3], facts[2::3], strict=True):
            network = made(name, 25, variant).eval()
            count = sum(p.numel() for p in network.parameters())
            assert f"{count / 1e6:.2f}" == parameters, name
            if name == "segnext":
                continue  # torch knows no autocast without numbers
            ready = (network.fold() if name == "mop" else network).to("meta")
            assert f"{count_flops(partial(ready, image)) / 1e9:.2f}" == flops, name


def test_without_transformers_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModelError, match=r"pip install smokegeo\[mask2former\]"):
        build_network("mask2former", 4)


def test_options_a_method_lacks_and_unknown_variants_are_refused():
    with pytest.raises(UsageError, match="segnext has no option depth; it has variant"):
        build_network("segnext", 4, {"depth": 3})
    with pytest.raises(UsageError, match="variant 'huge' is not one of realtime, accuracy"):
        build_network("fosp", 4, {"variant": "huge"})
    assert checked_options("protoseg", {"momentum": 0.9}) == {
        "variant": "realtime",
        "momentum": 0.9,
    }


def test_the_encoder_without_a_free_licence_is_not_used():
    for name in ("segformer", "fosp", "protoseg"):
        kinds = {type(module).__module__ for module in made(name).modules()}
        assert not any("mix_transformer" in kind for kind in kinds)


def test_numbers_of_bands_only_change_the_first_layers():
    few, many = made("segformer", 3), made("segformer", 25)
    changed = [
        name
        for (name, one), two in zip(
            few.state_dict().items(), many.state_dict().values(), strict=True
        )
        if one.shape != two.shape
    ]
    assert len(changed) == 1
    assert np.prod(many.state_dict()[changed[0]].shape) == 32 * 25 * 49
