"""The same three samples, written in every native form that `prepare` reads."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import rasterio
import scipy.io
from PIL import Image
from rasterio.errors import NotGeoreferencedWarning

from smokegeo.sensors import sensor

IDS = ("a_01", "a_02", "b_01")
HEIGHT, WIDTH = 12, 16
WAVELENGTHS = [int(nm) for nm in sensor("hss").bands.wavelengths_nm]


def cube(name: str) -> np.ndarray:
    """Return the (25, 12, 16) uint16 cube of a sample; the same for the same name."""
    rng = np.random.default_rng(list(name.encode()))
    return rng.integers(0, 1024, (25, HEIGHT, WIDTH)).astype(np.uint16)


def mask(name: str) -> np.ndarray:
    """Return the (12, 16) uint8 mask of a sample, 0 and 1."""
    rng = np.random.default_rng([*name.encode(), 1])
    return (rng.random((HEIGHT, WIDTH)) < 0.3).astype(np.uint8)


def folder(root: Path, *parts: str) -> Path:
    """Make and return a folder."""
    path = root.joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def write_masks(root: Path, where: str = "masks") -> None:
    """Write all masks as {0, 255} PNGs."""
    for name in IDS:
        Image.fromarray(mask(name) * 255).save(folder(root, where) / f"{name}.png")


def write_npy(root: Path) -> Path:
    """Write the plainest form: images/ID.npy and masks/ID.png."""
    for name in IDS:
        np.save(folder(root, "images") / f"{name}.npy", cube(name))
    write_masks(root)
    return root


def _npy_channels_last(root: Path) -> None:
    for name in IDS:
        np.save(folder(root, "HSI") / f"{name}.npy", np.moveaxis(cube(name), 0, -1))
        np.save(folder(root, "GT") / f"{name}_gt.npy", mask(name).astype(bool))


def _npz_with_mask_inside(root: Path) -> None:
    for name in IDS:
        np.savez(root / f"{name}.npz", cube=cube(name), mask=mask(name), wavelengths=WAVELENGTHS)


def _mat5(root: Path) -> None:
    for name in IDS:
        contents = {"data": np.moveaxis(cube(name), 0, -1), "label": mask(name)}
        scipy.io.savemat(folder(root, "mat") / f"{name}.mat", contents)


def _mat73(root: Path) -> None:
    for name in IDS:
        # As MATLAB writes (y, x, band): axes reversed, behind a 512-byte header.
        with h5py.File(folder(root, "mat") / f"{name}.mat", "w", userblock_size=512) as file:
            file["hsi"] = np.moveaxis(cube(name), 0, -1).T
            file["mask"] = mask(name).T
            file.create_group("#refs#")["a"] = np.zeros((2, 2, 2))


def _h5(root: Path) -> None:
    for name in IDS:
        with h5py.File(folder(root, "data") / f"{name}.h5", "w") as file:
            file["frame/cube"] = cube(name)
            file["frame/labels"] = mask(name)


def _geotiff_without_place(root: Path) -> None:
    for name in IDS:
        write_tif(folder(root, "JPEGImages") / f"{name}.tif", cube(name))
    write_masks(root, "SegmentationClass")


def write_tif(path: Path, values: np.ndarray, **profile: object) -> None:
    """Write (band, y, x) values as one page."""
    count, height, width = values.shape
    size = {"width": width, "height": height, "count": count}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, "w", driver="GTiff", dtype=values.dtype, **size, **profile) as dst:
            dst.write(values)


def _multi_page_tif(root: Path) -> None:
    for name in IDS:
        pages = [Image.fromarray(band) for band in cube(name)]
        path = folder(root, "images") / f"{name}.tif"
        pages[0].save(path, save_all=True, append_images=pages[1:])
    write_masks(root)


def _envi(suffix: str, interleave: str) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        for name in IDS:
            write_envi(folder(root, "cubes") / f"{name}{suffix}", cube(name), interleave)
        write_masks(root)

    return write


def write_envi(path: Path, values: np.ndarray, interleave: str, unit: str = "Micrometers") -> None:
    """Write an ENVI cube with its header, without GDAL's help."""
    axes = {"bsq": (0, 1, 2), "bil": (1, 0, 2), "bip": (1, 2, 0)}[interleave]
    path.write_bytes(np.ascontiguousarray(values.transpose(axes)).astype("<u2").tobytes())
    factor = 1000 if unit == "Micrometers" else 1
    waves = ", ".join(str(nm / factor) for nm in WAVELENGTHS)
    count, height, width = values.shape
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {width}\nlines = {height}\nbands = {count}\nheader offset = 0\n"
        f"file type = ENVI Standard\ndata type = 12\ninterleave = {interleave}\nbyte order = 0\n"
        f"wavelength units = {unit}\nwavelength = {{{waves}}}\n"
    )


