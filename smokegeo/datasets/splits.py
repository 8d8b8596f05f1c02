"""Split frames into train, val and test: seeded, disjoint, by whole scenes if asked."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise

from smokegeo.datasets.layout import SPLITS
from smokegeo.errors import InputError, UsageError

log = logging.getLogger(__name__)

#: The paper's shares of train, val and test.
RATIOS: Mapping[str, tuple[float, float, float]] = {"hss": (6, 2, 2), "mss": (8, 1, 1)}
DEFAULT_RATIO = (6.0, 2.0, 2.0)


def make_splits(
    ids: Sequence[str],
    ratios: Sequence[float] = DEFAULT_RATIO,
    seed: int = 0,
    scenes: Mapping[str, str] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Deal the ids into splits in the given ratios, the same way for the same seed.

    Of three frames or more each split with a share gets at least one. With `scenes` (id ->
    scene), all frames of a scene land in one split: each scene in turn, largest first, goes to the
    split that is furthest below its share.
    """
    if len(ratios) != len(SPLITS) or not min(ratios) >= 0 or not 0 < sum(ratios) < float("inf"):
        raise UsageError(f"split ratios {tuple(ratios)} are not three shares such as 6, 2, 2.")
    order = sorted(ids)
    if len(set(order)) != len(order):
        raise InputError("frame ids are not unique, so they cannot be split. Rename some.")
    random.Random(seed).shuffle(order)
    if scenes is None:
        return _deal_frames(order, ratios)
    return _deal_scenes(order, ratios, scenes)


def check_splits(splits: Mapping[str, Sequence[str]], ids: Sequence[str]) -> None:
    """Refuse shipped split lists that overlap or name frames that do not exist."""
    known = set(ids)
    owner: dict[str, str] = {}
    for split, members in splits.items():
        unknown = [i for i in members if i not in known]
        if unknown:
            raise InputError(
                f"splits/{split}.txt names unknown frames: {', '.join(unknown)}. Take them out."
            )
        for i in members:
            if i in owner:
                where = (
                    f"twice in the split {split}"
                    if owner[i] == split
                    else f"in both splits {owner[i]} and {split}"
                )
                raise InputError(f"frame {i} is {where}. List it once.")
            owner[i] = split


def warn_of_empty(splits: Mapping[str, Sequence[str]]) -> None:
    """Say which splits hold no frame, before somebody needs them."""
    empty = [name for name in SPLITS if not splits.get(name)]
    if empty:
        log.warning(
            "no frame is in %s; training needs train and val, evaluate takes test unless told.",
            " and ".join(empty),
        )


def _deal_frames(order: Sequence[str], ratios: Sequence[float]) -> dict[str, tuple[str, ...]]:
    bounds = [round(len(order) * sum(ratios[:k]) / sum(ratios)) for k in range(len(ratios) + 1)]
    sizes = [stop - start for start, stop in pairwise(bounds)]
    if len(order) >= len(SPLITS):
        for k, ratio in enumerate(ratios):
            if ratio > 0 and sizes[k] == 0:
                sizes[sizes.index(max(sizes))] -= 1
                sizes[k] = 1
    rest = iter(order)
    return {
        split: tuple(sorted(islice(rest, size))) for split, size in zip(SPLITS, sizes, strict=True)
    }


def _deal_scenes(
    order: Sequence[str], ratios: Sequence[float], scenes: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    nowhere = [i for i in order if i not in scenes]
    if nowhere:
        raise InputError(
            f"frames without a scene cannot be split by it: {', '.join(nowhere)}. Split by frame "
            "instead."
        )
    groups: dict[str, list[str]] = {}
    for i in order:
        groups.setdefault(scenes[i], []).append(i)
    used = [k for k, ratio in enumerate(ratios) if ratio > 0]
    if len(groups) < len(used):
        raise InputError(
            f"{len(groups)} scenes cannot be dealt into {len(used)} splits. Split by frame instead."
        )
    target = [len(order) * ratio / sum(ratios) for ratio in ratios]
    dealt: list[list[str]] = [[] for _ in ratios]
    # Largest first keeps the shares near their targets; the shuffle breaks ties by seed.
    for rank, members in enumerate(sorted(groups.values(), key=len, reverse=True)):
        empty = [k for k in used if not dealt[k]]
        # The last scenes are owed to the splits that are still empty.
        pool = empty if len(groups) - rank <= len(empty) else used
        best = max(pool, key=lambda k: (target[k] - len(dealt[k])) / target[k])
        dealt[best].extend(members)
    return {split: tuple(sorted(members)) for split, members in zip(SPLITS, dealt, strict=True)}
