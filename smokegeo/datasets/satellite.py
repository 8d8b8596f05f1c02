"""Satellite chips with smoke masks."""

from __future__ import annotations

from smokegeo.datasets.smoke import SmokeDataset


class Satellite(SmokeDataset):
    """Georeferenced satellite chips in the six bands most optical satellites share.

    Features:

    * blue, green, red, near infrared and two short-wave infrared bands, reflectance x 10,000
    * every chip in a real UTM zone
    * simulated only: no labelled spectral smoke is openly available in quantity

    Classes: 0 background, 1 smoke, 255 ignored.

    Format: written by `smokegeo simulate satellite`.
    """

    kind = "satellite"
