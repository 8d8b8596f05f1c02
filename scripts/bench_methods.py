"""Measure what each method of the paper costs, before any of them is trained.

    python scripts/bench_methods.py [--variants realtime accuracy] [--models mop ...] [--size PX]

Prints a Markdown table: parameters, FLOPs, and time and memory for one image, as `smokegeo
benchmark` measures them; random weights cost what trained ones do. Each is measured in a process
of its own. Let the machine do nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import os

import torch

from smokegeo.benchmark.machine import processor
from smokegeo.benchmark.measure import measure_apart
from smokegeo.models.baselines.catalog import METHODS, VARIANTS
from smokegeo.sensors import sensor


def main() -> None:
    """Read the command line, measure, print line by line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--models", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--sensor", default="hss", help="whose bands: hss, mss, satellite ...")
    parser.add_argument("--size", type=int, default=512, help="side of the image in pixels")
    args = parser.parse_args()
    bands = len(sensor(args.sensor).bands)
    print(
        f"{processor()}, torch {torch.__version__}, load {os.getloadavg()[0]:.1f} at the start, "
        f"one image of {bands} x {args.size} x {args.size}\n"
    )
    print("| method | variant | M parameters | GFLOPs | CPU ms | CPU MB | threads |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for variant in args.variants:
        for name in args.models:
            cost = measure_apart(name, bands, {"variant": variant}, args.size)
            memory = "-" if cost.cpu_mb is None else f"{cost.cpu_mb:.0f}"
            print(
                f"| {METHODS[name].title} | {variant} | {cost.parameters / 1e6:.2f} | "
                f"{cost.gflops:.2f} | {cost.cpu_ms:.0f} | {memory} | {cost.threads} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
