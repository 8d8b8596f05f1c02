"""F1 and IoU of the smoke class, per image as in the paper and over all pixels, by scale.

The paper's numbers are means over images of the smoke class alone. An image whose labels hold no
smoke has no F1: it is left out of the means when nothing was predicted either, and scores 0 when
something was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.datasets.layout import IGNORE

#: Shares of smoke in the image that separate small, medium and large.
SCALE_BOUNDS = (0.005, 0.025)
SCALES = ("small", "medium", "large")


@dataclass(frozen=True, slots=True)
class Counts:
    """True positives, false positives, false negatives and true negatives of the smoke class."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.tp + other.tp, self.fp + other.fp, self.fn + other.fn, self.tn + other.tn
        )

    @property
    def f1(self) -> float | None:
        """The F1 score, or None where there is neither smoke nor prediction."""
        total = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / total if total else None

    @property
    def iou(self) -> float | None:
        """The intersection over union, or None where there is neither smoke nor prediction."""
        union = self.tp + self.fp + self.fn
        return self.tp / union if union else None

    @property
    def smoke_share(self) -> float:
        """The share of valid pixels labelled smoke."""
        pixels = self.tp + self.fp + self.fn + self.tn
        return (self.tp + self.fn) / pixels if pixels else 0.0


@dataclass(frozen=True, slots=True)
class ImageScore:
    """The counts of one image, with the tags it is reported under."""

    frame: str
    counts: Counts
    scenarios: tuple[str, ...] = ()

    @property
    def scale(self) -> str | None:
        """Small, medium or large by the share of smoke; None without smoke."""
        share = self.counts.smoke_share
        return scale_of(share) if share > 0 else None


@dataclass(frozen=True, slots=True)
class Score:
    """A row of the table: means over images, and scores over all pixels together."""

    images: int
    f1_image: float | None
    iou_image: float | None
    f1_global: float | None
    iou_global: float | None


@dataclass(frozen=True)
class Report:
    """All rows: by scale, in total, and by scenario."""

    scales: Mapping[str, Score]
    total: Score
    scenarios: Mapping[str, Score] = field(default_factory=dict)
    images_without_smoke: int = 0
    false_share_without_smoke: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""

        def row(score: Score) -> dict[str, Any]:
            return {name: getattr(score, name) for name in Score.__slots__}

        return {
            "scales": {name: row(score) for name, score in self.scales.items()},
            "total": row(self.total),
            "scenarios": {name: row(score) for name, score in self.scenarios.items()},
            "images_without_smoke": self.images_without_smoke,
            "false_share_without_smoke": self.false_share_without_smoke,
        }


def scale_of(smoke_share: float) -> str:
    """Return small, medium or large for the share of an image that is smoke."""
    return SCALES[sum(smoke_share >= bound for bound in SCALE_BOUNDS)]


def count(predicted: NDArray[Any], labels: NDArray[Any]) -> Counts:
    """Compare a prediction (nonzero = smoke) with labels 0, 1 and 255 for ignored."""
    valid = labels != IGNORE
    guess, truth = (predicted != 0)[valid], (labels == 1)[valid]
    tp = int(np.count_nonzero(guess & truth))
    fp, fn = int(np.count_nonzero(guess)) - tp, int(np.count_nonzero(truth)) - tp
    return Counts(tp, fp, fn, int(truth.size) - tp - fp - fn)


def report(scores: Iterable[ImageScore]) -> Report:
    """Put the scores of all images into the paper's rows."""
    images = list(scores)
    empty = [image for image in images if image.scale is None]
    false = sum((image.counts for image in empty), Counts())
    judged = false.fp + false.tn  # 0 as well if every pixel of these images is ignored
    tags = sorted({tag for image in images for tag in image.scenarios})
    return Report(
        scales={name: _row([i for i in images if i.scale == name]) for name in SCALES},
        total=_row(images),
        scenarios={tag: _row([i for i in images if tag in i.scenarios]) for tag in tags},
        images_without_smoke=len(empty),
        false_share_without_smoke=false.fp / judged if judged else None,
    )


def table(result: Report) -> str:
    """Return the paper's table: F1 and mIoU for small, medium, large and total, in per cent."""
    columns = {**result.scales, "total": result.total}
    lines = [
        f"{'':14}" + "".join(f"{f'{name} ({row.images})':>18}" for name, row in columns.items())
    ]
    lines.append(f"{'':14}" + "".join(f"{'F1':>10}{'mIoU':>8}" for _ in columns))
    for label, f1, iou in (
        ("per image", "f1_image", "iou_image"),
        ("all pixels", "f1_global", "iou_global"),
    ):
        cells = [
            f"{_percent(getattr(row, f1)):>10}{_percent(getattr(row, iou)):>8}"
            for row in columns.values()
        ]
        lines.append(f"{label:14}" + "".join(cells))
    for tag, row in result.scenarios.items():
        score = f"{_percent(row.f1_image):>10}{_percent(row.iou_image):>8}"
        lines.append(f"{f'{tag} ({row.images})':68}{score}")
    if result.images_without_smoke:
        share = _percent(result.false_share_without_smoke)
        lines.append(
            f"{result.images_without_smoke} images without smoke: {share} % of their pixels "
            "called smoke"
        )
    return "\n".join(lines)


def _row(images: Sequence[ImageScore]) -> Score:
    chosen = [image.counts for image in images]
    joined = sum(chosen, Counts())
    return Score(
        len(chosen),
        _mean([counts.f1 for counts in chosen]),
        _mean([counts.iou for counts in chosen]),
        joined.f1,
        joined.iou,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
