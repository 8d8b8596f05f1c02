"""Open a raster file that a stranger may have made.

The only way into a scene's pixels. A file is opened by the driver its first bytes call for, out of
a short list, and refused if it leads to any other file: a virtual raster renamed `.tif`, overviews
or masks that point elsewhere, or metadata that name another image.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rasterio
from rasterio._err import CPLE_BaseError
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.io import DatasetReader

from smokegeo.errors import InputError, UsageError, deepest_cause

#: What reading a damaged file may raise. GDAL's own errors come through bare where rasterio looks
#: at metadata, and so do texts that are not UTF-8.
READ_ERRORS = (RasterioError, CPLE_BaseError, UnicodeDecodeError, MemoryError)
#: First bytes -> the one driver that may open such a file.
_DRIVERS = (
    (b"II*\x00", "GTiff"),
    (b"MM\x00*", "GTiff"),
    (b"II+\x00", "GTiff"),
    (b"MM\x00+", "GTiff"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "JP2OpenJPEG"),
    (b"\xff\x4f\xff\x51", "JP2OpenJPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
)
_CONVERT = "Convert it: gdal_translate {name} OUT.tif"
_DOWNLOAD = "Download it again, logged in if need be."
_UNPACK = "Unpack it and name the raster or product folder inside."
_EXPORT = "Write its array to a GeoTIFF, or give it to `smokegeo.predict` as an xarray.DataArray."
#: First bytes -> what it is instead, and what to do about it.
_STRANGERS = (
    (b"<vrtdataset", "a GDAL virtual raster, which may lead to other files", _CONVERT),
    (b"<!doctype html", "a web page (a failed download?)", _DOWNLOAD),
    (b"<html", "a web page (a failed download?)", _DOWNLOAD),
    (b"<?xml", "an XML file", "Name the raster or product folder that it belongs to."),
    (b"version https://git-lfs", "a Git LFS pointer", "Fetch the file itself: git lfs pull"),
    (
        b"\x89hdf",
        "an HDF5 or netCDF file",
        'Convert the variable you want: gdal_translate HDF5:"{name}"://NAME OUT.tif',
    ),
    (
        b"cdf",
        "a netCDF file",
        'Convert the variable you want: gdal_translate NETCDF:"{name}":NAME OUT.tif',
    ),
    (
        b"\x0e\x03\x13\x01",
        "an HDF4 file",
        "Convert the subdataset you want (gdalinfo {name} lists them): gdal_translate NAME OUT.tif",
    ),
    (b"nitf0", "a NITF file", _CONVERT),
    (b"nsif0", "a NITF file", _CONVERT),
    (b"\x93numpy", "a NumPy array", _EXPORT),
    (b"pk\x03\x04", "a zip archive", _UNPACK),
    (b"\x1f\x8b", "a gzip archive", _UNPACK),
    (b"ehfa_header_tag", "an Erdas Imagine file", _CONVERT),
    (b"bm", "a Windows bitmap", _CONVERT),
    (b"gif8", "a GIF picture", _CONVERT),
)
#: An address, of which `pathlib` makes one slash of two, and GDAL's paths into archives and such.
_REMOTE, _VIRTUAL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+"), re.compile("/vsi[a-z0-9_]+/")
_ENVI_DATA = ("", ".dat", ".img", ".bsq", ".bil", ".bip", ".raw")
#: Endings, after the scene's own name or stem, of files GDAL may read beside it. None is an image.
_SIDECARS = (
    ".aux.xml",
    ".hdr",
    ".tfw",
    ".tifw",
    ".wld",
    ".prj",
    ".sta",
    ".tab",
    ".j2w",
    ".jgw",
    ".jpgw",
    ".pgw",
    ".pngw",
    ".rpb",
    ".imd",
    ".xml",
    "_rpc.txt",
    "_metadata.txt",
)
#: Images that belong to the scene; they must be TIFFs themselves.
_IMAGES_BESIDE = (".ovr", ".msk", ".msk.ovr")
#: Common settings of an environment hide them, or make zeros of damaged blocks; what a scene is
#: must not depend on it.
_SETTINGS = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "FALSE",
    "GDAL_PAM_ENABLED": "YES",
    "GTIFF_IGNORE_READ_ERRORS": "NO",
}
_MAX_BANDS = 1000
_MAX_BLOCK_BYTES = 1_000_000_000


def open_raster(path: Path) -> DatasetReader:
    """Open a scene's file, checked; the caller closes it."""
    path = find_file(path)
    driver = sniff(path)
    try:
        with rasterio.Env(**_SETTINGS), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)  # said better by georeference
            src = rasterio.open(path, driver=driver)
    except READ_ERRORS as error:
        raise InputError(
            f"{path.name} is cut short, damaged or no {_words(driver)} after all "
            f"({deepest_cause(error)}). Copy it again."
        ) from error
    try:
        with metadata_of(path.name):
            _check_files(path, src)
            _check_shape(path, src)
            if driver == "ENVI":
                _check_envi(path, src)
            elif driver == "PNG":
                _check_png(path)
    except BaseException:
        src.close()
        raise
    return src


