"""Folders as the agencies ship them (Sentinel-2, Landsat, HLS), as band files with their scaling.

So are folders of files named by colour (`red.tif`), as catalogues (STAC) give them out. A raster is
opened only where nothing but its own tags says how it is stored.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from smokegeo.bandnames import SensorHint, guess_sensor, parse_band_name
from smokegeo.bands import Band
from smokegeo.errors import InputError
from smokegeo.scene import landsat, sentinel2
from smokegeo.scene.coding import coding_of
from smokegeo.scene.product import (
    AGAIN,
    BandFile,
    Product,
    Tags,
    file_names,
    listed,
    only,
    read_tags,
    refuse_double,
    tagged_scaling,
)
from smokegeo.scene.scene import Coding
from smokegeo.sensors import sensor

__all__ = ["BandFile", "Product", "is_product", "read_product", "refuse_folder"]

log = logging.getLogger(__name__)

_RASTER = re.compile(r"(?P<stem>.+)\.(?i:jp2|tiff?)")
#: A colour as the end of a file name, or a wavelength: `nir08`, `red_edge_1`, `760nm`.
_COLOUR = re.compile(r"[a-z]{3,}\d{0,3}|\d{3,5}nm")
#: A band of Landsat's surface reflectance, in a folder that has no name of a product.
_SURFACE = re.compile(r"(?P<id>.*?)(?:^|[ _.-]+)(?P<band>(?i:sr)_(?i:b)\d)\.(?i:tiff?)")


def is_product(path: Path) -> bool:
    """Say whether a path looks like a product's folder or metadata, whole or not."""
    try:
        if not path.is_dir():
            return path.is_file() and _is_metadata(path.name)
        names = file_names(path)
        if (path / "GRANULE").is_dir() or any(map(_is_metadata, names)):
            return True
        return bool(_ids(path) or _colour_ids(path))
    except (OSError, ValueError):
        return False


def read_product(path: Path, *, raw: bool = False) -> Product:
    """List the bands of a product, given its folder or its metadata file; say what is in doubt.

    `raw` says that the stored values are wanted as they are, whatever their scale.
    """
    try:
        product = _read(path, raw)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}). Check its permissions."
        ) from error
    for doubt in product.doubts:
        log.warning("%s: %s", product.name, doubt)
    return product


def _read(path: Path, raw: bool) -> Product:
    if not path.exists():
        raise InputError(f"{path} does not exist. Check the name.")
    folder = path if path.is_dir() else path.parent
    if not path.is_dir() and not (path.is_file() and _is_metadata(path.name)):
        raise InputError(
            f"{path} is no product metadata. Name the folder, its MTD_MSIL*.xml or *_MTL.txt."
        )
    for above in Path(os.path.abspath(folder)).parents:
        if above.name == "GRANULE" and any(
            map(sentinel2.METADATA.fullmatch, file_names(above.parent))
        ):
            raise InputError(f"{path} is a part of a product. Name the whole: {above.parent}.")
    metadata = [n for n in file_names(folder) if _is_metadata(n)] if path == folder else [path.name]
    xml = [name for name in metadata if sentinel2.METADATA.fullmatch(name)]
    mtl_ids = {match["id"] for name in metadata if (match := landsat.MTL.fullmatch(name))}
    if (folder / "GRANULE").is_dir() and (xml or path == folder):
        return sentinel2.read_safe(folder, only(xml, folder, "metadata files", "Name one of them"))
    ids = _ids(folder)
    if path != folder:  # the metadata says which of several products is meant
        ids = {(n, form) for n, form in ids if n in mtl_ids or (xml and form == "sentinel2")}
    if not ids and not metadata:
        ids = {(name, "bands named by colour") for name in _colour_ids(folder)}
    if not ids and not metadata:
        refuse_folder(folder)
    if not ids:
        raise InputError(f"{folder / metadata[0]} has no band files beside it. {AGAIN}")
    labels = [f"{name} ({form})" for name, form in ids]
    only(labels, folder, "products", "Move each into its own folder")
    ((name, form),) = ids
    if form == "sentinel2":
        return sentinel2.read_flat(
            folder, name, only(xml, folder, "metadata files", "Name one of them"), raw=raw
        )
    if form == "bands named by colour":
        return _read_colours(folder, name, raw)
    return (
        landsat.read_hls(folder, name)
        if form == "hls"
        else landsat.read_landsat(folder, name, form)
    )


def _is_metadata(name: str) -> bool:
    return bool(sentinel2.METADATA.fullmatch(name) or landsat.MTL.fullmatch(name))


def _ids(folder: Path) -> set[tuple[str, str]]:
    """Return (product, form) of every band file in the folder."""
    found: set[tuple[str, str]] = set()
    flat: dict[str, list[str]] = {}
    for name in file_names(folder):
        if match := landsat.BAND.fullmatch(name):
            form = landsat.form_of(match)
            found |= set() if form is None else {(match["id"], form)}
        elif match := landsat.HLS_BAND.fullmatch(name):
            found.add((match["id"], "hls"))
        elif match := sentinel2.match_band(name):
            flat.setdefault(sentinel2.product_id(match), []).append(name)
    for name, files in flat.items():
        if sentinel2.is_flat(files, folder.resolve().name):
            found.add((name, "sentinel2"))
    return found


