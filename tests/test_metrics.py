"""Scores by hand, and against torchmetrics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchmetrics.segmentation import DiceScore, MeanIoU

from smokegeo.metrics import Counts, ImageScore, count, report, table


def test_counts_by_hand_leave_ignored_pixels_out():
    predicted = np.array([[1, 1, 0, 0, 1]])
    labels = np.array([[1, 0, 1, 0, 255]])
    counts = count(predicted, labels)
    assert counts == Counts(tp=1, fp=1, fn=1, tn=1)
    assert counts.f1 == pytest.approx(0.5)
    assert counts.iou == pytest.approx(1 / 3)


def images(number, seed=0):
    rng = np.random.default_rng(seed)
    predicted = (rng.random((number, 20, 20)) < 0.3).astype(np.uint8)
    labels = (rng.random((number, 20, 20)) < 0.2).astype(np.uint8)
    return predicted, labels


def test_per_image_means_equal_torchmetrics():
    predicted, labels = images(12)
    result = report(
        ImageScore(str(i), count(p, y))
        for i, (p, y) in enumerate(zip(predicted, labels, strict=True))
    )
    iou = MeanIoU(num_classes=2, include_background=False, input_format="index")
    dice = DiceScore(
        num_classes=2,
        include_background=False,
        average="none",
        aggregation_level="samplewise",
        input_format="index",
    )
    tensors = torch.tensor(predicted).long(), torch.tensor(labels).long()
    iou.update(*tensors)
    dice.update(*tensors)
    assert result.total.iou_image == pytest.approx(float(iou.compute()), abs=1e-6)
    assert result.total.f1_image == pytest.approx(float(dice.compute().mean()), abs=1e-6)


def test_global_scores_are_those_of_all_pixels_joined():
    predicted, labels = images(5)
    result = report(ImageScore("", count(p, y)) for p, y in zip(predicted, labels, strict=True))
    joined = count(predicted.reshape(1, -1), labels.reshape(1, -1))
    assert result.total.f1_global == joined.f1
    # Over all pixels the two are tied; per image they are not, by Jensen's inequality.
    assert result.total.iou_global == pytest.approx(joined.f1 / (2 - joined.f1))
    assert result.total.iou_image >= result.total.f1_image / (2 - result.total.f1_image)


@pytest.mark.parametrize(
    ("smoke", "scale"),
    [(0, None), (1, "small"), (49, "small"), (50, "medium"), (249, "medium"), (250, "large")],
)
def test_scale_follows_the_share_of_smoke(smoke, scale):
    assert ImageScore("a", Counts(tp=smoke, tn=10_000 - smoke)).scale == scale


def test_images_without_smoke_count_only_when_something_was_called_smoke():
    quiet, false = Counts(tn=100), Counts(fp=10, tn=90)
    good = Counts(tp=10, tn=90)
    result = report([ImageScore("a", good), ImageScore("b", quiet), ImageScore("c", false)])
    assert result.total.images == 3
    assert result.total.f1_image == pytest.approx(0.5)  # 1 and 0; the quiet one has no score
    assert result.images_without_smoke == 2
    assert result.false_share_without_smoke == pytest.approx(0.05)


def test_images_that_are_wholly_ignored_have_no_share_of_false_smoke():
    result = report([ImageScore("a", Counts())])
    assert result.images_without_smoke == 1
    assert result.false_share_without_smoke is None
    assert "- % of their pixels" in table(result)


def test_scenarios_have_rows_of_their_own():
    result = report(
        [
            ImageScore("a", Counts(tp=1), ("cloud_interference",)),
            ImageScore("b", Counts(fn=1), ("cloud_interference", "early_stage")),
        ]
    )
    assert result.scenarios["cloud_interference"].f1_image == pytest.approx(0.5)
    assert result.scenarios["early_stage"].f1_image == 0


def test_the_table_has_the_papers_columns():
    text = table(report([ImageScore("a", Counts(tp=30, fp=10, tn=960), ("early_stage",))]))
    head = text.splitlines()[0]
    assert all(name in head for name in ("small (0)", "medium (0)", "large (1)", "total (1)"))
    assert "85.71" in text
    assert "early_stage (1)" in text


def test_an_empty_report_has_no_numbers():
    result = report([])
    assert result.total.f1_image is None
    assert "-" in table(result)
    assert result.to_dict()["total"]["images"] == 0