@contextmanager
def metadata_of(name: str) -> Iterator[None]:
    """Refuse a file whose pixels could be there but whose description of them is damaged."""
    try:
        yield
    except READ_ERRORS as error:
        raise InputError(
            f"{name}: its metadata are damaged ({deepest_cause(error)}). Copy it again."
        ) from error


def find_file(path: Path) -> Path:
    """Return the absolute path of the pixels; an ENVI header leads to its data file.

    Absolute, so that a file called `s3:x.tif` stays a file. A link keeps its name, which may say
    more than that of the file in a store it leads to.
    """
    _refuse_remote(str(path))
    try:
        path = _named(path, path.resolve(strict=True))
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise UsageError(f"{path}: no such file.") from error
    known = str(path).encode("utf-8", "replace").decode()
    if known != str(path):
        raise InputError(f"{known}: GDAL opens no file whose path is not UTF-8. Rename it.")
    if path.suffix.lower() == ".hdr" and path.is_file():
        for suffix in _ENVI_DATA:
            for data in (path.with_suffix(suffix), path.with_suffix(suffix.upper())):
                if data.is_file() and data != path:
                    return data
        raise InputError(f"{path.name} is an ENVI header, but there is no data file beside it.")
    return path


def _refuse_remote(text: str) -> None:
    """Refuse a path that leads anywhere but to a file of its own on this machine."""
    remedy = "Unpack it, if it is local, or download it." if _VIRTUAL.match(text) else ""
    if match := _REMOTE.match(text):
        text, remedy = f"{match[1]}://{text[match.end() :]}", "Download it first."
    if remedy:
        raise UsageError(f"{text}: scenes are read from local files only. {remedy}")


def _named(path: Path, real: Path) -> Path:
    """Return how to open a file: by the link's name, unless side-cars lie where that leads only."""
    if not path.is_symlink():
        return real
    link = path.parent.resolve() / path.name
    return real if _has_sidecars(real) and not _has_sidecars(link) else link


def _has_sidecars(path: Path) -> bool:
    endings = [*_SIDECARS, *_IMAGES_BESIDE]
    return any(
        path.with_name(start + ending).is_file()
        for start in (path.name, path.stem)
        for ending in (*endings, *map(str.upper, endings))
    )


def sniff(path: Path) -> str:
    """Return the driver for a file by its first bytes, or say what the file is instead."""
    if path.is_dir():
        raise InputError(f"{path.name} is a folder, not a raster. Name a file in it.")
    if not path.is_file():  # to read from a pipe might wait for ever
        raise InputError(f"{path.name} is a device or pipe, not a file. Copy it to one first.")
    try:
        with path.open("rb") as handle:
            head = handle.read(512)
    except OSError as error:
        raise InputError(f"{path.name} cannot be read ({error.strerror}).") from error
    if not head:
        raise InputError(f"{path.name} is empty (0 bytes). Copy or download it again.")
    for magic, driver in _DRIVERS:
        if head.startswith(magic):
            return driver
    if any(header.is_file() for header in _envi_headers(path)):
        return "ENVI"
    if head[257:262] == b"ustar":
        raise InputError(f"{path.name} is a tar archive, not a raster. {_UNPACK}")
    low = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for magic, what, remedy in _STRANGERS:
        if low.startswith(magic):
            if what == "a zip archive" and path.suffix.lower() == ".npz":  # NumPy's are zipped
                what, remedy = "an archive of NumPy arrays", _EXPORT
            raise InputError(
                f"{path.name} is {what}, not a GeoTIFF, JPEG 2000 or ENVI raster. "
                + remedy.replace("{name}", path.name)
            )
    start = head[:16].decode("latin-1").encode("unicode_escape").decode()
    raise InputError(
        f'{path.name} is not a raster smokegeo reads (it begins with "{start}"). '
        "GeoTIFF, JPEG 2000, ENVI, PNG and JPEG are."
    )


def check_pixels(src: DatasetReader, indexes: tuple[int, ...]) -> None:
    """Read the last block of each band: a file cut short opens well and fails only there."""
    name = Path(src.name).name
    for index in indexes:
        height, width = src.block_shapes[index - 1]
        row = (src.height - 1) // height * height
        column = (src.width - 1) // width * width
        block = ((row, src.height), (column, src.width))
        try:
            src.read(index, window=block)
        except READ_ERRORS as error:
            raise damaged(name, row, column, error) from error


