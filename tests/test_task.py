"""The task: losses, thresholds, optimiser, band dropout."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from smokegeo.metrics import Counts, ImageScore, count
from smokegeo.task import (
    THRESHOLDS,
    MoPSegmentationTask,
    best_threshold,
    counts_by_threshold,
    segmentation_loss,
    whole_images,
)
from smokegeo.train import TrainConfig, new_task


def test_it_is_torchgeos_segmentation_task():
    bases = [f"{base.__module__}.{base.__name__}" for base in MoPSegmentationTask.__mro__]
    assert any(name.startswith("torchgeo.") and "SemanticSegmentation" in name for name in bases)


def test_the_loss_is_binary_cross_entropy_of_the_softmax():
    logits, labels = torch.randn(2, 2, 5, 6), torch.randint(0, 2, (2, 5, 6))
    smoke = logits.softmax(dim=1)[:, 1]
    expected = torch.nn.functional.binary_cross_entropy(smoke, labels.float())
    assert segmentation_loss(logits, labels) == pytest.approx(float(expected), rel=1e-5)


def test_ignored_pixels_have_no_influence_on_the_loss():
    logits, labels = torch.randn(1, 2, 4, 4), torch.randint(0, 2, (1, 4, 4))
    labels[0, :2] = 255
    changed = logits.clone()
    changed[:, :, :2] += 100
    assert segmentation_loss(logits, labels) == segmentation_loss(changed, labels)
    assert segmentation_loss(logits, torch.full((1, 4, 4), 255)) == 0


def test_counts_at_every_threshold_equal_counting_one_by_one():
    rng = np.random.default_rng(0)
    probability = rng.random((30, 30)).astype(np.float32)
    labels = rng.choice([0, 1, 255], (30, 30))
    got = counts_by_threshold(probability, labels)
    for counts, threshold in zip(got, THRESHOLDS, strict=True):
        assert counts == count(probability >= threshold, labels)


def test_the_best_threshold_is_the_one_with_the_best_mean_f1():
    images = [[Counts(tp=1, fp=9)] * 19, [Counts(tp=1, fp=9)] * 19]
    for image in images:
        image[4] = Counts(tp=10)
    assert best_threshold(images) == THRESHOLDS[4]
    assert best_threshold([[Counts(tp=1)] * 19]) == 0.5
    assert best_threshold([[Counts(tn=5)] * 19]) == 0.5
    assert best_threshold([]) == 0.5


def test_a_split_without_smoke_has_no_best_threshold():
    """At low thresholds something is found, wrongly; at high ones nothing."""
    assert best_threshold([[Counts(fp=3, tn=2)] * 9 + [Counts(tn=5)] * 10]) == 0.5


def score_of(frame, count):
    return ImageScore(frame, Counts()), [count] * 19


def test_the_patches_of_a_frame_are_scored_together():
    """Cut so that one patch has all of the smoke, a frame is still scored as a whole."""
    smoky, clear, other = Counts(tp=6, fn=2), Counts(fp=2, tn=6), Counts(tp=1, tn=7)
    patches = [score_of("a", smoky), score_of("b", other), score_of("a", clear)]
    images = whole_images(patches)
    assert [score.frame for score, _ in images] == ["a", "b"]
    assert images[0][1] == [Counts(tp=6, fp=2, fn=2, tn=6)] * 19
    assert images[1][1] == [other] * 19


def reported(task, monkeypatch, patches):
    """Return what a task logs and reports of patches."""
    logged = {}
    monkeypatch.setattr(task, "log", lambda name, value, **_: logged.update({name: value}))
    task._scores = patches
    return logged


def test_a_validation_in_patches_reports_frames(monkeypatch):
    task = MoPSegmentationTask("fcn", 3)
    patches = [score_of("a", Counts(tp=6, fn=2)), score_of("a", Counts(fp=2, tn=6))]
    logged = reported(task, monkeypatch, patches)
    task.on_validation_epoch_end()
    assert task.val_report.total.images == 1
    assert logged["val_f1"] == pytest.approx(12 / 16)


def test_a_test_is_scored_at_the_threshold_of_the_validation(monkeypatch):
    task = MoPSegmentationTask("fcn", 3)
    counts = [Counts(tp=1, fn=9)] * 19
    counts[3] = Counts(tp=10)  # the best threshold of the test split
    logged = reported(task, monkeypatch, [(ImageScore("a", Counts()), counts)])
    task.threshold = THRESHOLDS[7]
    task.on_test_epoch_end()
    assert logged["test_f1"] == pytest.approx(2 / 11)
    assert task.threshold == THRESHOLDS[7]


def test_a_checkpoint_keeps_the_threshold():
    task, other, checkpoint = MoPSegmentationTask("fcn", 3), MoPSegmentationTask("fcn", 3), {}
    task.threshold = THRESHOLDS[7]
    task.on_save_checkpoint(checkpoint)
    other.on_load_checkpoint(checkpoint)
    assert other.threshold == THRESHOLDS[7]
    other.on_load_checkpoint({})
    assert other.threshold == 0.5


def test_the_learning_rate_falls_as_the_papers_polynomial():
    task = MoPSegmentationTask("fcn", 3, iterations=10, lr=1.0)
    made = task.configure_optimizers()
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    seen = []
    for _ in range(10):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert seen == pytest.approx([(1 - i / 10) ** 0.9 for i in range(10)])
    assert optimizer.param_groups[0]["lr"] == 0
    assert made["lr_scheduler"]["interval"] == "step"
    assert optimizer.defaults["weight_decay"] == 0.01
    assert optimizer.defaults["betas"] == (0.9, 0.999)


@pytest.mark.parametrize("weight", [0.0, 0.01, 2.0])
def test_the_prototype_loss_counts_by_its_weight(monkeypatch, weight):
    task = new_task(TrainConfig(model="fcn", prototype_weight=weight), 3)
    monkeypatch.setattr(task, "log", lambda *args, **kwargs: None)  # there is no trainer
    terms = {"segmentation": torch.tensor(3.0), "prototype": torch.tensor(5.0)}
    monkeypatch.setattr(task, "loss_terms", lambda *args: terms)
    batch = {"image": torch.zeros(1, 3, 8, 8), "mask": torch.zeros(1, 8, 8)}
    assert task.training_step(batch, 0) == pytest.approx(3 + 5 * weight)


def test_only_mop_has_a_prototype_loss():
    image, labels = torch.randn(2, 3, 32, 32), torch.randint(0, 2, (2, 32, 32))
    for model, names in (("mop", {"segmentation", "prototype"}), ("fcn", {"segmentation"})):
        terms = MoPSegmentationTask(model, 3).loss_terms(image, labels, None)
        assert set(terms) == names
        assert all(float(value.detach()) > 0 for value in terms.values())


def test_warm_up_rises_linearly():
    task = MoPSegmentationTask("fcn", 3, iterations=100, lr=1.0, warmup=4)
    scheduler = task.configure_optimizers()["lr_scheduler"]["scheduler"]
    factor = scheduler.lr_lambdas[0]
    assert factor(0) == pytest.approx(0.25)
    assert factor(3) == pytest.approx((1 - 0.03) ** 0.9)


def test_prototypes_trained_by_gradient_are_not_decayed():
    options = {"prototype_update": "gradient"}
    task = MoPSegmentationTask("mop", 4, options, iterations=10)
    groups = task.configure_optimizers()["optimizer"].param_groups
    assert [group["weight_decay"] for group in groups] == [0.01, 0.0]
    assert len(groups[1]["params"]) == 1


def test_band_dropout_keeps_at_least_one_band():
    task = MoPSegmentationTask("fcn", 5, iterations=10, band_dropout=0.95)
    kept = task._drop_bands(torch.zeros(500, 5, 2, 2))
    assert kept.any(dim=1).all()
    assert kept.float().mean() < 0.35
    assert MoPSegmentationTask("fcn", 5, iterations=1)._drop_bands(torch.zeros(1, 5, 2, 2)) is None
