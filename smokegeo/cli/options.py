"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = (
    click.option("--crs", help="Coordinate system of a scene that has none, such as EPSG:32633."),
    click.option(
        "--pixel-coords",
        is_flag=True,
        help="For images without a place: polygons in pixels, no areas.",
    ),
)
_UNITS = (
    click.option("--scale", type=float, help="Factor to the model's units. [by type and range]"),
    click.option("--offset", type=float, help="Added after --scale, in the model's units. [0]"),
)
_SCENE = (
    click.option(
        "--bands",
        help="What the bands are, in order: red,green,blue,nir or 490nm,...; - leaves one out.",
    ),
    click.option("--sensor", help="The sensor, such as sentinel2; see docs/bands.md."),
    click.option("--nodata", help="Value that means no data, or `none`. [the file's]"),
    click.option("--raw", is_flag=True, help="Take values as stored, whatever tags and names say."),
    *_UNITS,
    *_PLACE,
    click.option("--bbox", metavar="W,S,E,N", help="Only this part, in degrees."),
    click.option("--window", metavar="COL,ROW,W,H", help="Only this part, in pixels."),
    click.option("--skip-damaged", is_flag=True, help="Leave out parts that cannot be read."),
    click.option("--sha256", metavar="HEX", help="Refuse a file with another checksum."),
)
_OUTLINE = (
    click.option(
        "--threshold",
        type=click.FloatRange(0, 1, min_open=True),
        help="Smallest probability of smoke. [the model's]",
    ),
    click.option(
        "--core",
        type=click.FloatRange(0, 1, min_open=True),
        help="Drop polygons in which no pixel reaches this probability.",
    ),
    click.option("--min-area", type=click.FloatRange(0), default=0.0, help="Least area in m2."),
    click.option(
        "--edges",
        type=click.Choice(["smooth", "pixel"]),
        default="smooth",
        help="Outlines between pixel centres, or along pixel edges.",
    ),
    click.option(
        "--simplify", type=click.FloatRange(0), default=0.0, help="Straighten outlines, in pixels."
    ),
)


def scene_options(function: F) -> F:
    """Add the options that say what a scene does not say itself."""
    return _added(function, _SCENE)


def place_options(function: F) -> F:
    """Add the options that say where a raster lies that does not say so itself."""
    return _added(function, _PLACE)


def units_options(function: F) -> F:
    """Add the options that say how stored numbers become a model's."""
    return _added(function, _UNITS)


def outline_options(function: F) -> F:
    """Add the options that turn probabilities into polygons."""
    return _added(function, _OUTLINE)


def _added(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function
