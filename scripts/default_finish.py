"""The end of a default model's training: calibration, the threshold, and the model file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from default_kinds import KINDS, LIMIT, Kind, as_tensors, build, credits
from default_photos import Photo, without_fold
from torch import Tensor

from smokegeo.datasets.statistics import BandStatistics
from smokegeo.looks import Looks
from smokegeo.modelfile import Card, load_model, save_model
from smokegeo.models.mop import MoP
from smokegeo.views import VIEWS
from smokegeo.zoom import as_seen, together

#: Samples of another seed for calibration and threshold.
JUDGED = 300
#: Share of the pixels of samples without smoke that may be called smoke.
FALSE_SHARE = 0.05
#: F1 within which thresholds count as equally good, by which of them a kind takes.
ALIKE = {"highest": 0.005, "lowest": 0.01}


def finish(args: argparse.Namespace, folder: Path, step: int, samples: int) -> Path:
    """Write the model file of the averaged weights in the last checkpoint."""
    average = build(args.name, args.row).eval()
    state = torch.load(folder / "last.ckpt", weights_only=True)
    average.load_state_dict(state["average"])
    if args.mix:
        mix(average, load_model(args.mix).state)
    kind = KINDS[args.name]
    have = backgrounds(args.name, args.backgrounds, args.photos)
    # Photographs are known by heart: what the network says of them is too sure.
    new = [h for h in have if not isinstance(h, Photo)]
    seen = look(kind, average, new)
    votes, truth, _ = weigh(seen, kind.looks)
    scale = calibrate(average, votes, truth)
    # Once more: the head is changed before looks are put together and pixels averaged, not after.
    threshold, f1 = choose_threshold(*weigh(seen, kind.looks, *scale), kind.threshold)
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
            "limit": LIMIT,
            "sizes": list(kind.looks.sizes),
            "closer": list(kind.looks.closer),
            "closer_margin": kind.looks.margin,
            **kind.facts,
        },
        training=training(args, step, samples, have),
        metrics={"samples of another seed": {"f1": round(f1, 4)}},
        licence="Apache-2.0; imagery: see training",
        summary=kind.summary,
    )
    path = folder / "model.safetensors"
    save_model(path, card, average.state_dict(), half=True)
    return path


def training(
    args: argparse.Namespace, step: int, samples: int, have: Sequence[Any]
) -> dict[str, Any]:
    """Return what a card says of the training; of one that was only judged anew, what it said."""
    which = KINDS[args.name].threshold
    rule = (
        f"the {which} whose F1 over all pixels of {JUDGED} samples of another seed is within "
        f"{100 * ALIKE[which]:g} point of the best, at most {100 * FALSE_SHARE:g} % of those "
        "without smoke called smoke; they calibrated the probabilities, too"
    )
    warnings: dict[str, Any] = {}
    if args.provisional:
        warnings["provisional"] = args.provisional
    if args.few:
        warnings["few"] = {"below": int(args.few[0]), "doubt": args.few[1]}
    if not args.steps:
        before = load_model(args.start).card.training
        return {**before, **warnings, "threshold": rule, "judged_anew": command(args)}
    return {
        "config": {"band_dropout": 0.6, "steps": step, "of": args.steps, "seed": args.seed},
        "command": command(args),
        "data": {"source": "simulated smoke", "imagery": credits(have)},
        **warnings,
        "frames": samples,
        "date": date.today().isoformat(),
        "threshold": rule,
    }


@torch.no_grad()
def mix(network: MoP, other: Mapping[str, Tensor]) -> None:
    """Make a network the mean of itself and another that was trained on from, or to, it."""
    for name, value in network.state_dict().items():
        if value.is_floating_point():
            value.lerp_(other[name], 0.5)


def command(args: argparse.Namespace) -> str:
    """Return the command that makes this model of its samples."""
    words = ["scripts/train_default.py", args.name, f"--steps {args.steps} --batch {args.batch}"]
    words += [f"--lr {args.lr:g} --seed {args.seed}"]
    words += [f"--start {args.start.parent.name}/{args.start.name}"] if args.start else []
    words += [f"--mix {args.mix.parent.name}/{args.mix.name}"] if args.mix else []
    words += [f"--row {args.row}"] if args.row != "e" else []
    words += [f"--photos {args.photos}"] if args.photos != "all" else []
    return " ".join(words)


@dataclass(frozen=True)
class Seen:
    """A sample, and the votes (1, h, w) for smoke that a network has with each of its looks."""

    votes: Sequence[Tensor]
    target: Tensor


@torch.inference_mode()
def look(kind: Kind, network: MoP, have: Sequence[Any]) -> list[Seen]:
    """Return what a network says of samples of another seed."""
    folded, seen = network.fold(), []
    for number in range(JUDGED):
        sample = kind.make(number, 55, have, kind.size_px, False)
        image, available, target = as_tensors(kind, sample, number, 55)
        sizes = as_seen(image[None].float(), kind.looks)
        said = (folded(sized, available[None]) for sized in sizes)
        seen.append(Seen([logits[:, 1] - logits[:, 0] for logits in said], target))
    return seen


def weigh(
    seen: Sequence[Seen], looks: Looks, a: float = 1.0, b: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Return votes for smoke, labels, and whether a sample is without smoke, pixel by pixel.

    The votes are those of a network whose head says a * vote + b, its looks put together as
    `predict` does.
    """
    votes, truth, empty = [], [], []
    for item in seen:
        maps = [torch.sigmoid(a * said + b) for said in item.votes]
        smoke = together(maps, looks, item.target.shape)[0]
        known = item.target != 255
        votes.append(torch.logit(smoke.double()[known][::5], eps=1e-9))
        truth.append((item.target == 1)[known][::5])
        empty.append(torch.full_like(truth[-1], not bool((item.target == 1).any())))
    return torch.cat(votes), torch.cat(truth).double(), torch.cat(empty)


