"""Prove by learning: train rows of the paper's ablation table under one equal budget.

    python scripts/prove_learning.py                  # hours on a CPU; interrupt and repeat at will
    python scripts/prove_learning.py --quick          # minutes: does it run?
    python scripts/prove_learning.py --write-docs     # put the results into docs/learning.md

Every row and seed is trained on the same simulated HSS frames and scored on the test split at the
threshold its validation split chose. What is finished is kept in the work folder; an interrupted
training goes on where it stopped. Two rules without learning stand beside the networks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smokegeo.benchmark.machine import processor
from smokegeo.datasets import HSS
from smokegeo.datasets.statistics import band_statistics
from smokegeo.errors import SmokegeoError
from smokegeo.evaluate import evaluate
from smokegeo.files import atomic_file, sha256
from smokegeo.metrics import SCALES, ImageScore, count, report
from smokegeo.modelfile import load_model
from smokegeo.models.config import ABLATION
from smokegeo.progress import track
from smokegeo.simulate.dataset import DatasetPlan, simulate_dataset
from smokegeo.torchgeo_api import frame_slices
from smokegeo.train import Machine, TrainConfig, train

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "learning.md"
START, END = "<!-- results of scripts/prove_learning.py -->", "<!-- end of results -->"
QUICK = {"count": 40, "iterations": 60, "crop": 96, "seeds": [0]}
#: Levels a single-band rule may cut at, between a band's smallest and largest value.
LEVELS = 128
PARTS = {
    "bl": "common branch only",
    "a": "band split",
    "b": "band split, PSR",
    "c": "band split, F-Router",
    "d": "band split, PSR, F-Router",
    "e": "all: band split, PSR, both routers",
}
COLUMNS = (*SCALES, "total", "all pixels")

Decide = Callable[[np.ndarray], np.ndarray]
Sample = tuple[str, np.ndarray, np.ndarray]

log = logging.getLogger("smokegeo.prove_learning")


@dataclass(frozen=True)
class Rule:
    """Smoke where a band is at or above a level, or below it."""

    band: int
    level: float
    above: bool

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Return the smoke pixels of an image (bands, H, W)."""
        high = np.asarray(image[self.band] >= self.level)
        return high if self.above else ~high


def main(words: Sequence[str] | None = None) -> int:
    """Train, score and report; return the exit code."""
    options = parse(words)
    start_logging()
    if options.write_docs:
        filled(DOCUMENT.read_text("utf-8"), "")  # lost markers are better noticed now than later
    if options.threads:
        torch.set_num_threads(options.threads)
    try:
        root = options.data or make_data(options)
        runs = [
            run(row, seed, root, options)
            for seed in options.seeds  # all rows of a seed first: a table to look at early
            for row in options.rows
        ]
        facts = summary(root, runs, baselines(root, options.work), options)
    except SmokegeoError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
        return 130
    text = markdown(facts)
    write(options.work / "results.json", json.dumps(facts, indent=2) + "\n")
    write(options.work / "results.md", text)
    print(text)
    if options.write_docs:
        write(DOCUMENT, filled(DOCUMENT.read_text("utf-8"), text))
    return 0


