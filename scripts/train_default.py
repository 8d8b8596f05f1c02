"""Train a default model from nothing but the package and a folder of backgrounds.

    python scripts/train_default.py satellite --backgrounds FOLDER [--steps N] [--seed N]

Samples are simulated in other processes while the network trains; sample n is the same in every
run, and step n always trains on the same samples. Interrupt it at any time: the same command goes
on from the last checkpoint, in work/default/. At the end the threshold is chosen on simulated
samples of another seed, and the model file is written beside the checkpoint; --install puts it into
the package. `--until` a step that is done makes a model of what there is.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from default_backgrounds import Background, read_backgrounds
from default_camera import Photo, hss_sample, mss_sample, read_photos
from default_common import Sample
from default_satellite import satellite_sample
from torch import Tensor

from smokegeo.bands import BandSet
from smokegeo.datasets.statistics import BandStatistics
from smokegeo.modelfile import Card, save_model
from smokegeo.models.config import ABLATION
from smokegeo.models.mop import MoP
from smokegeo.sensors import sensor
from smokegeo.views import VIEWS, make_recipe

#: New samples per step, and how many of the latest ones a step draws from.
NEW_PER_STEP, BUFFER = 3, 1500
#: Share of the steps in which samples have all their bands, as they were measured.
EASY_SHARE = 0.35
#: Said at every use until the model is fit to be relied on.
PROVISIONAL = "not trained to the end; it calls much cloud smoke (docs/models/log.md)"


@dataclass(frozen=True)
class Kind:
    """A default model: its bands and numbers, and where its samples come from."""

    bands: BandSet
    mean: tuple[float, ...]
    std: tuple[float, ...]
    maximum: tuple[float, ...]
    dtype: str
    size_px: int
    resolution_m: tuple[float, float] | None
    summary: str
    read: Callable[[Path], Sequence[Any]]
    make: Callable[[int, int, Sequence[Any], int, bool], Sample]
    facts: Mapping[str, Any]

    @property
    def dim(self) -> int:
        """D of the network: a multiple of the bands near the paper's 250."""
        return 240 if len(self.bands) == 6 else 250 // len(self.bands) * len(self.bands)


def _satellite_backgrounds(folder: Path) -> Sequence[Background]:
    return read_backgrounds(folder, judging=False)


KINDS = {
    "satellite": Kind(
        sensor("satellite").bands,
        (1300, 1300, 1400, 2400, 2200, 1600),
        (1200, 1200, 1300, 1500, 1500, 1300),
        (10_000.0,) * 6,
        "uint16",
        128,
        (1.0, 60.0),
        "Smoke from above: blue, green, red, NIR, SWIR1, SWIR2, or some of them.",
        _satellite_backgrounds,
        lambda n, seed, have, size, easy: _times(
            satellite_sample(n, seed, have, size, easy=easy), 10_000
        ),
        {"min_bands": 2},
    ),
    "mss": Kind(
        sensor("mss").bands,
        (110, 110, 110, 25),
        (60, 60, 60, 25),
        (255, 255, 255, 500),
        "uint8",
        160,
        None,
        "Smoke seen by drones and mountain cameras: red, green, blue and heat, or colour alone.",
        read_photos,
        lambda n, seed, have, size, easy: mss_sample(n, seed, have, size, easy=easy),
        {"min_bands": 3, "heat": "celsius"},
    ),
    "hss": Kind(
        sensor("hss").bands,
        (330.0,) * 25,
        (200.0,) * 25,
        (1023.0,) * 25,
        "uint16",
        128,
        None,
        "Plumes seen by a ground camera with 25 bands from 600 to 974 nm.",
        lambda folder: (),
        lambda n, seed, have, size, easy: hss_sample(n, seed, size, easy=easy),
        {"min_bands": 4},
    ),
}


def _times(sample: Sample, factor: float) -> Sample:
    return replace(sample, values=sample.values * np.float32(factor))


_have: list[Any] = []


