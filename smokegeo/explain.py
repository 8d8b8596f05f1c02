"""The paper's figures for a trained MoP: what its bands, prototypes and routers do.

Band weights and activations of single frames; correlations between channels and a map of pixel
features over a sample of the split. Every figure comes with the numbers it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, binary_erosion
from torch import Tensor

from smokegeo.bands import Band, BandSet
from smokegeo.datasets.layout import IGNORE
from smokegeo.datasets.plot import composite
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.datasets.transforms import Normalise
from smokegeo.errors import InputError, ModelError, UsageError
from smokegeo.evaluate import matched, pick_bands
from smokegeo.files import atomic_folder
from smokegeo.modelfile import Model
from smokegeo.models.config import MoPConfig
from smokegeo.models.mop import MoP
from smokegeo.models.padding import pad_small_labels
from smokegeo.progress import track
from smokegeo.torchgeo_api import frame_slices
from smokegeo.tsne import (
    COLOURS,
    DPI,
    balanced,
    bare,
    contrast,
    correlations,
    draw_correlations,
    draw_map,
    pairs,
    silhouette,
    spread,
    tsne,
    unit_per_band,
)

Array = NDArray[Any]

REGIONS = ("smoke", "edge", "background")
#: The edge of the smoke reaches this far to both sides of the labels' outline.
EDGE_PX = 3
#: At most this many frames are sampled, with this many random pixels each for correlations.
SAMPLE_FRAMES = 40
FRAME_PIXELS = 200
#: Pixels of each class on the t-SNE map.
CLASS_PIXELS = 300
#: More bands than this are not all drawn as maps.
MAX_MAPS = 12


@dataclass(frozen=True)
class Rivals:
    """Models without a part, to show beside the one explained."""

    without_psr: Model | None = None
    without_split: Model | None = None


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


@dataclass(frozen=True)
class Pixels:
    """Features of sampled pixels, one a row, and the summed band weights of whole frames.

    `common` and `individual` are of the same random pixels; `unit` holds individual features, of
    length 1 in each band, of pixels whose `labels` are 0 and 1 as far as there are enough.
    """

    common: Array | None
    individual: Array | None
    unit: Array | None
    labels: Array
    weights: Array | None
    region_pixels: Array


class Viewer:
    """A MoP with all it takes to run it on the frames of a dataset."""

    def __init__(self, model: Model, dataset: SmokeDataset) -> None:
        self.model, self.dataset = model, dataset
        self.network = mop_of(model)
        self.matching = matched(model, dataset)
        self.normalise = Normalise(model.card.statistics)
        names = (Path(str(path)).stem for path in dataset.index.filepath)
        self.queries = dict(zip(names, frame_slices(dataset), strict=True))
        available = torch.tensor(self.matching.available, dtype=torch.float32)
        #: Which band groups the dataset has.
        self.present: Array = (available @ self.config.membership() > 0).numpy()

    @property
    def config(self) -> MoPConfig:
        """The switches of the network."""
        return self.network.config

    def look(self, frame: str) -> Look:
        """Run the network on a frame and keep its parts."""
        sample = self.dataset[self.queries[frame]]
        mask: Tensor = sample["mask"]
        image = pick_bands(sample["image"], self.matching)
        ready = self.normalise({"image": image, "mask": mask})["image"]
        available = self.matching.available
        with torch.inference_mode():
            done = self.network.run(
                ready[None], None if all(available) else torch.tensor([available])
            )
            smoke = done.logits.softmax(dim=1)[0, 1].numpy()
        features = next(f for f in (done.individual, done.common) if f is not None)
        common, individual, routed = (
            None if part is None else part[0].numpy()
            for part in (done.common, done.individual, done.routed)
        )
        return Look(
            frame,
            composite(sample["image"].numpy(), self.dataset.band_set),
            mask.numpy(),
            smoke >= self.model.card.threshold,
            _shrink_labels(mask, features.shape[2:]),
            common,
            individual,
            routed,
            None if done.beta is None else enlarge(done.beta, mask.shape),
        )


def explain(
    model: Model,
    dataset: SmokeDataset,
    out: Path,
    frames: Sequence[str],
    rivals: Rivals | None = None,
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write all figures to the folder `out`, whole or not at all; return the numbers in them."""
    rivals = rivals or Rivals()
    with atomic_folder(out, overwrite=overwrite) as folder:
        viewer = Viewer(model, dataset)
        if not viewer.config.f_router:
            raise ModelError(f"{model.path} has no F-Router, so it has no band weights to show.")
        without_psr, without_split = _rival_viewers(rivals, dataset)
        bands = band_titles(model.card.bands, viewer.config)
        sampled = spread([record.id for record in dataset.records], SAMPLE_FRAMES)
        pixels = gather(viewer, sampled)
        facts: dict[str, Any] = {"model": model.card.name, "sampled_frames": len(sampled)}
        clouds = {"with PSR" if viewer.config.psr else model.card.name: pixels}
        if without_psr is not None:
            clouds["without PSR"] = gather(without_psr, sampled)
        facts["separation"] = _map_pixels(clouds, folder / "tsne.png")
        branches = {"common": pixels.common, "individual": pixels.individual}
        if without_split is not None:
            branches["without_split"] = gather(without_split, sampled).common
        facts["correlation"] = _correlate(
            branches, viewer.config.band_dim, bands, folder / "correlation.png"
        )
        facts["band_weights"] = {"bands": bands, **_mean_weights(pixels)}
        facts["activation"] = {
            frame: _explain_frame(viewer, frame, bands, folder)
            for frame in track(frames, "figures", len(frames))
        }
        facts["files"] = sorted(path.name for path in folder.iterdir())
    return facts