def damaged(name: str, row: int, column: int, error: BaseException) -> InputError:
    """Return the error for a part of a scene that cannot be read."""
    return InputError(
        f"{name} is cut short or damaged at row {row}, column {column} ({deepest_cause(error)}). "
        "Copy it again, or leave such parts out with --skip-damaged."
    )


def _check_files(path: Path, src: DatasetReader) -> None:
    """Refuse a raster that reads anything but itself and its own side-cars."""
    for name in src.files:
        other = Path(name)
        if other.resolve() == path.resolve():
            continue
        label = other.name.lower()
        owned = other.parent.resolve() == path.parent and _is_its_own(other, path)
        starts = {path.name.lower(), path.stem.lower()}
        if owned and any(label == s + e for s in starts for e in _IMAGES_BESIDE):
            with other.open("rb") as handle:
                if handle.read(4) in (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"):
                    continue
        elif owned and (
            any(label == s + e for s in starts for e in _SIDECARS)
            or label.endswith(("_mtl.txt", "_mtl.xml"))
        ):
            continue
        raise InputError(
            f"{path.name} leads to another file, {other.name}, which a scene must not. "
            f"Copy its pixels into one file: gdal_translate {path.name} OUT.tif"
        )


def _is_its_own(other: Path, path: Path) -> bool:
    """Say whether a file beside the scene is one, or comes out of the same store as the scene."""
    if not other.is_symlink():
        return True
    return path.is_symlink() and other.resolve().parent == path.resolve().parent


def _check_shape(path: Path, src: DatasetReader) -> None:
    """Refuse what cannot be a scene, or not be read in bounded memory."""
    if src.driver == "GTiff" and len(src.subdatasets) > 1:
        raise InputError(
            f"{path.name} has {len(src.subdatasets)} pages of {src.count} band(s); a scene is one "
            "page with all bands. Stack the pages into one: gdalbuildvrt -separate, then "
            "gdal_translate"
        )
    if src.count < 1:
        raise InputError(f"{path.name} holds no bands.")
    if src.count > _MAX_BANDS:
        raise InputError(f"{path.name} says it has {src.count} bands; {_MAX_BANDS} is the limit.")
    if any(np.dtype(_plain(kind)).kind not in "uifb" for kind in src.dtypes):
        raise InputError(
            f"{path.name} holds {src.dtypes[0]} values; smoke is found in real ones. "
            "Convert them first."
        )
    together = src.count if str(src.interleaving or "").lower().endswith("pixel") else 1
    for (height, width), kind in zip(src.block_shapes, src.dtypes, strict=True):
        size = height * width * np.dtype(_plain(kind)).itemsize * together
        if size > _MAX_BLOCK_BYTES:
            raise InputError(
                f"{path.name} is stored in blocks of {size / 1e9:.1f} GB, too large to read piece "
                f"by piece. Store it in tiles: gdal_translate -co TILED=YES {path.name} OUT.tif"
            )


def _check_envi(path: Path, src: DatasetReader) -> None:
    """Refuse a file that is shorter than its header says: GDAL reads zeros past its end."""
    header = {key.casefold(): value for key, value in src.tags(ns="ENVI").items()}
    if header.get("file_compression", "0").strip() not in ("", "0"):
        return
    offset = header.get("header_offset", "0").strip()
    pixel = sum(np.dtype(kind).itemsize for kind in src.dtypes)
    needed = src.width * src.height * pixel + (int(offset) if offset.isdigit() else 0)
    if path.stat().st_size < needed:
        raise InputError(
            f"{path.name} is cut short: it has {path.stat().st_size} bytes, and its header speaks "
            f"of {needed}. Copy it again."
        )


def _check_png(path: Path) -> None:
    """Refuse a picture that is cut short or damaged: GDAL may give out noise for its pixels."""
    with path.open("rb") as handle:
        handle.seek(8)
        kind = b""
        while kind != b"IEND":
            head = handle.read(8)
            length, kind = int.from_bytes(head[:4], "big"), head[4:]
            data = handle.read(min(length, path.stat().st_size))
            if len(data) < length or handle.read(4) != zlib.crc32(kind + data).to_bytes(4, "big"):
                raise InputError(f"{path.name} is cut short or damaged. Copy it again.")


def _plain(kind: str) -> str:
    """Return a dtype numpy knows; GDAL's complex integers have none there."""
    return "complex64" if kind.startswith("complex") else kind


def _envi_headers(path: Path) -> list[Path]:
    return [
        header
        for ending in (".hdr", ".HDR")
        for header in (path.with_name(path.name + ending), path.with_suffix(ending))
    ]


def _words(driver: str) -> str:
    return {"GTiff": "GeoTIFF", "JP2OpenJPEG": "JPEG 2000 file"}.get(driver, f"{driver} file")