def start_logging() -> None:
    """Send smokegeo's progress to stderr."""
    logger = logging.getLogger("smokegeo")
    logger.handlers[:] = [logging.StreamHandler(sys.stderr)]
    logger.setLevel(logging.INFO)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; --quick changes defaults, not what is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--work", type=Path, default=ROOT / "work" / "prove_learning", help="folder to keep")
    add("--data", type=Path, help="a prepared HSS dataset instead of simulated frames")
    add("--count", type=int, default=300, help="frames to simulate")
    add("--size", type=size_px, default=(409, 217), metavar="WxH", help="their size")
    add("--data-seed", type=int, default=0, help="seed of the simulator")
    add("--rows", nargs="+", choices=list(ABLATION), default=["bl", "a", "c", "e"])
    add("--seeds", nargs="+", type=int, default=[0, 1], help="seeds of weights and batches")
    add("--iterations", type=int, default=1500)
    add("--batch-size", type=int, default=4)
    add("--crop", type=int, default=160, help="side of the training crops in pixels")
    add("--lr", type=float, default=5e-4, help="the paper's 6e-5 is for 40000 iterations")
    add("--momentum", type=float, default=0.99, help="of the prototypes; the paper's is 0.999")
    add("--rescale", action="store_true", help="undo the softmax's scale where there are routers")
    add("--threads", type=int, help="of torch")
    add("--quick", action="store_true", help=f"a tiny budget: {QUICK}")
    add("--write-docs", action="store_true", help=f"fill in {DOCUMENT.relative_to(ROOT)}")
    if parser.parse_known_args(words)[0].quick:
        parser.set_defaults(**QUICK)
    return parser.parse_args(words)


def size_px(text: str) -> tuple[int, int]:
    """Return (width, height) from text such as 409x217."""
    width, height = text.split("x")
    return int(width), int(height)


def make_data(options: argparse.Namespace) -> Path:
    """Simulate the frames unless they are there; return their folder."""
    width, height = options.size
    root: Path = options.work / f"hss-{options.count}-{options.data_seed}-{width}x{height}"
    if not root.exists():
        plan = DatasetPlan("hss", options.count, options.data_seed, options.size)
        simulate_dataset(root, plan, workers=os.cpu_count() or 1)
    return root


