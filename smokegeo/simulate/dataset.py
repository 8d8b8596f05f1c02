"""Simulated frames in the prepared layout, written by several processes, the same for a seed."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from smokegeo.consensus import Agreement, Consensus
from smokegeo.cubes import make_cube
from smokegeo.datasets.layout import (
    SPLITS,
    Frame,
    FrameRecord,
    finish_layout,
    grid_pitch,
    write_frame,
)
from smokegeo.datasets.splits import DEFAULT_RATIO, RATIOS, make_splits, warn_of_empty
from smokegeo.errors import SmokegeoError, UsageError
from smokegeo.files import atomic_folder, need_space
from smokegeo.metrics import SCALES, scale_of
from smokegeo.progress import track
from smokegeo.simulate.annotators import ANNOTATORS
from smokegeo.simulate.backgrounds import Backgrounds
from smokegeo.simulate.frame import Rendering, scene_name, simulate_frame
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
    splits = _splits(plan)
    with atomic_folder(out, overwrite=overwrite, marks=("dataset.json",)) as root:
        warn_of_empty(splits)
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
            splits,
            {"simulated": True, "seed": plan.seed, **facts.to_dict()},
        )
    return facts


_Written = list[tuple[FrameRecord, Agreement]]


def _videos(root: Path, plan: DatasetPlan, workers: int) -> Iterator[_Written]:
    """Write video after video, in order, in this process or in others."""
    numbers = range(_video_count(plan))
    own = [replace(plan, backgrounds=backgrounds) for backgrounds in _backgrounds(plan)]
    if workers <= 1 or len(numbers) == 1:
        for number in numbers:
            yield _write_video(root, own[number], number)
        return
    # Spawned workers are the same on every system and inherit no locks.
    pool = ProcessPoolExecutor(
        min(workers, len(numbers)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_interrupts_to_parent,
    )
    try:
        futures = [pool.submit(_write_video, root, own[number], number) for number in numbers]
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
    frame = Frame(_frame_id(plan, index), cube, made.mask, made.scene, made.scenarios, made.votes)
    record = write_frame(root, frame, index, grid_pitch(plan.size))
    return record, Consensus(made.mask, made.votes, len(ANNOTATORS)).agreement


def _backgrounds(plan: DatasetPlan) -> list[Backgrounds | None]:
    """Return the rasters of each video: no two splits share one, where there are enough.

    A network that saw a background in training is not tested by it.
    """
    videos = [_scene(plan, number * FRAMES_PER_VIDEO) for number in range(_video_count(plan))]
    have = plan.backgrounds
    if have is None:
        return [None] * len(videos)
    if min(len(have.rasters), len(videos)) < len(SPLITS):
        log.warning(
            "frames of train, val and test share backgrounds, so scores on them are too good: to "
            "keep them apart takes %d rasters (there are %d) and %d videos of %d frames",
            *(len(SPLITS), len(have.rasters), len(SPLITS), FRAMES_PER_VIDEO),
        )
        return [have] * len(videos)
    by_path = {str(raster.path): raster for raster in have.rasters}
    # Each by itself, as a scene is, so that no split goes without.
    paths = make_splits(list(by_path), _ratio(plan), plan.seed, {path: path for path in by_path})
    scenes = _frame_scenes(plan)
    owner = {scenes[i]: split for split, ids in _splits(plan).items() for i in ids}
    dealt = {s: Backgrounds(tuple(by_path[path] for path in paths[s])) for s in SPLITS}
    return [dealt[owner[video]] for video in videos]


def _splits(plan: DatasetPlan) -> dict[str, tuple[str, ...]]:
    """Deal whole videos into the paper's splits; single frames if there are too few videos."""
    scenes = _frame_scenes(plan)
    whole = _video_count(plan) >= len(SPLITS)
    return make_splits(list(scenes), _ratio(plan), plan.seed, scenes if whole else None)


def _ratio(plan: DatasetPlan) -> tuple[float, float, float]:
    return RATIOS.get(plan.kind, DEFAULT_RATIO)


def _frame_scenes(plan: DatasetPlan) -> dict[str, str]:
    """Return the id of each frame and the scene it will be of."""
    return {_frame_id(plan, index): _scene(plan, index) for index in range(plan.count)}


def _frame_id(plan: DatasetPlan, index: int) -> str:
    return f"{plan.kind}-{index:05d}"


def _scene(plan: DatasetPlan, index: int) -> str:
    return scene_name(plan.kind, index // FRAMES_PER_VIDEO)


def _scales(records: Sequence[FrameRecord]) -> dict[str, int]:
    """Count the frames of each scale class; one without smoke has none, as in the scores."""
    counts = dict.fromkeys(SCALES, 0)
    for record in records:
        if record.smoke_pixels:
            counts[scale_of(record.smoke_pixels / (record.width * record.height))] += 1
    return counts


def _tags(records: list[FrameRecord]) -> dict[str, int]:
    """Count the frames of each scenario."""
    tags = [tag for record in records for tag in record.scenarios]
    return {tag: tags.count(tag) for tag in sorted(set(tags))}


def _video_count(plan: DatasetPlan) -> int:
    return -(-plan.count // FRAMES_PER_VIDEO)


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