def mop_of(model: Model) -> MoP:
    """Return the network of a model file, refusing all but MoP."""
    if model.card.architecture != "mop":
        raise ModelError(
            f"{model.path} holds a {model.card.architecture}; only MoP has parts to explain."
        )
    network = model.network()
    assert isinstance(network, MoP)  # noqa: S101  (that is what the architecture says)
    return network


def choose_frames(dataset: SmokeDataset, wanted: str) -> list[str]:
    """Return the frames to draw: ids separated by commas, or a number of them with smoke."""
    ids = {record.id for record in dataset.records}
    if wanted.isdecimal() and wanted not in ids:
        if int(wanted) < 1:
            raise UsageError("--frames 0 leaves nothing to draw; use 1 or more.")
        smoky = [record for record in dataset.records if record.smoke_pixels]
        if not smoky:
            raise InputError(f"{dataset.layout.root}: no frame of this split has smoke.")
        by_size = sorted(smoky, key=lambda record: (-record.smoke_pixels, record.id))
        return [record.id for record in spread(by_size, int(wanted))]
    chosen = list(dict.fromkeys(word.strip() for word in wanted.split(",") if word.strip()))
    if unknown := [frame for frame in chosen if frame not in ids]:
        raise UsageError(f"--frames: this split has no frame {', '.join(unknown)}.")
    if not chosen:
        raise UsageError("--frames is empty; give a number, or ids separated by commas.")
    return chosen


def band_titles(bands: BandSet, config: MoPConfig) -> list[str]:
    """Return a title for each band group: its wavelength, or the first and last of several."""
    titles = []
    for group in config.group_members():
        first, last = bands[group[0]], bands[group[-1]]
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


def gather(viewer: Viewer, frames: Sequence[str]) -> Pixels:
    """Sample pixels of the frames; the same ones for every network on the same frames."""
    parts = [
        _draw_pixels(viewer.look(frame), viewer.config, np.random.default_rng(number))
        for number, frame in enumerate(track(frames, viewer.model.card.name, len(frames)))
    ]
    weights = [part.weights for part in parts if part.weights is not None]
    labels = np.concatenate([part.labels for part in parts])
    unit = _joined(part.unit for part in parts)
    if unit is not None:
        chosen = balanced(labels, CLASS_PIXELS)
        unit, labels = unit[chosen], labels[chosen]
    return Pixels(
        _joined(part.common for part in parts),
        _joined(part.individual for part in parts),
        unit,
        labels,
        sum(weights[1:], weights[0]) if weights else None,
        np.sum([part.region_pixels for part in parts], axis=0),
    )


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


def _rival_viewers(rivals: Rivals, dataset: SmokeDataset) -> tuple[Viewer | None, Viewer | None]:
    """Open the models without a part, refusing those that have it."""
    psr, split = (
        None if rival is None else Viewer(rival, dataset)
        for rival in (rivals.without_psr, rivals.without_split)
    )
    if psr is not None and (psr.config.psr or not psr.config.band_split):
        fact = "has prototypes" if psr.config.psr else "does not split the bands"
        raise ModelError(f"{psr.model.path} {fact}; --without-psr wants row a or c of the paper.")
    if split is not None and split.config.band_split:
        raise ModelError(f"{split.model.path} splits the bands; --without-split wants row bl.")
    return psr, split