def budget(row: str, seed: int, root: Path, options: argparse.Namespace) -> TrainConfig:
    """Return the training of a row: all but the switches of the table is the same."""
    switches: dict[str, Any] = dict(ABLATION[row])
    if switches.get("psr", True):
        switches["momentum"] = options.momentum
    if options.rescale and switches.get("f_router", True):
        switches["rescale"] = True
    return TrainConfig(
        dataset="hss",
        root=str(root),
        options=switches,
        iterations=options.iterations,
        batch_size=options.batch_size,
        crop_px=options.crop,
        lr=options.lr,
        warmup=min(100, options.iterations // 10),
        val_every=max(1, options.iterations // 5),
        seed=seed,
    )


def run(row: str, seed: int, root: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train and score a row with a seed, or return what an earlier call found."""
    config = budget(row, seed, root, options)
    folder = options.work / f"{row}-{seed}-{fingerprint(config, root)}"
    result = folder / "result.json"
    if result.is_file():
        log.info("row %s, seed %d: done before", row, seed)
        return dict(json.loads(result.read_text("utf-8")))
    log.info("row %s, seed %d: training in %s", row, seed, folder)
    model_file = folder / "model.safetensors"
    if not model_file.is_file():
        resume = (folder / "checkpoints" / "last.ckpt").is_file()
        timed(folder / "seconds.txt", lambda: train(config, folder, Machine(), resume=resume))
    model = load_model(model_file)
    scores = evaluate(model, HSS(root, "test"))
    facts = {
        "row": row,
        "seed": seed,
        "parameters": sum(p.numel() for p in model.network().parameters()),
        "minutes": float((folder / "seconds.txt").read_text("utf-8")) / 60,
        "threshold": model.card.threshold,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": processor(),
        "config": config.to_dict(),
        "report": scores.to_dict(),
    }
    write(result, json.dumps(facts, indent=2) + "\n")
    log.info("row %s, seed %d: F1 %.4f", row, seed, scores.total.f1_image or 0.0)
    return facts


def fingerprint(config: TrainConfig, root: Path) -> str:
    """Return a short name for a budget on a dataset, so that another never takes its results."""
    plain = {key: value for key, value in config.to_dict().items() if key != "root"}
    content = f"{sha256(root / 'checksums.sha256')} {json.dumps(plain, sort_keys=True)}"
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def timed(path: Path, work: Callable[[], Any]) -> None:
    """Do the work and add the seconds it took to those of earlier attempts, failed or not."""
    before = float(path.read_text("utf-8")) if path.is_file() else 0.0
    started = time.monotonic()
    try:
        work()
    finally:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{before + time.monotonic() - started:.1f}\n", "utf-8")


def baselines(root: Path, work: Path) -> dict[str, Any]:
    """Score what needs no network: two constants, and the best cut through a single band."""
    kept = work / f"baselines-{sha256(root / 'checksums.sha256')[:8]}.json"
    if kept.is_file():
        return dict(json.loads(kept.read_text("utf-8")))
    data = HSS(root, "train")
    ids = [record.id for record in data.records]
    known = band_statistics(data.layout, ids, data.band_set)
    edges = np.linspace(known.minimum, known.maximum, LEVELS + 1, axis=1)
    rule = best_rule(frames(data, "single bands"), edges[:, 1:-1])
    side = "at or above" if rule.above else "below"
    name = f"best single band: {data.band_set.names[rule.band]} {side} {rule.level:.0f}"
    rules: dict[str, Decide] = {"all background": nothing, "all smoke": everything, name: rule}
    facts = score(frames(HSS(root, "test"), "baselines"), rules)
    write(kept, json.dumps(facts, indent=2) + "\n")
    return facts


def nothing(image: np.ndarray) -> np.ndarray:
    """Call no pixel smoke."""
    return np.zeros(image.shape[1:], bool)


def everything(image: np.ndarray) -> np.ndarray:
    """Call every pixel smoke."""
    return np.ones(image.shape[1:], bool)


def frames(data: HSS, label: str) -> Iterator[Sample]:
    """Yield the id, the image (bands, H, W) and the labels (H, W) of each frame."""
    queries = list(frame_slices(data))
    for query in track(queries, label, len(queries)):
        sample = data[query]
        record = data.records[int(sample["frame"])]
        yield record.id, sample["image"].numpy(), sample["mask"].numpy()


def score(samples: Iterable[Sample], rules: Mapping[str, Decide]) -> dict[str, Any]:
    """Return the report of each rule, all in one pass over the images."""
    scores: dict[str, list[ImageScore]] = {name: [] for name in rules}
    for frame, image, labels in samples:
        for name, rule in rules.items():
            scores[name].append(ImageScore(frame, count(rule(image), labels)))
    return {name: report(images).to_dict() for name, images in scores.items()}


def best_rule(samples: Iterable[Sample], levels: np.ndarray) -> Rule:
    """Return the rule with the best mean F1 over images, at one of the (bands, L) levels."""
    scores = np.array(
        [
            [rule_scores(band, labels, cuts) for band, cuts in zip(image, levels, strict=True)]
            for _, image, labels in samples
        ]
    )
    # An image without smoke has no score where nothing is called smoke.
    known = np.isfinite(scores)
    means = np.where(known, scores, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    band, side, cut = (int(i) for i in np.unravel_index(means.argmax(), means.shape))
    return Rule(band, float(levels[band, cut]), above=side == 0)


def rule_scores(values: np.ndarray, labels: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return (2, L): the F1 of one image at or above each level, and below it; NaN for none."""
    clear, smoke = (
        np.bincount(np.digitize(values[labels == kind], levels), minlength=len(levels) + 1)
        for kind in (0, 1)
    )
    below = np.stack([smoke.cumsum()[:-1], clear.cumsum()[:-1]])  # hits and false alarms
    hits, false = np.stack([np.array([[smoke.sum()], [clear.sum()]]) - below, below], axis=1)
    total = hits + false + smoke.sum()  # 2 hits + false alarms + misses
    return np.where(total > 0, 2 * hits / np.maximum(total, 1), np.nan)


def summary(
    root: Path,
    runs: Sequence[Mapping[str, Any]],
    rules: Mapping[str, Any],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return all that the table needs, as plain values."""
    data = {split: len(HSS(root, split).records) for split in ("train", "val", "test")}
    tested = next(iter(rules.values()))
    images = {name: row["images"] for name, row in columns(tested).items()}
    return {
        "frames": data,
        "simulated": options.data is None,
        "data_seed": options.data_seed,
        "test_images": images,
        "iterations": options.iterations,
        "batch_size": options.batch_size,
        "crop_px": options.crop,
        "lr": options.lr,
        "momentum": options.momentum,
        "rescale": options.rescale,
        "seeds": list(options.seeds),
        "rows": list(options.rows),
        "runs": list(runs),
        "baselines": dict(rules),
        "torch": torch.__version__,
    }


def columns(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of a report under the names of the table's columns."""
    total = scores["total"]
    whole = {**total, "f1_image": total["f1_global"], "iou_image": total["iou_global"]}
    return {**scores["scales"], "total": total, "all pixels": whole}


def markdown(facts: Mapping[str, Any]) -> str:
    """Return the results as Markdown: the budget in words, then a table of F1 and one of mIoU."""
    runs = facts["runs"]
    frames_of = ", ".join(f"{n} {split}" for split, n in facts["frames"].items())
    source = f"simulated HSS frames (seed {facts['data_seed']})" if facts["simulated"] else "frames"
    seeds = ", ".join(map(str, facts["seeds"]))
    dates = sorted({run["date"] for run in runs})
    cpus = sorted({run["cpu"] for run in runs})
    lines = [
        f"{sum(facts['frames'].values())} {source}: {frames_of}. Each network: MoP realtime, "
        f"{facts['iterations']} iterations of {facts['batch_size']} crops of {facts['crop_px']} "
        f"pixels, learning rate {facts['lr']:g}, prototype momentum {facts['momentum']:g}"
        f"{', rescaled routers' if facts['rescale'] else ''}; "
        f"seed{'s' if len(facts['seeds']) > 1 else ''} {seeds}. "
        f"{', '.join(dates)}, {'; '.join(cpus)}, torch {facts['torch']}.",
        "",
    ]
    for title, key in (("F1", "f1_image"), ("mIoU", "iou_image")):
        lines += [*score_table(title, key, facts), ""]
    return "\n".join(lines)


def score_table(title: str, key: str, facts: Mapping[str, Any]) -> list[str]:
    """Return a table of one score in per cent: mean over seeds, and range if there are several."""
    images = facts["test_images"]
    names = [n if n == "all pixels" else f"{n} ({images[n]})" for n in COLUMNS]
    lines = [
        f"| {title}, % | parts | {' | '.join(names)} | parameters | minutes |",
        "|---|---|" + "---:|" * (len(names) + 2),
    ]
    for name, scores in facts["baselines"].items():
        cells = [cell([columns(scores)[column][key]]) for column in COLUMNS]
        lines.append(f"| no learning | {name} | {' | '.join(cells)} | - | - |")
    for row in facts["rows"]:
        runs = [run for run in facts["runs"] if run["row"] == row]
        cells = [cell([columns(run["report"])[name][key] for run in runs]) for name in COLUMNS]
        minutes = sum(run["minutes"] for run in runs) / len(runs)
        size = f"{runs[0]['parameters'] / 1e6:.2f} M"
        lines.append(f"| {row} | {PARTS[row]} | {' | '.join(cells)} | {size} | {minutes:.0f} |")
    return lines


def cell(values: Sequence[float | None]) -> str:
    """Return the mean of the values in per cent, with their range if there are several."""
    known = [100 * value for value in values if value is not None]
    if not known:
        return "-"
    mean = f"{sum(known) / len(known):.1f}"
    return mean if len(known) == 1 else f"{mean} ({min(known):.1f} to {max(known):.1f})"


def filled(document: str, results: str) -> str:
    """Return the document with the results between its two markers."""
    before, start, rest = document.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"{DOCUMENT.name} has lost its markers {START} and {END}")
    return f"{before}{START}\n\n{results.strip()}\n\n{END}{after}"


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as part:
        part.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