def main() -> None:
    """Train, or go on training."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", choices=sorted(KINDS))
    parser.add_argument("--backgrounds", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("work/default"))
    parser.add_argument("--row", choices=sorted(ABLATION), default="e", help="row of the ablation")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--until", type=int, help="stop after this step and go on another time")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--install", action="store_true", help="put the model into the package")
    args = parser.parse_args()
    logging.getLogger("smokegeo").setLevel(logging.ERROR)
    torch.set_num_threads(args.threads)
    folder = args.work / f"{args.name}-{args.row}-{args.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    step = train(args, folder)
    path = finish(args, folder, step)
    print(f"wrote {path}")
    if args.install:
        package = Path(str(files("smokegeo"))) / "weights"
        package.mkdir(exist_ok=True)
        shutil.copyfile(path, package / f"{args.name}.safetensors")
        print(f"installed as {package / args.name}.safetensors")


def build(name: str, row: str = "e") -> MoP:
    """Return the untrained network: each band is a group of its own, seen in two ways."""
    kind = KINDS[name]
    return MoP(
        bands=len(kind.bands) * len(VIEWS),
        band_groups=None if row == "bl" else len(kind.bands),
        dim=kind.dim,
        width_rule="equal",
        momentum=0.99,
        drop_path=0.0,  # these trainings are short of steps, not of data
        dropout=0.0,
        **{**ABLATION[row], "rescale": ABLATION[row].get("f_router", True)},
    )


def train(args: argparse.Namespace, folder: Path) -> int:
    """Train from the last checkpoint on; return the last step."""
    kind = KINDS[args.name]
    torch.manual_seed(args.seed)
    network = build(args.name, args.row)
    average = build(args.name, args.row).eval()
    average.load_state_dict(network.state_dict())
    decayed = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.02}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=args.lr)
    step = resume(folder, network, average, optimiser)
    last = min(args.steps, args.until or args.steps)
    samples = stream(args, first_sample(step, args.batch))
    buffer: list[tuple[Tensor, Tensor, Tensor]] = []
    numbers = first_sample(step, args.batch)
    started, losses = time.monotonic(), []
    network.train()
    while step < last:
        while numbers < needed(step, args.batch):
            buffer.append(as_tensors(kind, next(samples), numbers, args.seed))
            numbers += 1
            if len(buffer) > BUFFER:
                buffer.pop(0)
        for group in optimiser.param_groups:
            group["lr"] = args.lr * schedule(step, args.steps)
        loss = one_step(network, optimiser, draw(buffer, numbers, step, args), step, args.seed)
        follow(average, network, min(0.998, (1 + step) / (20 + step)))
        losses.append(loss)
        step += 1
        if step % 50 == 0 or step == last:
            rate = (time.monotonic() - started) / 50
            line = {"step": step, "loss": round(float(np.mean(losses)), 4), "s": round(rate, 2)}
            print(json.dumps(line), flush=True)
            with (folder / "log.jsonl").open("a") as handle:
                handle.write(json.dumps(line) + "\n")
            started, losses = time.monotonic(), []
        if step % 250 == 0 or step == last:
            save(folder, step, network, average, optimiser)
    samples.close()
    return step


def finish(args: argparse.Namespace, folder: Path, step: int) -> Path:
    """Write the model file of the averaged weights in the last checkpoint."""
    average = build(args.name, args.row).eval()
    state = torch.load(folder / "last.ckpt", weights_only=True)
    average.load_state_dict(state["average"])
    kind = KINDS[args.name]
    have = kind.read(args.backgrounds)
    threshold, f1 = choose_threshold(kind, average, have)
    print(f"threshold {threshold:g}, F1 {f1:.3f} on simulated samples of another seed")
    card = Card(
        name=args.name,
        architecture="mop",
        options=average.config.to_dict(),
        bands=kind.bands,
        statistics=BandStatistics(
            kind.bands.names, kind.mean, kind.std, (0.0,) * len(kind.bands), kind.maximum, 0
        ),
        threshold=threshold,
        tile_px=512,
        overlap_px=128,
        resolution_m=kind.resolution_m,
        input={
            "dtype": kind.dtype,
            "minimum": 0,
            "maximum": max(kind.maximum),
            "views": list(VIEWS),
            **kind.facts,
        },
        training={
            "config": {"band_dropout": 0.6, "steps": step, "of": args.steps, "seed": args.seed},
            "command": f"scripts/train_default.py {args.name} --seed {args.seed} "
            f"--steps {args.steps} --batch {args.batch} --lr {args.lr:g}",
            "data": {"source": "simulated smoke", "imagery": credits(have)},
            "provisional": PROVISIONAL,
            "frames": needed(step, args.batch),
            "date": date.today().isoformat(),
            "threshold": "best F1 over all pixels of 150 samples of another seed",
        },
        metrics={"samples of another seed": {"f1": round(f1, 4)}},
        licence="Apache-2.0; imagery: see training",
        summary=kind.summary,
    )
    path = folder / "model.safetensors"
    save_model(path, card, average.state_dict(), half=True)
    return path


def credits(have: Sequence[Any]) -> list[str]:
    """Return whose imagery took part, with its licence."""
    sources = {b.source for b in have if isinstance(b, Background)}
    found = sorted(f"{source.credit} ({source.licence})" for source in sources)
    return [*found, "SmokeSeg (MIT)"] if any(isinstance(h, Photo) for h in have) else found


@torch.inference_mode()
def choose_threshold(kind: Kind, network: MoP, have: Sequence[Any]) -> tuple[float, float]:
    """Return the threshold with the best F1 over all pixels, and that F1."""
    levels = np.arange(0.2, 0.96, 0.05)
    hit, false, missed = np.zeros((3, len(levels)))
    for number in range(150):
        sample = kind.make(number, 55, have, kind.size_px, False)
        image, available, target = as_tensors(kind, sample, number, 55)
        smoke = network(image[None].float(), available[None]).softmax(1)[0, 1]
        known, truth = target != 255, target == 1
        for i, level in enumerate(levels):
            found = smoke >= level
            hit[i] += float((found & truth).sum())
            false[i] += float((found & known & ~truth).sum())
            missed[i] += float((~found & truth).sum())
    f1 = 2 * hit / np.maximum(1, 2 * hit + false + missed)
    best = int(f1.argmax())
    return round(float(levels[best]), 2), float(f1[best])


def needed(step: int, batch: int) -> int:
    """Return how many samples must exist before a step: a first stock, then some more each step."""
    return 8 * batch + NEW_PER_STEP * step


def first_sample(step: int, batch: int) -> int:
    """Return the number of the oldest sample a step may use; the buffer is filled from there."""
    return max(0, needed(step, batch) - BUFFER)


def draw(
    buffer: list[tuple[Tensor, Tensor, Tensor]], numbers: int, step: int, args: argparse.Namespace
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the batch of a step: its new samples, and others from the buffer."""
    rng = np.random.default_rng([args.seed, 1, step])
    new = list(range(max(0, len(buffer) - NEW_PER_STEP), len(buffer)))
    old = rng.integers(0, len(buffer), args.batch - len(new)).tolist()
    picked = [buffer[i] for i in [*new, *old]]
    images, available, targets = [], [], []
    for image, there, target in picked:
        turns, mirrored = int(rng.integers(4)), bool(rng.integers(2))
        image = torch.rot90(image.float(), turns, (1, 2))
        target = torch.rot90(target, turns, (0, 1))
        images.append(image.flip(2) if mirrored else image)
        targets.append(target.flip(1) if mirrored else target)
        available.append(there)
    return torch.stack(images), torch.stack(available), torch.stack(targets)


