"""Make one mask of what was read: binary in any rendering, or several annotators' votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.consensus import merge_masks
from smokegeo.datasets.layout import IGNORE
from smokegeo.labels import Place, normalise_labels
from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.native import Native, squeezed

_PICTURES = frozenset({"png", "jpeg", "bmp"})
_MAX_ANNOTATORS = 9


@dataclass(frozen=True)
class Labelled:
    """A frame's mask, (y, x) uint8 of 0, 1 and 255 = ignored; votes if several annotators drew it.

    `values` are the values the files really hold, for the report.
    """

    mask: NDArray[np.uint8]
    votes: NDArray[np.uint8] | None
    annotators: int
    values: tuple[int, ...]
    place: Place | None = None


def settle_masks(natives: Sequence[Native], size: tuple[int, int]) -> Labelled:
    """Merge the masks of one frame of `size` (height, width)."""
    layers: list[NDArray[Any]] = []
    for native in natives:
        layers.extend(_layers(native, size))
    for layer in layers:
        if layer.shape != size:
            (height, width), (mask_height, mask_width) = size, layer.shape
            raise SampleFault(
                "mask size differs", f"{width}x{height}, mask {mask_width}x{mask_height}"
            )
    values = tuple(sorted({int(v) for layer in layers for v in _checked_values(layer)}))
    masks = [normalise_labels(layer) for layer in layers]
    place = natives[0].place
    if len(masks) == 1:
        return Labelled(masks[0], None, 1, values, place)
    if len(masks) < 3:
        raise SampleFault("two masks", "a majority needs three annotators")
    ignored = np.logical_or.reduce([mask == IGNORE for mask in masks])
    merged = merge_masks([mask == 1 for mask in masks])
    mask = np.where(ignored, np.uint8(IGNORE), merged.mask)
    return Labelled(mask, merged.votes, merged.annotators, values, place)


def _layers(native: Native, size: tuple[int, int]) -> list[NDArray[Any]]:
    values = squeezed(native.values)
    if values.ndim == 2:
        return [values]
    if values.ndim != 3:
        raise SampleFault("mask shape", "x".join(map(str, values.shape)))
    if native.form in _PICTURES:
        return [_from_colours(values)]
    axis = _annotator_axis(values.shape, size)
    stack = np.moveaxis(values, axis, 0)
    if len(stack) > _MAX_ANNOTATORS:
        raise SampleFault("mask shape", "x".join(map(str, values.shape)))
    if native.form == "tif" and _is_grey(stack):
        return [stack[0]]
    if native.form == "tif" and _is_tinted(stack):
        raise SampleFault("mask is ambiguous", "a colour picture, or annotators who saw nothing")
    return list(stack)


def _is_grey(stack: NDArray[Any]) -> bool:
    """Tell one mask drawn in white on black from annotators who agree."""
    return len(stack) == 3 and int(stack.max()) == 255 and bool((stack == stack[:1]).all())


def _annotator_axis(shape: tuple[int, ...], size: tuple[int, int]) -> int:
    fits = [axis for axis in range(3) if shape[:axis] + shape[axis + 1 :] == size]
    if len(fits) > 1:
        raise SampleFault("axes ambiguous", f"mask {'x'.join(map(str, shape))}")
    return fits[0] if fits else int(np.argmin(shape))


def _from_colours(channels: NDArray[Any]) -> NDArray[Any]:
    """Turn the (channel, y, x) rendering of a binary mask into labels: black is background."""
    if len(channels) in (2, 4):
        channels, alpha = channels[:-1], channels[-1]
        if alpha.min() != alpha.max():
            raise SampleFault("mask values", "its transparency varies")
    if (channels == channels[:1]).all():
        return np.asarray(channels[0])
    colours = np.unique(channels.reshape(len(channels), -1), axis=1).T
    if len(colours[colours.any(axis=1)]) != 1:
        shown = ", ".join(str(tuple(int(c) for c in colour)) for colour in colours[:6])
        raise SampleFault("mask values", f"colours {shown}{', ...' if len(colours) > 6 else ''}")
    return np.asarray(channels.any(axis=0), np.uint8)


def _is_tinted(stack: NDArray[Any]) -> bool:
    """Tell a mask rendered in pure red, say: 8-bit channels that are all empty or all the same."""
    drawn = [layer for layer in stack if layer.any()]
    empty = len(drawn) < len(stack)
    same = all((layer == drawn[0]).all() for layer in drawn)
    return bool(drawn) and empty and same and stack.dtype == np.uint8 and stack.max() == 255


def _checked_values(layer: NDArray[Any]) -> list[float]:
    """Return the distinct values of a mask, refusing those that mean nothing."""
    found: list[float] = np.unique(layer).tolist()
    if not set(found) <= {0, 1, IGNORE}:
        shown = ", ".join(f"{float(value):g}" for value in found[:8])
        raise SampleFault("mask values", shown + (", ..." if len(found) > 8 else ""))
    return found
