"""Scoring a model on a dataset, whatever bands the two share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from smokegeo import HSS, MSS
from smokegeo.bands import BandSet, match_bands
from smokegeo.datasets.statistics import band_statistics
from smokegeo.errors import InputError, ModelError
from smokegeo.evaluate import evaluate, pick_bands, probabilities, split_by_scene
from smokegeo.explain.look import Viewer
from smokegeo.modelfile import Card, load_model, save_model
from smokegeo.models.build import build_network
from smokegeo.sensors import sensor


@pytest.fixture
def model(make_dataset, tmp_path):
    """An untrained MoP for the bands of `mss`, saved and loaded again."""
    layout = make_dataset(10, "mss", name="training")
    torch.manual_seed(0)
    network = build_network("mop", 4)
    statistics = band_statistics(layout, layout.split_ids("train"), layout.bands)
    card = Card("untrained", "mop", network.config.to_dict(), layout.bands, statistics)
    save_model(tmp_path / "model.safetensors", card, network.state_dict())
    return load_model(tmp_path / "model.safetensors")


def test_every_image_of_the_split_is_scored_against_its_own_labels(model, make_dataset):
    dataset = MSS(make_dataset(10, "mss").root, "test")
    result = evaluate(model, dataset, threshold=0.0)
    # Everything is called smoke: recall 1, precision the share of smoke.
    share = np.mean([r.smoke_pixels / (r.width * r.height) for r in dataset.records])
    assert result.total.images == len(dataset.records) == 1
    assert result.total.iou_global == pytest.approx(share)
    assert evaluate(model, dataset, threshold=1.0).total.f1_global == 0
    assert set(result.scenarios) == {"cloud_interference", "early_stage"}


def test_the_cards_threshold_is_the_default(model, make_dataset):
    dataset = MSS(make_dataset(10, "mss").root, "test")
    assert evaluate(model, dataset) == evaluate(model, dataset, model.card.threshold)


def test_smoke_is_read_where_the_card_says_it_stands(model, make_dataset):
    dataset = MSS(make_dataset(10, "mss").root, "test")
    swapped = replace(model, card=replace(model.card, classes=("smoke", "background")))
    (usual,), (other,) = (list(probabilities(m, dataset)) for m in (model, swapped))
    np.testing.assert_allclose(usual[2] + other[2], 1, atol=1e-6)


def test_the_network_sees_what_it_was_trained_on(model, make_dataset, monkeypatch):
    """Values end where they did in training, and pixels without a value are like others."""
    dataset = MSS(make_dataset(10, "mss").root, "test")
    original = type(dataset).__getitem__

    def damaged(self, query):
        sample = original(self, query)
        sample["image"][:, 0, 0], sample["mask"][0, 0] = 0, 255
        sample["image"][:, 1, 1] = 1e6
        return sample

    seen = []

    def network(image, available):
        seen.append(image)
        return image[:, :2]

    monkeypatch.setattr(type(dataset), "__getitem__", damaged)
    monkeypatch.setattr(type(model), "for_inference", lambda self: network)
    card = replace(model.card, input={"limit": 3.0})
    list(probabilities(replace(model, card=card), dataset))
    assert any((seen[0][0, :, 0, 0] == seen[0][0, :, y, x]).all() for y, x in ((0, 2), (2, 0)))
    assert (seen[0][0, :, 1, 1] == 3).all()


def test_scenes_stay_together_only_for_the_kind_of_data_they_did_in_training(model):
    def trained(**config):
        return replace(model.card, training={"config": {"dataset": "mss", **config}})

    assert split_by_scene(trained(by_scene=True), "mss")
    assert not split_by_scene(trained(by_scene=True), "hss")
    assert not split_by_scene(trained(), "mss")
    assert not split_by_scene(replace(model.card, training={}), "mss")


def test_bands_are_matched_not_counted(model, make_dataset):
    root = make_dataset(10, "mss").root
    plain = MSS(root, "test")
    mixed = MSS(root, "test", bands=["thermal", "blue", "red", "green"])
    (one,), (two,) = list(probabilities(model, plain)), list(probabilities(model, mixed))
    assert np.array_equal(one[2], two[2])


def test_a_dataset_that_lacks_bands_is_scored_without_them(model, make_dataset):
    root = make_dataset(10, "mss").root
    (full,) = list(probabilities(model, MSS(root, "test")))
    (part,) = list(probabilities(model, MSS(root, "test", bands=["red", "green", "blue"])))
    assert np.isfinite(part[2]).all()
    assert not np.array_equal(full[2], part[2])


def test_a_dataset_without_any_band_of_the_model_is_refused(model, make_dataset):
    dataset = HSS(make_dataset(10, "hss").root, "test", bands=["894nm", "910nm"])
    with pytest.raises(ModelError, match="the dataset has none of them"):
        evaluate(model, dataset)


def test_picked_bands_come_in_the_models_order_with_gaps_of_zero():
    scene = BandSet(tuple(reversed(sensor("mss").bands.bands))).subset(["thermal", "red"])
    image = torch.stack([torch.full((2, 2), 7.0), torch.full((2, 2), 3.0)])
    picked = pick_bands(image, match_bands(scene, sensor("mss").bands))
    assert picked[:, 0, 0].tolist() == [3, 0, 0, 7]


def test_frames_too_large_to_be_seen_whole_are_refused_with_a_remedy(
    model, make_dataset, monkeypatch
):
    monkeypatch.setattr("smokegeo.evaluate.LARGEST_PIXELS", 24 * 40 - 1)
    dataset = MSS(make_dataset(10, "mss").root, "test")
    for look in (lambda: evaluate(model, dataset), lambda: Viewer(model, dataset)):
        with pytest.raises(InputError, match=r"40 x 24 pixels.*`smokegeo predict`"):
            look()
