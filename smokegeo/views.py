"""What a network sees of a band: its values as measured, and relative to the rest of the scene.

A model trained on reflectances is lost on a picture that somebody stretched, and one that only
knows each scene's own mean and spread cannot see smoke that covers all of it. A model may ask for
both: two channels for each band. Where measured values cannot be trusted, those channels are
absent, like a band that the sensor lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MEASURED, RELATIVE = "measured", "relative"
VIEWS = (MEASURED, RELATIVE)


@dataclass(frozen=True)
class Recipe:
    """How the bands of one scene become channels: channel = gain * value + shift, or absent.

    Arrays are (bands, views), in the model's order of bands; a channel is absent where `present`
    is False, and its gain does not matter. A network sees channels cut off at `limit` on both
    sides: a flame or the sun is a hundred times brighter than anything around it.
    """

    gain: NDArray[np.float32]
    shift: NDArray[np.float32]
    present: NDArray[np.bool_]
    limit: float | None = None

    @property
    def available(self) -> tuple[bool, ...]:
        """For each channel, in order, whether the network may look at it."""
        return tuple(bool(value) for value in self.present.ravel())

    def channels(
        self, values: NDArray[np.float32], valid: NDArray[np.bool_], places: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return (channels, h, w) from the values (n, h, w) of the bands at `places`.

        Pixels that are not valid become 0; see `smokegeo.blanks`.
        """
        bands, views = self.gain.shape
        out = np.zeros((bands, views, *valid.shape), np.float32)
        blank = None if valid.all() else ~valid
        for position, place in enumerate(places):
            for view in range(views):
                if self.present[place, view]:
                    channel = out[place, view]
                    with np.errstate(invalid="ignore", over="ignore"):
                        np.multiply(values[position], self.gain[place, view], out=channel)
                        channel += self.shift[place, view]
                    if blank is not None:
                        channel[blank] = 0.0
        return out.reshape(bands * views, *valid.shape)

    def cut(self, channels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the channels cut off at the limit, in place."""
        if self.limit is not None:
            np.clip(channels, -self.limit, self.limit, out=channels)
        return channels


def make_recipe(
    views: Sequence[str],
    has: Sequence[bool],
    measured: tuple[NDArray[np.float32], NDArray[np.float32]],
    scene_mean: NDArray[np.floating],
    scene_std: NDArray[np.floating],
    *,
    trusted: bool | Sequence[bool] = True,
    limit: float | None = None,
) -> Recipe:
    """Return the recipe for a scene.

    Args:
        views: The views the model was trained with.
        has: For each band of the model, whether the scene has it.
        measured: Gain and shift of each band that normalise measured values as in training.
        scene_mean: Mean of each band over the scene's valid pixels, NaN for absent bands.
        scene_std: Their spread.
        trusted: False if the scene's numbers are a picture's rather than measurements; for all
            bands, or for each.
        limit: Where channels were cut off in training, if they were.
    """
    count = len(has)
    gain, shift = np.zeros((2, count, len(views)), np.float32)
    present = np.zeros((count, len(views)), bool)
    for number, view in enumerate(views):
        present[:, number] = has
        if view == MEASURED:
            gain[:, number], shift[:, number] = measured
            present[:, number] &= np.asarray(trusted)
        else:
            std = np.where(scene_std > 0, scene_std, 1.0)  # a flat band stays 0
            gain[:, number] = np.nan_to_num(1 / std)
            shift[:, number] = np.nan_to_num(-scene_mean / std)
    return Recipe(gain, shift, present, limit)
