"""Simulated frames in the prepared layout, written by several processes, the same for a seed."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smokegeo.consensus import Agreement, Consensus
from smokegeo.cubes import make_cube
from smokegeo.datasets.layout import Frame, FrameRecord, finish_layout, grid_pitch, write_frame
from smokegeo.datasets.splits import DEFAULT_RATIO, RATIOS, make_splits
from smokegeo.errors import SmokegeoError, UsageError
from smokegeo.files import atomic_folder, need_space
from smokegeo.metrics import SCALES, scale_of
from smokegeo.progress import track
from smokegeo.simulate.annotators import ANNOTATORS
from smokegeo.simulate.backgrounds import Backgrounds
from smokegeo.simulate.frame import Rendering, simulate_frame
from smokegeo.simulate.kinds import check_size, find_kind
from smokegeo.simulate.placement import dataset_pixel_m, frame_place
from smokegeo.simulate.scenarios import FRAMES_PER_VIDEO, check_scenarios

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """What to simulate; `size` is (width, height)."""

    kind: str
    count: int
    seed: int
    size: tuple[int, int]
    scenarios: tuple[str, ...] = ()
    backgrounds: Backgrounds | None = None
    rendering: Rendering = field(default_factory=Rendering)

    def __post_init__(self) -> None:
        find_kind(self.kind)
        check_size(*self.size)
        check_scenarios(self.scenarios)
        if self.count < 1:
            raise UsageError(f"count {self.count} is too small; simulate at least one frame.")
        if self.seed < 0:
            raise UsageError(f"seed {self.seed} is negative; use zero or more.")


@dataclass(frozen=True)
class DatasetFacts:
    """What came out: frames, frames per scale of smoke and per scenario, annotator agreement."""

    frames: int
    scales: dict[str, int]
    scenarios: dict[str, int]
    agreement: Agreement

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready form; shares are of the pixels that anyone marked."""
        shares = {str(votes): round(s, 4) for votes, s in self.agreement.shares().items()}
        return {
            "frames": self.frames,
            "scales": self.scales,
            "scenarios": self.scenarios,
            "agreement": shares,
        }


def simulate_dataset(
    out: Path, plan: DatasetPlan, *, workers: int = 1, overwrite: bool = False
) -> DatasetFacts:
    """Write a simulated dataset to `out`, whole or not at all."""
    spec = find_kind(plan.kind)
    pixels = plan.size[0] * plan.size[1]
    need_space(out, plan.count * pixels * (len(spec.bands) * spec.bytes_per_value + 2))
    with atomic_folder(out, overwrite=overwrite) as root:
        records: list[FrameRecord] = []
        agreement = Agreement((0,) * len(ANNOTATORS))
        videos = track(_videos(root, plan, workers), "simulated videos", _video_count(plan))
        for written in videos:
            records += [record for record, _ in written]
            agreement = sum((agreed for _, agreed in written), agreement)
        facts = DatasetFacts(len(records), _scales(records), _tags(records), agreement)
        finish_layout(
            root,
            plan.kind,
            spec.bands,
            records,
            _splits(records, plan),
            {"simulated": True, "seed": plan.seed, **facts.to_dict()},
        )
    return facts


_Written = list[tuple[FrameRecord, Agreement]]


def _videos(root: Path, plan: DatasetPlan, workers: int) -> Iterator[_Written]:
    """Write video after video, in order, in this process or in others."""
    numbers = range(_video_count(plan))
    if workers <= 1 or len(numbers) == 1:
        for number in numbers:
            yield _write_video(root, plan, number)
        return
    # Spawned workers are the same on every system and inherit no locks.
    pool = ProcessPoolExecutor(
        min(workers, len(numbers)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_interrupts_to_parent,
    )
    try:
        futures = [pool.submit(_write_video, root, plan, number) for number in numbers]
        for future in futures:
            yield future.result()
    except BrokenProcessPool as error:
        raise SmokegeoError(
            "a worker process died, most likely for lack of memory. Try --workers 1."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _write_video(root: Path, plan: DatasetPlan, video: int) -> _Written:
    """Simulate and write all frames of one video."""
    first = video * FRAMES_PER_VIDEO
    indexes = range(first, min(first + FRAMES_PER_VIDEO, plan.count))
    return [_write_one(root, plan, index) for index in indexes]


def _write_one(root: Path, plan: DatasetPlan, index: int) -> tuple[FrameRecord, Agreement]:
    made = simulate_frame(
        plan.kind,
        index,
        plan.seed,
        size=plan.size,
        scenarios=plan.scenarios,
        backgrounds=plan.backgrounds,
        rendering=plan.rendering,
    )
    cube = made.cube
    if plan.kind == "satellite":
        place = frame_place(index, plan.seed, plan.size, dataset_pixel_m(plan.seed))
        bands = find_kind(plan.kind).bands
        cube = make_cube(cube.values, bands, crs=place.crs, transform=place.transform)
    frame = Frame(
        f"{plan.kind}-{index:05d}", cube, made.mask, made.scene, made.scenarios, made.votes
    )
    record = write_frame(root, frame, index, grid_pitch(plan.size))
    return record, Consensus(made.mask, made.votes, len(ANNOTATORS)).agreement


def _splits(records: list[FrameRecord], plan: DatasetPlan) -> dict[str, tuple[str, ...]]:
    """Deal whole videos into the paper's splits; single frames if there are too few videos."""
    scenes = {record.id: record.scene for record in records}
    return make_splits(
        list(scenes),
        RATIOS.get(plan.kind, DEFAULT_RATIO),
        plan.seed,
        scenes if len(set(scenes.values())) >= 3 else None,
    )


def _scales(records: list[FrameRecord]) -> dict[str, int]:
    """Count the frames of each scale class."""
    counts = dict.fromkeys(SCALES, 0)
    for record in records:
        share = record.smoke_pixels / (record.width * record.height)
        counts[scale_of(share)] += 1
    return counts


def _tags(records: list[FrameRecord]) -> dict[str, int]:
    """Count the frames of each scenario."""
    tags = [tag for record in records for tag in record.scenarios]
    return {tag: tags.count(tag) for tag in sorted(set(tags))}


def _video_count(plan: DatasetPlan) -> int:
    return -(-plan.count // FRAMES_PER_VIDEO)


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