def calibrate(network: MoP, votes: Tensor, truth: Tensor) -> tuple[float, float]:
    """Change the network's last layer so that what it says is how often it is true.

    Smoke becomes sigmoid(a * vote + b), with a and b of the least cross-entropy (Platt's scaling);
    they fit into the weights of the head, and are returned. With many looks that is near the truth,
    not exact.
    """
    a, b = torch.ones((), dtype=votes.dtype), torch.zeros((), dtype=votes.dtype)
    inputs = torch.stack([votes, torch.ones_like(votes)])
    for _ in range(25):  # Newton's method; the loss is convex
        p = torch.sigmoid(a * votes + b)
        gradient = inputs @ (p - truth)
        curvature = (inputs * (p * (1 - p))) @ inputs.T + 1e-6 * torch.eye(2, dtype=votes.dtype)
        change = torch.linalg.solve(curvature, gradient).clamp(-1, 1)
        a, b = a - change[0], b - change[1]
    with torch.no_grad():
        network.head.weight *= float(a)
        network.head.bias *= float(a)
        network.head.bias += torch.tensor([-0.5, 0.5]) * float(b)
    print(f"calibrated: votes times {float(a):.3f} and {float(b):+.3f}")
    return float(a), float(b)


def choose_threshold(
    votes: Tensor, truth: Tensor, empty: Tensor, which: Literal["highest", "lowest"]
) -> tuple[float, float]:
    """Return the highest or lowest threshold with nearly the best F1 over all pixels, and its F1.

    Most scenes hold no smoke, unlike our samples: of levels that call more than FALSE_SHARE of the
    pixels of samples without smoke smoke, none is taken, unless all do.
    """
    smoke, scores = torch.sigmoid(votes), {}
    for level in np.arange(0.2, 0.96, 0.05):
        found = smoke >= level
        hit = float((found * truth).sum())
        f1 = 2 * hit / max(1.0, float(found.sum() + truth.sum()))
        quiet = float(found[empty].double().mean()) <= FALSE_SHARE if bool(empty.any()) else True
        scores[round(float(level), 2)] = (quiet, f1)
    quiet, best = max(scores.values())
    least = best - ALIKE[which]
    alike = [lev for lev, (q, f1) in scores.items() if q == quiet and f1 >= least]
    level = max(alike) if which == "highest" else min(alike)
    return level, scores[level][1]


def backgrounds(name: str, folder: Path, photos: str) -> Sequence[Any]:
    """Return what samples stand on, without a fold of the photographs if one is left out."""
    have = KINDS[name].read(folder)
    if photos == "all":
        return have
    return without_fold(have, photos)
