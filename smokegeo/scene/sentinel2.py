"""Sentinel-2 products: .SAFE folders of both levels, and flat folders of band files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from smokegeo.bandnames import guess_sensor
from smokegeo.errors import InputError
from smokegeo.scene.product import (
    AGAIN,
    Found,
    Product,
    Scaling,
    Tags,
    band_files,
    file_names,
    finite,
    inside,
    missing,
    moment,
    number_in,
    only,
    read_tags,
    refuse_double,
    tagged_scaling,
)
from smokegeo.scene.productmeta import read_xml
from smokegeo.scene.scene import Coding

#: The metadata of a Sentinel-2 product, today's name and that before December 2016.
METADATA = re.compile(r"MTD_MSIL(?:1C|2[Aa])\.xml|S2\w_\w+_MTD_(?:SAF|DMP)L(?:1C|2A)_\w+\.xml")
BAND = re.compile(
    r"(?P<id>.*?)(?<![A-Za-z0-9])B(?P<band>0?[1-9]|1[0-2]|8A)(?:_(?P<gsd>[126]0)m)?"
    r"\.(?i:jp2|tiff?)"
)
#: The bands of 10 m, often kept alone; Landsat's B8 sees all colours and is seldom kept with them.
_FINE = {"B2", "B3", "B4", "B8"}
#: What the Copernicus Browser calls a band it gives out, and the numbers that stand for 1 there.
_RAW = re.compile(r"[ _]?\((?i:raw)\)(?=\.\w+$)")
_BROWSER_FULL = {"uint8": 255.0, "uint16": 65_535.0}
_TEXTS = {
    "L1C": (("QUANTIFICATION_VALUE",), "RADIO_ADD_OFFSET"),
    "L2A": (("BOA_QUANTIFICATION_VALUE", "L2A_BOA_QUANTIFICATION_VALUE"), "BOA_ADD_OFFSET"),
}
_LEVELS = {"Level-1C_User_Product": "L1C", "Level-2A_User_Product": "L2A"}
#: Native resolution, in the order that `band_id` counts.
_GSD_M = dict(
    zip(
        ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12"),
        (60.0, 10.0, 10.0, 10.0, 20.0, 20.0, 20.0, 10.0, 20.0, 60.0, 60.0, 20.0, 20.0),
        strict=True,
    )
)
#: From this processing baseline on, 1000 is added to every stored value; from this day on, ESA
#: made no product without it. Sen2Cor run by a user calls its baseline 99.99.
_OFFSET_BASELINE, _OFFSET_DAY, _OWN_BASELINE = 400, "20220125", 9999
#: What to do if no offset was assumed, and there is one.
_ADDED = (
    "If 1000 was added to each, as ESA does since 2022, put the product's MTD_MSIL*.xml beside the "
    "bands, or give {}--scale 1 --offset -1000"
)
#: What a file made from a product is called, and tags that say what to add to its values.
_FILE = re.compile(r"S2[A-Z]_MSIL(?:1C|2A)_\d{8}T\d{6}_N(\d{4})(?![0-9])")
_OFFSET_TAG = re.compile(r"(?:BOA|RADIO)_ADD_OFFSET(?:_\w+)?", re.IGNORECASE)
#: With 1000 added, no value is so low, even where the air was corrected for too much.
_LEAST_ADDED = 500.0
_WANTED = frozenset(
    {"PRODUCT_START_TIME", "SPACECRAFT_NAME", "PROCESSING_BASELINE"}
    | {name for names, offset in _TEXTS.values() for name in (*names, offset)}
)


def read_safe(folder: Path, metadata: str | None) -> Product:
    """List the bands of a .SAFE folder."""
    if metadata is None:
        raise InputError(
            f"{folder} lacks MTD_MSIL1C.xml or MTD_MSIL2A.xml, which says how its bands are "
            f"scaled. {AGAIN}"
        )
    granules = [item.name for item in inside(folder, folder / "GRANULE").iterdir()]
    granules = sorted(n for n in granules if n[0] != "." and (folder / "GRANULE" / n).is_dir())
    granule = only(granules, folder, "granules", "Leave only the wanted one in GRANULE")
    if granule is None:
        raise InputError(f"{folder} has an empty GRANULE folder. {AGAIN}")
    images = folder / "GRANULE" / granule / "IMG_DATA"
    places = [p for p in (images, *(images / f"R{m}m" for m in (10, 20, 60))) if p.is_dir()]
    paths = [p / n for p in places for n in file_names(inside(folder, p))]
    facts = _metadata(inside(folder, folder / metadata))
    found = _find(folder, paths)
    return _product(folder, folder.resolve().name.removesuffix(".SAFE"), found, facts)


def read_flat(folder: Path, name: str, metadata: str | None, *, raw: bool = False) -> Product:
    """List the bands of a folder of band files, with or without metadata.

    With `raw` the stored values are wanted as they are, so nothing need be assumed of them.
    """
    paths = [
        folder / file
        for file in file_names(folder)
        if (match := match_band(file)) and product_id(match) == name
    ]
    found = _find(folder, paths)
    tags = {band: read_tags(folder, path, raw=raw) for band, (path, _) in found.items()}
    if metadata is not None:
        facts = _metadata(inside(folder, folder / metadata))
    elif not raw and all(_RAW.search(path.name) for path in paths):
        facts = _of_browser(tags)
    else:
        facts = _assumed(folder, name, tags, raw=raw)
    hint = guess_sensor([p.stem for p in paths], filename=folder.resolve().name)
    if hint.warning is not None:
        facts.doubts.append(
            "band numbers without a sensor; assuming Sentinel-2. If it is another, name the files "
            "by colour: red.tif"
        )
    product = _product(folder, name or folder.resolve().name, found, facts)
    # Files that were cut out or converted may say themselves what is missing in them.
    files = (
        file if (own := tags[file.band.name].nodata) is None else replace(file, nodata=own)
        for file in product.files
    )
    return replace(product, files=tuple(files))


def is_flat(names: Sequence[str], folder: str) -> bool:
    """Say whether band files of one name, in a folder of that name, are of Sentinel-2.

    Landsat's are named B2, not B02: such numbers must be Sentinel-2's beyond doubt, or those of its
    bands of 10 m.
    """
    hint = guess_sensor([Path(name).stem for name in names], filename=folder)
    if hint.name != "sentinel2":
        return False
    bands = {f"B{match['band']}" for name in names if (match := match_band(name))}
    padded = any(band.startswith("B0") for band in bands)
    return hint.warning is None or padded or (bands <= _FINE and len(bands) > 2)


@dataclass
class _Facts:
    level: str | None
    scaling: Scaling
    acquired: datetime | None
    notes: list[str]
    doubts: list[str] = field(default_factory=list)
    scaled: bool = True
    coding: Coding | None = None


def _find(folder: Path, paths: Iterable[Path]) -> Found:
    """Return where each band lies at its finest."""
    found: Found = {}
    for path in paths:
        match = match_band(path.name)
        if match is None:
            continue
        band = f"B{match['band'].rjust(2, '0')}"
        gsd_m = float(match["gsd"] or _GSD_M[band])
        other, other_gsd_m = found.get(band, (path, math.inf))
        if gsd_m == other_gsd_m:
            refuse_double(folder, band, other, path)
        if gsd_m < other_gsd_m:
            found[band] = (path, gsd_m)
    return found


def _product(folder: Path, name: str, found: Found, facts: _Facts) -> Product:
    wanted = [band for band in _GSD_M if facts.level != "L2A" or band != "B10"]
    notes = [*facts.notes, *missing(wanted, found)]
    coarse = [f"{b} ({gsd:g} m)" for b, (_, gsd) in found.items() if gsd > _GSD_M[b]]
    if coarse:
        notes.append(f"only coarser than the sensor saw them: {', '.join(sorted(coarse))}")
    files = band_files(folder, "sentinel2", found, facts.scaling, 0.0)
    return Product(
        name,
        "sentinel2",
        files,
        facts.acquired,
        tuple(notes),
        tuple(facts.doubts),
        facts.scaled,
        coding=facts.coding,
    )


def _metadata(path: Path) -> _Facts:
    texts = read_xml(path, _WANTED)
    level = _LEVELS.get(texts.root)
    if level is None:
        raise InputError(f"{path} is not the metadata of a Level-1C or Level-2A product. {AGAIN}")
    craft = texts.one("SPACECRAFT_NAME", path)
    if craft is not None and not craft.upper().startswith("SENTINEL-2"):
        raise InputError(f"{path} is of {craft[:40]!r}, not of Sentinel-2. Choose another product.")
    divisors, offset_name = _TEXTS[level]
    text = next((t for t in (texts.one(name, path) for name in divisors) if t is not None), None)
    if text is None:
        raise InputError(f"{path} has no {divisors[0]}, the scale of its bands. {AGAIN}")
    divisor = number_in(text, path, divisors[0], positive=True)
    offsets: dict[str, float] = {}
    names = list(_GSD_M)
    for band_id, value in texts.values.get(offset_name, []):
        if not re.fullmatch(r"\d|1[0-2]", band_id or ""):
            raise InputError(f"{path}: {offset_name} is of no band ({band_id!r:.40}). {AGAIN}")
        band = names[int(band_id or "")]
        number = number_in(value, path, f"{offset_name} of {band}")
        if offsets.setdefault(band, number) != number:
            raise InputError(f"{path} gives two values of {offset_name} for {band}. {AGAIN}")
    baseline = _baseline(texts.one("PROCESSING_BASELINE", path) or "")
    notes = []
    if not offsets and baseline is None:
        notes.append("the metadata names no processing baseline; taken as one without offset")
    elif not offsets and baseline == _OWN_BASELINE:
        notes.append("made by Sen2Cor, with no offset in the metadata; none is applied")

    def scaling(band: str) -> tuple[float, float]:
        due = baseline is not None and _has_offset(baseline)
        if band not in offsets and (offsets or due):
            raise InputError(f"{path} has no {offset_name} for {band}. {AGAIN}")
        return finite(path, 1 / divisor, offsets.get(band, 0.0) / divisor)

    acquired = moment(texts.one("PRODUCT_START_TIME", path), notes)
    return _Facts(level, scaling, acquired, notes)


def _assumed(folder: Path, name: str, tags: Mapping[str, Tags], *, raw: bool) -> _Facts:
    """Go by the files' own tags, else by their names, where the metadata was left behind."""
    words = f"{name} {folder.resolve().name}"
    time = re.search(r"(?<!\d)\d{8}T\d{6}(?!\d)", words)
    level = re.search(r"L1C|L2A", words)
    facts = _Facts(level[0] if level else None, lambda band: (1.0, 0.0), None, [], scaled=False)
    facts.acquired = moment(None if time is None else time[0], facts.notes)
    if raw:
        return facts
    tagged = tagged_scaling(folder, tags)
    if tagged is not None:
        facts.notes.append("no MTD_MSIL*.xml: scale and offset are those of the files' own tags")
        return replace(facts, scaling=tagged, scaled=True)
    number = re.search(r"_N(\d{4})(?=_)", words)
    if number is not None and int(number[1]) != _OWN_BASELINE:
        added, why = int(number[1]) >= _OFFSET_BASELINE, f"processing baseline N{number[1]}"
    elif time is not None:
        added, why = time[0][:8] >= _OFFSET_DAY, f"the date {time[0][:8]}"
    else:
        facts.doubts.append(
            "neither MTD_MSIL*.xml nor a date: the stored values are taken as they are. "
            + _ADDED.format("")
        )
        return facts
    if added:  # a date says nothing of what was done to the pixels since: they have a say
        facts.doubts.append(
            f"no MTD_MSIL*.xml: 1000 is taken off each value, going by {why}, unless they are too "
            "dark for that. If it was taken off already (harmonised data), give --raw"
        )
        return replace(facts, coding=_added(why))
    facts.doubts.append(
        f"no MTD_MSIL*.xml: assuming scale 0.0001, going by {why}. " + _ADDED.format("--raw ")
    )
    return replace(facts, scaling=lambda band: (1e-4, 0.0), scaled=True)


