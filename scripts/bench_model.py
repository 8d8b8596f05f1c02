"""Measure MoP: the paper's form, ours, folded, and ONNX Runtime, side by side in one run.

    python scripts/bench_model.py [--threads N] [--repeats N] [--size PX] [--quick]

Prints two Markdown tables. The first is inference on one image; the second is one training step,
forward and backward, of the routers alone and of the whole network. Repeats are interleaved, so
that other work on the machine touches all forms alike; the median is told.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from smokegeo.benchmark.machine import processor
from smokegeo.benchmark.measure import count_flops
from smokegeo.errors import UsageError
from smokegeo.models.mop import MoP
from smokegeo.models.naive import naive_f_router, naive_forward, naive_p_router
from smokegeo.models.onnx import OnnxNetwork, export_onnx

BANDS = 25
Form = Callable[[], object]


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--size", type=int, default=512, help="side of the image in pixels")
    parser.add_argument("--quick", action="store_true", help="a small image, twice: does it run?")
    args = parser.parse_args()
    size, repeats = (64, 2) if args.quick else (args.size, args.repeats)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    load = os.getloadavg()[0]
    print(
        f"{processor()}, {args.threads} thread(s), torch {torch.__version__}, "
        f"load {load:.1f} at the start, median of {repeats} "
        f"({whole_repeats(repeats)} for the whole network in training)\n"
    )
    rows = [inference(variant, size, repeats, args.threads) for variant in ("realtime", "accuracy")]
    print(f"Inference, one image of {BANDS} x {size} x {size}:\n")
    table("variant | form | ms | speed-up | GFLOPs", [line for part in rows for line in part])
    lines = routers(size // 4, repeats)
    lines += [
        line for variant in ("realtime", "accuracy") for line in training(variant, size, repeats)
    ]
    print(f"\nTraining, forward and backward, one image of {BANDS} x {size} x {size}:\n")
    table("what | form | ms | speed-up | MB kept for backward | share", lines)


def inference(variant: str, size: int, repeats: int, threads: int) -> list[str]:
    """Compare all forms of one variant in evaluation."""
    model = MoP(bands=BANDS, variant=variant).eval()
    folded = model.fold()
    x = torch.randn(1, BANDS, size, size)
    forms: dict[str, Form] = {
        "paper": lambda: naive_forward(model, x),
        "plain": lambda: model(x),
        "folded": lambda: folded(x),
    }
    with torch.inference_mode():
        flops = {name: count_flops(form) for name, form in forms.items()}
        try:
            forms["ONNX Runtime"] = onnx_form(folded, x, threads)
        except UsageError as error:
            print(f"({error})\n")
        times = interleaved(forms, repeats)
    return [
        f"{variant} | {name} | {times[name]:.0f} | {times['paper'] / times[name]:.2f} | "
        + (f"{flops[name] / 1e9:.2f}" if name in flops else "")
        for name in forms
    ]


def onnx_form(folded: torch.nn.Module, x: Tensor, threads: int) -> Form:
    """Return the exported network as one more form."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mop.onnx"
        export_onnx(folded, path)  # type: ignore[arg-type]  # fold() returns the class it wants
        network = OnnxNetwork(path, threads)
    return lambda: network(x)


def routers(side: int, repeats: int) -> list[str]:
    """Compare both routers in the paper's form and in ours, on features of side x side."""
    model = MoP(bands=BANDS).train()
    p_router, f_router, prototypes = model.p_router, model.f_router, model.prototypes
    if p_router is None or f_router is None or prototypes is None:
        raise RuntimeError("the default network has all its parts")
    vectors = prototypes()
    features = torch.randn(1, model.config.feature_dim, side, side, requires_grad=True)

    def paper() -> Tensor:
        alpha = naive_p_router(p_router, features, vectors)
        return naive_f_router(f_router, features, alpha, vectors)

    def ours() -> Tensor:
        beta: Tensor = f_router(features, p_router(features, vectors), vectors)
        return beta

    return compare_steps("routers", {"paper": paper, "ours": ours}, repeats, but=features)


def training(variant: str, size: int, repeats: int) -> list[str]:
    """Compare the whole network in training."""
    model = MoP(bands=BANDS, variant=variant).train()
    x = torch.randn(1, BANDS, size, size)
    forms = {"paper": lambda: naive_forward(model, x), "ours": lambda: model(x)}
    return compare_steps(variant, forms, whole_repeats(repeats))


def whole_repeats(repeats: int) -> int:
    """Return how often a whole training step is run: fewer times, since it takes seconds."""
    return max(2, repeats // 2)


def compare_steps(
    what: str, forms: Mapping[str, Callable[[], Tensor]], repeats: int, but: Tensor | None = None
) -> list[str]:
    """Time forward and backward of each form, and weigh what it keeps in between."""
    steps = {name: partial(step, form) for name, form in forms.items()}
    kept = {name: kept_bytes(form, but) for name, form in forms.items()}
    times = interleaved(steps, repeats)
    return [
        f"{what} | {name} | {times[name]:.0f} | {times['paper'] / times[name]:.2f} | "
        f"{kept[name] / 1e6:.1f} | {kept[name] / kept['paper']:.2f}"
        for name in forms
    ]


def step(form: Callable[[], Tensor]) -> None:
    """Run a form forward and backward."""
    torch.autograd.backward(form().square().sum())


def kept_bytes(form: Callable[[], Tensor], but: Tensor | None) -> int:
    """Return the bytes autograd keeps for the backward pass, each storage once.

    `but` is the input, which exists anyway.
    """
    storages: dict[int, int] = {}
    alive: list[Tensor] = []  # a freed address could come back and be taken for the same storage

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if not isinstance(tensor, torch.nn.Parameter):
            storages[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        form()
    if but is not None:
        storages.pop(but.untyped_storage().data_ptr(), None)
    return sum(storages.values())


def interleaved(forms: Mapping[str, Form], repeats: int) -> dict[str, float]:
    """Return the median milliseconds of each form, run in turns after one warm-up."""
    times: dict[str, list[float]] = {name: [] for name in forms}
    for turn in range(repeats + 1):
        for name, form in forms.items():
            start = time.perf_counter()
            form()
            if turn:
                times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def table(head: str, lines: list[str]) -> None:
    """Print a Markdown table."""
    print(f"| {head} |")
    print("|" + "---|" * (head.count("|") + 1))
    for line in lines:
        print(f"| {line} |")


if __name__ == "__main__":
    main()
