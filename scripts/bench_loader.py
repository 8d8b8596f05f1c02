"""Measure whether reading and augmenting samples keeps up with training.

    python scripts/bench_loader.py

Simulates a few HSS frames, then times the data module alone (samples a second, for several numbers
of loader processes) and one training step of MoP on the same batches.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch

from smokegeo.datasets.datamodule import SmokeDataModule
from smokegeo.simulate.dataset import DatasetPlan, simulate_dataset
from smokegeo.task import MoPSegmentationTask, segmentation_loss


def main() -> None:
    """Print loader speed beside step time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--crop", type=int, default=512)
    parser.add_argument("--variant", default="realtime")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "hss"
        simulate_dataset(root, DatasetPlan("hss", args.frames, 0, (409, 217)))
        print(
            f"load {os.getloadavg()[0]:.1f}, {torch.get_num_threads()} threads, HSS frames, batch 4"
        )
        print("\n| loader processes | samples a second |\n|---|---|")
        batch = None
        for workers in (0, 1, 2):
            speed, batch = loader_speed(root, workers, args)
            print(f"| {workers} | {speed:.1f} |")
        if batch is not None:
            seconds = step_seconds(batch, args.variant)
            print(f"\nOne training step of MoP {args.variant}: {seconds:.2f} s, ", end="")
            print(f"that is {4 / seconds:.1f} samples a second.")


def loader_speed(
    root: Path, workers: int, args: argparse.Namespace
) -> tuple[float, dict[str, torch.Tensor]]:
    """Return samples a second, after the first batch, and the last batch."""
    data = SmokeDataModule(
        root, "hss", crop_px=args.crop, iterations=args.batches + 1, num_workers=workers
    )
    data.setup("fit")
    batches = iter(data.train_dataloader())
    batch = next(batches)
    start, seen = time.perf_counter(), 0
    for batch in batches:
        seen += len(batch["image"])
    return seen / (time.perf_counter() - start), batch


def step_seconds(batch: dict[str, torch.Tensor], variant: str, repeats: int = 4) -> float:
    """Return the median time of a training step on one batch, optimiser included."""
    task = MoPSegmentationTask("mop", 25, {"variant": variant}, iterations=10)
    optimizer = task.configure_optimizers()["optimizer"]
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        done = task.model.run(batch["image"])
        loss = segmentation_loss(done.logits, batch["mask"])
        loss = loss + 0.01 * task.model.loss(done, batch["mask"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    main()
