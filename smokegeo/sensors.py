"""Sensor presets: the band sets of known instruments, read from `presets/*.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from smokegeo.bands import Band, BandSet
from smokegeo.errors import InputError, UsageError

#: Other names people type for a preset.
_ALIASES = {
    "s2": "sentinel2",
    "l8": "landsat8",
    "l9": "landsat8",
    "landsat9": "landsat8",
    "oli": "landsat8",
    "l7": "landsat7",
    "etm": "landsat7",
    "l5": "landsat5",
    "landsat4": "landsat5",
    "tm": "landsat5",
    "rededge": "rededge_mx",
    "micasense": "rededge_mx",
    "ximea": "ximea_sm5x5_nir",
}


@dataclass(frozen=True, slots=True)
class Mosaic:
    """A snapshot camera's filter block: `rank[i][j]` is the zero-based band under pixel (i, j)."""

    rank: tuple[tuple[int, ...], ...]
    skip_rows: int
    skip_columns: int


@dataclass(frozen=True, slots=True)
class Sensor:
    """A known instrument: its preset name, a title for people, its bands, its mosaic if any."""

    name: str
    title: str
    bands: BandSet
    mosaic: Mosaic | None = None


@cache
def sensors() -> Mapping[str, Sensor]:
    """Return all presets by name, sorted."""
    folder = files("smokegeo") / "presets"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".toml"))
    return {
        name[:-5]: parse_sensor(name[:-5], (folder / name).read_text("utf-8")) for name in names
    }


def sensor(name: str) -> Sensor:
    """Return the preset called `name` (or an alias); case, spaces and dashes do not matter."""
    key = _plain(name)
    key = _plain(_ALIASES.get(key, key))
    for preset in sensors().values():
        if _plain(preset.name) == key:
            return preset
    raise UsageError(f"sensor {name!r} is not known; there are {', '.join(sensors())}.")


def read_sensor_file(path: Path) -> Sensor:
    """Read a user's own preset, in the form of those in `smokegeo/presets`."""
    try:
        return parse_sensor(path.stem, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}).") from error


def parse_sensor(name: str, text: str) -> Sensor:
    """Build a sensor from the text of a preset file."""
    try:
        data = tomllib.loads(text)
        bands = tuple(
            Band(str(label), float(nm), *(float(value) for value in fwhm))
            for label, nm, *fwhm in data["bands"]
        )
        return Sensor(name, str(data["title"]), BandSet(bands, name), _mosaic(data, len(bands)))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, UsageError) as error:
        raise InputError(
            f"sensor file {name}.toml is not usable ({error}); compare it with smokegeo/presets."
        ) from error


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())


def _mosaic(data: Mapping[str, Any], count: int) -> Mosaic | None:
    table = data.get("mosaic")
    if table is None:
        return None
    rank = tuple(tuple(int(value) - 1 for value in row) for row in table["rank"])
    flat = sorted(value for row in rank for value in row)
    if flat != list(range(count)) or len({len(row) for row in rank}) != 1:
        raise ValueError(f"mosaic.rank must hold each number from 1 to {count} once")
    return Mosaic(rank, int(table.get("skip_rows", 0)), int(table.get("skip_columns", 0)))
