"""The user's own rasters as backgrounds: found, checked, matched by wavelength, cropped."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
from rasterio.windows import Window

from smokegeo.bandmeta import read_bands
from smokegeo.bands import BandSet, match_bands
from smokegeo.errors import InputError, SmokegeoError, deepest_cause
from smokegeo.rastermeta import raster_meta
from smokegeo.simulate.fields import Field, Shape
from smokegeo.simulate.optics import THERMAL_NM
from smokegeo.simulate.views import ImageryView

log = logging.getLogger(__name__)

_SUFFIXES = (".tif", ".tiff")
_TRIES = 12


@dataclass(frozen=True, slots=True)
class Background:
    """A usable raster: its path, size, the one-based raster band of each wanted band, its unit."""

    path: Path
    height: int
    width: int
    indexes: tuple[tuple[str, int], ...]
    unit: float


@dataclass(frozen=True, slots=True)
class Backgrounds:
    """The usable rasters of a folder, in the order of their names."""

    rasters: tuple[Background, ...]

    def crop(self, shape: Shape, rng: np.random.Generator) -> ImageryView:
        """Return a random crop without gaps as reflectance."""
        for _ in range(_TRIES):
            raster = self.rasters[int(rng.integers(len(self.rasters)))]
            top = int(rng.integers(raster.height - shape[0] + 1))
            left = int(rng.integers(raster.width - shape[1] + 1))
            window = Window(left, top, shape[1], shape[0])
            with rasterio.open(raster.path, driver="GTiff") as src:
                numbers = [index for _, index in raster.indexes]
                values = src.read(numbers, window=window, masked=True)
            if values.count() == values.size and np.isfinite(values.data).all():
                scaled = values.data.astype(np.float32) / np.float32(raster.unit)
                names = [name for name, _ in raster.indexes]
                bands: dict[str, Field] = dict(zip(names, np.clip(scaled, 0, 2), strict=True))
                return ImageryView(bands, raster.path.name)
        some = ", ".join(raster.path.name for raster in self.rasters[:3])
        raise InputError(
            f"{some}: no {shape[1]}x{shape[0]} crop without nodata was found. Use other "
            "backgrounds or a smaller --size."
        )


def find_backgrounds(folder: Path, bands: BandSet, shape: Shape) -> Backgrounds:
    """Return the GeoTIFFs of a folder that have all reflective bands; say why others are left."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Give --backgrounds a folder of GeoTIFFs.")
    wanted = BandSet(tuple(b for b in bands if (b.wavelength_nm or 0) < THERMAL_NM), bands.sensor)
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in _SUFFIXES):
        try:
            found.append(_inspect(path, wanted, shape))
        except SmokegeoError as error:
            log.warning("background skipped: %s", error)
    if not found:
        raise InputError(
            f"{folder} holds no usable background: GeoTIFFs of at least {shape[1]}x{shape[0]} "
            f"pixels with the bands {', '.join(wanted.names)}."
        )
    log.info("%d backgrounds from %s", len(found), folder)
    return Backgrounds(tuple(found))


def _inspect(path: Path, wanted: BandSet, shape: Shape) -> Background:
    """Return what is needed to crop a raster, or refuse it with the reason."""
    try:
        with rasterio.open(path, driver="GTiff") as src:
            reading = read_bands(raster_meta(src))
            height, width = src.height, src.width
            matching = match_bands(reading.bands, wanted)
            absent = [entry.wanted.name for entry in matching.entries if entry.absent]
            if absent:
                raise InputError(f"{path.name} lacks {', '.join(absent)}.")
            if height < shape[0] or width < shape[1]:
                raise InputError(f"{path.name} is {width}x{height}, smaller than the frames.")
            numbers = [reading.indexes[index] for index in matching.indexes if index is not None]
            sample = src.read(numbers, out_shape=(len(numbers), 64, 64), masked=True)
    except rasterio.errors.RasterioError as error:
        raise InputError(f"{path.name} cannot be read ({deepest_cause(error)}).") from error
    pairs = tuple(zip(wanted.names, numbers, strict=True))
    return Background(path, height, width, pairs, _unit(sample))


def _unit(sample: np.ma.MaskedArray) -> float:
    """Return the number that stands for reflectance one, judged by type and size."""
    if sample.dtype == np.uint8:
        return 255.0
    values = sample.compressed()
    values = values[np.isfinite(values)]
    bright = float(np.quantile(values, 0.99)) if values.size else 1.0
    return 1.0 if bright <= 2.0 else 10000.0
