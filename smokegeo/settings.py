"""Plain settings, as the command line and Python callers give them, made into a request."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, get_args

from smokegeo.engine import BACKENDS, DEVICES, TTA, Effort
from smokegeo.errors import UsageError
from smokegeo.outlines.cells import Edges
from smokegeo.pipeline import Outline, Request
from smokegeo.probability import first_smoke_value
from smokegeo.radiometry import Units
from smokegeo.scene.options import SceneOptions

#: Setting -> field of the part it belongs to, where the two names differ.
_OUTLINE = {"min_area": "min_area_m2", "simplify": "simplify_px"}
_REQUEST = {"tile": "tile_px", "overlap": "overlap_px"}


def request_from(settings: Mapping[str, Any]) -> Request:
    """Return the request that settings ask for; names are those of the command line."""
    parts: dict[str, dict[str, Any]] = {"scene": {}, "effort": {}, "outline": {}, "request": {}}
    homes = {
        "scene": {f.name for f in fields(SceneOptions)},
        "effort": {f.name for f in fields(Effort)},
        "outline": {"threshold", "core", "edges", *_OUTLINE},
        "request": {"model", "scale", "offset", "resume", "yes", *_REQUEST},
    }
    for name, value in settings.items():
        home = next((part for part, names in homes.items() if name in names), None)
        if home is None:
            known = sorted(set().union(*homes.values()))
            raise UsageError(f"no setting {name!r}; there are {', '.join(known)}.")
        if home == "scene":
            value = _text(value)
        parts[home][{**_OUTLINE, **_REQUEST}.get(name, name)] = value
    effort = Effort(**parts["effort"])
    _check(effort.device, DEVICES)
    _check(effort.backend, BACKENDS)
    _check(effort.tta, TTA)
    outline = Outline(**parts["outline"])
    _check(outline.edges, get_args(Edges))
    request = Request(
        scene=SceneOptions(**parts["scene"]), effort=effort, outline=outline, **parts["request"]
    )
    _check_numbers(request)
    return request


def _check_numbers(request: Request) -> None:
    """Refuse numbers without meaning; Python callers have no command line to do it."""
    outline, effort = request.outline, request.effort
    for level in (outline.threshold, outline.core):
        if level is not None:
            first_smoke_value(level)
    least = {
        "batch": (effort.batch, 1),
        "threads": (effort.threads, 1),
        "tile": (request.tile_px, 1),
        "overlap": (request.overlap_px, 0),
        "min_area": (outline.min_area_m2, 0),
        "simplify": (outline.simplify_px, 0),
    }
    for name, (value, low) in least.items():
        if value is not None and not low <= value < math.inf:
            raise UsageError(f"{name} {value} is not a number from {low} on.")
    Units.said(request.scale, request.offset)


def _text(value: Any) -> Any:
    """Return a scene option as the command line gives it: `nodata=0`, `bbox=(14, 50, 15, 51)`."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Iterable):
        return ",".join(map(str, value))
    return str(value)


def _check(value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise UsageError(f"{value!r} is not one of {', '.join(known)}.")
