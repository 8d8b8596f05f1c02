"""What a reader of native files hands on, and the limit on how much it may read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet
from smokegeo.labels import Place
from smokegeo.prepare.faults import SampleFault

#: No frame is larger; a header that says so lies, or is an attack on the memory.
MAX_ARRAY_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class Native:
    """What a native file holds: values in the file's own axis order, and what it knows of them.

    `band_axis` is None where the form leaves open which axis counts the bands. `valid` (y, x)
    is False where the file declares no data. `form` names the form for people.
    """

    values: NDArray[Any]
    form: str
    band_axis: int | None = None
    bands: BandSet | None = None
    place: Place | None = None
    valid: NDArray[np.bool_] | None = None


def check_size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array that no frame could be, before it is read."""
    if dtype.kind not in "biufc":
        raise SampleFault("unreadable", f"holds {dtype}, not numbers")
    if float(np.prod(shape, dtype=np.float64)) * dtype.itemsize > MAX_ARRAY_BYTES:
        raise SampleFault("too large", "x".join(map(str, shape)))


def is_elsewhere(one: Place, other: Place) -> bool:
    """Tell whether two images of the same size do not lie on each other."""
    return one.crs != other.crs or not one.transform.almost_equals(other.transform, 1e-6)


def shared_place(places: Iterable[Place | None]) -> Place | None:
    """Return where the parts of an image lie; those that say so must agree."""
    known = [place for place in places if place is not None]
    if any(is_elsewhere(known[0], place) for place in known[1:]):
        raise SampleFault("parts lie elsewhere", "their georeferences differ")
    return known[0] if known else None


def shared_valid(parts: Iterable[NDArray[np.bool_] | None]) -> NDArray[np.bool_] | None:
    """Return (y, x), True where every part of an image has data; None if none declares nodata."""
    known = [valid for valid in parts if valid is not None]
    return np.logical_and.reduce(known) if known else None


def squeezed(values: NDArray[Any]) -> NDArray[Any]:
    """Drop axes of length one from arrays of more than two axes."""
    return values.reshape([n for n in values.shape if n != 1]) if values.ndim > 2 else values
