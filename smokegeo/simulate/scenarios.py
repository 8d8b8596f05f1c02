"""The paper's seven scenarios as presets, and which frame plays which of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from smokegeo.datasets.layout import SCENE_SCENARIOS, SMOKE_SCENARIOS
from smokegeo.errors import UsageError

Range = tuple[float, float]

#: Frames of the paper's HSSDataset in each scenario, out of 1007.
SCENE_COUNTS = dict(zip(SCENE_SCENARIOS, (214, 118, 411, 264), strict=True))
SMOKE_COUNTS = dict(zip(SMOKE_SCENARIOS, (268, 258, 481), strict=True))

#: Frames of one simulated video: same camera, background and wind, the smoke moves on.
FRAMES_PER_VIDEO = 4


@dataclass(frozen=True, slots=True)
class ScenePreset:
    """Ranges from which a video's light, air and background are drawn.

    `white` is the share of pixels darker than full scale: below 1 the rest saturates.
    """

    white: Range
    white_level: Range
    black: Range
    haze_tau: Range
    cloud_cover: Range
    clutter: Range
    sun_in_view: float
    light: Range


@dataclass(frozen=True, slots=True)
class SmokePreset:
    """Ranges from which a frame's smoke is drawn; duration in seconds of wind."""

    sources: tuple[int, int]
    duration_s: Range
    peak_tau: Range
    spread: Range
    detail: Range


SCENES: dict[str, ScenePreset] = {
    "high_exposure": ScenePreset(
        (0.84, 0.965),
        (0.92, 1.0),
        (0.0, 0.0),
        (0.0, 0.08),
        (0.0, 0.15),
        (0.1, 0.6),
        0.6,
        (1.0, 1.2),
    ),
    "low_visibility": ScenePreset(
        (0.98, 0.99), (1.6, 2.8), (0.0, 0.0), (0.5, 1.2), (0.0, 0.1), (0.1, 0.7), 0.0, (0.25, 0.5)
    ),
    "complex_background": ScenePreset(
        (0.97, 0.99),
        (1.1, 1.5),
        (0.0, 0.04),
        (0.0, 0.15),
        (0.0, 0.12),
        (0.8, 1.0),
        0.05,
        (0.8, 1.1),
    ),
    "cloud_interference": ScenePreset(
        (0.97, 0.99), (1.1, 1.4), (0.0, 0.04), (0.0, 0.2), (0.2, 0.45), (0.1, 0.6), 0.1, (0.8, 1.1)
    ),
}

SMOKES: dict[str, SmokePreset] = {
    "early_stage": SmokePreset((1, 1), (3, 16), (0.7, 2.5), (0.08, 0.2), (0.25, 0.5)),
    "high_transparency": SmokePreset((1, 2), (30, 130), (0.25, 0.8), (0.15, 0.4), (0.25, 0.5)),
    "complex_shape": SmokePreset((1, 4), (40, 170), (1.2, 3.5), (0.06, 0.22), (0.35, 0.65)),
}


@dataclass(frozen=True, slots=True)
class Casting:
    """What frame number `index` shows: its video, its place in it and its two scenarios."""

    video: int
    moment: int
    scene: str
    smoke: str


def cast_frame(index: int, seed: int, only: Sequence[str] = ()) -> Casting:
    """Say which scenarios a frame plays, such that every run of frames has the paper's shares.

    The scene belongs to the video, the smoke to the frame. `only` names the scenarios wanted;
    if it names none of a group, the whole group plays.
    """
    check_scenarios(only)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    starts = rng.integers(0, sum(SCENE_COUNTS.values()), 2)
    video, moment = divmod(index, FRAMES_PER_VIDEO)
    scenes = _round_robin(_kept(SCENE_COUNTS, only))
    smokes = _round_robin(_kept(SMOKE_COUNTS, only))
    return Casting(
        video,
        moment,
        scenes[(video + int(starts[0])) % len(scenes)],
        smokes[(index + int(starts[1])) % len(smokes)],
    )


def check_scenarios(names: Sequence[str]) -> None:
    """Refuse a scenario the paper does not have."""
    known = (*SCENE_SCENARIOS, *SMOKE_SCENARIOS)
    for name in names:
        if name not in known:
            raise UsageError(f"scenario {name!r} is not known; there are {', '.join(known)}.")


def _kept(counts: Mapping[str, int], only: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the scenarios of a group that are wanted, with their counts."""
    return tuple((name, n) for name, n in counts.items() if name in only) or tuple(counts.items())


@cache
def _round_robin(counts: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Return each name as often as it counts, in an order whose every stretch has its shares.

    At each place stands the name that is furthest behind its share so far.
    """
    total = sum(count for _, count in counts)
    given = dict.fromkeys((name for name, _ in counts), 0)
    order = []
    for place in range(1, total + 1):
        name = max(counts, key=lambda pair: pair[1] * place / total - given[pair[0]])[0]
        given[name] += 1
        order.append(name)
    return tuple(order)
