"""Three people draw the same smoke: they agree on the thick part and not on its thin edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from smokegeo.simulate.fields import Field, blur, enlarge, fractal, smoothstep, warp

#: Light that a change of smoke must make before a person sees it, and is sure of it.
_JUST_SEEN, _PLAIN = 0.004, 0.025

#: Patches smaller than this are not worth a click beside a larger one.
_SPECK_PX = 20

#: Opacity below which nobody sees that there is smoke.
_FAINTEST = 0.03


@dataclass(frozen=True, slots=True)
class Annotator:
    """A person's habits: the opacity where smoke begins, and how far the hand wanders, in px."""

    threshold: float
    wobble_px: float
    smoothing_px: float
    spread: float


#: A careful one, a usual one, and one who takes in every veil.
ANNOTATORS = (
    Annotator(0.24, 1.0, 1.0, 0.12),
    Annotator(0.19, 1.2, 1.2, 0.12),
    Annotator(0.076, 2.2, 2.2, 0.16),
)


def visible_smoke(opacity: Field, change: Field) -> Field:
    """Return opacity (y, x) as an eye credits it: smoke that changes no brightness is not seen.

    `change` is how much the smoke changes the bands, up or down, in the mean and in units of full
    daylight. People look at patches, not at pixels, so a gap inside a plume is filled in.
    """
    patch = np.maximum(blur(change, 2.5), change)
    out: Field = opacity * (0.1 + 0.9 * smoothstep(_JUST_SEEN, _PLAIN, patch))
    return out


def annotate(seen: Field, rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """Return the masks (y, x) of 0 and 1 that the three annotators draw over visible smoke."""
    mood = float(rng.normal(0, 0.08))  # a frame that looks thick to one looks so to all
    return [_draw(seen, annotator, mood, rng) for annotator in ANNOTATORS]


def _draw(
    seen: Field, annotator: Annotator, mood: float, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return one mask; the outline wanders slowly, and specks are not worth a click."""
    shape = seen.shape
    small = (max(2, shape[0] // 6), max(2, shape[1] // 6))
    wobble = [
        enlarge(fractal(small, rng, slope=1.2, largest_px=6.0), shape)
        * np.float32(annotator.wobble_px)
        for _ in range(2)
    ]
    outline = warp(blur(seen, annotator.smoothing_px), wobble[0], wobble[1])
    level = annotator.threshold * float(np.exp(mood + rng.normal(0, annotator.spread)))
    peak = float(outline.max())
    # Smoke thinner than one's usual mark is still drawn if it stands out at all.
    drawn = outline > (min(level, 0.75 * peak) if peak > _FAINTEST else level)
    labels, count = ndimage.label(drawn)
    if count > 1:
        areas = np.bincount(labels.ravel())
        areas[0] = 0
        drawn = (areas >= min(_SPECK_PX, int(areas.max())))[labels]
    return drawn.astype(np.uint8)
