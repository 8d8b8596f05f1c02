"""Landsat products (levels 1 and 2, both collections) and harmonised ones, HLS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from smokegeo.errors import InputError
from smokegeo.scene.product import (
    Found,
    Product,
    band_files,
    file_names,
    inside,
    listed,
    missing,
    moment,
    refuse_double,
)
from smokegeo.scene.productmeta import Mtl, read_mtl
from smokegeo.scene.scene import Coding
from smokegeo.sensors import sensor

_ID = (
    r"L(?:C0[89]|O0[89]|T0[4589]|E07)_(?P<level>L1(?:TP|GT|GS)|L2S[PR])"
    r"_\d{6}_\d{8}_\d{8}_0[12]_(?:T1|T2|RT)"
)
MTL = re.compile(rf"(?P<id>{_ID})_MTL\.txt")
BAND = re.compile(
    rf"(?P<id>{_ID})_(?P<form>B|S[RT]_B|sr_band)(?P<band>\d\d?)(?:_VCID_[12])?"
    r"\.(?i:tiff?)"
)
_SENSORS = {
    **dict.fromkeys("45", "landsat5"),
    "7": "landsat7",
    **dict.fromkeys("89", "landsat8"),
}
#: How counts of Collection 2 become reflectances, (scale, offset): of Level 1 without the height of
#: the sun, of Level 2 where no MTL file says it; and Kelvin.
LEVEL1, LEVEL2, _KELVIN = (2e-5, -0.1), (2.75e-5, -0.2), (0.00341802, 149.0)
#: The level in the name of a file that was made from a product, and the names of bands that only
#: Level 2 has.
_FILE = re.compile(r"(?:^|/)L[COTE]0[4-9]_L([12])[A-Z]{2}[_.]")
SURFACE = re.compile(r"(?<![A-Za-z0-9])SR_B\d(?!\d)", re.IGNORECASE)
#: Counts are never lower, even in the dark.
_LEAST = 4000.0

HLS_BAND = re.compile(
    r"(?P<id>HLS\.[SL]30\.T\w{5}\.\d{7}T\d{6}\.v[\d.]+)\.B(?P<band>\d\d|8A)\.(?i:tiff?)"
)
_HLS_CELSIUS = ("B10", "B11")  # of Landsat


def coding_of(name: str, bands: Iterable[str] = ()) -> Coding | None:
    """Return how a file stores reflectances, by its name or by those of its bands of light."""
    match, bands = _FILE.search(name), list(bands)
    if match is not None:
        scale, offset = LEVEL1 if match[1] == "1" else LEVEL2
        why = f"counts of Landsat level {match[1]} by the file's name"
        return Coding(scale, offset, _LEAST, why)
    if bands and all(map(SURFACE.search, bands)):
        return Coding(*LEVEL2, _LEAST, "counts of Landsat level 2 by the names SR_B of its bands")
    return None


def read_landsat(folder: Path, name: str, form: str) -> Product:
    """List the bands of a Landsat product, of one form if the folder holds several."""
    kind = _SENSORS[name[3]]
    names = file_names(folder)
    mtl_path = folder / f"{name}_MTL.txt"
    has_mtl = mtl_path.name in names
    mtl = read_mtl(inside(folder, mtl_path)) if has_mtl else Mtl({}, mtl_path)
    mtl.check_id(name)
    if form == "level 1" and not has_mtl:
        raise InputError(
            f"{folder} lacks {mtl_path.name}, without which Level-1 numbers are no reflectance. "
            "Put it beside the bands."
        )
    thermal = {"B10", "B11"} if kind == "landsat8" else {"B6"}
    found: Found = {}
    left_out: set[str] = set()
    for file in names:
        match = BAND.fullmatch(file)
        if match is None or match["id"] != name or form_of(match) != form:
            continue
        band = f"B{int(match['band'])}"
        is_temperature = match["form"] == "ST_B"
        if band == "B8" or band not in sensor(kind).bands.names:
            continue
        if band in thermal and not is_temperature:
            left_out.add(band)
        elif is_temperature == (band in thermal):
            if band in found:
                refuse_double(folder, band, found[band][0], folder / file)
            found[band] = (folder / file, 30.0)

    notes: list[str] = []
    if left_out:
        notes.append(f"thermal bands left out, being radiance: {listed(left_out)}")
    absent = {"B8"} if form == "level 1" else {"B8", "B9", "B11"}
    absent |= thermal if form != "level 2" or "_L2SR_" in name else set()
    notes += missing([b for b in sensor(kind).bands.names if b not in absent], found)
    if form == "level 2" and not has_mtl:
        notes.append("no MTL file: scaled with the constants of Collection 2 Level 2")

    def scaling(band: str) -> tuple[float, float]:
        if form == "collection 1 surface reflectance":
            return 1e-4, 0.0
        number = band.removeprefix("B")
        if form == "level 2":
            if band in thermal:
                return mtl.level2("TEMPERATURE", f"ST_{band}", _KELVIN)
            return mtl.level2("REFLECTANCE", number, LEVEL2)
        return mtl.level1(number)

    if not has_mtl:
        day = name.split("_")[3]
        acquired = None
        notes.append(f"taken on {day}, at a time unknown without the MTL file")
    else:
        acquired = moment(mtl.time(), notes)
    nodata = -9999.0 if form == "collection 1 surface reflectance" else 0.0
    files = band_files(folder, kind, found, scaling, nodata)
    return Product(name, kind, files, acquired, tuple(notes))


def form_of(match: re.Match[str]) -> str | None:
    """Return which form of a product a band file belongs to, None for one of no use."""
    level1, form = match["level"].startswith("L1"), match["form"]
    if level1 and form == "B":
        return "level 1"
    if not level1 and form in ("SR_B", "ST_B"):
        return "level 2"
    espa = level1 and form == "sr_band" and "_01_" in match["id"]
    return "collection 1 surface reflectance" if espa else None


def read_hls(folder: Path, name: str) -> Product:
    """List the bands of a harmonised product."""
    found: Found = {}
    kind = "sentinel2" if ".S30." in name else "landsat8"
    known = {band.removeprefix("B").rjust(2, "0"): band for band in sensor(kind).bands.names}
    if kind == "landsat8":
        del known["08"]  # HLS has no panchromatic band
    for file in file_names(folder):
        match = HLS_BAND.fullmatch(file)
        if match is None or match["id"] != name or match["band"] not in known:
            continue
        band = known[match["band"]]
        if band in found:
            refuse_double(folder, band, found[band][0], folder / file)
        found[band] = (folder / file, 30.0)

    def scaling(band: str) -> tuple[float, float]:
        thermal = kind == "landsat8" and band in _HLS_CELSIUS
        return (0.01, 273.15) if thermal else (1e-4, 0.0)

    notes = missing(known.values(), found)
    files = band_files(folder, kind, found, scaling, -9999.0)
    acquired: datetime | None
    try:
        acquired = datetime.strptime(name.split(".")[3], "%Y%jT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        acquired = moment(None, notes)
    return Product(name, kind, files, acquired, tuple(notes))
