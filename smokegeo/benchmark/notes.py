"""What a comparison was, in words, and what it must not be taken for."""

from __future__ import annotations

from smokegeo.benchmark.budget import Budget
from smokegeo.benchmark.plan import Entry
from smokegeo.benchmark.results import Results
from smokegeo.models.baselines.catalog import METHODS, VARIANTS

PAPER = Budget()


def heading(results: Results) -> str:
    """Return data, budget, seeds, dates and machines: all that is needed to do it again."""
    plan, runs = results.plan, results.runs
    kind = f"{'simulated ' if results.simulated else ''}{plan.dataset} frames"
    frames = ", ".join(f"{count} {split}" for split, count in results.frames.items())
    seeds = ", ".join(map(str, plan.seeds))
    dates = sorted({run.date for run in runs})
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    lines = [
        f"# Benchmark on {kind}",
        f"{sum(results.frames.values())} {kind} ({frames}). Every method: {plan.budget.words()}; "
        f"seed{'s' if len(plan.seeds) > 1 else ''} {seeds}. {days}, "
        f"{'; '.join(sorted({run.machine for run in runs}))}.",
        "F1 and mIoU are those of the smoke class in per cent, means over the test images (their "
        "number in brackets; an image without smoke in which none is found has neither), at the "
        "threshold the validation split chose.",
    ]
    if len(plan.seeds) > 1:
        lines.append("Cells hold the mean over seeds and, in brackets, the range.")
    if machines := results.measured_on():
        size = plan.speed_px
        where = f"on {machines[0]}" if len(machines) == 1 else "on the machines named below"
        lines.append(
            f"Costs are of one image of {size} x {size} pixels: the median of nine passes on the "
            "CPU and of 36 on a CUDA card if there is one, in a process of its own, "
            f"{where}. FLOPs are those of convolutions and matrix products, attention included. "
            "MoP is folded first, as it is for prediction; the other networks were not rewritten "
            "for speed."
        )
    return "\n\n".join(lines)


def notes(results: Results) -> list[str]:
    """Return what keeps these numbers from being compared with the paper's, or with each other."""
    plan = results.plan
    found = []
    if results.simulated:
        found.append(
            "The frames are simulated. The paper's are real: its numbers are on other images, and "
            "a method may be better on one kind than on the other."
        )
    elif plan.dataset not in ("hss", "mss"):
        found.append(f"The paper has no {plan.dataset} data at all.")
    if not plan.budget.is_papers:
        found.append(
            f"The paper trains for {PAPER.iterations} iterations of {PAPER.batch} crops of "
            f"{PAPER.crop} pixels at {PAPER.lr:g}. Under another budget, the order may be that of "
            "how fast methods learn, not of how good they become."
        )
    if plan.budget.minutes is not None:
        found.append(
            "The time for training steps is equal, as a few timed beforehand tell it, loading "
            "included; validating comes on top. The number of steps is not: methods that are fast "
            "on the machine they were trained on see more images."
        )
    if len(machines := results.measured_on()) > 1:
        named = "; ".join(f"{letter} is {name}" for letter, name in lettered(machines).items())
        found.append(
            "Costs were measured on several machines, and times and memory of different ones "
            f"cannot be compared: {named}."
        )
    if len(plan.seeds) == 1:
        found.append("One seed: differences of a few points may be chance.")
    found += [
        "All weights start at random. The paper does not say whether its baselines began with "
        "ImageNet weights; those are of colours, and do not fit other bands without a change.",
        "The paper does not name the encoders of most baselines, nor how large they are; those "
        "here are the usual ones, and parameters are not equal.",
        "The networks are not the authors' own: " + _differences(results) + ".",
        "Small, medium and large are cut at 0.5 % and 2.5 % of the image; the paper names FoSp for "
        "its bounds, and these were inferred from FoSp's lists.",
        "Frames keep their resolution; the paper resizes them to 512 pixels first.",
        "The threshold is chosen on the validation split; the paper takes the larger of two "
        "logits.",
    ]
    found += [
        f"{name} with seed {seed} is left out: {why}"
        for (name, seed), why in results.left_out.items()
    ]
    done = {(run.name, run.seed) for run in results.runs}
    missing = [
        f"{entry.name} with seed {seed}"
        for seed in plan.seeds
        for entry in plan.entries
        if (entry.name, seed) not in done and (entry.name, seed) not in results.left_out
    ]
    if missing:
        found.append(f"Not trained yet: {', '.join(missing)}. The same command goes on.")
    return found


def lettered(machines: list[str]) -> dict[str, str]:
    """Return machines by the letters they have in a table."""
    return {chr(ord("A") + place): name for place, name in enumerate(machines)}


def _differences(results: Results) -> str:
    shown: list[Entry] = [entry for v in VARIANTS for entry in results.entries(v)]
    names = dict.fromkeys(entry.model for entry in shown)
    return "; ".join(f"{METHODS[name].title}: {METHODS[name].differs}" for name in names)
