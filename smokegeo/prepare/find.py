"""Find the samples of a folder: which files are images, which are masks, which belong together."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smokegeo.datasets.layout import clean_id
from smokegeo.prepare import forms
from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.load import Sample
from smokegeo.prepare.names import (
    DATA_SUFFIXES,
    PICTURE_SUFFIXES,
    TIFF_SUFFIXES,
    BandName,
    Name,
    Role,
    band_name,
    frame_number,
    frame_stem,
    natural,
    read_name,
    scene_of,
)
from smokegeo.prepare.native import Native
from smokegeo.prepare.rasters import envi_data

log = logging.getLogger(__name__)

Key = tuple[str, ...]
_Mask = tuple[int, Path]  # annotator, or 0 for a mask of nobody in particular


@dataclass(frozen=True)
class FileSource:
    """A sample in files: one cube, an RGB and thermal pair, or one file per band."""

    image: Path
    thermal: Path | None = None
    band_files: Mapping[Path, BandName | None] = field(default_factory=dict)
    masks: tuple[Path, ...] = ()

    def read_image(self) -> Native:
        """Return the image, its parts put together."""
        if self.thermal is not None:
            return forms.read_pair(self.image, self.thermal)
        if self.band_files:
            return forms.read_band_files(self.band_files)
        return forms.read_image(self.image)

    def read_masks(self) -> list[Native]:
        """Return the masks, or the one inside the image's own file."""
        if self.masks:
            return [forms.read_mask(path) for path in self.masks]
        inner = forms.read_inner_mask(self.image)
        return [] if inner is None else [inner]


@dataclass(frozen=True)
class Found:
    """The samples of a folder in natural order, and those that fail before any file is read."""

    samples: tuple[Sample, ...]
    faults: Mapping[str, SampleFault]


@dataclass
class _Frame:
    """The files gathered so far for one frame."""

    key: Key
    split: str | None = None
    files: dict[Role, list[Path]] = field(default_factory=dict)
    band_files: dict[Path, BandName | None] = field(default_factory=dict)


def find_samples(root: Path, files: Sequence[Path], kind: str) -> Found:
    """Sort files (below `root`) into samples by what their names say."""
    pairs = kind == "mss"
    images: dict[Key, _Frame] = {}
    masks: dict[Key, list[_Mask]] = {}
    for path in _data_files(files):
        name = read_name(path.relative_to(root), pairs=pairs)
        if name.role is Role.MASK:
            masks.setdefault(_index(name.key, name.split), []).append((name.annotator, path))
        else:
            _add_image(images, path, name, by_band=not pairs)
    if not pairs:
        images = _gather_folders(images, masks)
    shared = _shared_folders([*images, *masks])
    owners = _match_masks(list(images), list(masks), shared)
    samples, faults = _to_samples(
        [
            (frame.key[shared:], frame, masks.get(owners.get(i, ()), []))
            for i, frame in images.items()
        ]
    )
    for key in sorted(masks.keys() - set(owners.values())):
        stray = clean_id("-".join(key[1 + shared :]))
        faults.setdefault(stray, SampleFault("no image", masks[key][0][1].name))
    return Found(tuple(samples), faults)


def _data_files(files: Iterable[Path]) -> list[Path]:
    """Return one path per cube: of ENVI pairs only the header, and nothing that is no data."""
    described = {envi_data(path) for path in files if path.suffix.lower() == ".hdr"}
    # Without a header .dat and suffixless files may be anything; the others can only be cubes.
    wanted = DATA_SUFFIXES - {"", ".dat"}
    return sorted(
        (path for path in files if path.suffix.lower() in wanted and path not in described),
        key=lambda path: natural(path.as_posix()),
    )


def _add_image(images: dict[Key, _Frame], path: Path, name: Name, *, by_band: bool) -> None:
    band = None
    if by_band and path.suffix.lower() in PICTURE_SUFFIXES | TIFF_SUFFIXES:
        band = band_name(frame_stem(path.name))
    if band is None:
        frame = images.setdefault(_index(name.key, name.split), _Frame(name.key, name.split))
        frame.files.setdefault(name.role, []).append(path)
        return
    key = (*name.key[:-1], band.stem) if band.stem else name.key[:-1]
    frame = images.setdefault(_index(key, name.split), _Frame(key, name.split))
    frame.band_files[path] = band


def _gather_folders(images: dict[Key, _Frame], masks: Mapping[Key, object]) -> dict[Key, _Frame]:
    """Make one frame of a folder of numbered pictures whose mask bears the folder's name."""
    folders: dict[Key, list[Key]] = {}
    for key, frame in images.items():
        if key[:-1] in masks and key not in masks and not frame.band_files:
            folders.setdefault(key[:-1], []).append(key)
    for folder, keys in folders.items():
        if folder not in images and len(keys) > 1:
            members = [images.pop(key) for key in keys]
            paths = [path for member in members for path in member.files.get(Role.IMAGE, [])]
            gathered = _Frame(members[0].key[:-1], members[0].split)
            gathered.band_files.update(dict.fromkeys(paths))
            images[folder] = gathered
    return images


def _shared_folders(keys: Sequence[Key]) -> int:
    """Count the leading folders that all files share: they name the dataset, not a scene."""
    shared = 0
    while (
        keys
        and all(len(key) > shared + 2 for key in keys)
        and len({key[1 + shared] for key in keys}) == 1
    ):
        shared += 1
    return shared


