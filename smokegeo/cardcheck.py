"""What a model's card must hold for the rest of the package to rely on it.

A card comes from anyone, as JSON: each field may be of any type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smokegeo.looks import SIZES
from smokegeo.views import VIEWS

if TYPE_CHECKING:
    from smokegeo.modelfile import Card

SMOKE = "smoke"
#: Views of bands a card may ask for; more would not fit into the memory of some machines.
_MOST_MARGIN = 100
_MOST_CHANNELS = 1000
#: Units of heat a card may name.
_HEAT = ("celsius", "kelvin", "centikelvin", "raw")
_TEXTS = ("name", "architecture", "licence", "summary", "smokegeo", "sha256")
_MAPPINGS = ("options", "input", "training", "metrics")


def card_faults(card: Card) -> Iterator[str]:
    """Yield what is wrong with a card; each check relies on those before it."""
    yield from (f"{name} is no text" for name in _TEXTS if not isinstance(getattr(card, name), str))
    yield from (
        f"{name} holds no names and values" for name in _MAPPINGS if not _is_mapping(card, name)
    )
    if not 0 < card.threshold <= 1:
        yield f"threshold {card.threshold} is not above 0 and up to 1"
    yield from _class_faults(card)
    yield from _input_faults(card)
    yield from _training_faults(card)
    if not (_is_whole(card.tile_px) and _is_whole(card.overlap_px)):
        yield f"tile_px {card.tile_px!r} or overlap_px {card.overlap_px!r} is no whole number"
    if not 0 <= card.overlap_px < card.tile_px:
        yield f"tiles of {card.tile_px} px cannot overlap by {card.overlap_px}"
    if card.resolution_m is not None and not 0 < card.resolution_m[0] <= card.resolution_m[1]:
        yield f"resolution_m {card.resolution_m} does not go from a size above 0 to a larger one"
    yield from _statistics_faults(card)


def _class_faults(card: Card) -> Iterator[str]:
    # With fewer classes than the network has outputs, smoke would be read from the wrong one.
    count = card.options.get("classes", 2)
    if len(card.classes) != count or len(set(card.classes)) != len(card.classes):
        yield f"classes {card.classes} are not {count} different ones"
    if SMOKE not in card.classes:
        yield f"classes {card.classes} are without {SMOKE}"


def _input_faults(card: Card) -> Iterator[str]:
    facts = card.input
    if not _are_some(card.views, VIEWS):
        yield f"views {card.views} are not some of {VIEWS}, each once"
    if card.channels > _MOST_CHANNELS:
        yield f"{card.channels} channels are more than {_MOST_CHANNELS}"
    sizes, closer = tuple(facts.get("sizes", (1,))), tuple(facts.get("closer", ()))
    if not _are_sizes(sizes):
        yield f"sizes {sizes} are not some of {SIZES}, each once"
    if closer and not _are_sizes(closer):
        yield f"closer {closer} are not some of {SIZES}, each once"
    for name in ("limit", "full"):
        if facts.get(name) is not None and not (
            _is_number(facts[name]) and 0 < facts[name] < math.inf
        ):
            yield f"{name} {facts[name]!r} is no number above 0"
    margin = facts.get("closer_margin", 0)
    if not (_is_number(margin) and 0 <= margin <= _MOST_MARGIN):
        yield f"closer_margin {margin!r} is no number from 0 to {_MOST_MARGIN}"
    for name in ("min_bands", "side_px"):
        if not _is_whole(facts.get(name, 1)) or facts.get(name, 1) < 1:
            yield f"{name} {facts[name]!r} is no whole number above 0"
    if facts.get("heat") not in (None, *_HEAT):
        yield f"heat {facts['heat']!r} is not one of {', '.join(_HEAT)}"


def _training_faults(card: Card) -> Iterator[str]:
    if not isinstance(card.training.get("config", {}), Mapping):
        yield "config of its training holds no names and values"
    few = card.training.get("few")
    if few is not None and not (isinstance(few, Mapping) and _is_whole(few.get("below"))):
        yield "few says not below how many bands"
    validation = card.metrics.get("validation", {})
    if not (isinstance(validation, Mapping) and isinstance(validation.get("total", {}), Mapping)):
        yield "validation of its metrics holds no names and values"
    else:
        score = validation.get("total", {}).get("f1_image")
        if score is not None and not (_is_number(score) and 0 <= score <= 1):
            yield f"f1_image {score!r} is no number from 0 to 1"


def _statistics_faults(card: Card) -> Iterator[str]:
    known = card.statistics
    if known.names != card.bands.names:
        yield "the statistics are of other bands than its own"
    numbers = (*known.mean, *known.std)
    if len(numbers) != 2 * len(card.bands) or not all(map(math.isfinite, numbers)):
        yield "each band needs a mean and a spread"
    if len(known.mean) != len(known.std) or min(known.std, default=0.0) < 0:
        yield "the spread of a band is below 0"
    if not len(known.minimum) == len(known.maximum) == len(card.bands):
        yield "each band needs a minimum and a maximum"


def _are_some(values: Sequence[Any], known: Sequence[Any]) -> bool:
    """Say whether there are values, all of them known and none there twice."""
    return bool(values) and set(values) <= set(known) and len(set(values)) == len(values)


def _are_sizes(values: Sequence[Any]) -> bool:
    return _are_some(values, SIZES) and all(map(_is_number, values))


def _is_mapping(card: Card, name: str) -> bool:
    return isinstance(getattr(card, name), Mapping)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    # Python's whole numbers have no end, and the largest have no place among the others.
    return isinstance(value, float) or (_is_whole(value) and abs(value) < 2**63)
