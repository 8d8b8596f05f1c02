"""The three kinds of simulated data: which sensor, which size, which numbers."""

from __future__ import annotations

from dataclasses import dataclass

from smokegeo.bands import BandSet
from smokegeo.errors import UsageError
from smokegeo.sensors import sensor

#: A view smaller than this holds no smoke that could be told from noise.
MIN_SIDE_PX = 16


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of simulated data; `code` keeps the random streams of the kinds apart."""

    name: str
    code: int
    width: int
    height: int
    bytes_per_value: int
    scene_pixel_m: float

    @property
    def bands(self) -> BandSet:
        """The bands of the kind's sensor."""
        return sensor(self.name).bands


KINDS = {
    kind.name: kind
    for kind in (
        Kind("hss", 1, 409, 217, 2, 2.0),
        Kind("mss", 2, 254, 254, 1, 1.0),
        Kind("satellite", 3, 256, 256, 2, 20.0),
    )
}


def find_kind(name: str) -> Kind:
    """Return the kind called `name`."""
    if name not in KINDS:
        raise UsageError(f"kind {name!r} is not known; there are {', '.join(KINDS)}.")
    return KINDS[name]


def check_size(width: int, height: int) -> None:
    """Refuse a view too small to show anything."""
    if min(width, height) < MIN_SIDE_PX:
        raise UsageError(
            f"size {width}x{height} is too small; each side needs at least {MIN_SIDE_PX} pixels."
        )
