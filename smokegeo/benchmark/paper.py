"""The paper's own totals, to stand beside ours: (F1, mIoU) in per cent.

From the tables of arXiv 2602.10858 v2: means over the test images of HSSDataset and MSSDataset.
"""

from __future__ import annotations

from collections.abc import Mapping

Pair = tuple[float, float]

#: (dataset, variant) -> method -> total.
TOTALS: Mapping[tuple[str, str], Mapping[str, Pair]] = {
    ("hss", "realtime"): {
        "pspnet": (61.23, 46.07),
        "deeplabv3+": (62.92, 47.82),
        "ocrnet": (59.26, 46.20),
        "segnext": (60.80, 45.06),
        "segformer": (62.87, 46.84),
        "fosp": (64.99, 48.97),
        "protoseg": (65.43, 49.53),
        "mop": (68.13, 53.84),
    },
    ("hss", "accuracy"): {
        "pspnet": (68.80, 53.73),
        "deeplabv3+": (69.11, 54.03),
        "trans-bvm": (69.44, 54.80),
        "ocrnet": (64.20, 51.08),
        "segnext": (68.72, 53.57),
        "mask2former": (67.34, 51.94),
        "segformer": (68.90, 53.21),
        "fosp": (71.38, 56.21),
        "protoseg": (71.15, 56.11),
        "mop": (73.63, 59.21),
    },
    ("mss", "realtime"): {
        "pspnet": (80.67, 71.92),
        "deeplabv3+": (81.87, 70.06),
        "ocrnet": (82.80, 72.12),
        "segnext": (81.34, 69.63),
        "segformer": (82.67, 72.87),
        "fosp": (82.43, 71.71),
        "protoseg": (82.27, 70.96),
        "mop": (83.90, 74.45),
    },
    ("mss", "accuracy"): {
        "pspnet": (85.51, 76.91),
        "deeplabv3+": (83.72, 73.85),
        "segnext": (86.26, 76.36),
        "ocrnet": (85.40, 75.06),
        "trans-bvm": (86.19, 76.26),
        "mask2former": (84.47, 73.74),
        "segformer": (86.04, 76.00),
        "fosp": (86.61, 76.81),
        "protoseg": (85.48, 75.14),
        "mop": (88.11, 79.55),
    },
}
#: Dataset -> row of the ablation table -> total; the accuracy variant.
ABLATION_TOTALS: Mapping[str, Mapping[str, Pair]] = {
    "hss": {
        "bl": (68.29, 53.16),
        "a": (69.98, 54.71),
        "b": (71.11, 56.10),
        "c": (71.56, 56.61),
        "d": (72.91, 58.46),
        "e": (73.63, 59.21),
    },
    "mss": {
        "bl": (84.23, 73.15),
        "a": (85.41, 74.28),
        "b": (85.67, 74.89),
        "c": (86.18, 75.44),
        "d": (87.42, 78.41),
        "e": (88.11, 79.55),
    },
}
