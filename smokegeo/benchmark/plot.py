"""Accuracy against latency, one point a method."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Bbox, BboxBase

from smokegeo.benchmark.plan import Entry
from smokegeo.benchmark.results import Results, mean_and_range
from smokegeo.models.baselines.catalog import METHODS, VARIANTS

#: Where a name may stand, as points from what it names, and its alignment; best first.
_BESIDE = [
    *(((7, dy), "left") for dy in (0, 7, -7)),
    *(((-7, dy), "right") for dy in (0, 7, -7)),
    *(((0, dy), "center") for dy in (11, -11)),
    *(((dx, dy), "center") for dy in (22, -22, 33, -33, 44, -44) for dx in (0, 20, -20)),
]
#: Names farther away than this, in points, are joined to what they name by a line.
_NEAR = 15
COLOURS = {"realtime": "#1b7837", "accuracy": "#762a83"}


def draw(results: Results) -> Figure | None:
    """Return the figure, or None where no latency was measured."""
    points = [
        (cost["cpu_ms"], tuple(100 * value for value in score), entry)
        for variant in VARIANTS
        for entry in results.entries(variant)
        if (score := _score(results, entry)) is not None and (cost := results.cost(entry))
    ]
    if not points:
        return None
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for x, (mean, low, high), entry in points:
        is_mop = entry.model == "mop"
        axes.errorbar(
            x,
            mean,
            yerr=[[mean - low], [high - mean]],
            fmt="*" if is_mop else "o",
            color=COLOURS[entry.variant],
            markersize=12 if is_mop else 6,
        )
    for variant in VARIANTS:
        if any(entry.variant == variant for *_, entry in points):
            axes.plot([], [], "o", color=COLOURS[variant], label=variant)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    several = ", measured on several machines" if len(results.measured_on()) > 1 else ""
    axes.set_xlabel(f"CPU milliseconds for one image{several}")
    axes.set_ylabel("F1 of smoke, mean over images, %")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    _name(figure, axes, [(x, mean, entry) for x, (mean, *_), entry in points])
    return figure


def _name(figure: Figure, axes: Axes, points: Sequence[tuple[float, float, Entry]]) -> None:
    """Write each name beside its point, where it lies on no other if there is such a place."""
    figure.draw_without_rendering()  # now places are known
    dots = [axes.transData.transform((x, y)) for x, y, _ in points]
    taken = [Bbox.from_extents(x - 6, y - 6, x + 6, y + 6) for x, y in dots]
    taken += [legend.get_window_extent()] if (legend := axes.get_legend()) else []
    for x, y, entry in points:
        colour = COLOURS[entry.variant]
        for offset, side in _BESIDE:
            text = axes.annotate(
                METHODS[entry.model].title,
                (x, y),
                offset,
                textcoords="offset points",
                size=8,
                color=colour,
                ha=side,
                va="center",
            )
            box = text.get_window_extent()
            free = not any(box.overlaps(other) for other in taken)
            if (free and _holds(axes.bbox, box)) or offset == _BESIDE[-1][0]:
                break
            text.remove()
        taken.append(box)
        if max(map(abs, offset)) > _NEAR:
            line = {"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 6}
            axes.annotate("", (x, y), offset, textcoords="offset points", arrowprops=line)


def _holds(outer: BboxBase, inner: BboxBase) -> bool:
    return bool(
        outer.x0 <= inner.x0
        and outer.y0 <= inner.y0
        and inner.x1 <= outer.x1
        and inner.y1 <= outer.y1
    )


def _score(results: Results, entry: Entry) -> tuple[float, float, float] | None:
    """Return mean, lowest and highest F1 of a method over its seeds."""
    return mean_and_range([run.report["total"]["f1_image"] for run in results.of(entry)])
