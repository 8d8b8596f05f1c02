"""What a product folder is made of, and the checks its readers share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from smokegeo.bands import Band
from smokegeo.errors import InputError
from smokegeo.scene.layers import stored_scaling
from smokegeo.scene.rasters import metadata_of, open_raster
from smokegeo.scene.scene import Coding
from smokegeo.scene.times import read_time
from smokegeo.sensors import sensor

AGAIN = "Download the product again."
#: Where the bands of a product are known from.
PRODUCT = "product metadata"


@dataclass(frozen=True)
class BandFile:
    """One band of a product; physical value = `scale` * stored + `offset`.

    Physical values are reflectance from 0 to 1, or Kelvin. `index` is GDAL's, from one.
    """

    path: Path
    index: int
    band: Band
    scale: float
    offset: float
    nodata: float | None


@dataclass(frozen=True)
class Product:
    """A product: its bands in the sensor's order, its time (UTC), and what to tell the user.

    `doubts` are what was assumed and may be wrong. Stored values of a product that is not `scaled`
    are in units that nothing says, but perhaps a name or tag: their `coding`.
    """

    name: str
    sensor: str | None
    files: tuple[BandFile, ...]
    acquired: datetime | None
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    scaled: bool = True
    bands_from: str = PRODUCT
    coding: Coding | None = None


@dataclass(frozen=True)
class Tags:
    """What a band file says of its own pixels."""

    count: int
    scale: float
    offset: float
    nodata: float | None
    dtype: str
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def scaling(self) -> tuple[float, float] | None:
        """Scale and offset, None if the file has none."""
        return None if (self.scale, self.offset) == (1.0, 0.0) else (self.scale, self.offset)


#: Where a band lies, with its resolution in metres; and (scale, offset) of a band name.
Found = dict[str, tuple[Path, float]]
Scaling = Callable[[str], tuple[float, float]]


def file_names(folder: Path) -> list[str]:
    """Return the names of the plain files in a folder, sorted."""
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())


def inside(folder: Path, path: Path) -> Path:
    """Refuse a path that a symbolic link leads out of the product."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{path} is a link out of the product. Put the file itself there.")
    return path


def read_tags(folder: Path, path: Path, *, raw: bool = False) -> Tags:
    """Return what a band file in a folder says of its pixels; with `raw` not of their scale."""
    with open_raster(inside(folder, path)) as src, metadata_of(path.name):
        scale, offset = (1.0, 0.0) if raw else stored_scaling(src, 1)
        return Tags(src.count, scale, offset, src.nodatavals[0], str(src.dtypes[0]), src.tags())


def tagged_scaling(folder: Path, tags: Mapping[str, Tags]) -> Scaling | None:
    """Return the scaling of the files' own tags, None if they have none.

    Where some bands have tags and some not, one scene would be in two units.
    """
    bare = [band for band, own in tags.items() if own.scaling is None]
    if len(bare) == len(tags):
        return None
    if bare:
        raise InputError(
            f"{folder} has bands with a scale tag and without: {listed(bare)}. "
            "Tag them alike: gdal_edit -scale S -offset O"
        )
    return lambda band: (tags[band].scale, tags[band].offset)


def band_files(
    folder: Path, kind: str, found: Found, scaling: Scaling, nodata: float
) -> tuple[BandFile, ...]:
    """Return the bands found, in the sensor's order, with their scaling."""
    files = []
    for band in sensor(kind).bands:
        if band.name in found:
            path, _ = found[band.name]
            files.append(BandFile(inside(folder, path), 1, band, *scaling(band.name), nodata))
    if not files:
        raise InputError(f"{folder} has no band of use here. {AGAIN}")
    return tuple(files)


def missing(wanted: Iterable[str], found: Mapping[str, object]) -> list[str]:
    """Return a note on wanted bands that were not found."""
    lacking = [name for name in wanted if name not in found]
    return [f"bands missing from the product: {', '.join(lacking)}"] if lacking else []


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return a few names as text."""
    ordered = sorted(names, key=lambda name: (len(name), name))
    return ", ".join(ordered[:most]) + (", ..." if len(ordered) > most else "")


def only(names: Sequence[str], folder: Path, what: str, remedy: str) -> str | None:
    """Return the one name, None if there is none; refuse several."""
    if len(names) > 1:
        raise InputError(f"{folder} holds {len(names)} {what}: {listed(names)}. {remedy}.")
    return names[0] if names else None


def refuse_double(folder: Path, band: str, one: Path, other: Path) -> NoReturn:
    """Refuse two files for one band."""
    raise InputError(f"{folder} has {band} twice: {one.name} and {other.name}. Keep one.")


def number_in(text: str, path: Path, what: str, *, positive: bool = False) -> float:
    """Return a number of the metadata; refuse what is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (positive and value <= 0):
        raise InputError(f"{path}: {what} is {text.strip()[:40]!r}, no usable number. {AGAIN}")
    return value


def finite(path: Path, scale: float, offset: float) -> tuple[float, float]:
    """Refuse a scaling that leads nowhere."""
    if not (math.isfinite(scale) and scale > 0 and math.isfinite(offset)):
        raise InputError(f"{path} scales its bands beyond all numbers. {AGAIN}")
    return scale, offset


def moment(text: str | None, notes: list[str]) -> datetime | None:
    """Return a time in UTC, or None with a note."""
    time = read_time(text)
    if time is None:
        notes.append("the time of acquisition is not known")
    return time
