"""Training samples for the camera models: colour and heat (mss), and 25 bands (hss).

Simulated views of a drone, a mountain camera or a mosaic camera at a plant, and for mss labelled
photographs of wildfire smoke among them. Sample number n is always the same.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from default_common import IGNORED, Sample, closer, farther, label, pall, without_specks
from numpy.typing import NDArray
from PIL import Image

from smokegeo.bands import BandSet
from smokegeo.sensors import sensor
from smokegeo.simulate.clouds import CLOUD_KINDS, sky_clouds
from smokegeo.simulate.fields import Field, blur, enlarge, smoothstep
from smokegeo.simulate.frame import expose, smoke_layer
from smokegeo.simulate.optics import Layer, blend
from smokegeo.simulate.scenarios import Casting
from smokegeo.simulate.stage import Stage, build_stage, direction

_SCENES = ("high_exposure", "low_visibility", "complex_background", "cloud_interference")
_SMOKES = ("early_stage", "high_transparency", "complex_shape")
_COLDEST_K = -18.0  # where a simulated thermal camera's span begins, above the air
_KELVIN = 273.15
_FULL_COUNT = 1023.0  # of a 10-bit camera
_GAMMA = 2.2  # of photographs
#: Parts of the photographs for cross-validation.
FOLDS = 5
#: Share of samples that are photographs, where there are any.
PHOTO_SHARE = 0.6


@dataclass(frozen=True)
class Photo:
    """A labelled photograph: colours (3, y, x) 0 to 255 and labels (y, x)."""

    name: str
    colours: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def read_photos(folder: Path) -> list[Photo]:
    """Return the labelled photographs of SmokeSeg (MIT), in the order of their names."""
    found = []
    for path in sorted((folder / "smoke_photos_smokeseg" / "JPEGImages").glob("*.jpg")):
        mask = path.parents[1] / "SegmentationClass" / f"{path.stem}.png"
        colours = np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)
        found.append(Photo(path.stem, colours, np.asarray(Image.open(mask))))
    return found


def fold_of(photo: Photo, photos: Sequence[Photo], folds: int = FOLDS) -> int:
    """Return the fold of a photograph; those of one camera share it, whatever fire they show."""
    cameras = sorted({_camera(p) for p in photos})
    return cameras.index(_camera(photo)) % folds


def without_fold(photos: Sequence[Photo], fold: int) -> list[Photo]:
    """Return the photographs of all other folds."""
    return [photo for photo in photos if fold_of(photo, photos) != fold]


def _camera(photo: Photo) -> str:
    """Return the camera in a name: DAY_FIRE_CAMERA__TIME."""
    return photo.name.split("__")[0].split("_")[-1]


def mss_sample(
    number: int, seed: int, photos: Sequence[Photo], size: int = 160, *, easy: bool = False
) -> Sample:
    """Return sample `number` of the colour-and-heat stream; values are 0 to 255 and Celsius."""
    rng = np.random.default_rng([seed, number, 2])
    if photos and rng.random() < PHOTO_SHARE:
        return _photo_sample(photos[int(rng.integers(len(photos)))], size, number, rng)
    bands = sensor("mss").bands
    stage = _stage("mss", bands, size, rng)
    style, layer = _smoke(stage, number, rng)
    veiled = style != "none" and stage.scenery.horizon_px is None and rng.random() < 0.25
    if veiled:  # a drone above its smoke
        style, layer = "pall", pall(stage.shape, stage.smoke, rng, thin=bool(rng.random() < 0.4))
    elif rng.random() < 0.3:
        horizon = stage.scenery.horizon_px
        layer = farther(layer, rng, ground=None if horizon is None else (horizon, 0.95 * size))
    exposed = expose(stage, layer, bands, rng)
    values = exposed.values.astype(np.float32)
    seen = values[:3].mean(axis=0) / 255
    target = label(exposed.opacity, exposed.change, seen, everywhere=veiled)
    has, trusted = np.ones(4, bool), np.ones(4, bool)
    heat = rng.random()
    if heat < (0.2 if easy else 0.45):
        has[3] = False
    elif heat < 0.75:
        share = values[3] / 255
        values[3] = stage.air_k + _COLDEST_K + share * stage.thermal_span_k - _KELVIN
    else:
        trusted[3] = False  # the camera's own 8 bits
    return Sample(values, has, trusted, np.ones((size, size), bool), target, f"made {style}")


def hss_sample(number: int, seed: int, size: int = 128, *, easy: bool = False) -> Sample:
    """Return sample `number` of the 25-band stream; values are the counts of a 10-bit camera."""
    rng = np.random.default_rng([seed, number, 3])
    nominal = sensor("hss").bands
    shift = 0.0 if easy else float(rng.normal(0, 3))
    bands = BandSet(
        tuple(replace(b, wavelength_nm=(b.wavelength_nm or 0) + shift) for b in nominal)
    )
    stage = _stage("hss", bands, size, rng)
    style, layer = _smoke(stage, number, rng)
    exposed = expose(stage, layer, bands, rng)
    values = exposed.values.astype(np.float32)
    target = label(exposed.opacity, exposed.change, values.mean(axis=0) / _FULL_COUNT)
    has = np.ones(len(bands), bool)
    if not easy and rng.random() < 0.5:
        has = rng.random(len(bands)) > rng.uniform(0, 0.5)
        has |= ~has.any()
    if not easy and rng.random() < 0.3:
        noisy = rng.random(len(bands)) < 0.15
        values[noisy] += rng.normal(0, rng.uniform(20, 120), values[noisy].shape).astype(np.float32)
    trusted = np.full(len(bands), easy or rng.random() < 0.8)
    if not trusted[0]:
        values *= np.float32(np.exp(rng.normal(0, 0.6)))
    return Sample(values, has, trusted, np.ones((size, size), bool), target, f"made {style}")


def _stage(kind: str, bands: BandSet, size: int, rng: np.random.Generator) -> Stage:
    scene = str(rng.choice(_SCENES, p=[0.2, 0.12, 0.36, 0.32]))
    return build_stage(kind, (size, size), bands, scene, rng)


def _smoke(stage: Stage, number: int, rng: np.random.Generator) -> tuple[str, Layer]:
    style = str(rng.choice(["none", *_SMOKES, "core"], p=[0.22, 0.2, 0.2, 0.25, 0.13]))
    if style == "none":
        return style, Layer(
            np.zeros(stage.shape, np.float32), np.ones((1, 1), np.float32), stage.smoke
        )
    kind = "complex_shape" if style == "core" else style
    layer = smoke_layer(stage, Casting(number, int(rng.integers(0, 12)), "", kind), rng)
    if style == "core":
        layer = replace(layer, tau=layer.tau * np.float32(rng.uniform(2, 5)))
    return style, closer(layer, rng, 2.0) if rng.random() < 0.3 else layer


def _photo_sample(photo: Photo, size: int, number: int, rng: np.random.Generator) -> Sample:
    """Return a part of a photograph, zoomed, mirrored, as another camera would have taken it.

    Nearly half get simulated smoke as well, small and far: forty photographs show little of what
    smoke can look like, but much of what cameras, haze and horizons do.
    """
    height, width = photo.labels.shape
    side = int(min(size / np.exp(rng.uniform(np.log(0.35), np.log(1.3))), height, width))
    top, left = (int(rng.integers(0, n - side + 1)) for n in (height, width))
    smoke = np.argwhere(photo.labels == 1)
    if len(smoke) and rng.random() < 0.5:  # it is small in most of them
        y, x = smoke[int(rng.integers(len(smoke)))]
        top = int(np.clip(y - rng.uniform(0.1, 0.9) * side, 0, height - side))
        left = int(np.clip(x - rng.uniform(0.1, 0.9) * side, 0, width - side))
    part = np.s_[top : top + side, left : left + side]
    values = np.zeros((4, size, size), np.float32)
    for i, colour in enumerate(photo.colours):
        values[i] = enlarge(colour[part].astype(np.float32), (size, size))
    rows = np.minimum((np.arange(size) + 0.5) * side / size, side - 1).astype(int)
    target = photo.labels[part][np.ix_(rows, rows)].copy()
    target[target > 1] = IGNORED
    # Horizons lie about the middle of these photographs.
    ground = ((0.42 * height - top) * size / side, (0.68 * height - top) * size / side)
    if rng.random() < 0.4 and ground[0] > 0.15 * size:
        values[:3] = _with_clouds(values[:3], target, ground[0], rng)
    if rng.random() < 0.65 and ground[0] < size and ground[1] > 0:
        values[:3], target = _with_smoke(values[:3], target, ground, number, rng)
    values[:3] = _another_camera(values[:3], rng)
    if rng.random() < 0.5:
        values, target = values[..., ::-1].copy(), target[:, ::-1].copy()
    has, trusted = np.array([True, True, True, False]), np.ones(4, bool)
    return Sample(values, has, trusted, np.ones((size, size), bool), target, "photo")


def _another_camera(colours: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a photograph, 0 to 255, as another camera would have taken it on another day."""
    if rng.random() < 0.3:  # haze, as thick everywhere
        air = np.percentile(colours, 97, axis=(1, 2)).astype(np.float32)[:, None, None]
        colours = colours + np.float32(rng.uniform(0, 0.4)) * (air - colours)
    grey = colours.mean(axis=0)
    colours = grey + (colours - grey) * np.float32(rng.uniform(0.5, 1.4))
    gain = np.exp(rng.normal(0, 0.2)) * np.exp(rng.normal(0, 0.06, (3, 1, 1)))
    colours = np.clip(colours * gain, 0, 255)
    colours = 255 * (colours / 255) ** float(np.exp(rng.normal(0, 0.2)))
    if rng.random() < 0.25:
        softness = float(rng.uniform(0.4, 1.2))
        colours = np.stack([blur(colour.astype(np.float32), softness) for colour in colours])
    if rng.random() < 0.3:
        colours = colours + rng.normal(0, rng.uniform(1, 7), colours.shape)
    picture = np.rint(np.clip(colours, 0, 255)).astype(np.uint8)
    if rng.random() < 0.3:
        file = io.BytesIO()
        quality = int(rng.integers(25, 90))
        Image.fromarray(picture.transpose(1, 2, 0)).save(file, "JPEG", quality=quality)
        picture = np.asarray(Image.open(file)).transpose(2, 0, 1)
    return picture.astype(np.float32)


