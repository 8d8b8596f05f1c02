"""Samples for mss: labelled photographs of wildfire smoke among simulated views.

Forty photographs show little of what smoke can look like, but much of what cameras, haze and
horizons do: they are taken as other cameras would take them, and get more smoke, simulated or from
another photograph, and more clouds. Sample number n is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from default_backgrounds import Background, choose_background
from default_camera import (
    GAMMA,
    Ground,
    another_camera,
    as_ground,
    camera_smoke,
    camera_stage,
    mss_view,
    seen_from_aircraft,
)
from default_common import (
    IGNORED,
    PICTURE_VISIBLE,
    Sample,
    farther,
    label,
    without_fire,
    without_specks,
)
from default_heat import as_recorded, guessed_heat
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from smokegeo.sensors import sensor
from smokegeo.simulate.clouds import CLOUD_KINDS, sky_clouds
from smokegeo.simulate.fields import Field, blur, enlarge, smoothstep
from smokegeo.simulate.optics import Layer, blend
from smokegeo.simulate.stage import direction

#: Parts of the photographs for cross-validation.
FOLDS = 5
#: Share of samples that are photographs, where there are any.
PHOTO_SHARE = 0.4
#: Of the other samples, how many look down on pictures taken from aircraft, and on the slopes in
#: photographs, where there are any.
AERIAL_SHARE, SLOPE_SHARE = 0.4, 0.12
#: Share of the photographs' samples that get a guess of their heat: without it, a network could
#: learn that what has heat is simulated.
HEAT_SHARE = 0.35
#: Sizes photographs are seen at, as a share of their own.
ZOOMS = (0.35, 2.2)


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


def without_fold(have: Sequence[Photo | Background], fold: str) -> list[Photo | Background]:
    """Return all but the photographs of a fold, or but all of them for the fold `none`."""
    photos = [item for item in have if isinstance(item, Photo)]
    left = {p.name for p in photos if fold in ("none", str(fold_of(p, photos)))}
    return [item for item in have if not (isinstance(item, Photo) and item.name in left)]


def _camera(photo: Photo) -> str:
    """Return the camera in a name: DAY_FIRE_CAMERA__TIME."""
    return photo.name.split("__")[0].split("_")[-1]


def mss_sample(
    number: int,
    seed: int,
    have: Sequence[Photo | Background],
    size: int = 160,
    *,
    easy: bool = False,
) -> Sample:
    """Return sample `number` of the colour-and-heat stream; values are 0 to 255 and Celsius."""
    rng = np.random.default_rng([seed, number, 2])
    photos = [item for item in have if isinstance(item, Photo)]
    if photos and rng.random() < PHOTO_SHARE:
        return _photo_sample(photos, size, number, rng)
    aerial = [item for item in have if isinstance(item, Background)]
    return mss_view(number, rng, _below(photos, aerial, size, rng), size, easy=easy)


def _below(
    photos: Sequence[Photo], aerial: Sequence[Background], size: int, rng: np.random.Generator
) -> Ground | None:
    """Return real ground to look down on, or None for a made-up view."""
    draw = rng.random()
    if aerial and draw < AERIAL_SHARE:
        return seen_from_aircraft(choose_background(aerial, rng, wooded=False), size, rng)
    if photos and draw > 1 - SLOPE_SHARE:
        return _slope(photos[int(rng.integers(len(photos)))], size, rng)
    return None


def _slope(photo: Photo, size: int, rng: np.random.Generator) -> Ground | None:
    """Return the ground in a photograph: bushes and trees of a slope as a drone sees them.

    None if there is smoke in the part that was drawn.
    """
    height, width = photo.labels.shape
    lowest = int(0.62 * height)  # horizons lie above
    side = int(rng.uniform(0.4, 1) * (height - lowest))
    top, left = int(rng.integers(lowest, height - side + 1)), int(rng.integers(0, width - side + 1))
    part = np.s_[top : top + side, left : left + side]
    if (photo.labels[part] != 0).any():
        return None
    taken = photo.colours[(slice(None), *part)].astype(np.float32) / 255
    colours = np.stack([enlarge(colour, (size, size)) for colour in taken])
    return as_ground(colours, np.ones((size, size), bool), photo.name, rng)


def _photo_sample(
    photos: Sequence[Photo], size: int, number: int, rng: np.random.Generator
) -> Sample:
    """Return a part of a photograph, zoomed, mirrored, as another camera would have taken it."""
    photo = photos[int(rng.integers(len(photos)))]
    height, width = photo.labels.shape
    side = int(min(size / np.exp(rng.uniform(*np.log(ZOOMS))), height, width))
    top, left = (int(rng.integers(0, n - side + 1)) for n in (height, width))
    smoke = np.argwhere(photo.labels == 1)
    if len(smoke) and rng.random() < 0.5:  # it is small in most of them
        y, x = smoke[int(rng.integers(len(smoke)))]
        top = int(np.clip(y - rng.uniform(0.1, 0.9) * side, 0, height - side))
        left = int(np.clip(x - rng.uniform(0.1, 0.9) * side, 0, width - side))
    part = np.s_[top : top + side, left : left + side]
    values = np.zeros((4, size, size), np.float32)
    for i, colour in enumerate(photo.colours):
        taken = colour[part].astype(np.float32)
        if side > size:  # or single pixels would stand for all around them
            taken = blur(taken, 0.4 * side / size)
        values[i] = enlarge(taken, (size, size))
    rows = np.minimum((np.arange(size) + 0.5) * side / size, side - 1).astype(int)
    target = photo.labels[part][np.ix_(rows, rows)].copy()
    target[target > 1] = IGNORED
    # Horizons lie about the middle of these photographs.
    ground = ((0.42 * height - top) * size / side, (0.68 * height - top) * size / side)
    if rng.random() < 0.4 and ground[0] > 0.15 * size:
        values[:3] = _with_clouds(values[:3], target, ground[0], rng)
    if ground[0] < size and ground[1] > 0:
        more = rng.random()
        if more < 0.4:
            values[:3], target = _with_smoke(values[:3], target, ground, number, rng)
        elif more < 0.75:
            other = photos[int(rng.integers(len(photos)))]
            zoom = size / side * float(np.exp(rng.uniform(np.log(0.6), np.log(1.8))))
            values[:3], target = _with_plume_of(other, zoom, values[:3], target, ground, rng)
    has, trusted = np.array([True, True, True, False]), np.ones(4, bool)
    if rng.random() < HEAT_SHARE:
        values[3], trusted[3] = as_recorded(guessed_heat(values[:3], target, ground[0], rng), rng)
        has[3] = True
    values[:3] = another_camera(values[:3], rng)
    if rng.random() < 0.5:
        values, target = values[..., ::-1].copy(), target[:, ::-1].copy()
    return Sample(values, has, trusted, np.ones((size, size), bool), target, "photo")


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
    light = (colours / 255) ** np.float32(GAMMA)
    white = np.percentile(light, 98, axis=(1, 2)) * rng.uniform(0.7, 1.3)
    seen, _ = _through(light, layer, white / 0.75)
    return np.asarray(255 * seen ** np.float32(1 / GAMMA), np.float32)


def _with_smoke(
    colours: NDArray[np.float32],
    target: NDArray[np.uint8],
    ground: tuple[float, float],
    number: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return a photograph, 0 to 255, and its labels with simulated smoke drawn into it."""
    # It is seen from far away, so half the size will do.
    stage = camera_stage("mss", sensor("mss").bands, target.shape[0] // 2, rng)
    _, stage, layer = camera_smoke(stage, number, rng, 2.0)
    tau = enlarge(layer.tau, target.shape) * np.float32(np.exp(rng.normal(-0.8, 0.6)))
    layer = replace(layer, tau=tau, light=enlarge(layer.light, target.shape))
    _, layer = farther(without_fire(stage, 1.0, rng), layer, rng, 9.0, ground)
    light = (colours / 255) ** np.float32(GAMMA)
    sunlit = np.percentile(light, 97, axis=(1, 2)) * rng.uniform(0.6, 1.2)
    seen, opacity = _through(light, layer, sunlit / 0.7)
    shown = seen ** np.float32(1 / GAMMA)
    change = np.abs(shown - colours / 255).mean(axis=0)
    new = without_specks(label(opacity, change, shown.mean(axis=0), least=PICTURE_VISIBLE))
    return 255 * shown, np.where(target == 1, target, new)


def _with_plume_of(
    photo: Photo,
    zoom: float,
    colours: NDArray[np.float32],
    target: NDArray[np.uint8],
    ground: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return a photograph, 0 to 255, and its labels with the plume of another one set into it.

    What is around the plume is brought to the colours of its new surroundings, and the plume with
    it. Nothing changes if it does not fit.
    """
    plume, smoke = _plume_of(photo, zoom)
    shape = smoke.shape
    if min(shape) < 8 or shape[0] > target.shape[0] or shape[1] > target.shape[1]:
        return colours, target
    if rng.random() < 0.5:
        plume, smoke = plume[..., ::-1], smoke[:, ::-1]
    foot = int(np.flatnonzero(smoke.any(axis=1))[-1]) if smoke.any() else 0
    y = int(np.clip(rng.uniform(*ground) - foot, 0, target.shape[0] - shape[0]))
    x = int(rng.integers(0, target.shape[1] - shape[1] + 1))
    place = np.s_[y : y + shape[0], x : x + shape[1]]
    if not smoke.any() or (target[place] == 1).any():
        return colours, target
    near = ndimage.binary_dilation(smoke, iterations=2)
    ring = (ndimage.binary_dilation(near, iterations=4) & ~near).astype(np.float32)
    reach = max(2.0, max(shape) / 6)
    weight = np.maximum(blur(ring, reach), np.float32(1e-4))
    share = blur(near.astype(np.float32), 1.0)
    colours, target = colours.copy(), target.copy()
    for here, there in zip(colours, plume, strict=True):
        tone = blur((here[place] - there) * ring, reach) / weight
        here[place] += share * np.clip(there + tone - here[place], -255, 255)
    target[place][near] = IGNORED
    target[place][smoke] = 1
    return np.clip(colours, 0, 255), target


def _plume_of(photo: Photo, zoom: float) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the part of a photograph around its smoke, at another size, and where smoke is."""
    rows, columns = np.nonzero(photo.labels == 1)
    if not len(rows):
        return np.zeros((3, 0, 0), np.float32), np.zeros((0, 0), bool)
    margin = 8 + int(0.2 * max(np.ptp(rows), np.ptp(columns)))
    top, left = max(0, rows.min() - margin), max(0, columns.min() - margin)
    part = np.s_[top : rows.max() + margin + 1, left : columns.max() + margin + 1]
    inside = (photo.labels[part] == 1).astype(np.float32)
    shape = (int(zoom * inside.shape[0]), int(zoom * inside.shape[1]))
    taken = photo.colours[(slice(None), *part)].astype(np.float32)
    if zoom < 1:  # or single pixels would stand for all around them
        taken = np.stack([blur(colour, 0.4 / zoom) for colour in taken])
    return np.stack([enlarge(colour, shape) for colour in taken]), enlarge(inside, shape) > 0.5


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