def _colour_ids(folder: Path) -> set[str]:
    """Return what the names of two or more files begin with that end in a colour."""
    found = [start for start, _ in _named(folder).values()]
    return {name for name in found if found.count(name) > 1}


def _named(folder: Path) -> dict[str, tuple[str, Band]]:
    """Return of each file that is named by its band how the name begins, and the band."""
    names = file_names(folder)
    surface = {name: match for name in names if (match := _SURFACE.fullmatch(name))}
    kind = _landsat(list(surface), folder).name
    found = {}
    for name in names:
        band = parse_band_name(surface[name]["band"], kind) if name in surface else None
        parts = _colour(name) if band is None else (surface[name]["id"], band)
        if parts is not None:
            found[name] = parts
    return found


def _landsat(names: Sequence[str], folder: Path) -> SensorHint:
    """Return which Landsat the names of band files are of."""
    return guess_sensor([Path(name).stem for name in names], filename=folder.resolve().name)


def _colour(name: str) -> tuple[str, Band] | None:
    """Return how a file name begins and the band it ends in, None if it ends in no band.

    The longest ending counts: `s2_red_edge` is red edge. It must be a band and nothing else, so
    that `red_river.tif` is a river.
    """
    match = _RASTER.fullmatch(name)
    if match is None:
        return None
    stem = match["stem"]
    for start in (0, *(gap.end() for gap in re.finditer(r"[ _.-]+", stem))):
        word = re.sub(r"[ _.-]", "", stem[start:]).casefold()
        band = parse_band_name(word) if _COLOUR.fullmatch(word) else None
        if band is not None:
            return stem[:start].rstrip(" _.-"), band
    return None


def _read_colours(folder: Path, name: str, raw: bool) -> Product:
    """List the files of a folder that are named by colour; all else is in their own tags."""
    found: dict[str, tuple[Path, Band]] = {}
    others, named = [], _named(folder)
    for file in file_names(folder):
        match = named.get(file)
        if match is None or match[0] != name:
            others += [file] if _RASTER.fullmatch(file) else []
            continue
        band = match[1]
        if band.name in found:
            refuse_double(folder, band.name, found[band.name][0], folder / file)
        found[band.name] = (folder / file, band)
    tags = {key: read_tags(folder, path, raw=raw) for key, (path, _) in found.items()}
    for key, (path, _) in found.items():
        if tags[key].count != 1:
            raise InputError(
                f"{path} has {tags[key].count} bands; a file named by a colour has one. "
                "Name that file as the scene, or move it elsewhere."
            )
    tagged = None if raw else tagged_scaling(folder, tags)
    files = tuple(
        BandFile(
            path,
            1,
            band,
            *((1.0, 0.0) if tagged is None else tagged(key)),
            tags[key].nodata,
        )
        for key, (path, band) in sorted(found.items(), key=lambda item: _centre(item[1][1]))
    )
    notes = [f"bands by the names of their files: {', '.join(file.path.name for file in files)}"]
    if others:
        notes.append(f"left out, not named by a colour: {listed(others)}")
    return Product(
        name or folder.resolve().name,
        None,
        files,
        None,
        tuple(notes),
        _doubts([file.path.name for file in files], folder),
        scaled=tagged is not None,
        bands_from="file names",
        coding=None if raw else _coding(f"{folder.resolve().name}/{name}", files, tags),
    )


def _doubts(names: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a doubt if bands of Landsat may be another one's."""
    hint = _landsat([name for name in names if _SURFACE.fullmatch(name)], folder)
    if hint.name is None or hint.warning is None:
        return ()
    return (
        f"band numbers without a sensor; assuming {sensor(hint.name).title}. If it is another, "
        "name the files by colour: red.tif",
    )


def _coding(name: str, files: Sequence[BandFile], tags: Mapping[str, Tags]) -> Coding | None:
    """Return how all files of a folder store reflectances, if they agree."""
    bands, texts = [file.band for file in files], [file.path.stem for file in files]
    found = {coding_of(name, own.texts, bands, texts) for own in tags.values()}
    return found.pop() if len(found) == 1 else None


def _centre(band: Band) -> float:
    return band.wavelength_nm or 0.0


def refuse_folder(folder: Path) -> NoReturn:
    """Refuse a folder that is no product, with a way to get at what it holds."""
    inner = [item.name for item in folder.iterdir() if item.name.upper().endswith(".SAFE")]
    bands = [name for name in file_names(folder) if _RASTER.fullmatch(name)]
    remedy = "Name a file or a product."
    if len(inner) == 1:
        remedy = f"Name the product in it: {folder / inner[0]}."
    elif inner:
        remedy = f"Name one of the products in it: {listed(inner)}."
    elif len(bands) > 1:
        remedy = (
            "Name one file in it, if that has all bands. If each has one, name the files by colour "
            f"(red.tif), or stack them, rio stack {' '.join(bands[:2])} ... -o OUT.tif, and name "
            "OUT.tif with --bands."
        )
    raise InputError(f"{folder} is a folder, but no Sentinel-2, Landsat or HLS product. {remedy}")
