"""A look at a scene before the work: samples from all over it, the same ones every time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smokegeo.blockcache import block_cache
from smokegeo.scene.holes import hollow_blocks
from smokegeo.scene.layers import Box
from smokegeo.scene.scene import SENTINELS, Scene

log = logging.getLogger(__name__)

#: Samples along each axis, and their side; small scenes are read whole. Of more bands than that
#: smaller samples are taken, or hundreds of them would not fit into memory.
_SAMPLES = 8
_SIDE_PX = 128
_FEW_BANDS = 32
#: Numbers that files hold in every band where there is nothing, and the share of pixels from which
#: on they are taken for missing data; of zeros, a whole block is enough.
_ZERO, _FULL = 0.0, 65_535.0
_BLANK_SHARE = 0.005
#: Where a picture is overexposed, some pixels are nearly so: brighter than this, and one for so
#: many that hold the highest number in every band. Around missing data there are none.
_NEARLY_FULL, _NEARLY_SHARE = 49_151.0, 0.01
_CACHE_BYTES = 32_000_000
_THREADS = 4


@dataclass(frozen=True)
class Survey:
    """What the samples hold, one number per band looked at; without a valid pixel all are NaN.

    `low` and `high` are percentiles 0.5 and 99.5. `dark` is as `low`, but of the pixels that are
    not 0: sensors that count from far above 0 have a few of them all the same. `whole` says that
    a band has whole numbers only. `full_share` is that of pixels with the highest number of 16
    bits in every band, if nothing else is nearly as bright.
    """

    valid_share: float
    zero_share: float
    full_share: float
    sentinel_share: float
    low: tuple[float, ...]
    high: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    dark: tuple[float, ...]
    whole: tuple[bool, ...]

    @property
    def empty(self) -> bool:
        """True if no sample holds a valid pixel."""
        return self.valid_share == 0


def survey(scene: Scene, bands: Sequence[int]) -> Survey:
    """Sample a scene: shares of unusable pixels, and percentiles 0.5 and 99.5 of each band."""
    boxes = sample_boxes(scene.width, scene.height, len(bands))
    threads = min(_THREADS, len(boxes))
    with block_cache(_CACHE_BYTES), ThreadPoolExecutor(threads) as pool:
        groups = [boxes[first::threads] for first in range(threads)]
        parts = list(pool.map(lambda group: _samples(scene, bands, group), groups))
    samples = [parts[i % threads][i // threads] for i in range(len(boxes))]
    total = sum(box.width * box.height for box in boxes)
    zeros, full, nearly, sentinels = (
        sum(counts)
        for counts in zip(*((s.zeros, s.full, s.nearly, s.sentinels) for s in samples), strict=True)
    )
    shares = (zeros / total, (nearly <= _NEARLY_SHARE * full) * full / total, sentinels / total)
    pixels = np.concatenate([sample.pixels for sample in samples], axis=1)
    if pixels.shape[1] == 0:
        nothing = (float("nan"),) * len(bands)
        return Survey(0.0, *shares, *(nothing,) * 5, (True,) * len(bands))
    # Band by band, without copies of all.
    low, high = np.array([np.percentile(band, (0.5, 99.5)) for band in pixels]).T
    return Survey(
        pixels.shape[1] / total,
        *shares,
        _numbers(low),
        _numbers(high),
        tuple(float(band.mean(dtype=np.float64)) for band in pixels),
        tuple(float(band.std(dtype=np.float64)) for band in pixels),
        tuple(_dark(band) for band in pixels),
        tuple(bool((band == np.rint(band)).all()) for band in pixels),
    )


def _dark(band: NDArray[np.float32]) -> float:
    """Return how dark a band gets where it is not 0; 0 if it is nowhere else."""
    seen = band[band != 0]
    return float(np.percentile(seen, 0.5)) if seen.size else 0.0


@dataclass(frozen=True)
class _Sample:
    """The usable pixels (bands, n) of one box, and how many hold nothing but do not say so."""

    pixels: NDArray[np.float32]
    zeros: int
    full: int
    nearly: int
    sentinels: int


def _samples(scene: Scene, bands: Sequence[int], boxes: Sequence[Box]) -> list[_Sample]:
    """Read some of the boxes; each share has its own reader, so that several decode at a time."""
    samples = []
    with replace(scene, sentinels=(), blanks=()).open() as reader:
        for box in boxes:
            values, valid = reader.read(box, bands)
            flat = values[:, valid]
            zero, full = (
                _is_stored(flat, scene, bands, blank).all(axis=0) for blank in (_ZERO, _FULL)
            )
            odd = np.zeros(zero.shape, bool)
            for sentinel in SENTINELS:
                odd |= _is_stored(flat, scene, bands, sentinel).any(axis=0)
            kept = ~(odd & bool(scene.sentinels))
            kept &= ~(zero & (_ZERO in scene.blanks)) & ~(full & (_FULL in scene.blanks))
            nearly = _nearly_full(flat, scene, bands) & ~full
            counts = (int(found.sum()) for found in (zero, full, nearly, odd))
            samples.append(_Sample(flat[:, kept], *counts))
    return samples


def look_for_blanks(scene: Scene, found: Survey, bands: Sequence[int]) -> tuple[Scene, Survey]:
    """Leave out pixels that hold nothing though the file does not say so, and say it.

    Bands that are all 0, or hold -9999 and the like, would be taken for a very dark place and
    spoil the network's view of everything around; those of 65535 would be so bright that all
    else is taken for a dark picture.
    """
    if not scene.sentinels:  # the user has said what is missing data
        return scene, found
    if found.sentinel_share > 0:
        log.warning(
            "%s: %s of the pixels hold -9999 or a like number, not declared as nodata; they are "
            "left out. Say --nodata VALUE or --nodata none to decide yourself",
            scene.name,
            _percent(found.sentinel_share),
        )
    blanks = []
    for number, share in ((_ZERO, found.zero_share), (_FULL, found.full_share)):
        if share >= _BLANK_SHARE:
            which = f"{_percent(share)} of the pixels"
        elif number == _ZERO and _has_hole(scene.entire, bands):
            which = "whole blocks of pixels"
        else:
            continue
        log.warning(
            "%s: %s are %.0f in every band, not declared as nodata; they are left out. "
            "Say --nodata %.0f if they are missing, --nodata none if they are real",
            scene.name,
            which,
            number,
            number,
        )
        blanks.append(number)
    if not blanks:
        return scene, found
    scene = replace(scene, blanks=tuple(blanks))
    return scene, survey(scene.entire, bands)


def _has_hole(scene: Scene, bands: Sequence[int]) -> bool:
    """Tell whether a whole block is 0 in every band, however small a part of the scene it is."""
    hollow = hollow_blocks(scene, bands[0])
    with block_cache(_CACHE_BYTES), replace(scene, sentinels=(), blanks=()).open() as reader:
        for box in hollow[:: -(-len(hollow) // _SAMPLES**2) or 1]:
            line = Box(box.column, box.row + box.height // 2, box.width, 1)
            values, valid = reader.read(line, bands)
            flat = values[:, valid]
            if flat.size and _is_stored(flat, scene, bands, _ZERO).all():
                return True
    return False


def sample_boxes(width: int, height: int, bands: int = 1) -> list[Box]:
    """Return boxes spread evenly over the scene; the whole of a small one."""
    side = int(_SIDE_PX * min(1.0, _FEW_BANDS / bands) ** 0.5)
    if width * height <= (_SAMPLES * side) ** 2:
        return [Box(0, 0, width, height)]
    rows, columns = _places(height, side), _places(width, side)
    return [Box(x, y, w, h) for y, h in rows for x, w in columns]


def _places(length: int, most: int) -> list[tuple[int, int]]:
    side = min(most, length)
    count = min(_SAMPLES, length // side)
    if count == 1:
        return [((length - side) // 2, side)]
    return [(i * (length - side) // (count - 1), side) for i in range(count)]


def _is_stored(
    flat: NDArray[np.float32], scene: Scene, bands: Sequence[int], number: float
) -> NDArray[np.bool_]:
    """Return where a file holds a number, before scale and offset."""
    read = [scene.as_read(band, number) for band in bands]
    known = np.array([np.nan if value is None else value for value in read], np.float32)
    return np.asarray(flat == known[:, None])


def _nearly_full(
    flat: NDArray[np.float32], scene: Scene, bands: Sequence[int]
) -> NDArray[np.bool_]:
    """Return which pixels are nearly as bright as 16 bits allow, in any band."""
    read = [scene.as_read(band, _NEARLY_FULL) for band in bands]
    limits = np.array([np.nan if value is None else value for value in read], np.float32)
    return np.asarray((flat > limits[:, None]).any(axis=0))


def _numbers(values: NDArray[np.floating]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _percent(share: float) -> str:
    return "below 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
