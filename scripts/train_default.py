"""Train a default model from nothing but the package and a folder of backgrounds.

    python scripts/train_default.py satellite --backgrounds FOLDER [--steps N] [--seed N]

Samples are simulated in other processes while the network trains; sample n is the same in every
run, and step n always trains on the same samples. Interrupt it at any time: the same command goes
on from the last checkpoint, in work/default/. Crops come first, whole samples last.
At the end the threshold is chosen on simulated samples of another seed, and the model file is
written beside the checkpoint; --install puts it into the package. `--until` a step that is done
makes a model of what there is, `--start` begins with the weights of a model file, and `--mix` ends
with the mean of these and the new ones, which is often steadier than either. With `--steps 0` the
model to start with is calibrated anew, and its threshold chosen, as the kind looks at scenes now.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from default_common import Sample
from default_finish import backgrounds, finish
from default_kinds import KINDS, Kind, as_tensors, build
from default_photos import FOLDS
from torch import Tensor

from smokegeo.modelfile import load_model
from smokegeo.models.mop import MoP, Routed
from smokegeo.zoom import enlarge

#: New samples per step, and how many of the latest ones a step draws from.
NEW_PER_STEP, BUFFER = 1, 500
#: Crops come first, many at a time; in the last part of the steps whole samples, a few at a time.
WHOLE_SHARE, FEWER = 0.15, 4
#: Weight of the overlap beside the entropy of all pixels, in which large smoke counts most.
DICE = 0.5
#: Smoke of fewer pixels than this, found or not, hardly counts in the overlap of an image.
SPECK_PX = 50
#: Share of crops that are put where there is smoke.
SMOKE_SHARE = 0.55
#: Share of the learning rate for the routers. They read hundreds of features of any size, and Adam
#: moves each of their weights as far as any other's: at the full rate one step can turn the weights
#: of bands over. With less, simulated smoke is found better (entry 8 of mss in the log).
ROUTER_RATE = 0.05
#: Weight of how unevenly an image's bands are used. Left alone, routers settle on the one band that
#: is hardly ever left out of samples, and the branch of single bands sees no other.
EVEN = 0.05
#: From this share of the steps on norms keep their statistics; at once where a trained model is the
#: start. Those of a few crops are noise, most of all for single bands, and not what `predict` uses.
SETTLED_SHARE = 0.35
#: Share of the steps in which samples have all their bands, as they were measured.
EASY_SHARE = 0.15

_have: list[Any] = []
Item = tuple[Tensor, Tensor, Tensor]


def main() -> None:
    """Train, or go on training."""
    args = arguments()
    logging.getLogger("smokegeo").setLevel(logging.ERROR)
    torch.set_num_threads(args.threads)
    folder = args.work / (args.label or f"{args.name}-{args.row}-{args.seed}")
    folder.mkdir(parents=True, exist_ok=True)
    step = train(args, folder)
    path = finish(args, folder, step, needed(step, args.batch))
    print(f"wrote {path}")
    if args.install:
        package = Path(str(files("smokegeo"))) / "weights"
        package.mkdir(exist_ok=True)
        shutil.copyfile(path, package / f"{args.name}.safetensors")
        print(f"installed as {package / args.name}.safetensors")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", choices=sorted(KINDS))
    parser.add_argument("--backgrounds", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("work/default"))
    parser.add_argument("--label", help="name of the folder in --work; from the options")
    parser.add_argument("--row", default="e", help="row of the ablation: bl, a, b, c, d or e")
    parser.add_argument("--start", type=Path, help="a model file to begin with")
    parser.add_argument("--mix", type=Path, help="a model file to average with at the end")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--until", type=int, help="stop after this step and go on another time")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--photos",
        choices=["all", "none", *map(str, range(FOLDS))],
        default="all",
        help="mss: which photographs take part; a number leaves that fold out",
    )
    parser.add_argument("--provisional", help="what to warn of at every use of the model")
    parser.add_argument(
        "--few",
        nargs=2,
        metavar=("BANDS", "DOUBT"),
        help="what to warn of in scenes with fewer of the model's bands than so many",
    )
    parser.add_argument("--install", action="store_true", help="put the model into the package")
    args = parser.parse_args()
    if not args.steps and not args.start:
        parser.error("--steps 0 judges a model anew: say which with --start")
    return args


def train(args: argparse.Namespace, folder: Path) -> int:
    """Train from the last checkpoint on; return the last step."""
    kind = KINDS[args.name]
    torch.manual_seed(args.seed)
    network = build(args.name, args.row)
    if args.start:
        network.load_state_dict(load_model(args.start).state)
    average = build(args.name, args.row).eval()
    average.load_state_dict(network.state_dict())
    optimiser = optimiser_of(network, args.lr)
    told = decisive(args)
    step = resume(folder, network, average, optimiser, told)
    last = min(args.steps, args.until or args.steps)
    if not last:
        save(folder, step, network, average, optimiser, told)
    made = first_sample(step, args.batch)
    samples = stream(args, made)
    buffer: deque[Item] = deque(maxlen=BUFFER)
    started, losses = time.monotonic(), []
    network.train()
    settled = 0 if args.start else int(SETTLED_SHARE * args.steps)
    if step > settled:
        keep_statistics(network)
    while step < last:
        if step == settled:
            keep_statistics(network, average)
        while made < needed(step, args.batch):
            buffer.append(as_tensors(kind, next(samples), made, args.seed))
            made += 1
        for group in optimiser.param_groups:
            group["lr"] = args.lr * schedule(step, args.steps) * group["share"]
        batch = draw(kind, buffer, step, args)
        losses.append(one_step(network, optimiser, batch, step, args.seed))
        follow(average, network, min(0.998, (1 + step) / (20 + step)))
        step += 1
        if step % 50 == 0 or step == last:
            rate = (time.monotonic() - started) / 50
            line = {"step": step, "loss": round(float(np.mean(losses)), 4), "s": round(rate, 2)}
            print(json.dumps(line), flush=True)
            with (folder / "log.jsonl").open("a") as handle:
                handle.write(json.dumps(line) + "\n")
            started, losses = time.monotonic(), []
        if step % 250 == 0 or step == last:
            save(folder, step, network, average, optimiser, told)
    samples.close()
    return step


def keep_statistics(network: MoP, of: MoP | None = None) -> None:
    """Let all norms keep their statistics from now on, or those `of` another network."""
    others = network if of is None else of
    for norm, other in zip(network.modules(), others.modules(), strict=True):
        if isinstance(norm, torch.nn.BatchNorm2d) and isinstance(other, torch.nn.BatchNorm2d):
            for name, value in norm.named_buffers():
                value.copy_(other.get_buffer(name))
            norm.eval()


def optimiser_of(network: MoP, lr: float) -> torch.optim.Optimizer:
    """Return AdamW that decays matrices and kernels only, and turns routers slowly."""
    routers = [p for name, p in network.named_parameters() if "router" in name]
    rest = [p for name, p in network.named_parameters() if "router" not in name]
    groups = [
        {"params": [p for p in rest if p.ndim > 1], "weight_decay": 0.02, "share": 1.0},
        {"params": [p for p in rest if p.ndim <= 1], "weight_decay": 0.0, "share": 1.0},
        {"params": routers, "weight_decay": 0.0, "share": ROUTER_RATE},
    ]
    return torch.optim.AdamW(groups, lr=lr, fused=True)


def needed(step: int, batch: int) -> int:
    """Return how many samples must exist before a step: a first stock, then some more each step."""
    return 8 * batch + NEW_PER_STEP * step


def first_sample(step: int, batch: int) -> int:
    """Return the number of the oldest sample a step may use; the buffer is filled from there."""
    return max(0, needed(step, batch) - BUFFER)


def draw(kind: Kind, buffer: Sequence[Item], step: int, args: argparse.Namespace) -> Item:
    """Return the batch of a step: its new samples, and others from the buffer.

    Where a network looks at enlarged scenes, too, some steps show it a few crops enlarged.
    """
    rng = np.random.default_rng([args.seed, 1, step])
    zoom = kind.zooms[step % len(kind.zooms)]
    whole = zoom == 1 and step >= (1 - WHOLE_SHARE) * args.steps
    count = max(2, args.batch // FEWER) if whole or zoom > 1 else args.batch
    new = [len(buffer) - 1 - i for i in range(NEW_PER_STEP)]
    old = rng.integers(0, len(buffer), count - len(new)).tolist()
    images, available, targets = [], [], []
    for image, there, target in (buffer[i] for i in [*new, *old]):
        part = np.s_[:, :] if whole else crop(target, kind.crop_px, rng)
        image, target = image[(slice(None), *part)].float(), target[part]
        turns = 0 if kind.upright else int(rng.integers(4))
        image, target = torch.rot90(image, turns, (1, 2)), torch.rot90(target, turns, (0, 1))
        mirrored = bool(rng.integers(2))
        images.append(image.flip(2) if mirrored else image)
        targets.append(target.flip(1) if mirrored else target)
        available.append(there)
    labels = torch.stack(targets).repeat_interleave(zoom, 1).repeat_interleave(zoom, 2)
    return enlarge(torch.stack(images), zoom), torch.stack(available), labels


def crop(target: Tensor, side: int, rng: np.random.Generator) -> tuple[slice, slice]:
    """Return a random part of a sample, more often than not where there is smoke."""
    height, width = target.shape
    y, x = int(rng.integers(height)), int(rng.integers(width))
    if rng.random() < SMOKE_SHARE:
        smoke = (target[::4, ::4] == 1).nonzero()
        if len(smoke):
            near = 4 * smoke[int(rng.integers(len(smoke)))].numpy()
            y, x = (near + rng.integers(-40, 41, 2)).tolist()
    top = max(0, min(y - side // 2, height - side))
    left = max(0, min(x - side // 2, width - side))
    return slice(top, top + side), slice(left, left + side)


def one_step(
    network: MoP, optimiser: torch.optim.Optimizer, batch: Item, step: int, seed: int
) -> float:
    """Train on one batch and return the loss."""
    torch.manual_seed(seed * 1_000_003 + step)  # dropout, the same after a resume
    images, available, targets = batch
    done = network.run(images, available)
    probability = done.logits.softmax(1)[:, 1]
    known, smoke = (targets != 255).float(), (targets == 1).float()
    loss = F.cross_entropy(done.logits, targets.long(), ignore_index=255, reduction="sum")
    loss = loss / known.sum().clamp(min=1)  # a few crops may have no label at all
    # Image by image, so that a small plume counts as much as a large one; see SPECK_PX.
    overlap = 2 * (probability * smoke).sum((1, 2)) + SPECK_PX
    both = (probability * known).sum((1, 2)) + smoke.sum((1, 2)) + SPECK_PX
    dice = (1 - overlap / both).mean()
    total = loss + DICE * dice + 0.01 * network.loss(done, targets.long()) + EVEN * uneven(done)
    optimiser.zero_grad()
    total.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
    optimiser.step()
    return float(total.detach())


def uneven(done: Routed) -> Tensor:
    """Return how far from even the bands are used, 0 if alike: images' distances (KL), their mean.

    What counts is the mean of a band's weight over an image: pixels may choose their bands.
    """
    if done.beta is None:
        return done.logits.new_zeros(())
    used = done.beta.mean(dim=(2, 3))
    there = used.new_ones(used.shape) if done.present is None else done.present
    entropy = -torch.special.xlogy(used, used.clamp(min=1e-8)).sum(dim=1)
    return (there.sum(dim=1).log() - entropy).mean()


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


def stream(args: argparse.Namespace, first: int) -> Generator[Sample]:
    """Yield the samples from number `first` on, in order, made by other processes."""
    easy = needed(int(EASY_SHARE * args.steps), args.batch) if not args.start else 0
    facts = (args.name, args.backgrounds, args.photos)
    with ProcessPoolExecutor(args.workers, initializer=_start_worker, initargs=facts) as pool:
        number = first + 4 * args.workers + 4
        ahead = [pool.submit(_make, args.name, n, args.seed, easy) for n in range(first, number)]
        while True:
            yield ahead.pop(0).result()
            ahead.append(pool.submit(_make, args.name, number, args.seed, easy))
            number += 1


def _start_worker(name: str, folder: Path, photos: str) -> None:
    logging.getLogger("smokegeo").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    _have.extend(backgrounds(name, folder, photos))


def _make(name: str, number: int, seed: int, easy: int) -> Sample:
    kind = KINDS[name]
    return kind.make(number, 1000 + seed, _have, kind.size_px, number < easy)


def decisive(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that make a training what it is; its length may change on the way."""
    start = load_model(args.start).card.sha256 if args.start else None
    names = ("name", "row", "seed", "photos", "batch", "lr")
    return {**{name: getattr(args, name) for name in names}, "start": start}


def save(
    folder: Path,
    step: int,
    network: MoP,
    average: MoP,
    optimiser: torch.optim.Optimizer,
    told: dict[str, Any],
) -> None:
    """Write a checkpoint, whole or not at all."""
    part = folder / "part.ckpt"
    state = {"step": step, "network": network.state_dict(), "average": average.state_dict()}
    torch.save({**state, "optimiser": optimiser.state_dict(), "told": told}, part)
    part.replace(folder / "last.ckpt")


def resume(
    folder: Path,
    network: MoP,
    average: MoP,
    optimiser: torch.optim.Optimizer,
    told: dict[str, Any],
) -> int:
    """Load the last checkpoint if there is one and it is of this training; return its step."""
    path = folder / "last.ckpt"
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    before = state.get("told", told)  # older checkpoints do not say
    if changed := [name for name in told if told[name] != before.get(name)]:
        facts = ", ".join(f"{name} {before.get(name)} (now {told[name]})" for name in changed)
        raise SystemExit(f"{path} was trained with {facts}. Give the same, or another --label.")
    network.load_state_dict(state["network"])
    average.load_state_dict(state["average"])
    optimiser.load_state_dict(state["optimiser"])
    return int(state["step"])


if __name__ == "__main__":
    main()
