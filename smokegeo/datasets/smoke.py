"""The TorchGeo dataset behind all kinds: images and masks of one prepared folder."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import torch
from torch import Tensor
from torchgeo.datasets import RasterDataset

from smokegeo.bands import BandSet, parse_band_list
from smokegeo.datasets.layout import IGNORE, SPLITS, FrameRecord, Layout, load_layout
from smokegeo.datasets.splits import DEFAULT_RATIO, RATIOS, check_splits, make_splits
from smokegeo.datasets.verify import require_sound
from smokegeo.errors import InputError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

Sample = dict[str, Any]


class _Masks(RasterDataset):
    is_image = False
    filename_glob = "*.tif"


class SmokeDataset(RasterDataset):
    """Spectral images with smoke masks, from a folder in the prepared layout.

    A sample holds `image` (bands, H, W) float32 in the files' own units, `mask` (H, W) long with
    0, 1 and 255 for ignored, and `frame` (1,) long, the position of its record in `records`. It is
    of one frame, the one whose place is most like the query's, also where frames touch or overlap:
    pixels of one frame and labels of another would not belong together. Frames at the very same
    place, a series in time, are told apart by the intervals of the index.
    """

    #: The kind of dataset a subclass reads, as in `dataset.json`; None takes any.
    kind: ClassVar[str | None] = None

    filename_glob = "*.tif"
    is_image = True

    def __init__(
        self,
        root: str | Path = "data",
        split: str | None = "train",
        *,
        bands: Sequence[str] | None = None,
        crs: Any = None,
        res: float | tuple[float, float] | None = None,
        transforms: Callable[[Sample], Sample] | None = None,
        seed: int = 0,
        by_scene: bool = False,
    ) -> None:
        """Open a split of a prepared dataset.

        Args:
            root: Folder that `smokegeo prepare` or `smokegeo simulate` wrote.
            split: "train", "val" or "test"; None for all frames.
            bands: Names of the bands to return, in order; all by default.
            crs: Coordinate system to warp to; the first file's by default.
            res: Resolution to resample to; the first file's by default.
            transforms: Called with each finished sample.
            seed: Seed of the split, if none is shipped in `root/splits`.
            by_scene: Keep frames of one scene in one split, if none is shipped.
        """
        self.layout: Layout = load_layout(Path(root), self.kind)
        ids = split_ids(self.layout, split, seed=seed, by_scene=by_scene)
        require_sound(self.layout, ids)
        by_id = {record.id: record for record in self.layout.frames}
        #: The frames of this split, sorted by id.
        self.records: tuple[FrameRecord, ...] = tuple(by_id[i] for i in sorted(ids))
        self.all_bands = self.layout.bands.names
        names = self.all_bands if bands is None else tuple(bands)
        chosen = parse_band_list(names, self.layout.bands)
        #: The bands of `image`, in order.
        self.band_set: BandSet = self.layout.bands.subset(self.all_bands[i] for i in chosen)

        images = [str(self.layout.image(record.id)) for record in self.records]
        # No cached handles: a GDAL handle shared by forked workers gives random read errors.
        super().__init__(images, crs, res, list(self.band_set.names), None, cache=False)
        masks = [str(self.layout.mask(record.id)) for record in self.records]
        self._masks = _Masks(masks, self.crs, self.res, cache=False)
        # TorchGeo skips files it cannot open; the check above reads headers, so none should go.
        if len(self.index) != len(self.records) or len(self._masks.index) != len(self.records):
            raise InputError(f"{root}: some rasters cannot be opened. Run `smokegeo check {root}`.")
        self._position = {path: position for position, path in enumerate(images)}
        self._mask_paths = masks
        self._finish = transforms
        self._tell_series_apart()

    def __getitem__(self, query: Any) -> Sample:
        """Return the image, mask and frame number at a spatial (and temporal) slice."""
        x, y, t = self._disambiguate_slice(query)
        path = self._file_at(x, y, t)
        position = self._position[path]
        # Of the other frames nothing is read: TorchGeo would fill gaps of this one with them.
        sample: Sample = RasterDataset.__getitem__(_only(self, path), (x, y, t))
        labels = RasterDataset.__getitem__(_only(self._masks, self._mask_paths[position]), (x, y))
        image: Tensor = sample["image"]
        mask: Tensor = labels["mask"]
        # A pixel without a value cannot be learnt from; 0 keeps it out of the arithmetic.
        invalid = ~torch.isfinite(image).all(dim=0)
        sample["image"] = torch.where(invalid, torch.zeros_like(image), image)
        sample["mask"] = torch.where(invalid, torch.full_like(mask, IGNORE), mask)
        sample["frame"] = torch.tensor([position])
        return sample if self._finish is None else self._finish(sample)

    def scenarios(self, frame: int) -> tuple[str, ...]:
        """Return the scenario tags of a frame, by its number in a sample."""
        return self.records[frame].scenarios

    def plot(self, sample: Sample, show_titles: bool = True, suptitle: str | None = None) -> Figure:
        """Draw a sample: colour composite, mask, and prediction if there is one."""
        from smokegeo.datasets.plot import plot_sample

        return plot_sample(sample, self.band_set, show_titles=show_titles, suptitle=suptitle)

    def _file_at(self, x: slice, y: slice, t: slice) -> str:
        """Return the image whose place is most like the query's: area shared over area of both."""
        now = self.index[self.index.index.overlaps(pd.Interval(t.start, t.stop, closed="both"))]
        bounds = now.bounds.to_numpy()
        west, south, east, north = bounds.T
        width = np.minimum(east, x.stop) - np.maximum(west, x.start)
        height = np.minimum(north, y.stop) - np.maximum(south, y.start)
        shared = np.clip(width, 0, None) * np.clip(height, 0, None)
        asked = (x.stop - x.start) * (y.stop - y.start)
        likeness = shared / ((east - west) * (north - south) + asked - shared)
        if not (likeness > 0).any():
            raise IndexError(f"no frame lies at {x}, {y}")
        best = int(likeness.argmax())
        rivals = np.flatnonzero((bounds == bounds[best]).all(axis=1))
        if len(rivals) > 1:
            names = ", ".join(Path(str(now.filepath.iloc[i])).stem for i in rivals[:3])
            raise InputError(
                f"{self.layout.root}: {len(rivals)} frames lie at the same place ({names}), so a "
                "query must have the time of one of them; see the index."
            )
        return str(now.filepath.iloc[best])

    def _tell_series_apart(self) -> None:
        """Give frames at the very same place a day each, which TorchGeo's samplers pass on."""
        places = list(self.index.geometry.to_wkb())
        frames, told = Counter(places), Counter[bytes]()
        if len(frames) == len(places):
            return
        days = []
        for place, interval in zip(places, self.index.index, strict=True):
            if frames[place] == 1:
                days.append((interval.left, interval.right))
                continue
            start = pd.Timestamp(1970, 1, 1) + pd.Timedelta(days=told[place])
            days.append((start, start + pd.Timedelta(hours=12)))
            told[place] += 1
        name = self.index.index.name
        self.index.index = pd.IntervalIndex.from_tuples(days, closed="both", name=name)


