"""What the samples of all default models share: the sample itself, labels, pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smokegeo.simulate.fields import Field

#: Smoke that takes away more of the light than this is labelled, less than that is not; between
#: the two nobody could say.
LABELLED, UNLABELLED = 0.12, 0.04
#: A change of reflectance below this is not seen.
_VISIBLE = 0.012
IGNORED = 255


@dataclass(frozen=True)
class Sample:
    """An image (bands, h, w) in the model's units, which bands it has, and labels.

    `trusted` says for each band whether its numbers are measurements; those of a stretched picture
    are not. `tag` says how it was made.
    """

    values: NDArray[np.float32]
    has: NDArray[np.bool_]
    trusted: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    target: NDArray[np.uint8]
    tag: str


def label(opacity: Field, change: Field) -> NDArray[np.uint8]:
    """Return 1 for smoke, 0 for none, ignored where it is too thin to be sure."""
    target = np.zeros(opacity.shape, np.uint8)
    target[opacity > UNLABELLED] = IGNORED
    target[(opacity > LABELLED) & (np.abs(change) > _VISIBLE)] = 1
    return target


def stretched(
    values: NDArray[np.float32],
    valid: NDArray[np.bool_],
    has: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Return the image as a picture of 8 bits, 0 to 1, each band or all together stretched."""
    low_q, high_q = float(rng.uniform(0, 3)), float(rng.uniform(96.5, 100))
    pixels = values[:, valid][:, ::7]
    if rng.random() < 0.5:
        low, high = np.percentile(pixels, (low_q, high_q), axis=1)
    else:
        low, high = np.percentile(pixels[has], (low_q, high_q))[:, None] * np.ones(len(values))
    scaled = (values - low[:, None, None]) / np.maximum(high - low, 1e-3)[:, None, None]
    gamma = float(rng.uniform(0.55, 1.15))
    picture = np.rint(255 * np.clip(scaled, 0, 1) ** gamma) / 255
    return np.asarray(picture, np.float32)