def one_step(
    network: MoP,
    optimiser: torch.optim.Optimizer,
    batch: tuple[Tensor, Tensor, Tensor],
    step: int,
    seed: int,
) -> float:
    """Train on one batch and return the loss."""
    torch.manual_seed(seed * 1_000_003 + step)  # dropout, the same after a resume
    images, available, targets = batch
    done = network.run(images, available)
    loss = F.cross_entropy(done.logits, targets.long(), ignore_index=255)
    probability = done.logits.softmax(1)[:, 1]
    known = targets != 255
    smoke = (targets == 1).float()
    overlap = (probability * smoke * known).sum()
    dice = 1 - (2 * overlap + 1) / ((probability * known).sum() + smoke.sum() + 1)
    total = loss + 0.3 * dice + 0.01 * network.loss(done, targets.long())
    optimiser.zero_grad()
    total.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
    optimiser.step()
    return float(total.detach())


def schedule(step: int, steps: int) -> float:
    """Return the share of the learning rate: a warm-up, then a half cosine."""
    warm = min(1.0, (step + 1) / 200)
    return warm * (0.02 + 0.98 * 0.5 * (1 + float(np.cos(np.pi * step / steps))))


@torch.no_grad()
def follow(average: MoP, network: MoP, decay: float) -> None:
    """Move the averaged weights towards those in training."""
    theirs = network.state_dict()
    for name, value in average.state_dict().items():
        if value.is_floating_point():
            value.lerp_(theirs[name], 1 - decay)
        else:
            value.copy_(theirs[name])


