"""Judge a default model on what it was not trained on, and print the whole evidence.

    python scripts/evaluate_default.py MODEL... --backgrounds FOLDER [--pictures FOLDER]

Every image goes through the path of `predict`, so that scaling, tiles and blanks are those a user
gets. Several models of one kind (another seed, the network without routing) stand side by side,
and beside them the plain rule a reader would try first.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from default_backgrounds import (
    CLEAR,
    SHADOW,
    SNOW,
    THICK,
    THIN,
    Background,
    read_aerial,
    read_backgrounds,
)
from default_common import LEAST_PX
from default_judges import RULES, Judge, Picture, as_picture, network_judge, remembered
from default_kinds import KINDS
from default_mixed import as_8_bits, mixed_plumes
from default_photos import fold_of, read_photos
from default_pictures import draw
from numpy.typing import NDArray
from scipy import ndimage

from smokegeo.metrics import SCALES, ImageScore, count, report
from smokegeo.modelfile import load_model
from smokegeo.scene.opening import open_scene

SUBSETS = {
    "satellite": {
        "six bands": ("blue", "green", "red", "nir", "swir1", "swir2"),
        "RGB + NIR": ("blue", "green", "red", "nir"),
        "RGB": ("blue", "green", "red"),
        "SWIR, SWIR, red": ("red", "swir1", "swir2"),
    },
    "mss": {
        "RGB + heat": ("red", "green", "blue", "thermal"),
        "RGB": ("red", "green", "blue"),
    },
    "hss": {"25 bands": KINDS["hss"].bands.names, "every other": KINDS["hss"].bands.names[::2]},
}
#: Real ground for simulated samples that no training has seen.
HELD_OUT: dict[str, Callable[[Path], list[Background]]] = {
    "satellite": lambda folder: read_backgrounds(folder, judging=True),
    "mss": lambda folder: read_aerial(folder, judging=True),
    "hss": lambda folder: [],
}
TEST_SEED = 77
#: Simulated samples to draw.
DRAWN = 12


@dataclass
class Reliability:
    """How often smoke is there when a judge says so with some probability."""

    edges: NDArray[np.float64] = field(default_factory=lambda: np.linspace(0, 1, 11))
    said: NDArray[np.float64] = field(default_factory=lambda: np.zeros(10))
    true: NDArray[np.float64] = field(default_factory=lambda: np.zeros(10))
    pixels: NDArray[np.float64] = field(default_factory=lambda: np.zeros(10))

    def add(self, smoke: NDArray[np.float32], labels: NDArray[np.uint8]) -> None:
        """Count the pixels of an image whose label is known."""
        known = labels != 255
        p, truth = smoke[known], labels[known] == 1
        place = np.clip(np.digitize(p, self.edges[1:-1]), 0, 9)
        self.said += np.bincount(place, p, 10)
        self.true += np.bincount(place, truth, 10)
        self.pixels += np.bincount(place, minlength=10)

    @property
    def error(self) -> float:
        """The expected calibration error: mean distance of what is said from what is true."""
        return float(np.abs(self.said - self.true).sum() / max(1, self.pixels.sum()))

    def row(self) -> str:
        """Return the share of smoke in each tenth of probability."""
        shares = np.divide(self.true, self.pixels, out=np.zeros(10), where=self.pixels > 0)
        return " | ".join(
            f"{100 * s:.0f}" if n else "-" for s, n in zip(shares, self.pixels, strict=True)
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--backgrounds", type=Path, required=True)
    parser.add_argument("--count", type=int, default=150, help="simulated test samples")
    parser.add_argument("--threshold", type=float, help="instead of the card's")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folds", type=Path, help="mss: folder with one model for each fold")
    parser.add_argument("--real-only", action="store_true", help="no simulated samples")
    parser.add_argument("--pictures", type=Path, help="folder for overlays")
    args = parser.parse_args()
    logging.getLogger("smokegeo").setLevel(logging.ERROR)
    torch.set_num_threads(args.threads)
    cards = [load_model(path).card for path in args.models]
    kind = cards[0].name
    judges: dict[str, tuple[Judge, float]] = {}
    for path, card in zip(args.models, cards, strict=True):
        name = card.name if len(cards) == 1 else path.parent.name
        judges[name] = remembered(network_judge(path)), args.threshold or card.threshold
    judges["plain rule"] = RULES[kind], 0.5
    print(f"# {kind}\n")
    print("Thresholds: " + ", ".join(f"{name} {level:g}" for name, (_, level) in judges.items()))
    held_out = HELD_OUT[kind](args.backgrounds)
    if not args.real_only:
        simulated(kind, judges, held_out, args.count, args.pictures)
    if kind == "satellite":
        clouds(judges, held_out, args.pictures)
        rondonia(judges, args.backgrounds / "smoke_rondonia_20LMR", args.pictures)
    if kind == "mss":
        photographs(judges, args.backgrounds, args.folds, args.pictures)


def simulated(
    kind: str,
    judges: dict[str, tuple[Judge, float]],
    held_out: Sequence[Background],
    number: int,
    where: Path | None,
) -> None:
    """Print scores on samples of a seed that training never used."""
    spec = KINDS[kind]
    pictures = []
    for n in range(number):
        sample = spec.make(n, TEST_SEED, held_out, spec.size_px, n < number // 2)
        pictures.append(as_picture(spec, sample, f"{kind}-{n}"))
    print(f"\n## Simulated, {number} samples of seed {TEST_SEED}\n")
    print("F1 / IoU of smoke over all pixels, in %.\n")
    print("| | images | " + " | ".join(judges) + " |\n|---|---:|" + "---:|" * len(judges))
    for title, bands in SUBSETS[kind].items():
        whole = [p.only(bands) for p in pictures if set(bands) <= set(p.bands)]
        for words, measured in (("", True), (", stretched to 8 bits", False)):
            chosen = [p for p in whole if p.measured == measured]
            if chosen:
                _score_row(title + words, chosen, judges)
    for style in sorted({p.tag.split()[-1] for p in pictures} - {"none", "photo"}):
        _score_row(f"{style}, as it came", [p for p in pictures if p.tag.endswith(style)], judges)
    for ground, words in (("made", "simulated ground"), ("real", "real ground")):
        if chosen := [p for p in pictures if p.tag.startswith(ground)]:
            _score_row(f"{words}, as it came", chosen, judges)
    _by_scale(pictures, judges)
    _calibration(pictures, judges)
    for name, (judge, level) in judges.items():
        for picture in pictures[:DRAWN] if where is not None and name != "plain rule" else ():
            draw(where / f"{name}_{picture.name}.png", picture, judge(picture), level)


def _score_row(
    title: str, pictures: Sequence[Picture], judges: dict[str, tuple[Judge, float]]
) -> None:
    cells = []
    for judge, level in judges.values():
        try:
            scores = [_score(judge, level, p) for p in pictures]
        except ValueError:  # the rule needs a band that is not there
            cells.append("-")
            continue
        total = report(scores).total
        cells.append(f"{100 * (total.f1_global or 0):.1f} / {100 * (total.iou_global or 0):.1f}")
    print(f"| {title} | {len(pictures)} | " + " | ".join(cells) + " |", flush=True)


def _score(judge: Judge, level: float, picture: Picture) -> ImageScore:
    return ImageScore(picture.name, count(judge(picture) >= level, picture.labels), (picture.tag,))


def _by_scale(pictures: Sequence[Picture], judges: dict[str, tuple[Judge, float]]) -> None:
    print("\nBy the share of smoke in the image, as it came; F1 / mIoU, means over images, in %.\n")
    print("| judge | " + " | ".join(SCALES) + " | total | false on images without smoke |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (judge, level) in judges.items():
        try:
            found = report(_score(judge, level, p) for p in pictures)
        except ValueError:
            continue
        cells = [
            f"{100 * (row.f1_image or 0):.1f} / {100 * (row.iou_image or 0):.1f}"
            for row in (*found.scales.values(), found.total)
        ]
        share = 100 * (found.false_share_without_smoke or 0)
        print(f"| {name} | " + " | ".join(cells) + f" | {share:.2f} |", flush=True)


def _calibration(pictures: Sequence[Picture], judges: dict[str, tuple[Judge, float]]) -> None:
    print("\nCalibration: % of the pixels that are smoke where a probability is said.\n")
    print("| judge | " + " | ".join(f"{i / 10:.1f}" for i in range(10)) + " | ECE |")
    print("|---|" + "---:|" * 11)
    for name, (judge, _) in judges.items():
        if name == "plain rule":
            continue
        found = Reliability()
        for picture in pictures:
            found.add(judge(picture), picture.labels)
        print(f"| {name} | {found.row()} | {found.error:.3f} |", flush=True)


def as_scene(scene: Background) -> Picture:
    """Return a real background as a file of reflectances times 10000."""
    valid = np.isfinite(scene.reflectance).all(axis=0)
    values = np.nan_to_num(scene.reflectance.astype(np.float32)) * 10_000
    return Picture(
        scene.name,
        np.rint(values).astype(np.uint16),
        tuple(SUBSETS["satellite"]["six bands"]),
        valid,
        scene.labels,
    )


def clouds(
    judges: dict[str, tuple[Judge, float]], held_out: Sequence[Background], where: Path | None
) -> None:
    """Print how much of held-out cloud, shadow and clear ground is called smoke."""
    kinds = {
        "thick cloud": THICK,
        "thin cloud": THIN,
        "shadow": SHADOW,
        "clear": CLEAR,
        "snow": SNOW,
    }
    print("\n## Real scenes without smoke, sites kept out of training\n")
    print("Called smoke, % of the pixels.\n")
    print("| bands | judge | " + " | ".join(kinds) + " | MARIDA, all |")
    print("|---|---|" + "---:|" * (len(kinds) + 1))
    for title in ("six bands", "RGB + NIR", "RGB"):
        for name, (judge, level) in judges.items():
            called, total = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
            sea = [0, 0]
            for scene in held_out:
                picture = as_scene(scene).only(SUBSETS["satellite"][title])
                smoke = judge(picture)
                found = (smoke >= level) & picture.valid
                if "marida" in scene.name:
                    sea[0] += int(found.sum())
                    sea[1] += int(picture.valid.sum())
                for kind, label in kinds.items():
                    if "marida" not in scene.name:
                        called[kind] += int((found & (scene.labels == label)).sum())
                        total[kind] += int((picture.valid & (scene.labels == label)).sum())
                if where is not None and name != "plain rule" and title != "RGB + NIR":
                    draw(
                        where / f"{name}_{title}_{Path(scene.name).stem}.png", picture, smoke, level
                    )
            shares = [f"{100 * called[k] / total[k]:.2f}" if total[k] else "-" for k in kinds]
            shares.append(f"{100 * sea[0] / max(1, sea[1]):.2f}")
            print(f"| {title} | {name} | " + " | ".join(shares) + " |", flush=True)


def rondonia(judges: dict[str, tuple[Judge, float]], folder: Path, where: Path | None) -> None:
    """Print the share of a scene under smoke that is found, against a clear date."""
    print("\n## Rondonia, real smoke\n\n% of the valid pixels called smoke.\n")
    print("| bands | judge | 2022-09-02, smoke | 2022-08-17, clear |\n|---|---|---:|---:|")
    days = {}
    for day in ("2022-09-02", "2022-08-17"):
        scene = open_scene(folder / f"LMR_{day}.tif")
        with scene.open() as reader:
            values, valid = reader.read(scene.whole, range(6))
        values = np.where(valid, values, 0).clip(0, 20_000).astype(np.uint16)
        names = tuple(SUBSETS["satellite"]["six bands"])
        days[day] = Picture(day, values, names, valid, valid.astype(np.uint8))
    for title in ("six bands", "RGB + NIR", "RGB"):
        for name, (judge, level) in judges.items():
            shares = []
            for day, picture in days.items():
                part = picture.only(SUBSETS["satellite"][title])
                smoke = judge(part)
                shares.append(f"{100 * (smoke >= level)[part.valid].mean():.1f}")
                if where is not None and name != "plain rule":
                    draw(where / f"{name}_{title}_rondonia_{day}.png", part, smoke, level)
            print(f"| {title} | {name} | " + " | ".join(shares) + " |", flush=True)
    mixed = mixed_plumes(days["2022-08-17"], days["2022-09-02"])
    print("\nIts smoke drawn into the clear date as plumes: F1 / IoU over all pixels, in %.\n")
    print("| | images | " + " | ".join(judges) + " |\n|---|---:|" + "---:|" * len(judges))
    for title, bands in SUBSETS["satellite"].items():
        _score_row(title, [p.only(bands) for p in mixed], judges)
        stretched = [as_8_bits(p.only(bands)) for p in mixed]
        _score_row(f"{title}, stretched to 8 bits", stretched, judges)
    for name, (judge, level) in judges.items() if where is not None else ():
        for picture in mixed[:DRAWN]:
            draw(where / f"{name}_{picture.name}.png", picture, judge(picture), level)


def photographs(
    judges: dict[str, tuple[Judge, float]], data: Path, folds: Path | None, where: Path | None
) -> None:
    """Print scores on the labelled photographs, with `folds` each by a model that never saw it."""
    photos = read_photos(data)
    seen = "that never saw it" if folds is not None else "that may have been trained on it"
    print(f"\n## Photographs of wildfire smoke (SmokeSeg), each judged by a model {seen}\n")
    print("F1 / IoU in %: means over images, and over all pixels. Found is a photograph in which")
    print("some smoke is outlined; a false outline touches none.\n")
    print("| judge | images | mean over images | all pixels | found | false outlines per image |")
    print("|---|---:|---:|---:|---:|---:|")
    shown = dict(judges)
    if folds is not None:
        paths = sorted(folds.glob("*/model.safetensors"))
        of_fold = [network_judge(path) for path in paths]
        level = float(np.mean([load_model(path).card.threshold for path in paths]))
        by_name = {p.name: of_fold[fold_of(p, photos)] for p in photos}
        shown = {
            "cross-validated": (lambda picture: by_name[picture.name](picture), level),
            "plain rule": judges["plain rule"],
        }
    for name, (judge, level) in shown.items():
        scores, found, false = [], 0, 0
        for photo in photos:
            picture = Picture(
                photo.name,
                photo.colours,
                ("red", "green", "blue"),
                np.ones(photo.labels.shape, bool),
                np.where(photo.labels > 1, 255, photo.labels).astype(np.uint8),
            )
            smoke = judge(picture)
            scores.append(ImageScore(photo.name, count(smoke >= level, picture.labels)))
            hit, wrong = outlines(smoke >= level, picture.labels)
            found, false = found + hit, false + wrong
            if where is not None and name != "plain rule":
                draw(where / f"{name}_photo_{photo.name}.png", picture, smoke, level)
        total = report(scores).total
        print(
            f"| {name} | {len(scores)} "
            f"| {100 * (total.f1_image or 0):.1f} / {100 * (total.iou_image or 0):.1f} "
            f"| {100 * (total.f1_global or 0):.1f} / {100 * (total.iou_global or 0):.1f} "
            f"| {found} | {false / len(scores):.1f} |",
            flush=True,
        )


def outlines(found: NDArray[np.bool_], labels: NDArray[np.uint8]) -> tuple[bool, int]:
    """Return whether some smoke is found, and how many outlines hold clear pixels alone."""
    patches, number = ndimage.label(found, np.ones((3, 3)))
    large = np.flatnonzero(np.bincount(patches.ravel(), minlength=number + 1) >= LEAST_PX)
    false = set(large.tolist()) - {0} - set(np.unique(patches[labels != 0]).tolist())
    return bool((found & (labels == 1)).any()), len(false)


if __name__ == "__main__":
    main()