def _only(dataset: RasterDataset, path: str) -> RasterDataset:
    """Return a dataset of one file of another."""
    one = copy(dataset)
    one.index = dataset.index[dataset.index.filepath == path]
    return one


def split_ids(
    layout: Layout, split: str | None, *, seed: int = 0, by_scene: bool = False
) -> tuple[str, ...]:
    """Return the frame ids of a split: as shipped, else dealt by seed."""
    everything = tuple(record.id for record in layout.frames)
    if split is None:
        return everything
    if split not in SPLITS:
        raise UsageError(f"split {split!r} is not one of {', '.join(SPLITS)}.")
    shipped = {name: ids for name in SPLITS if (ids := layout.split_ids(name)) is not None}
    if shipped:
        check_splits(shipped, everything)
        if not shipped.get(split):
            filled = ", ".join(name for name, ids in shipped.items() if ids) or "nothing"
            raise InputError(
                f"{layout.root} ships no frames of {split}, only {filled}. Make the dataset again "
                "with more frames, or with some listed there."
            )
        if by_scene:
            _warn_of_shared_scenes(layout, split, shipped)
        return shipped[split]
    scenes = {record.id: record.scene for record in layout.frames} if by_scene else None
    dealt = make_splits(everything, RATIOS.get(layout.kind, DEFAULT_RATIO), seed, scenes)[split]
    if not dealt:
        raise InputError(
            f"{layout.root}: {len(everything)} frames leave the {split} split empty. Add frames; "
            "three fill all splits."
        )
    return dealt


def _warn_of_shared_scenes(
    layout: Layout, split: str, shipped: Mapping[str, Sequence[str]]
) -> None:
    """Say that shipped splits are kept though they do not keep scenes together as asked."""
    scene_of = {record.id: record.scene for record in layout.frames}
    scenes = {name: {scene_of[i] for i in ids} - {""} for name, ids in shipped.items()}
    elsewhere = set().union(*(found for name, found in scenes.items() if name != split))
    if shared := scenes[split] & elsewhere:
        log.warning(
            "%s ships its splits, and %d of %d scenes of %s are in another one, too; to keep "
            "scenes together, prepare the data again with --split-by scene",
            layout.root,
            len(shared),
            len(scenes[split]),
            split,
        )