def _with_clouds(
    colours: NDArray[np.float32],
    target: NDArray[np.uint8],
    horizon_px: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Return a photograph, 0 to 255, with clouds in its sky, behind the smoke it shows."""
    kind = str(rng.choice(CLOUD_KINDS))
    cover = float(rng.uniform(0.1, 0.7))
    layer = sky_clouds(
        target.shape, rng, kind, cover=cover, horizon_px=horizon_px, sun=direction(rng)
    )
    behind = np.float32(1) - np.minimum(1, 4 * blur((target == 1).astype(np.float32), 4.0))
    rows = np.arange(len(target), dtype=np.float32)[:, None]
    above = smoothstep(0.0, 0.1 * horizon_px, np.float32(horizon_px) - rows)
    layer = replace(layer, tau=layer.tau * behind * above)
    light = (colours / 255) ** np.float32(_GAMMA)
    white = np.percentile(light, 98, axis=(1, 2)) * rng.uniform(0.7, 1.3)
    seen, _ = _through(light, layer, white / 0.75)
    return np.asarray(255 * seen ** np.float32(1 / _GAMMA), np.float32)


def _with_smoke(
    colours: NDArray[np.float32],
    target: NDArray[np.uint8],
    ground: tuple[float, float],
    number: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return a photograph, 0 to 255, and its labels with simulated smoke drawn into it."""
    # It is seen from far away, so half the size will do.
    stage = _stage("mss", sensor("mss").bands, target.shape[0] // 2, rng)
    _, layer = _smoke(stage, number, rng)
    tau = enlarge(layer.tau, target.shape) * np.float32(np.exp(rng.normal(-0.8, 0.6)))
    layer = replace(layer, tau=tau, light=enlarge(layer.light, target.shape))
    layer = farther(layer, rng, 9.0, ground)
    light = (colours / 255) ** np.float32(_GAMMA)
    sunlit = np.percentile(light, 97, axis=(1, 2)) * rng.uniform(0.6, 1.2)
    seen, opacity = _through(light, layer, sunlit / 0.7)
    new = without_specks(label(opacity, np.abs(seen - light).mean(axis=0), seen.mean(axis=0)))
    return 255 * seen ** np.float32(1 / _GAMMA), np.where(target == 1, target, new)


def _through(
    light: NDArray[np.float32], layer: Layer, sun: NDArray[np.float64]
) -> tuple[NDArray[np.float32], Field]:
    """Return colours (3, y, x) seen through a layer that is lit by `sun`, and its opacity."""
    seen, opacity = np.empty_like(light), np.zeros(light.shape[1:], np.float32)
    for i, band in enumerate(sensor("mss").bands.bands[:3]):
        nm = band.wavelength_nm or 550.0
        covered = layer.opacity(nm)
        glow = np.minimum(layer.glow(nm) * np.float32(sun[i]), 1)
        seen[i] = blend(light[i], covered, glow)
        opacity += covered / 3
    return seen, opacity
