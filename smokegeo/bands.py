"""Bands and band sets, and the matching of a scene's bands to those a model wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smokegeo.errors import UsageError

#: Widths assumed for a band whose own width is unknown: (below this wavelength, width), in nm.
_TYPICAL_FWHM_NM = ((1100.0, 20.0), (3000.0, 60.0), (float("inf"), 1000.0))

#: A band this many times wider than the wanted one (a panchromatic band, say) measures
#: something else, however near its centre lies.
_MAX_WIDTH_RATIO = 4.0

#: A band that sees all from green to red, whatever its centre, is panchromatic.
_PANCHROMATIC_NM = (550.0, 660.0)

#: From here on a band sees heat, not sunlight.
_THERMAL_NM = 3000.0
_THERMAL_NAMES = ("thermal", "tir", "lwir", "mwir", "ir")


@dataclass(frozen=True, slots=True)
class Band:
    """One spectral band: a name, its centre and its full width at half maximum.

    Unknown numbers are None; such a band can be matched by name only.
    """

    name: str
    wavelength_nm: float | None = None
    fwhm_nm: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("a band needs a name.")
        for label, value in (("wavelength", self.wavelength_nm), ("width", self.fwhm_nm)):
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"band {self.name}: {label} {value} nm is not a positive number.")

    @property
    def width_nm(self) -> float:
        """The band's width, or a typical one for its region of the spectrum."""
        if self.fwhm_nm is not None:
            return self.fwhm_nm
        centre = self.wavelength_nm or 0.0
        return next(width for limit, width in _TYPICAL_FWHM_NM if centre < limit)


def is_thermal(band: Band) -> bool:
    """True if a band sees heat."""
    if band.wavelength_nm is None:
        return band.name.casefold() in _THERMAL_NAMES
    return band.wavelength_nm >= _THERMAL_NM


@dataclass(frozen=True, slots=True)
class BandSet:
    """An ordered set of bands with unique names (case aside), of one `sensor` if it says so."""

    bands: tuple[Band, ...]
    sensor: str | None = None

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for band in self.bands:
            if band.name.casefold() in seen:
                raise UsageError(f"band {band.name} is listed twice.")
            seen.add(band.name.casefold())

    def __len__(self) -> int:
        return len(self.bands)

    def __iter__(self) -> Iterator[Band]:
        return iter(self.bands)

    def __getitem__(self, index: int) -> Band:
        return self.bands[index]

    @property
    def names(self) -> tuple[str, ...]:
        """The band names, in order."""
        return tuple(band.name for band in self.bands)

    @property
    def wavelengths_nm(self) -> tuple[float | None, ...]:
        """The centre wavelengths, in order."""
        return tuple(band.wavelength_nm for band in self.bands)

    def index(self, name: str) -> int:
        """Return the zero-based position of the band called `name`, whatever its case."""
        wanted = name.casefold()
        for position, band in enumerate(self.bands):
            if band.name.casefold() == wanted:
                return position
        raise UsageError(f"no band {name!r}; there are {', '.join(self.names)}.")

    def subset(self, names: Iterable[str]) -> BandSet:
        """Return the named bands, in the order given."""
        return BandSet(tuple(self.bands[self.index(name)] for name in names), self.sensor)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready form; `from_dict` reads it back."""
        return {
            "sensor": self.sensor,
            "bands": [
                {"name": b.name, "wavelength_nm": b.wavelength_nm, "fwhm_nm": b.fwhm_nm}
                for b in self.bands
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BandSet:
        """Build a band set from what `to_dict` wrote."""
        bands = tuple(
            Band(str(b["name"]), _number(b.get("wavelength_nm")), _number(b.get("fwhm_nm")))
            for b in data["bands"]
        )
        sensor = data.get("sensor")
        return cls(bands, None if sensor is None else str(sensor))


@dataclass(frozen=True, slots=True)
class BandMatch:
    """What one wanted band got: the scene band at `found`, `offset_nm` away, or nothing."""

    wanted: Band
    found: int | None
    offset_nm: float | None

    @property
    def absent(self) -> bool:
        """True if the scene has no such band."""
        return self.found is None


@dataclass(frozen=True, slots=True)
class Matching:
    """The answer of `match_bands`: one entry per wanted band, in the model's order."""

    entries: tuple[BandMatch, ...]
    scene: BandSet

    @property
    def available(self) -> tuple[bool, ...]:
        """For each wanted band, whether the scene has it."""
        return tuple(not entry.absent for entry in self.entries)

    @property
    def indexes(self) -> tuple[int | None, ...]:
        """For each wanted band, the zero-based scene band, or None."""
        return tuple(entry.found for entry in self.entries)

    def lines(self) -> list[str]:
        """Return one readable line per wanted band."""
        out = []
        for entry in self.entries:
            if entry.found is None:
                out.append(f"{_label(entry.wanted)}: absent")
                continue
            got = _label(self.scene[entry.found])
            if entry.offset_nm is None:
                out.append(f"{_label(entry.wanted)}: {got}, by name")
            else:
                out.append(f"{_label(entry.wanted)}: {got}, {entry.offset_nm:+.0f} nm off")
        return out


