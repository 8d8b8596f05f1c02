"""Per-band mean, spread and range of a train split: computed once, kept with the dataset."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import rasterio

from smokegeo.bands import BandSet
from smokegeo.datasets.layout import IGNORE, Layout
from smokegeo.errors import InputError, OutputError
from smokegeo.files import atomic_file
from smokegeo.progress import track

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BandStatistics:
    """Statistics of each band over the valid pixels of a split, in the files' own units."""

    names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    minimum: tuple[float, ...]
    maximum: tuple[float, ...]
    pixels: int

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready form; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BandStatistics:
        """Build statistics from what `to_dict` wrote."""
        numbers = {k: tuple(map(float, data[k])) for k in ("mean", "std", "minimum", "maximum")}
        return cls(names=tuple(map(str, data["names"])), pixels=int(data["pixels"]), **numbers)


def band_statistics(layout: Layout, ids: Sequence[str], bands: BandSet) -> BandStatistics:
    """Return the statistics of the given frames, from the cache beside the data if it is there.

    The cache is keyed by the frames, the bands and the checksums of the dataset, or the sizes and
    times of its images if it has none. An image changed under its old checksum keeps the old
    numbers; `smokegeo check` finds it.
    """
    path = layout.root / "statistics" / f"{_key(layout, ids, bands)}.json"
    if path.is_file():
        try:
            return BandStatistics.from_dict(json.loads(path.read_text("utf-8")))
        except (KeyError, TypeError, ValueError):
            log.warning("%s is damaged; computing the statistics again", path)
    result = compute_statistics(layout, ids, bands)
    try:
        path.parent.mkdir(exist_ok=True)
        with atomic_file(path) as part:
            part.write_text(json.dumps(result.to_dict(), indent=2) + "\n", "utf-8")
    except (OSError, OutputError):  # a read-only dataset: correct, only slower next time
        log.info("%s is read-only; band statistics are not kept", layout.root)
    return result


def compute_statistics(layout: Layout, ids: Sequence[str], bands: BandSet) -> BandStatistics:
    """Read the frames one by one and return the statistics of the chosen bands."""
    indexes = [layout.bands.index(name) + 1 for name in bands.names]
    count = 0
    mean = np.zeros(len(indexes))
    spread = np.zeros(len(indexes))  # sum of squared distances from the mean
    low = np.full(len(indexes), np.inf)
    high = np.full(len(indexes), -np.inf)
    for frame_id in track(ids, "band statistics", len(ids)):
        values = _valid_pixels(layout, frame_id, indexes)
        n = values.shape[1]
        if n == 0:
            continue
        # Chan's update: one pass, no loss of precision for large offsets.
        batch_mean = values.mean(axis=1)
        shift = batch_mean - mean
        spread += ((values - batch_mean[:, None]) ** 2).sum(axis=1)
        spread += shift**2 * count * n / (count + n)
        mean += shift * n / (count + n)
        count += n
        low, high = np.minimum(low, values.min(axis=1)), np.maximum(high, values.max(axis=1))
    if count == 0:
        raise InputError(
            f"{layout.root}: the train split holds no valid pixel, so bands cannot be normalised. "
            "Add frames with data to it."
        )
    std = np.sqrt(spread / count)
    return BandStatistics(
        bands.names, _floats(mean), _floats(std), _floats(low), _floats(high), count
    )


def _valid_pixels(
    layout: Layout, frame_id: str, indexes: list[int]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return (bands, pixels) of the pixels that are valid and finite in all chosen bands.

    A pixel that is ignored and 0 in every band is how `prepare` writes one without data.
    """
    with rasterio.open(layout.mask(frame_id), driver="GTiff") as src:
        ignored = src.read(1) == IGNORE
    with rasterio.open(layout.image(frame_id), driver="GTiff") as src:
        values = src.read(indexes).astype(np.float64)
        valid = (src.read_masks(indexes) != 0).all(axis=0)
        if ignored.any():
            valid &= ~ignored | src.read().any(axis=0)
    valid &= np.isfinite(values).all(axis=0)
    return np.asarray(values[:, valid])


def _floats(values: np.ndarray[Any, Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _key(layout: Layout, ids: Sequence[str], bands: BandSet) -> str:
    text = json.dumps([sorted(ids), bands.names, _data_mark(layout, ids)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _data_mark(layout: Layout, ids: Sequence[str]) -> Any:
    sums = layout.root / "checksums.sha256"
    if sums.is_file():
        return sums.read_text("utf-8", errors="replace")
    facts = [layout.image(frame_id).stat() for frame_id in sorted(ids)]
    return [(fact.st_size, fact.st_mtime_ns) for fact in facts]
