"""Judge a satellite model on what it was not trained on, and print the whole evidence.

    python scripts/evaluate_default.py MODEL --backgrounds FOLDER [--pictures FOLDER]

Simulated test samples by style and by bands; real clouds, clear land and water of sites kept out
of training; real smoke over Rondonia against a clear date. A plain rule stands beside the model.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from default_backgrounds import CLEAR, SHADOW, THICK, THIN, Background, read_backgrounds
from default_common import Sample
from default_satellite import BANDS, satellite_sample
from numpy.typing import NDArray

from smokegeo.modelfile import Card, Model, load_model
from smokegeo.scene.opening import open_scene
from smokegeo.views import make_recipe

SUBSETS = {"six bands": (0, 1, 2, 3, 4, 5), "RGB + NIR": (0, 1, 2, 3), "RGB": (0, 1, 2)}
#: Draws smoke (y, x), 0 to 1, from values (6, y, x), which bands there are, validity and trust.
Judge = Callable[[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], bool], NDArray]


@dataclass(frozen=True)
class Scored:
    """Counts of pixels."""

    hit: int = 0
    false: int = 0
    missed: int = 0

    def __add__(self, other: Scored) -> Scored:
        return Scored(self.hit + other.hit, self.false + other.false, self.missed + other.missed)

    @property
    def f1(self) -> float:
        """F1 of the smoke class over all pixels."""
        return 2 * self.hit / max(1, 2 * self.hit + self.false + self.missed)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", type=Path)
    parser.add_argument("--backgrounds", type=Path, required=True)
    parser.add_argument("--count", type=int, default=200, help="simulated test samples")
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pictures", type=Path, help="folder for overlays")
    args = parser.parse_args()
    logging.getLogger("smokegeo").setLevel(logging.ERROR)
    torch.set_num_threads(args.threads)
    model = load_model(args.model)
    level = args.threshold or model.card.threshold
    judges = {model.card.name: (network_judge(model), level), "plain rule": (plain_rule, 0.5)}
    held_out = read_backgrounds(args.backgrounds, judging=True)
    print(f"{model.card.name}, threshold {level:g}\n")
    simulated(judges, held_out, args.count)
    clouds(judges, held_out)
    rondonia(judges, args.backgrounds / "smoke_rondonia_20LMR", args.pictures)


def network_judge(model: Model) -> Judge:
    """Return the model as a function of an image."""
    network, card = model.for_inference(), model.card

    def judge(values, has, valid, trusted):  # noqa: ANN001, ANN202
        return smoke_of(network, card, values, has, valid, trusted)

    return judge


@torch.inference_mode()
def smoke_of(
    network: torch.nn.Module,
    card: Card,
    values: NDArray[np.float32],
    has: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    trusted: bool,
) -> NDArray[np.float32]:
    """Return the probability of smoke, with the image's own statistics, as `predict` does."""
    pixels = values[:, valid]
    mean, std = np.array(card.statistics.mean) / 1e4, np.array(card.statistics.std) / 1e4
    recipe = make_recipe(
        card.views, has.tolist(), (1 / std, -mean / std), pixels.mean(1), pixels.std(1),
        trusted=trusted,
    )  # fmt: skip
    places = np.flatnonzero(has).tolist()
    channels = torch.from_numpy(recipe.channels(values[places], valid, places))[None]
    logits = network(channels, torch.tensor([recipe.available]))
    return logits.softmax(1)[0, 1].numpy()


def plain_rule(
    values: NDArray[np.float32], has: NDArray[np.bool_], valid: NDArray[np.bool_], trusted: bool
) -> NDArray[np.float32]:
    """Say smoke where it is bright and blue, and where there are such bands dark in SWIR.

    What a reader would try first: blue above 0.16, more than half of red besides, and SWIR2 well
    below blue.
    """
    blue, red = values[0], values[2]
    smoke = (blue > 0.16) & (blue - 0.5 * red > 0.09)
    if has[5]:
        smoke &= values[5] < 0.75 * blue
    return smoke.astype(np.float32)


def simulated(
    judges: dict[str, tuple[Judge, float]], held_out: list[Background], count: int
) -> None:
    """Print F1 on samples of a seed that training never used, by style, bands and numbers."""
    samples = [satellite_sample(n, 77, held_out) for n in range(count)]
    print("Simulated test samples, F1 in % (all pixels):\n")
    print("| | " + " | ".join(judges) + " |\n|---|" + "---:|" * len(judges))
    for title, keep in SUBSETS.items():
        chosen = [with_bands(s, keep) for s in samples if s.has.all() or len(keep) == 3]
        row(f"{title}, reflectance", [s for s in chosen if s.trusted.all()], judges)
        row(f"{title}, stretched picture", [s for s in chosen if not s.trusted.all()], judges)
    for style in ("plume", "core", "veil", "pall"):
        row(f"{style}, as it came", [s for s in samples if s.tag.endswith(style)], judges)
    print()