def _band_folders(root: Path) -> None:
    for name in IDS:
        for nm, band in zip(WAVELENGTHS, cube(name), strict=True):
            Image.fromarray(band).save(folder(root, "images", name) / f"{nm}nm.png")
    write_masks(root)


def _numbered_band_folders(root: Path) -> None:
    for name in IDS:
        for number, band in enumerate(cube(name)):
            Image.fromarray(band).save(folder(root, "images", name) / f"{number}.png")
        Image.fromarray(mask(name)).save(root / "images" / name / "mask.png")


def _band_files(root: Path) -> None:
    for name in IDS:
        for number, band in enumerate(cube(name), start=1):
            Image.fromarray(band).save(folder(root, "images") / f"{name}_band{number}.png")
    write_masks(root)


def raw_mosaic(name: str) -> np.ndarray:
    """Return the raw camera frame whose bands are the sample's cube."""
    mosaic = sensor("ximea_sm5x5_nir").mosaic
    raw = np.zeros((HEIGHT * 5 + mosaic.skip_rows, WIDTH * 5 + 2), np.uint16)
    for i, row in enumerate(mosaic.rank):
        for j, band in enumerate(row):
            raw[mosaic.skip_rows + i :: 5, j : WIDTH * 5 : 5] = cube(name)[band]
    return raw


def _mosaic(save: Callable[[Path, np.ndarray], None], suffix: str) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        for name in IDS:
            save(folder(root, "raw") / f"{name}{suffix}", raw_mosaic(name))
        write_masks(root)

    return write


def encoded(values: np.ndarray, form: str) -> bytes:
    """Return an array as the bytes of a file."""
    buffer = io.BytesIO()
    if form == "npy":
        np.save(buffer, values)
    else:
        Image.fromarray(values).save(buffer, form)
    return buffer.getvalue()


def write_parquet(path: Path, names: tuple[str, ...], lists: bool = False) -> None:
    """Write samples as a table, encoded as Hugging Face does or as nested lists."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if lists:
        nested = pa.list_(pa.list_(pa.list_(pa.uint16())))
        columns = {
            "id": names,
            "image": pa.array([cube(n).tolist() for n in names], nested),
            "mask": pa.array([mask(n).tolist() for n in names]),
        }
    else:
        columns = {
            "image": [{"bytes": encoded(cube(n), "npy"), "path": f"x/{n}.npy"} for n in names],
            "mask": [{"bytes": encoded(mask(n) * 255, "png"), "path": None} for n in names],
            "label": [1 for _ in names],
        }
    pq.write_table(pa.table(columns), path)


def _parquet_shards(root: Path) -> None:
    write_parquet(folder(root, "data") / "train-00000-of-00002.parquet", IDS[:2])
    write_parquet(folder(root, "data") / "train-00001-of-00002.parquet", IDS[2:])


FORMS: dict[str, Callable[[Path], object]] = {
    "npy": write_npy,
    "npy, channels last": _npy_channels_last,
    "npz with its mask": _npz_with_mask_inside,
    "mat 5": _mat5,
    "mat 7.3": _mat73,
    "h5": _h5,
    "tif": _geotiff_without_place,
    "multi-page tif": _multi_page_tif,
    "envi bsq": _envi(".bsq", "bsq"),
    "envi bil": _envi(".raw", "bil"),
    "envi bip": _envi(".img", "bip"),
    "envi dat": _envi(".dat", "bip"),
    "envi without suffix": _envi("", "bsq"),
    "band folders": _band_folders,
    "numbered band folders": _numbered_band_folders,
    "band files": _band_files,
    "mosaic png": _mosaic(lambda path, raw: Image.fromarray(raw).save(path), ".png"),
    "mosaic tif": _mosaic(lambda path, raw: write_tif(path, raw[None]), ".tif"),
    "mosaic npy": _mosaic(np.save, ".npy"),
    "parquet shards": _parquet_shards,
    "parquet lists": lambda root: write_parquet(root / "all.parquet", IDS, lists=True),
}
