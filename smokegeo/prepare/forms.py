"""Read one native file, whatever its form, as data only: nothing in it is ever executed."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from smokegeo.bandnames import parse_band_name
from smokegeo.bands import Band, BandSet
from smokegeo.errors import SmokegeoError, deepest_cause
from smokegeo.prepare import matlab, pictures, rasters
from smokegeo.prepare.faults import SampleFault
from smokegeo.prepare.names import PICTURE_SUFFIXES, BandName
from smokegeo.prepare.native import (
    MAX_ARRAY_BYTES,
    Native,
    check_size,
    shared_place,
    shared_valid,
    squeezed,
)

T = TypeVar("T")

_MASK_NAMES = frozenset({"mask", "masks", "label", "labels", "gt", "annotation", "annotations"})
_CUBE_NAMES = ("cube", "hsi", "image", "img", "data", "arr_0")
_WAVELENGTH_NAMES = frozenset({"wavelength", "wavelengths", "wavelength_nm", "wavelengths_nm"})


def read_image(path: Path) -> Native:
    """Read the image of one file; a file that cannot be read is a fault of its sample."""
    return _guarded(path, _read_image)


def read_mask(path: Path) -> Native:
    """Read the mask of one file, the array called so where a file holds several."""
    return _guarded(path, _read_mask)


def read_inner_mask(path: Path) -> Native | None:
    """Return the mask that lies in the same file as the image, if there is one."""
    if path.suffix.lower() not in _CONTAINERS:
        return None
    arrays = _guarded(path, lambda p: _CONTAINERS[p.suffix.lower()](p))
    named = [values for name, values in arrays.items() if name.casefold() in _MASK_NAMES]
    return Native(named[0], _form(path)) if len(named) == 1 else None


def read_pair(rgb: Path, thermal: Path) -> Native:
    """Read an RGB frame and its thermal twin, stored as grey or colour, as (4, y, x)."""
    seen, felt = read_image(rgb), read_thermal(thermal)
    colour, heat = squeezed(seen.values), felt.values
    if colour.ndim == 3 and colour.shape[0] not in (3, 4) and colour.shape[-1] == 3:
        colour = np.moveaxis(colour, -1, 0)
    if colour.ndim != 3 or colour.shape[0] not in (3, 4):
        raise SampleFault("wrong band count", f"{rgb.name} is not red, green, blue")
    if colour.shape[1:] != heat.shape:
        (h, w), (thermal_h, thermal_w) = colour.shape[1:], heat.shape
        raise SampleFault("sizes differ", f"RGB {w}x{h}, thermal {thermal_w}x{thermal_h}")
    # A fourth channel of the RGB file is alpha; it shows nothing of the scene.
    return Native(
        np.concatenate([colour[:3], heat[None]]),
        "RGB and thermal pairs",
        band_axis=0,
        place=shared_place((seen.place, felt.place)),
        valid=shared_valid((seen.valid, felt.valid)),
    )


def read_thermal(path: Path) -> Native:
    """Read a thermal frame as one (y, x) channel."""
    if path.suffix.lower() in PICTURE_SUFFIXES:
        return _guarded(path, pictures.read_grey)
    return _single_band(path, read_image(path))


def read_band_files(files: Mapping[Path, BandName | None]) -> Native:
    """Stack one single-band file per band, in the order given; wavelengths from their names."""
    parts, bands = [], []
    for path, name in files.items():
        parts.append(_single_band(path, read_image(path)))
        nm = None if name is None else name.wavelength_nm
        bands.append(None if nm is None else Band(f"{nm:g}nm", nm))
    layers = [part.values for part in parts]
    shapes = {layer.shape for layer in layers}
    if len(shapes) != 1:
        sizes = ", ".join(f"{w}x{h}" for h, w in sorted(shapes))
        raise SampleFault("band sizes differ", sizes)
    if len({layer.dtype for layer in layers}) != 1:
        raise SampleFault("band data types differ", ", ".join({str(x.dtype) for x in layers}))
    known = [band for band in bands if band is not None]
    return Native(
        np.stack(layers),
        "one image file per band",
        band_axis=0,
        bands=BandSet(tuple(known)) if len(known) == len(layers) else None,
        place=shared_place(part.place for part in parts),
        valid=shared_valid(part.valid for part in parts),
    )


def _guarded(path: Path, read: Callable[[Path], T]) -> T:
    try:
        return read(path)
    except (SampleFault, SmokegeoError):
        raise
    except Exception as error:
        # Decoders raise anything at all on damaged bytes: struct.error, zlib.error, KeyError ...
        raise SampleFault("unreadable", f"{path.name}: {deepest_cause(error)}") from error


def _read_image(path: Path) -> Native:
    suffix = path.suffix.lower()
    if suffix in _CONTAINERS:
        arrays = _CONTAINERS[suffix](path)
        values = _pick_cube(path, arrays)
        return Native(values, _form(path), bands=_inner_bands(arrays))
    reader = _READERS.get(suffix, rasters.read_envi)
    return reader(path)


def _read_mask(path: Path) -> Native:
    suffix = path.suffix.lower()
    if suffix in _CONTAINERS:
        arrays = _CONTAINERS[suffix](path)
        named = {n: v for n, v in arrays.items() if n.casefold() in _MASK_NAMES} or arrays
        if len(named) != 1:
            raise SampleFault("unreadable", f"{path.name} holds several arrays: {_names(named)}")
        return Native(next(iter(named.values())), _form(path))
    if suffix in PICTURE_SUFFIXES:
        return pictures.read_label_picture(path)
    return _read_image(path)


def _pick_cube(path: Path, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Choose the array that is the image: the one with most axes, or one with a known name."""
    candidates = {
        name: values
        for name, values in arrays.items()
        if name.casefold() not in _MASK_NAMES and squeezed(values).ndim in (2, 3)
    }
    if not candidates:
        raise SampleFault("unreadable", f"{path.name} holds no image, only {_names(arrays)}")
    most = max(squeezed(values).ndim for values in candidates.values())
    deepest = {n: v for n, v in candidates.items() if squeezed(v).ndim == most}
    known = [name for name in deepest if name.casefold() in _CUBE_NAMES]
    if len(deepest) > 1 and len(known) != 1:
        raise SampleFault("unreadable", f"{path.name} holds several images: {_names(deepest)}")
    return deepest[known[0]] if len(deepest) > 1 else next(iter(deepest.values()))


