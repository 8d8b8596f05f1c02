"""Divide frames into train, val and test: as shipped, else dealt anew."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smokegeo.datasets.layout import SPLITS
from smokegeo.datasets.splits import RATIOS, check_splits, make_splits, warn_of_empty
from smokegeo.errors import InputError
from smokegeo.prepare.faults import named
from smokegeo.prepare.lists import Lookup, read_text
from smokegeo.prepare.load import Sample
from smokegeo.prepare.names import SPLIT_NAMES

log = logging.getLogger(__name__)

#: Folders that hold split lists, best known first.
_LIST_FOLDERS = ("segmentation", "splits", "split", "imagesets", "main")
_LIST_NAMES = {**SPLIT_NAMES, "trainval": "trainval"}


@dataclass(frozen=True)
class Splits:
    """Split name -> frame ids, and where the division comes from."""

    ids: Mapping[str, tuple[str, ...]]
    origin: str


def shipped_splits(
    files: Iterable[Path], found: Sequence[Sample], kept: Sequence[Sample], lookup: Lookup
) -> Splits | None:
    """Return the division that came with the data, of the `kept` frames; None if none came."""
    listed = read_split_lists(files, lookup)
    shipped = listed or folder_splits(found)
    if not shipped:
        return None
    check_splits(shipped, [i for ids in shipped.values() for i in ids])
    wanted = {sample.id for sample in kept}
    splits = {name: tuple(i for i in ids if i in wanted) for name, ids in shipped.items()}
    free = len(wanted) - sum(len(ids) for ids in splits.values())
    if free:
        log.warning("%d frames are in no split that was shipped.", free)
    return Splits(splits, "lists of the data" if listed else "folders or shards of the data")


def deal_splits(kind: str, kept: Sequence[Sample], seed: int, *, by_scene: bool) -> Splits:
    """Deal the frames, or whole scenes, in the paper's ratios."""
    scenes = {sample.id: sample.scene for sample in kept}
    ids = make_splits(list(scenes), RATIOS[kind], seed, scenes if by_scene else None)
    shares = ":".join(f"{ratio:g}" for ratio in RATIOS[kind])
    return Splits(ids, f"dealt {shares} by {'scene' if by_scene else 'frame'}, seed {seed}")


def split_facts(splits: Splits, kept: Sequence[Sample]) -> dict[str, Any]:
    """Return what to remember of a division; say so if scenes straddle it or a split is empty."""
    warn_of_empty(splits.ids)
    scenes = {sample.id: sample.scene for sample in kept}
    homes: dict[str, set[str]] = {}
    for name, ids in splits.ids.items():
        for i in ids:
            homes.setdefault(scenes[i], set()).add(name)
    straddling = sum(len(names) > 1 for scene, names in homes.items() if scene)
    if straddling:
        log.info(
            "Frames of %d scenes fall into more than one split; dealt with --split-by scene "
            "they would not.",
            straddling,
        )
    return {
        "splits": {name: len(ids) for name, ids in splits.ids.items()},
        "splits_from": splits.origin,
        "straddling_scenes": straddling,
    }


def read_split_lists(files: Iterable[Path], lookup: Lookup) -> dict[str, tuple[str, ...]]:
    """Return split -> ids from the lists a dataset ships; empty if it ships none."""
    listed: dict[str, tuple[str, ...]] = {}
    for name, path in sorted(_list_files(files).items()):
        lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
        found = {line: lookup.find(line, name) for line in lines}
        unknown = [line for line, sample_id in found.items() if sample_id is None]
        if unknown:
            raise InputError(
                f"{path.name} lists frames that are not there: {named(unknown)}. "
                "Mend or remove the list."
            )
        listed[name] = tuple(dict.fromkeys(i for i in found.values() if i is not None))
    both = listed.pop("trainval", ())
    if both and "train" not in listed:
        taken = {*listed.get("val", ()), *listed.get("test", ())}
        listed["train"] = tuple(i for i in both if i not in taken)
    return {split: listed[split] for split in SPLITS if split in listed}


def folder_splits(samples: Sequence[Sample]) -> dict[str, tuple[str, ...]]:
    """Return split -> ids from the folders, shards or columns the samples came from."""
    named = {sample.split for sample in samples} - {None}
    if len(named) < 2:
        return {}  # everything in "train" is how unsplit data is published
    return {
        split: tuple(sample.id for sample in samples if sample.split == split)
        for split in SPLITS
        if split in named
    }


def _list_files(files: Iterable[Path]) -> dict[str, Path]:
    """Return split -> its list; where several folders hold lists, the best known one counts."""
    by_folder: dict[Path, dict[str, Path]] = {}
    for path in files:
        name = _LIST_NAMES.get(path.stem.casefold())
        if path.suffix.lower() == ".txt" and name is not None:
            by_folder.setdefault(path.parent, {})[name] = path
    if not by_folder:
        return {}
    return by_folder[min(by_folder, key=lambda folder: (_list_rank(folder), folder))]


def _list_rank(folder: Path) -> int:
    name = folder.name.casefold()
    return _LIST_FOLDERS.index(name) if name in _LIST_FOLDERS else len(_LIST_FOLDERS)