def _draw_pixels(look: Look, config: MoPConfig, rng: np.random.Generator) -> Pixels:
    labels = look.labels.ravel()
    anywhere = _some(np.flatnonzero(labels != IGNORE), FRAME_PIXELS, rng)
    kinds = [_some(np.flatnonzero(labels == value), CLASS_PIXELS, rng) for value in (0, 1)]
    chosen = np.concatenate(kinds)

    def take(maps: Array | None, where: Array) -> Array | None:
        return None if maps is None else maps.reshape(len(maps), -1)[:, where].T

    individual = take(look.individual, chosen)
    where = regions(look.mask)
    return Pixels(
        take(look.common, anywhere),
        take(look.individual, anywhere),
        None if individual is None else unit_per_band(individual, config.groups),
        labels[chosen],
        None if look.beta is None else np.einsum("rhw,bhw->rb", where.astype(float), look.beta),
        where.sum(axis=(1, 2)),
    )


def _map_pixels(clouds: Mapping[str, Pixels], path: Path) -> dict[str, dict[str, float]]:
    """Draw the t-SNE of each model's pixels; return how well smoke is set apart."""
    facts, panels = {}, {}
    for name, pixels in clouds.items():
        if pixels.unit is not None:
            place = tsne(pixels.unit)
            facts[name] = {
                "features": silhouette(pixels.unit, pixels.labels),
                "map": silhouette(place, pixels.labels),
            }
            panels[name] = (place, pixels.labels, facts[name])
    draw_map(panels, path)
    return facts


def _correlate(
    branches: Mapping[str, Array | None], band_dim: int, bands: Sequence[str], path: Path
) -> dict[str, dict[str, float | None]]:
    """Draw the correlations of each branch; return their means between and within bands."""
    facts: dict[str, dict[str, float | None]] = {}
    panels = {}
    for name, features in branches.items():
        if features is None:
            continue
        matrix = correlations(features)
        between, within = pairs(matrix, band_dim)
        facts[name] = {"between_bands": _mean(between), "within_bands": _mean(within)}
        panels[name] = (matrix, between, within)
    draw_correlations(panels, band_dim, bands, path)
    return facts


def _explain_frame(viewer: Viewer, frame: str, bands: Sequence[str], folder: Path) -> Any:
    """Draw both figures of a frame; return the contrast of smoke with and without routing."""
    look = viewer.look(frame)
    assert look.beta is not None  # noqa: S101  (there is an F-Router)
    means = [[_mean(beta[where]) for beta in look.beta] for where in regions(look.mask)]
    shown = np.flatnonzero(viewer.present).tolist()
    _draw_band_weights(
        look,
        look.beta[shown],
        [bands[i] for i in shown],
        {name: [row[i] for i in shown] for name, row in zip(REGIONS, means, strict=True)},
        folder / f"band_weights_{frame}.png",
    )
    routed, plain = mean_activation(look, viewer)
    contrasts = {name: contrast(m, look.mask) for name, m in (("routed", routed), ("plain", plain))}
    _draw_activation(look, routed, plain, contrasts, folder / f"activation_{frame}.png")
    return contrasts


def _mean_weights(pixels: Pixels) -> dict[str, list[float] | None]:
    assert pixels.weights is not None  # noqa: S101  (there is an F-Router)
    rows = zip(REGIONS, pixels.weights, pixels.region_pixels, strict=True)
    return {name: (sums / count).tolist() if count else None for name, sums, count in rows}


def _shrink_labels(mask: Tensor, size: Sequence[int]) -> Array:
    """Bring labels (H, W) to the features' size as training does."""
    padded = pad_small_labels(mask[None]).float()
    return np.asarray(F.interpolate(padded[None], size=tuple(size))[0, 0].numpy().astype(np.uint8))


def _some(positions: Array, count: int, rng: np.random.Generator) -> Array:
    return rng.choice(positions, min(count, len(positions)), replace=False)


def _joined(parts: Iterable[Array | None]) -> Array | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _mean(values: Array) -> float | None:
    return float(values.mean()) if values.size else None


def _title(band: Band) -> str:
    nm = band.wavelength_nm
    if nm is None:
        return band.name
    return f"{nm:.0f} nm" if nm < 3000 else f"{nm / 1000:.1f} µm"


