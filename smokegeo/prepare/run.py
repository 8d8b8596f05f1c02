"""Prepare a dataset: the whole flow on one page."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smokegeo.bandnames import parse_band_name
from smokegeo.bands import Band, BandSet
from smokegeo.datasets.layout import FrameRecord, finish_layout, grid_pitch, write_frame
from smokegeo.errors import InputError, UsageError
from smokegeo.files import atomic_folder, check_replaceable, need_space
from smokegeo.prepare.archive import unpacked
from smokegeo.prepare.check import Checked, check_samples, check_together
from smokegeo.prepare.divide import deal_splits, shipped_splits, split_facts
from smokegeo.prepare.download import download
from smokegeo.prepare.faults import SampleFault, describe
from smokegeo.prepare.find import Found, find_samples
from smokegeo.prepare.lists import Lookup, read_scenarios
from smokegeo.prepare.load import Expected, Sample, load_frame
from smokegeo.prepare.sums import verify_sums
from smokegeo.prepare.tables import find_rows
from smokegeo.prepare.walk import archives_in, files_below, only_folder, say_what_is_ignored
from smokegeo.progress import track
from smokegeo.sensors import read_sensor_file, sensor

log = logging.getLogger(__name__)

KINDS = ("hss", "mss")
_CAMERA = "ximea_sm5x5_nir"


@dataclass(frozen=True)
class Options:
    """What the user may choose; the defaults are the paper's where the paper says."""

    bands: str | None = None
    mosaic: Path | None = None
    every: int = 1
    seed: int = 0
    split_by: str = "frame"
    skip_faulty: bool = False
    overwrite: bool = False
    download: bool = False


@dataclass(frozen=True)
class Prepared:
    """A finished dataset: where it lies, its bands, and what was found on the way."""

    root: Path
    kind: str
    bands: BandSet
    facts: Mapping[str, Any]


def prepare(kind: str, src: Path, dst: Path, options: Options | None = None) -> Prepared:
    """Turn the native frames in `src` (a folder or an archive) into a dataset at `dst`.

    All samples are read twice, one at a time: first to find every fault before anything is
    written and to learn the frames' sizes, then to write them.
    """
    options = options or Options()
    expected = _expected(kind, options)
    _check_folders(src, dst, options.overwrite)
    hint = _hint(kind, src, dst)
    facts: dict[str, Any] = {"source": src.name}
    if options.download:
        fetched = download(src, hint)
        facts |= {"revision": fetched.revision, "hub_verified_files": fetched.verified_files}
    if not src.exists():
        raise InputError(f"{src} does not exist. {hint}")
    with ExitStack() as cleanup:
        sums = verify_sums(src) if src.is_dir() else verify_sums(src.parent, only=src)
        root = src
        if archives := archives_in(src, kind):
            root = cleanup.enter_context(unpacked(archives, dst))
        inner = only_folder(root)
        sums += 0 if inner == src else verify_sums(inner)
        files = files_below(inner, kind)
        say_what_is_ignored(files)
        found = _find(root, files, kind)
        if not found.samples and not found.faults:
            raise InputError(f"{src} holds no {kind} data that smokegeo knows. {hint}")
        lookup = Lookup.of(found.samples, kind, found.faults)
        tags = read_scenarios(files, lookup)
        samples = [
            replace(sample, scenarios=tags.get(sample.id, sample.scenarios))
            for sample in _every(found.samples, options.every)
        ]
        checked, faults = check_samples(samples, expected)
        left_out = _settle_faults({**found.faults, **faults}, len(checked), options.skip_faulty)
        bands = check_together(checked)
        kept = [item.sample for item in checked]
        splits = shipped_splits(files, found.samples, kept, lookup)
        if splits is None:
            splits = deal_splits(kind, kept, options.seed, by_scene=options.split_by == "scene")
        facts |= _facts(checked, bands) | split_facts(splits, kept)
        facts |= {"verified_files": sums, "every": options.every, "left_out": left_out}
        done = Prepared(dst, kind, bands, facts)
        _write(done, checked, expected, splits.ids, options.overwrite)
    return done


def _expected(kind: str, options: Options) -> Expected:
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a kind of dataset; there are {', '.join(KINDS)}.")
    if options.every < 1:
        raise UsageError(f"--every {options.every}: the step must be 1 or more.")
    camera = sensor(_CAMERA) if options.mosaic is None else read_sensor_file(options.mosaic)
    if camera.mosaic is None:
        raise UsageError(f"{options.mosaic} has no [mosaic] table; compare smokegeo/presets.")
    bands = None if options.bands is None else _parse_bands(options.bands)
    return Expected(kind, bands, camera)


