"""Read product metadata, a stranger's text: it gives numbers, never file names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from smokegeo.errors import InputError
from smokegeo.scene.product import AGAIN, finite, number_in

_MAX_METADATA_BYTES = 20_000_000


@dataclass(frozen=True)
class Mtl:
    """The values of an MTL file by group and key; Level 2 files repeat Level 1's keys."""

    values: Mapping[tuple[str, str], str]
    path: Path

    def text(self, key: str, *groups: str) -> str | None:
        """Return a value from the first of the groups that has it."""
        return next((self.values[g, key] for g in groups if (g, key) in self.values), None)

    def number(self, key: str, *groups: str, positive: bool = False) -> float:
        """Return a value that must be there and be a number."""
        text = self.text(key, *groups)
        if text is None:
            raise InputError(f"{self.path} has no {key}. {AGAIN}")
        return number_in(text, self.path, key, positive=positive)

    def check_id(self, name: str) -> None:
        """Refuse the metadata of another product."""
        own = self.text("LANDSAT_PRODUCT_ID", "PRODUCT_CONTENTS", "METADATA_FILE_INFO")
        if own is not None and own != name:
            raise InputError(f"{self.path} describes another product, {own[:60]!r}. {AGAIN}")

    def level1(self, number: str) -> tuple[float, float]:
        """Return scale and offset to reflectance of a Level-1 band, with the sun taken in."""
        groups = ("LEVEL1_RADIOMETRIC_RESCALING", "RADIOMETRIC_RESCALING")
        scale = self.number(f"REFLECTANCE_MULT_BAND_{number}", *groups, positive=True)
        offset = self.number(f"REFLECTANCE_ADD_BAND_{number}", *groups)
        sun_deg = self.number("SUN_ELEVATION", "IMAGE_ATTRIBUTES", "PRODUCT_METADATA")
        if not 0 < sun_deg <= 90:
            raise InputError(
                f"{self.path}: the sun stood at {sun_deg:g} degrees, so there is no reflectance. "
                "Choose a scene taken by day."
            )
        sine = math.sin(math.radians(sun_deg))
        return finite(self.path, scale / sine, offset / sine)

    def level2(self, what: str, band: str, known: tuple[float, float]) -> tuple[float, float]:
        """Return scale and offset of a Level-2 band; the known ones if none are given."""
        group = f"LEVEL2_SURFACE_{what}_PARAMETERS"
        if self.text(f"{what}_MULT_BAND_{band}", group) is None:
            return known
        scale = self.number(f"{what}_MULT_BAND_{band}", group, positive=True)
        return scale, self.number(f"{what}_ADD_BAND_{band}", group)

    def time(self) -> str | None:
        """Return when the scene was taken, as text."""
        groups = ("IMAGE_ATTRIBUTES", "PRODUCT_METADATA")
        day, hour = (self.text(key, *groups) for key in ("DATE_ACQUIRED", "SCENE_CENTER_TIME"))
        return None if day is None or hour is None else f"{day}T{hour}"


def read_mtl(path: Path) -> Mtl:
    """Return the values of a Landsat MTL file."""
    try:
        text = _read_metadata(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text. {AGAIN}") from error
    values: dict[tuple[str, str], str] = {}
    groups = [""]
    for line in text.splitlines():
        key, equals, value = (part.strip() for part in line.partition("="))
        if key == "GROUP":
            groups.append(value)
        elif key == "END_GROUP":
            del groups[max(1, len(groups) - 1) :]
        elif equals:
            value = value.strip('"')
            if values.setdefault((groups[-1], key), value) != value:
                raise InputError(f"{path} gives two values of {key[:60]}. {AGAIN}")
    return Mtl(values, path)


class Texts:
    """The few texts we want of an XML file, taken as it is parsed; no tree that could grow."""

    def __init__(self, wanted: frozenset[str] = frozenset()) -> None:
        self.wanted = wanted
        self.root = ""
        self.values: dict[str, list[tuple[str | None, str]]] = {}
        self._open: str | None = None
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Note a wanted element."""
        name = tag.rpartition("}")[2]
        self.root = self.root or name
        self._depth += 1
        if self._depth > 100:
            raise ValueError("its elements are nested too deeply")
        self._open = name if name in self.wanted else None
        if self._open is not None:
            self.values.setdefault(name, []).append((attributes.get("band_id"), ""))

    def data(self, text: str) -> None:
        """Keep the text of a wanted element, the first 200 characters of it."""
        if self._open is not None:
            band_id, before = self.values[self._open][-1]
            self.values[self._open][-1] = (band_id, (before + text)[:200])

    def end(self, tag: str) -> None:
        """Close an element."""
        self._open = None
        self._depth -= 1

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        """Refuse a document type before any entity can be declared."""
        raise ValueError("it declares a document type, which product metadata never does")

    def close(self) -> Texts:
        """Return all that was kept."""
        return self

    def one(self, name: str, path: Path) -> str | None:
        """Return the text of an element that stands in the file once, or None."""
        found = {text.strip() for _, text in self.values.get(name, [])}
        if len(found) > 1:
            raise InputError(f"{path} gives two values of {name}. {AGAIN}")
        return next(iter(found), None)


def read_xml(path: Path, wanted: frozenset[str]) -> Texts:
    """Return the texts of the wanted elements."""
    # expat fetches nothing from outside, and `doctype` stops it before any entity is declared.
    parser = ElementTree.XMLParser(target=Texts(wanted))  # noqa: S314
    try:
        parser.feed(_read_metadata(path))
        texts = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InputError(f"{path} is not usable XML ({error}). {AGAIN}") from error
    return texts if isinstance(texts, Texts) else Texts()


def _read_metadata(path: Path) -> bytes:
    with path.open("rb") as handle:
        data = handle.read(_MAX_METADATA_BYTES + 1)
    if len(data) > _MAX_METADATA_BYTES:
        raise InputError(
            f"{path} is larger than {_MAX_METADATA_BYTES // 10**6} MB, too much for metadata. "
            f"{AGAIN}"
        )
    return data
