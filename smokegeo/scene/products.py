"""Folders as the agencies ship them (Sentinel-2, Landsat, HLS), as band files with their scaling.

Nothing here opens a raster.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from smokegeo.bandnames import guess_sensor
from smokegeo.errors import InputError
from smokegeo.scene import landsat, sentinel2
from smokegeo.scene.product import AGAIN, BandFile, Product, file_names, listed, only

__all__ = ["BandFile", "Product", "is_product", "read_product"]


def is_product(path: Path) -> bool:
    """Say whether a path looks like a product's folder or metadata, whole or not."""
    try:
        if not path.is_dir():
            return path.is_file() and _is_metadata(path.name)
        names = file_names(path)
        return (path / "GRANULE").is_dir() or any(map(_is_metadata, names)) or bool(_ids(path))
    except (OSError, ValueError):
        return False


def read_product(path: Path) -> Product:
    """List the bands of a product, given its folder or its metadata file."""
    try:
        return _read(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}). Check its permissions."
        ) from error


def _read(path: Path) -> Product:
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
        _refuse_folder(folder)
    if not ids:
        raise InputError(f"{folder / metadata[0]} has no band files beside it. {AGAIN}")
    labels = [f"{name} ({form})" for name, form in ids]
    only(labels, folder, "products", "Move each into its own folder")
    ((name, form),) = ids
    if form == "sentinel2":
        return sentinel2.read_flat(
            folder, name, only(xml, folder, "metadata files", "Name one of them")
        )
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
        elif match := sentinel2.BAND.fullmatch(name):
            flat.setdefault(sentinel2.product_id(match), []).append(Path(name).stem)
    for name, stems in flat.items():
        if guess_sensor(stems, filename=folder.resolve().name).name == "sentinel2":
            found.add((name, "sentinel2"))
    return found


def _refuse_folder(folder: Path) -> NoReturn:
    inner = [item.name for item in folder.iterdir() if item.name.upper().endswith(".SAFE")]
    remedy = f"Name the product in it: {listed(inner)}." if inner else "Name a file or a product."
    raise InputError(f"{folder} is a folder, but no Sentinel-2, Landsat or HLS product. {remedy}")