def _parse_bands(text: str) -> BandSet:
    """Read `600,616` (wavelengths in nm), `600nm,616nm` or `red,green,blue,thermal`."""
    bands = []
    for word in (item.strip() for item in text.split(",") if item.strip()):
        spelled = f"{word}nm" if word.replace(".", "", 1).isdecimal() else word
        bands.append(parse_band_name(spelled) or Band(word))
    if not bands:
        raise UsageError("--bands is empty; name each band, such as 600,616,632.")
    return BandSet(tuple(bands))


def _check_folders(src: Path, dst: Path, overwrite: bool) -> None:
    """Refuse a destination that is in the way, or that would swallow its own source."""
    source, target = src.resolve(), dst.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise UsageError(f"{dst} and {src} lie in each other. Choose another folder to write to.")
    if dst.is_file():
        raise UsageError(f"{dst} is a file, not a folder.")
    if dst.is_dir() and any(dst.iterdir()):
        if not overwrite:
            raise UsageError(f"{dst} exists already. Choose another folder or pass --overwrite.")
        check_replaceable(dst, ("dataset.json",))
    if (src / "dataset.json").is_file() and (src / "frames.csv").is_file():
        raise InputError(f"{src} is prepared already. Look at it with `smokegeo check {src}`.")


def _hint(kind: str, src: Path, dst: Path) -> str:
    return (
        f"Put the data there by hand (a folder or .zip), fetch it with `smokegeo prepare {kind} "
        f"{src} {dst} --download`, or simulate some: `smokegeo simulate {kind} --out {dst}`."
    )


def _find(root: Path, files: Sequence[Path], kind: str) -> Found:
    tables = [path for path in files if path.suffix.lower() == ".parquet"]
    if not tables:
        return find_samples(root, files, kind)
    if find_samples(root, files, kind).samples:
        log.warning("Only the parquet tables are read; other images beside them are ignored.")
    return find_rows(tables, kind)


def _every(samples: Sequence[Sample], step: int) -> Iterator[Sample]:
    """Yield every step-th frame of each scene."""
    seen: dict[str, int] = {}
    for sample in samples:
        position = seen.get(sample.scene, 0)
        seen[sample.scene] = position + 1
        if position % step == 0:
            yield sample


def _settle_faults(
    faults: Mapping[str, SampleFault], usable: int, skip_faulty: bool
) -> dict[str, str]:
    """Refuse faulty samples, all named; with `skip_faulty` say loudly what is left out."""
    if not faults:
        return {}
    line = describe(faults, usable + len(faults))
    if not skip_faulty or usable == 0:
        raise InputError(f"{line}. Mend or remove them.")
    log.warning("%s. Left out, as --skip-faulty says.", line)
    return {name: str(fault) for name, fault in faults.items()}


def _facts(checked: Sequence[Checked], bands: BandSet) -> dict[str, Any]:
    annotators = sorted({item.annotators for item in checked})
    values = sorted({item.mask_values for item in checked})
    return {
        "forms": sorted({item.form for item in checked}),
        "samples": len(checked),
        "band_count": len(bands),
        "sizes": sorted({f"{item.width}x{item.height}" for item in checked}),
        "dtypes": sorted({item.dtype for item in checked}),
        "mask_values": [list(each) for each in values],
        "annotators": annotators,
        "scenes": len({item.sample.scene for item in checked if item.sample.scene}),
        "georeferenced": checked[0].place is not None,
    }


def _write(
    done: Prepared,
    checked: Sequence[Checked],
    expected: Expected,
    splits: Mapping[str, Sequence[str]],
    overwrite: bool,
) -> None:
    need_space(Path(os.path.abspath(done.root)), sum(item.size_bytes for item in checked))
    pitch = grid_pitch(max(item.width, item.height) for item in checked)
    with atomic_folder(done.root, overwrite=overwrite) as part:
        records: list[FrameRecord] = []
        for position, item in enumerate(track(checked, "writing", len(checked))):
            try:
                loaded = load_frame(item.sample, expected)
            except SampleFault as fault:
                raise InputError(f"{item.sample.id} changed while it was read: {fault}.") from fault
            records.append(write_frame(part, loaded.frame, position, pitch))
        finish_layout(part, done.kind, done.bands, records, splits, done.facts)
