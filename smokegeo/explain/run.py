"""The paper's figures for a trained MoP: what its bands, prototypes and routers do.

Band weights and activations of single frames; correlations between channels and a map of pixel
features over a sample of the split. Every figure comes with the numbers it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.datasets.layout import IGNORE
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.errors import InputError, ModelError, UsageError
from smokegeo.explain.figures import draw_activation, draw_band_weights, draw_correlations, draw_map
from smokegeo.explain.look import REGIONS, Look, Viewer, band_titles, mean_activation, regions
from smokegeo.explain.measures import (
    balanced,
    contrast,
    correlations,
    pairs,
    silhouette,
    spread,
    unit_per_band,
)
from smokegeo.explain.tsne import tsne
from smokegeo.files import atomic_folder
from smokegeo.modelfile import Model
from smokegeo.progress import track
from smokegeo.radiometry import Units
from smokegeo.scene.product import listed

Array = NDArray[Any]

#: At most this many frames are sampled, with this many random pixels each for correlations.
SAMPLE_FRAMES = 40
FRAME_PIXELS = 200
#: Pixels of each class on the t-SNE map.
CLASS_PIXELS = 300
#: Names of the figures.
_OURS = re.compile(r"(?:tsne|correlation|(?:band_weights|activation)_.+)\.png$")


@dataclass(frozen=True)
class Rivals:
    """Models without a part, to show beside the one explained."""

    without_psr: Model | None = None
    without_split: Model | None = None


@dataclass(frozen=True)
class Pixels:
    """Features of sampled pixels, one a row, and the summed band weights of whole frames.

    `common` and `individual` are of the same random pixels; `unit` holds individual features, of
    length 1 in each band, of pixels whose `labels` are 0 and 1 as far as there are enough. Of
    individual features there are those of bands that the dataset has.
    """

    common: Array | None
    individual: Array | None
    unit: Array | None
    labels: Array
    weights: Array | None
    region_pixels: Array


def explain(
    model: Model,
    dataset: SmokeDataset,
    out: Path,
    frames: Sequence[str],
    rivals: Rivals | None = None,
    *,
    overwrite: bool = False,
    said: Units | None = None,
) -> dict[str, Any]:
    """Write all figures to the folder `out`, whole or not at all; return the numbers in them.

    `said` is the user's word on how the frames' numbers become the model's units.
    """
    rivals = rivals or Rivals()
    _spare_others(out)
    with atomic_folder(out, overwrite=overwrite) as folder:
        viewer = Viewer(model, dataset, said)
        if not viewer.config.f_router:
            raise ModelError(f"{model.path} has no F-Router, so it has no band weights to show.")
        without_psr, without_split = _rival_viewers(rivals, dataset, said)
        channels = [band for band in model.card.bands for _ in model.card.views]
        bands = band_titles(channels, viewer.config)
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
        shown = [bands[i] for i in np.flatnonzero(viewer.present)]
        facts["correlation"] = _correlate(
            branches, viewer.config.band_dim, shown, folder / "correlation.png"
        )
        facts["band_weights"] = {"bands": bands, **_mean_weights(pixels)}
        facts["activation"] = {
            frame: _explain_frame(viewer, frame, bands, folder)
            for frame in track(frames, "figures", len(frames))
        }
        facts["files"] = sorted(path.name for path in folder.iterdir())
    return facts


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


def gather(viewer: Viewer, frames: Sequence[str]) -> Pixels:
    """Sample pixels of the frames; the same ones for every network on the same frames."""
    parts = [
        _draw_pixels(viewer.look(frame), viewer, np.random.default_rng(number))
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


def _spare_others(out: Path) -> None:
    """Refuse a folder that holds more than figures: --overwrite would delete the rest."""
    if not out.is_dir():
        return
    others = [path.name for path in out.iterdir() if path.is_dir() or not _OURS.match(path.name)]
    if others:
        raise UsageError(
            f"{out} holds something else than figures ({listed(others, 3)}), and stays as it is. "
            "Choose another folder."
        )


def _rival_viewers(
    rivals: Rivals, dataset: SmokeDataset, said: Units | None
) -> tuple[Viewer | None, Viewer | None]:
    """Open the models without a part, refusing those that have it."""
    psr, split = (
        None if rival is None else Viewer(rival, dataset, said)
        for rival in (rivals.without_psr, rivals.without_split)
    )
    if psr is not None and (psr.config.psr or not psr.config.band_split):
        fact = "has prototypes" if psr.config.psr else "does not split the bands"
        raise ModelError(f"{psr.model.path} {fact}; --without-psr wants row a or c of the paper.")
    if split is not None and split.config.band_split:
        raise ModelError(f"{split.model.path} splits the bands; --without-split wants row bl.")
    return psr, split


def _draw_pixels(look: Look, viewer: Viewer, rng: np.random.Generator) -> Pixels:
    labels = look.labels.ravel()
    anywhere = _some(np.flatnonzero(labels != IGNORE), FRAME_PIXELS, rng)
    kinds = [_some(np.flatnonzero(labels == value), CLASS_PIXELS, rng) for value in (0, 1)]
    chosen = np.concatenate(kinds)

    def take(maps: Array | None, where: Array) -> Array | None:
        return None if maps is None else maps.reshape(len(maps), -1)[:, where].T

    own = None
    if look.individual is not None:  # without what absent bands would have there
        own = look.individual[np.repeat(viewer.present, viewer.config.band_dim)]
    individual = take(own, chosen)
    where = regions(look.mask)
    return Pixels(
        take(look.common, anywhere),
        take(own, anywhere),
        None if individual is None else unit_per_band(individual, int(viewer.present.sum())),
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
    draw_band_weights(
        look,
        look.beta[shown],
        [bands[i] for i in shown],
        {name: [row[i] for i in shown] for name, row in zip(REGIONS, means, strict=True)},
        folder / f"band_weights_{frame}.png",
    )
    routed, plain = mean_activation(look, viewer)
    contrasts = {name: contrast(m, look.mask) for name, m in (("routed", routed), ("plain", plain))}
    draw_activation(look, routed, plain, contrasts, folder / f"activation_{frame}.png")
    return contrasts


def _mean_weights(pixels: Pixels) -> dict[str, list[float] | None]:
    assert pixels.weights is not None  # noqa: S101  (there is an F-Router)
    rows = zip(REGIONS, pixels.weights, pixels.region_pixels, strict=True)
    return {name: (sums / count).tolist() if count else None for name, sums, count in rows}


def _some(positions: Array, count: int, rng: np.random.Generator) -> Array:
    return rng.choice(positions, min(count, len(positions)), replace=False)


def _joined(parts: Iterable[Array | None]) -> Array | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _mean(values: Array) -> float | None:
    return float(values.mean()) if values.size else None
