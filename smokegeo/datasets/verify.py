"""Find every fault of a prepared dataset at once, before anything is trained on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
from rasterio.errors import RasterioError

from smokegeo.datasets.layout import IGNORE, Layout, read_checksums
from smokegeo.errors import InputError, deepest_cause
from smokegeo.files import sha256
from smokegeo.progress import track


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one sample; faults of one `kind` are listed together."""

    sample: str
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.sample} ({self.detail})" if self.detail else self.sample


def require_sound(layout: Layout, ids: Sequence[str] | None = None, *, deep: bool = False) -> None:
    """Refuse a dataset with faulty samples, naming all of them in one line."""
    faults = find_faults(layout, ids, deep=deep)
    if faults:
        total = len(layout.frames) if ids is None else len(ids)
        raise InputError(f"{layout.root}: {describe_faults(faults, total)}")


def find_faults(
    layout: Layout, ids: Sequence[str] | None = None, *, deep: bool = False
) -> list[Fault]:
    """Check the samples' headers; with `deep` every pixel and checksum as well."""
    chosen = [record.id for record in layout.frames] if ids is None else list(ids)
    faults: list[Fault] = []
    for frame_id in track(chosen, "checking", len(chosen)) if deep else chosen:
        faults.extend(_frame_faults(layout, frame_id, deep))
    if deep and ids is None:
        faults.extend(_checksum_faults(layout.root))
        faults.extend(_stray_faults(layout))
    return faults


def describe_faults(faults: Sequence[Fault], total: int) -> str:
    """Say in one line which samples are unusable and why, grouped by kind."""
    kinds: dict[str, list[str]] = {}
    for fault in faults:
        kinds.setdefault(fault.kind, []).append(str(fault))
    bad = len({fault.sample for fault in faults})
    listed = "; ".join(f"{kind}: {', '.join(samples)}" for kind, samples in kinds.items())
    return f"{bad} of {total} samples unusable: {listed}. Mend or remove them."


def _frame_faults(layout: Layout, frame_id: str, deep: bool) -> Iterator[Fault]:
    image, mask = layout.image(frame_id), layout.mask(frame_id)
    if not image.is_file():
        yield Fault(frame_id, "no image")
        return
    if not mask.is_file():
        yield Fault(frame_id, "no mask")
        return
    try:
        with (
            rasterio.open(image, driver="GTiff") as src,
            rasterio.open(mask, driver="GTiff") as lab,
        ):
            if src.count != len(layout.bands):
                detail = f"{src.count} instead of {len(layout.bands)}"
                yield Fault(frame_id, "wrong band count", detail)
            if src.crs is None:
                yield Fault(frame_id, "no coordinate system")
            if src.shape != lab.shape or src.transform != lab.transform:
                detail = f"{src.width}x{src.height}, mask {lab.width}x{lab.height}"
                yield Fault(frame_id, "mask size or place differs", detail)
            if deep:
                yield from _pixel_faults(frame_id, src, lab)
    except RasterioError as error:
        yield Fault(frame_id, "unreadable", deepest_cause(error))


def _pixel_faults(
    frame_id: str, src: rasterio.DatasetReader, lab: rasterio.DatasetReader
) -> Iterator[Fault]:
    values = np.unique(lab.read(1))
    if not set(values.tolist()) <= {0, 1, IGNORE}:
        yield Fault(frame_id, "mask values", ", ".join(f"{v:g}" for v in values[:6]))
    for index in src.indexes:
        band = src.read(index)
        if src.nodata is not None and not np.isnan(src.nodata):
            band = band[band != src.nodata]
        if np.issubdtype(band.dtype, np.floating) and not np.isfinite(band).all():
            share = 100 * float((~np.isfinite(band)).mean())
            yield Fault(frame_id, "NaN or infinite", f"band {index}, {share:.2g} %")
            return


def _checksum_faults(root: Path) -> Iterator[Fault]:
    wanted = read_checksums(root)
    for name, digest in track(wanted.items(), "checksums", len(wanted)):
        path = root / name
        if not path.is_file():
            yield Fault(name, "missing file")
        elif sha256(path) != digest:
            yield Fault(name, "checksum differs")


def _stray_faults(layout: Layout) -> Iterator[Fault]:
    known = {record.id for record in layout.frames}
    for path in sorted((layout.root / "images").glob("*.tif")):
        if path.stem not in known:
            yield Fault(path.stem, "not in frames.csv")