def as_tensors(kind: Kind, sample: Sample, number: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return channels, which of them are there, and labels; as `predict` makes them of a scene."""
    rng = np.random.default_rng([seed, 2, number])
    pixels = sample.values[:, sample.valid]
    mean, std = pixels.mean(axis=1), pixels.std(axis=1)
    # A scene is larger than a sample: its mean and spread differ from those of a part.
    mean = mean + rng.normal(0, 0.25) * std
    std = std * np.float32(np.exp(rng.normal(0, 0.2)))
    gain = 1 / np.array(kind.std, np.float32)
    recipe = make_recipe(
        VIEWS,
        sample.has.tolist(),
        (gain, -np.array(kind.mean, np.float32) * gain),
        mean,
        std,
        trusted=sample.trusted.tolist(),
    )
    places = np.flatnonzero(sample.has).tolist()
    channels = recipe.channels(sample.values[places], sample.valid, places)
    return (
        torch.from_numpy(np.clip(channels, -8, 8)).half(),
        torch.tensor(recipe.available),
        torch.from_numpy(sample.target),
    )


def stream(args: argparse.Namespace, first: int) -> Generator[Sample]:
    """Yield the samples from number `first` on, in order, made by other processes."""
    easy = needed(int(EASY_SHARE * args.steps), args.batch)
    with ProcessPoolExecutor(
        args.workers, initializer=_start_worker, initargs=(args.name, args.backgrounds)
    ) as pool:
        number = first + 4 * args.workers + 4
        ahead = [pool.submit(_make, args.name, n, args.seed, easy) for n in range(first, number)]
        while True:
            yield ahead.pop(0).result()
            ahead.append(pool.submit(_make, args.name, number, args.seed, easy))
            number += 1


def _start_worker(name: str, folder: Path) -> None:
    logging.getLogger("smokegeo").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    _have.extend(KINDS[name].read(folder))


def _make(name: str, number: int, seed: int, easy: int) -> Sample:
    kind = KINDS[name]
    return kind.make(number, 1000 + seed, _have, kind.size_px, number < easy)


def save(
    folder: Path, step: int, network: MoP, average: MoP, optimiser: torch.optim.Optimizer
) -> None:
    """Write a checkpoint, whole or not at all."""
    part = folder / "part.ckpt"
    state = {"step": step, "network": network.state_dict(), "average": average.state_dict()}
    torch.save({**state, "optimiser": optimiser.state_dict()}, part)
    part.replace(folder / "last.ckpt")


def resume(folder: Path, network: MoP, average: MoP, optimiser: torch.optim.Optimizer) -> int:
    """Load the last checkpoint if there is one; return the step it was at."""
    path = folder / "last.ckpt"
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    network.load_state_dict(state["network"])
    average.load_state_dict(state["average"])
    optimiser.load_state_dict(state["optimiser"])
    return int(state["step"])


if __name__ == "__main__":
    main()
