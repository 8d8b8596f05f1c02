"""A MoP looking at one frame: its features, weights and prediction, brought to one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, binary_erosion
from torch import Tensor

from smokegeo.bands import Band
from smokegeo.composite import composite
from smokegeo.datasets.layout import IGNORE
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.errors import ModelError
from smokegeo.evaluate import channels_of, matched, reduction_of, refuse_large
from smokegeo.frameunits import FrameUnits
from smokegeo.modelfile import Model
from smokegeo.models.config import MoPConfig
from smokegeo.models.mop import MoP
from smokegeo.models.padding import pad_small_labels
from smokegeo.radiometry import Units
from smokegeo.torchgeo_api import frame_slices
from smokegeo.zoom import smoke_seen

Array = NDArray[Any]

REGIONS = ("smoke", "edge", "background")
#: The edge of the smoke reaches this far to both sides of the labels' outline.
EDGE_PX = 3


@dataclass(frozen=True)
class Look:
    """What a network makes of one frame: features (D, h, w) with labels, the rest at full size."""

    frame: str
    picture: Array
    mask: Array
    predicted: Array
    labels: Array
    common: Array | None
    individual: Array | None
    routed: Array | None
    beta: Array | None

    @property
    def aspect(self) -> float:
        """Width over height, within what a page can hold."""
        return float(np.clip(self.mask.shape[1] / self.mask.shape[0], 0.4, 2.5))


class Viewer:
    """A MoP with all it takes to run it on the frames of a dataset."""

    def __init__(self, model: Model, dataset: SmokeDataset, said: Units | None = None) -> None:
        refuse_large(dataset)
        self.model, self.dataset = model, dataset
        self.network = mop_of(model)
        self.matching = matched(model, dataset)
        self.units = FrameUnits(model.card, dataset, self.matching, said)
        names = (Path(str(path)).stem for path in dataset.index.filepath)
        self.queries = dict(zip(names, frame_slices(dataset), strict=True))
        views = len(model.card.views)
        available = torch.tensor(self.matching.available, dtype=torch.float32)
        #: Which band groups the dataset has.
        self.present: Array = (
            available.repeat_interleave(views) @ self.config.membership() > 0
        ).numpy()

    @property
    def config(self) -> MoPConfig:
        """The switches of the network."""
        return self.network.config

    def look(self, frame: str) -> Look:
        """Run the network on a frame and keep its parts."""
        sample = self.dataset[self.queries[frame]]
        mask: Tensor = sample["mask"]
        card = self.model.card
        channels, available = channels_of(sample, self.units)
        reduction = reduction_of(self.dataset, card, channels)
        with torch.inference_mode():
            done = self.network.run(channels, available)
            seen = smoke_seen(
                self.network,
                channels,
                available,
                card.looks,
                card.smoke,
                reduction,
            )
            smoke = seen[0].numpy()
        features = next(f for f in (done.individual, done.common) if f is not None)
        common, individual, routed = (
            None if part is None else part[0].numpy()
            for part in (done.common, done.individual, done.routed)
        )
        return Look(
            frame,
            composite(sample["image"].numpy(), self.dataset.band_set),
            mask.numpy(),
            smoke >= card.threshold,
            _shrink_labels(mask, features.shape[2:]),
            common,
            individual,
            routed,
            None if done.beta is None else enlarge(done.beta, mask.shape),
        )


def mop_of(model: Model) -> MoP:
    """Return the network of a model file, refusing all but MoP."""
    if model.card.architecture != "mop":
        raise ModelError(
            f"{model.path} holds a {model.card.architecture}; only MoP has parts to explain."
        )
    network = model.network()
    assert isinstance(network, MoP)  # noqa: S101  (that is what the architecture says)
    return network


def band_titles(channels: Sequence[Band], config: MoPConfig) -> list[str]:
    """Return a title for each group of channels: its band's wavelength, or the first and last."""
    titles = []
    for group in config.group_members():
        first, last = channels[group[0]], channels[group[-1]]
        titles.append(_title(first) if first == last else f"{_title(first)} to {_title(last)}")
    return titles


def enlarge(maps: Tensor, size: Sequence[int]) -> Array:
    """Bring maps (1, C, h, w) of a network to the size of its image; return (C, H, W)."""
    padded = pad_small_labels(torch.zeros(1, *size, dtype=torch.long)).shape[1:]
    full = F.interpolate(maps, size=tuple(padded), mode="bilinear")[0]
    return np.asarray(full[:, : size[0], : size[1]].numpy())


def regions(mask: Array) -> Array:
    """Return (3, H, W): inside the smoke, along its outline, and background; ignored in none."""
    smoke, valid = mask == 1, mask != IGNORE
    inner = binary_erosion(smoke, iterations=EDGE_PX, border_value=1)
    outer = binary_dilation(smoke, iterations=EDGE_PX)
    return np.asarray(np.stack([inner, outer & ~inner, ~outer]) & valid)


def mean_activation(look: Look, viewer: Viewer) -> tuple[Array, Array]:
    """Return the mean feature map (H, W) with the band weights and with equal ones.

    The weights sum to 1 over the bands, so X_MoP is about as many times smaller than X_indi as
    there are bands; it is scaled back by that number, and the two can share one scale.
    """
    assert look.individual is not None  # noqa: S101  (a model with an F-Router has these)
    assert look.routed is not None  # noqa: S101
    channels = np.repeat(viewer.present, viewer.config.band_dim)
    scale = 1.0 if viewer.config.rescale else float(viewer.present.sum())
    both = (scale * look.routed[channels].mean(axis=0), look.individual[channels].mean(axis=0))
    routed, plain = (enlarge(torch.from_numpy(m)[None, None], look.mask.shape)[0] for m in both)
    return routed, plain


def _shrink_labels(mask: Tensor, size: Sequence[int]) -> Array:
    """Bring labels (H, W) to the features' size as training does."""
    padded = pad_small_labels(mask[None]).float()
    return np.asarray(F.interpolate(padded[None], size=tuple(size))[0, 0].numpy().astype(np.uint8))


def _title(band: Band) -> str:
    nm = band.wavelength_nm
    if nm is None:
        return band.name
    return f"{nm:.0f} nm" if nm < 3000 else f"{nm / 1000:.1f} µm"