def match_bands(scene: BandSet, model: BandSet) -> Matching:
    """Find, for each band of the model, the scene band that measures the same light.

    Within one sensor names decide. Otherwise two bands may pair if their pass-bands
    overlap, that is if the centres lie no further apart than the mean of the two widths, or,
    of two colours of one name, than the larger of them; the closest pairs are made first and
    no band is used twice. A band without wavelength pairs with one of the same name.
    """
    if scene.sensor is not None and scene.sensor == model.sensor:
        found = _match_names(scene, model, lambda a, b: True)
    else:
        found = _match_names(
            scene, model, lambda a, b: a.wavelength_nm is None or b.wavelength_nm is None
        )
        _add_by_wavelength(found, scene, model)
    entries = []
    for position, wanted in enumerate(model):
        index = found.get(position)
        offset = None if index is None else _offset_nm(scene[index], wanted)
        entries.append(BandMatch(wanted, index, offset))
    return Matching(tuple(entries), scene)


def parse_band_list(text: str | Sequence[str], available: BandSet) -> tuple[int, ...]:
    """Turn a user's band choice (`red,nir`, `B04,B08` or `4,8`) into zero-based positions.

    Plain numbers are one-based positions, as in GDAL.
    """
    items = text.split(",") if isinstance(text, str) else list(text)
    chosen: list[int] = []
    for item in (raw.strip() for raw in items):
        position = int(item) - 1 if item.isdecimal() else available.index(item)
        if not 0 <= position < len(available):
            raise UsageError(f"band {item} does not exist; there are {len(available)} bands.")
        if position in chosen:
            raise UsageError(f"band {item} is chosen twice.")
        chosen.append(position)
    return tuple(chosen)


def _match_names(
    scene: BandSet, model: BandSet, allowed: Callable[[Band, Band], bool]
) -> dict[int, int]:
    by_name = {band.name.casefold(): index for index, band in enumerate(scene)}
    pairs = {}
    for position, wanted in enumerate(model):
        index = by_name.get(wanted.name.casefold())
        if index is not None and allowed(scene[index], wanted):
            pairs[position] = index
    return pairs


def _add_by_wavelength(found: dict[int, int], scene: BandSet, model: BandSet) -> None:
    candidates = []
    for position, wanted in enumerate(model):
        for index, band in enumerate(scene):
            offset = _offset_nm(band, wanted)
            if offset is None or band.width_nm > _MAX_WIDTH_RATIO * wanted.width_nm:
                continue
            if _is_panchromatic(band) != _is_panchromatic(wanted):
                continue
            if abs(offset) <= _reach_nm(band, wanted):
                candidates.append((abs(offset), position, index))
    used = set(found.values())
    for _, position, index in sorted(candidates):
        if position not in found and index not in used:
            found[position] = index
            used.add(index)


def _reach_nm(band: Band, wanted: Band) -> float:
    """Return how far apart the centres of two bands may lie; a colour camera's red is wide.

    Only names that are words mean one colour everywhere, unlike B2.
    """
    widths = (band.width_nm, wanted.width_nm)
    same = band.name.isalpha() and band.name.casefold() == wanted.name.casefold()
    return max(widths) if same else sum(widths) / 2


def _offset_nm(band: Band, wanted: Band) -> float | None:
    if band.wavelength_nm is None or wanted.wavelength_nm is None:
        return None
    return band.wavelength_nm - wanted.wavelength_nm


def _is_panchromatic(band: Band) -> bool:
    if band.wavelength_nm is None or band.fwhm_nm is None:
        return False
    low, high = _PANCHROMATIC_NM
    return band.wavelength_nm - band.fwhm_nm / 2 < low and (
        band.wavelength_nm + band.fwhm_nm / 2 > high
    )


def _label(band: Band) -> str:
    return band.name if band.wavelength_nm is None else f"{band.name} ({band.wavelength_nm:g} nm)"


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