def _inner_bands(arrays: Mapping[str, NDArray[Any]]) -> BandSet | None:
    for name, values in arrays.items():
        if name.casefold() in _WAVELENGTH_NAMES and values.size > 1 and values.dtype.kind in "iuf":
            found = [parse_band_name(f"{float(nm):g}nm") for nm in values.ravel()]
            if all(band is not None for band in found):
                return BandSet(tuple(band for band in found if band is not None))
    return None


def _single_band(path: Path, native: Native) -> Native:
    values = squeezed(native.values)
    if values.ndim == 3 and native.band_axis == 0 and (values == values[:1]).all():
        values = values[0]  # a grey image saved as RGB
    if values.ndim != 2:
        raise SampleFault("wrong band count", f"{path.name} is not a single band")
    return replace(native, values=values, band_axis=None)


def _names(arrays: Mapping[str, Any]) -> str:
    return ", ".join(sorted(arrays)) or "nothing"


def _form(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


def _read_npy(path: Path) -> Native:
    # Mapped first: a header that promises more than the file holds fails before memory is taken.
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    check_size(mapped.shape, mapped.dtype)
    return Native(np.array(mapped), "npy")


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(path) as archive:
        if sum(info.file_size for info in archive.infolist()) > MAX_ARRAY_BYTES:
            raise SampleFault("too large", path.name)
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


_CONTAINERS: Mapping[str, Callable[[Path], dict[str, NDArray[Any]]]] = {
    ".npz": _read_npz,
    ".mat": matlab.read_mat,
    **dict.fromkeys((".h5", ".hdf5", ".he5"), matlab.read_hdf5),
}
_READERS: Mapping[str, Callable[[Path], Native]] = {
    ".npy": _read_npy,
    **dict.fromkeys((".tif", ".tiff"), rasters.read_tiff),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".bmp"), pictures.read_picture),
}