def _match_masks(images: Sequence[Key], masks: Sequence[Key], shared: int) -> dict[Key, Key]:
    """Return image -> mask: by all names, else by joined names, stem or frame number.

    A looser label counts only if it is unique on both sides, and if one side is not sorted into
    folders at all: frame 2 of one scene never gets the mask of another scene's frame 2.
    """
    owners = {key: key for key in set(images) & set(masks)}
    for label in (_joined_label, _stem_label, _number_label):
        taken = set(owners.values())
        free_masks = _only_one(label, [key for key in masks if key not in taken])
        free_images = _only_one(label, [key for key in images if key not in owners])
        for name in free_images.keys() & free_masks.keys():
            image, mask = free_images[name], free_masks[name]
            flat = min(len(image), len(mask)) <= 2 + shared
            if flat and not (image[0] and mask[0] and image[0] != mask[0]):
                owners[image] = mask
    return owners


def _joined_label(key: Key) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(key[1:]))


def _stem_label(key: Key) -> str:
    return key[-1] if len(key) > 1 else ""


def _number_label(key: Key) -> str:
    number = frame_number(key[-1])
    return "" if number is None else str(number)


def _only_one(label: Callable[[Key], str], keys: Sequence[Key]) -> dict[str, Key]:
    """Return label -> key for the labels that only one key has."""
    counts = Counter(label(key) for key in keys)
    return {label(key): key for key in keys if label(key) and counts[label(key)] == 1}


def _to_samples(
    found: Sequence[tuple[Key, _Frame, Sequence[_Mask]]],
) -> tuple[list[Sample], dict[str, SampleFault]]:
    """Give every frame its id; frames that share one are all at fault."""
    plain = Counter(clean_id("-".join(key)) for key, _, _ in found)
    named = []
    for key, frame, masks in found:
        name = clean_id("-".join(key))
        # train/0001 and test/0001 are two frames; their split tells them apart.
        own_id = name if plain[name] == 1 or not frame.split else f"{frame.split}-{name}"
        named.append((own_id, key, frame, masks))
    counts = Counter(own_id for own_id, *_ in named)
    samples: list[Sample] = []
    faults: dict[str, SampleFault] = {}
    for own_id, key, frame, masks in named:
        try:
            if counts[own_id] > 1:
                raise SampleFault("duplicate id", f"{counts[own_id]} files")
            source = _to_source(frame, _one_per_annotator(masks))
            samples.append(Sample(own_id, key, source, _scene(key), frame.split))
        except SampleFault as fault:
            faults[own_id] = fault
    samples.sort(key=lambda sample: natural(sample.id))
    return samples, faults


def _one_per_annotator(masks: Sequence[_Mask]) -> tuple[Path, ...]:
    """Return the annotators' masks in order; without annotators the one mask."""
    numbered = sorted(mask for mask in masks if mask[0]) or sorted(masks)
    if len({annotator for annotator, _ in numbered}) < len(numbered):
        raise SampleFault("duplicate mask", ", ".join(path.name for _, path in numbered))
    if len(numbered) < len(masks):
        log.info("%s is merged anew from its annotators' masks.", numbered[0][1].stem)
    return tuple(path for _, path in numbered)


def _to_source(frame: _Frame, masks: tuple[Path, ...]) -> FileSource:
    rgb, thermal = frame.files.get(Role.RGB, []), frame.files.get(Role.THERMAL, [])
    cubes = _without_previews(frame.files.get(Role.IMAGE, []), bool(frame.band_files))
    if thermal and not rgb:
        rgb, cubes = cubes, []
    if max(len(rgb), len(thermal)) > 1 or len(cubes) + bool(frame.band_files) + bool(rgb) > 1:
        names = sorted(path.name for path in (*rgb, *thermal, *cubes))
        raise SampleFault("duplicate id", ", ".join(names))
    if frame.band_files:
        ordered = dict(sorted(frame.band_files.items(), key=_band_order))
        return FileSource(next(iter(ordered)), band_files=ordered, masks=masks)
    if cubes:
        return FileSource(cubes[0], masks=masks)
    if not thermal:
        raise SampleFault("no thermal frame", rgb[0].name)
    if not rgb:
        raise SampleFault("no RGB frame", thermal[0].name)
    return FileSource(rgb[0], thermal[0], masks=masks)


def _without_previews(paths: Sequence[Path], has_bands: bool) -> list[Path]:
    """Drop pictures in another folder than the cube they show."""
    cubes = [path for path in paths if path.suffix.lower() not in PICTURE_SUFFIXES]
    homes = {path.parent for path in cubes}
    if not cubes and not has_bands:
        return list(paths)
    kept = [p for p in paths if p in cubes or p.parent in homes]
    for path in set(paths) - set(kept):
        log.debug("%s is taken for a preview", path)
    return kept


def _band_order(item: tuple[Path, BandName | None]) -> tuple[float, object]:
    path, band = item
    by_name = natural(path.name)
    if band is None:
        return 0.0, by_name
    return band.wavelength_nm or float(band.number), by_name


def _scene(key: Key) -> str:
    scene = scene_of(key)
    return clean_id(scene) if scene else ""


def _index(key: Key, split: str | None) -> Key:
    """Return what files of one frame share: split first, then folders and stem in one case."""
    return (split or "", *(part.casefold() for part in key))
