"""Accuracy against latency, one point a method."""

from __future__ import annotations

from matplotlib.figure import Figure

from smokegeo.benchmark.results import Results, mean_and_range
from smokegeo.models.baselines.catalog import METHODS, VARIANTS

COLOURS = {"realtime": "#1b7837", "accuracy": "#762a83"}


def draw(results: Results) -> Figure | None:
    """Return the figure, or None where no latency was measured."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    drawn = 0
    for variant in VARIANTS:
        for entry in results.entries(variant):
            runs = results.of(entry)
            score = mean_and_range([run.report["total"]["f1_image"] for run in runs])
            cost = results.cost(entry)
            if score is None or not cost:
                continue
            mean, low, high = (100 * value for value in score)
            x, colour = cost["cpu_ms"], COLOURS[variant]
            axes.errorbar(
                x,
                mean,
                yerr=[[mean - low], [high - mean]],
                fmt="*" if entry.model == "mop" else "o",
                color=colour,
                markersize=12 if entry.model == "mop" else 6,
            )
            axes.annotate(
                METHODS[entry.model].title, (x, mean), (5, 4), textcoords="offset points", size=8
            )
            drawn += 1
    if not drawn:
        return None
    for variant in VARIANTS:
        axes.plot([], [], "o", color=COLOURS[variant], label=variant)
    axes.set_xscale("log")
    several = ", measured on several machines" if len(results.measured_on()) > 1 else ""
    axes.set_xlabel(f"CPU milliseconds for one image{several}")
    axes.set_ylabel("F1 of smoke, mean over images, %")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
