"""The figures themselves: matplotlib and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from smokegeo.datasets.layout import IGNORE
from smokegeo.explain.look import Look
from smokegeo.explain.measures import spread

Array = NDArray[Any]

#: More bands than this are not all drawn as maps.
MAX_MAPS = 12
DPI = 110
COLOURS = {"smoke": "#d95f02", "edge": "#e6ab02", "background": "#4575b4"}
BRANCHES = {
    "common": "common branch, $X_{com}$ (no band split)",
    "individual": "individual branch, $X_{indi}$ (band split)",
    "without_split": "model without band split, $X_{com}$",
}


def draw_band_weights(
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


def draw_activation(
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


def draw_map(panels: Mapping[str, tuple[Array, Array, Mapping[str, float]]], path: Path) -> None:
    """Draw t-SNE maps of pixels, smoke and background coloured, with their silhouettes."""
    figure = Figure(figsize=(5.6 * len(panels), 5.6), layout="constrained")
    for axis, (name, (place, labels, facts)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for value, region in ((0, "background"), (1, "smoke")):
            x, y = place[labels == value].T
            axis.scatter(x, y, s=14, alpha=0.75, linewidths=0, c=COLOURS[region], label=region)
        silhouettes = "silhouette {features:.3f} of the features, {map:.3f} of the map"
        bare(axis, f"{name}\n{silhouettes.format(**facts)}")
        axis.set_aspect("equal", "datalim")
    axis.legend(loc="lower right", markerscale=2)
    figure.suptitle("t-SNE of pixel features, each band of length 1", weight="bold")
    figure.savefig(path, dpi=DPI)


def draw_correlations(
    panels: Mapping[str, tuple[Array, Array, Array]],
    band_dim: int,
    bands: Sequence[str],
    path: Path,
) -> None:
    """Draw the correlations of each branch, and histograms of |r| between and within bands."""
    figure = Figure(figsize=(5 * len(panels) + 0.8, 8), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False, height_ratios=(5, 3))
    bins = np.linspace(0, 1, 41)
    for axis in axes[1, 1:]:
        axis.sharey(axes[1, 0])
    ticks = spread(range(len(bands)), 9)
    for (matrix_axis, axis), (name, (matrix, between, within)) in zip(
        axes.T, panels.items(), strict=True
    ):
        picture = matrix_axis.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu_r", interpolation="none")
        matrix_axis.set_title(BRANCHES[name])
        if name == "individual":
            places = [(i + 0.5) * band_dim - 0.5 for i in ticks]
            matrix_axis.set_xticks(places, [bands[i] for i in ticks], rotation=60)
            matrix_axis.set_yticks(places, [bands[i] for i in ticks])
        else:
            matrix_axis.set_xlabel("channel")
        pairs_of = "bands" if name == "individual" else "blocks"
        for values, colour, words in (
            (between, "#4477aa", f"different {pairs_of}"),
            (within, "#ee7733", f"same {pairs_of[:-1]}"),
        ):
            if values.size:
                share = np.full(values.size, 1 / values.size)
                label = f"{words}, mean {values.mean():.3f}"
                axis.hist(values, bins, weights=share, alpha=0.65, color=colour, label=label)
                axis.axvline(float(values.mean()), color=colour, linestyle="--", linewidth=1.5)
        axis.set(xlim=(0, 1), xlabel="|r| of two channels", ylabel="share of pairs")
        axis.legend(frameon=False, fontsize=9, loc="upper right")
    figure.colorbar(picture, ax=list(axes[0]), label="correlation r", fraction=0.03, pad=0.02)
    figure.suptitle("Correlation between feature channels", weight="bold")
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


def bare(axis: Any, title: str) -> None:
    """Show a title and no ticks."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(title, fontsize=10)