def _of_browser(tags: Mapping[str, Tags]) -> _Facts:
    """Go by what the Copernicus Browser makes of reflectances; it takes off what ESA adds."""
    kinds = "/".join(sorted({own.dtype for own in tags.values()}))
    facts = _Facts(
        "L2A",
        lambda band: (1 / _BROWSER_FULL.get(tags[band].dtype, 1.0), 0.0),
        None,
        [],
        [
            f"(Raw) bands of the Copernicus Browser: assuming that {kinds} stands for reflectances "
            "from 0 to 1. If not, give --raw and --scale"
        ],
    )
    facts.acquired = moment(None, facts.notes)
    return facts


def coding_of(name: str, tags: Mapping[str, str]) -> Coding | None:
    """Return how a file stores reflectances if its tags or name say that 1000 was added to them."""
    offsets = {key: text for key, text in tags.items() if _OFFSET_TAG.fullmatch(key)}
    text = tags.get("PROCESSING_BASELINE", "")
    baseline, match = _baseline(text), _FILE.search(name)
    if offsets:
        # Some write what was added instead of what is to be.
        added = all(re.fullmatch(r"-?1000(?:\.0*)?", text.strip()) for text in offsets.values())
        why = f"tag {min(offsets)}"
    elif baseline is not None:
        added, why = _has_offset(baseline), f"processing baseline {text.strip()} in its tags"
    elif match is not None:
        added, why = _has_offset(int(match[1])), f"processing baseline N{match[1]} in its name"
    else:
        return None
    return _added(why) if added else None


def _added(why: str) -> Coding:
    why = f"reflectances of Sentinel-2 with 1000 added, by {why}"
    return Coding(1e-4, -0.1, _LEAST_ADDED, why)


def _has_offset(baseline: int) -> bool:
    return _OFFSET_BASELINE <= baseline < _OWN_BASELINE


def _baseline(text: str) -> int | None:
    match = re.fullmatch(r"(\d?\d)\.(\d\d?)", text.strip())  # 05.10 is 5.1 once it was a number
    return None if match is None else int(match[1] + match[2].ljust(2, "0"))


def match_band(name: str) -> re.Match[str] | None:
    """Return the parts of the name of a band file, None if it is none."""
    return BAND.fullmatch(_RAW.sub("", name))


def product_id(match: re.Match[str]) -> str:
    """Return the part of a band file name that all bands of a product share."""
    return match["id"].rstrip("_.- ")