def _draw_band_weights(
    look: Look,
    beta: Array,
    bands: Sequence[str],
    means: Mapping[str, Sequence[float | None]],
    path: Path,
) -> None:
    """Draw the weights of the bands (d, H, W) as maps on one scale, and their means as bars."""
    shown = np.sort(np.argsort(-beta.std(axis=(1, 2)), kind="stable")[:MAX_MAPS])
    columns = min(4, len(shown))
    rows = -(-len(shown) // columns)
    heights = [4 / look.aspect + 0.6, rows * (12 / columns / look.aspect + 0.3) + 0.6, 3.2]
    figure = Figure(figsize=(12, sum(heights)), layout="constrained")
    top, middle, bottom = np.asarray(figure.subfigures(3, 1, height_ratios=heights))
    _show_images(top.subplots(1, 3), look, 3)
    top.suptitle(f"Frame {look.frame}", weight="bold")

    axes = middle.subplots(rows, columns, squeeze=False).ravel()
    low, high = np.percentile(beta[shown], (0.5, 99.5))
    for axis, band in zip(axes, shown, strict=False):
        picture = axis.imshow(beta[band], vmin=low, vmax=high, cmap="viridis")
        _outline(axis, look.mask)
        bare(axis, bands[band])
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    middle.colorbar(picture, ax=list(axes), label="band weight β", fraction=0.02, pad=0.01)
    all_or_some = "" if len(shown) == len(bands) else f", the {len(shown)} bands that vary most"
    middle.suptitle(f"Band weights of the F-Router{all_or_some} (smoke outlined)", weight="bold")

    axis = bottom.subplots()
    places = np.arange(len(bands))
    for number, (region, values) in enumerate(means.items()):
        heights_ = [np.nan if value is None else value for value in values]
        label = region if any(v is not None for v in values) else f"{region} (no pixels)"
        axis.bar(places + 0.27 * (number - 1), heights_, 0.27, label=label, color=COLOURS[region])
    axis.axhline(1 / len(bands), color="black", linestyle="--", linewidth=1, label="equal weights")
    axis.set_xticks(places, bands, rotation=60 if len(bands) > 8 else 0)
    axis.set_xlim(-0.6, len(bands) - 0.4)
    axis.set_ylabel("mean β")
    axis.set_title("Mean weight of each band", weight="bold")
    axis.legend(ncols=4, frameon=False, loc="upper left", fontsize=9)
    axis.margins(y=0.25)
    figure.savefig(path, dpi=DPI)


def _draw_activation(
    look: Look,
    routed: Array,
    plain: Array,
    contrasts: Mapping[str, float | None],
    path: Path,
) -> None:
    """Draw the mean features without and with routing on one scale, beside image and labels."""
    figure = Figure(figsize=(14, 3.5 / look.aspect + 1.3), layout="constrained")
    axes = figure.subplots(1, 4)
    _show_images(axes, look, 2)
    low, high = np.percentile(np.stack([routed, plain]), (0.5, 99.5))
    for axis, values, title, key in (
        (axes[2], plain, "without routing, $X_{indi}$", "plain"),
        (axes[3], routed, "with routing, $X_{MoP}$ × bands", "routed"),
    ):
        picture = axis.imshow(values, vmin=low, vmax=high, cmap="magma")
        number = contrasts[key]
        fact = "no smoke" if number is None else f"smoke {number:+.2f} σ from background"
        bare(axis, f"{title}\n{fact}")
    figure.colorbar(picture, ax=list(axes[2:]), label="mean activation", fraction=0.03, pad=0.01)
    figure.suptitle(f"Frame {look.frame}", weight="bold")
    figure.savefig(path, dpi=DPI)


def _show_images(axes: Array, look: Look, count: int) -> None:
    """Show the composite, the labels and, if there is room, the prediction."""
    labels = np.ma.masked_equal(look.mask, IGNORE)
    axes[0].imshow(look.picture)
    axes[1].imshow(labels, vmin=0, vmax=1, cmap="gray")
    axes[1].set_facecolor("tab:red")  # ignored pixels
    if count > 2:
        axes[2].imshow(look.predicted, vmin=0, vmax=1, cmap="gray")
    for axis, title in zip(axes[:count], ("image", "labels", "prediction"), strict=False):
        bare(axis, title)


def _outline(axis: Any, mask: Array) -> None:
    smoke = mask == 1
    if smoke.any() and not smoke.all():
        axis.contour(smoke, levels=[0.5], colors="white", linewidths=0.7)