def with_bands(sample: Sample, keep: Sequence[int]) -> Sample:
    """Return the sample with these bands at most."""
    has = np.zeros(6, bool)
    has[list(keep)] = True
    return replace(sample, has=has & sample.has)


def row(title: str, samples: list[Sample], judges: dict[str, tuple[Judge, float]]) -> None:
    """Print one line of F1."""
    scores = []
    for judge, level in judges.values():
        total = Scored()
        for s in samples:
            if s.has.sum() < 2 or not s.has[[0, 2]].all():
                continue
            found = judge(s.values, s.has, s.valid, bool(s.trusted.all())) >= level
            known = s.target != 255
            smoke = (s.target == 1) & known
            total += Scored(
                int((found & smoke).sum()),
                int((found & known & ~smoke).sum()),
                int((~found & smoke).sum()),
            )
        scores.append(f"{100 * total.f1:.1f}")
    print(f"| {title} ({len(samples)}) | " + " | ".join(scores) + " |", flush=True)


def clouds(judges: dict[str, tuple[Judge, float]], held_out: list[Background]) -> None:
    """Print how much of held-out cloud, shadow and clear ground is called smoke."""
    kinds = {"thick cloud": THICK, "thin cloud": THIN, "shadow": SHADOW, "clear": CLEAR}
    print("Called smoke, % of the pixels, sites kept out of training (no smoke there):\n")
    print("| bands | judge | " + " | ".join(kinds) + " | MARIDA, all |")
    print("|---|---|" + "---:|" * 5)
    for title in ("six bands", "RGB"):
        has = np.zeros(6, bool)
        has[list(SUBSETS[title])] = True
        for name, (judge, level) in judges.items():
            called, total = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
            sea = [0, 0]
            for scene in held_out:
                values = np.nan_to_num(scene.reflectance.astype(np.float32))
                valid = np.isfinite(scene.reflectance).all(axis=0)
                found = (judge(values, has, valid, True) >= level) & valid
                if "marida" in scene.name:
                    sea[0] += int(found.sum())
                    sea[1] += int(valid.sum())
                    continue
                for kind, label in kinds.items():
                    called[kind] += int((found & (scene.labels == label)).sum())
                    total[kind] += int((valid & (scene.labels == label)).sum())
            shares = [f"{100 * called[k] / max(1, total[k]):.1f}" for k in kinds]
            shares.append(f"{100 * sea[0] / max(1, sea[1]):.1f}")
            print(f"| {title} | {name} | " + " | ".join(shares) + " |", flush=True)
    print()


def rondonia(judges: dict[str, tuple[Judge, float]], folder: Path, pictures: Path | None) -> None:
    """Print the share of a scene under smoke that is found, against a clear date."""
    print("Rondonia, % of the valid pixels called smoke:\n")
    print("| bands | judge | 2022-09-02, smoke | 2022-08-17, clear |\n|---|---|---:|---:|")
    for title in ("six bands", "RGB"):
        has = np.zeros(6, bool)
        has[list(SUBSETS[title])] = True
        for name, (judge, level) in judges.items():
            shares = []
            for day in ("2022-09-02", "2022-08-17"):
                scene = open_scene(folder / f"LMR_{day}.tif")
                with scene.open() as reader:
                    values, valid = reader.read(scene.whole, range(6))
                values = np.where(valid, values / 1e4, 0).astype(np.float32)
                smoke = judge(values, has, valid, True)
                shares.append(f"{100 * (smoke >= level)[valid].mean():.1f}")
                if pictures is not None and name != "plain rule":
                    draw(pictures / f"rondonia_{day}_{title.replace(' ', '_')}.png", values, smoke)
            print(f"| {title} | {name} | " + " | ".join(shares) + " |", flush=True)
    print()


def draw(path: Path, values: NDArray[np.float32], smoke: NDArray[np.float32]) -> None:
    """Draw an image beside its probabilities."""
    import matplotlib.pyplot as plt

    from smokegeo.composite import composite

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(14, 7))
    axes[0].imshow(composite(values, BANDS))
    axes[1].imshow(smoke, vmin=0, vmax=1, cmap="inferno")
    for axis in axes:
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=60)
    plt.close(figure)


if __name__ == "__main__":
    main()
