"""What the samples of all default models share: the sample itself, labels, pictures."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from smokegeo.simulate.fields import Field, Shape, blur, enlarge, fractal, smoothstep
from smokegeo.simulate.optics import Layer, Particles, dimmed
from smokegeo.simulate.stage import Stage
from smokegeo.simulate.thermal import Fire

#: Smoke that takes away more of the light than this is labelled, less than that is not; between
#: the two nobody could say.
LABELLED, UNLABELLED = 0.12, 0.04
#: Smoke over everything has no edge to know it by: it must also change the light by this much,
#: and by this share of it. Over bright sand a veil is not seen that is plain over forest.
VEIL_VISIBLE, VEIL_SHARE = 0.03, 0.25
#: A change of reflectance below this is not seen, nor one of a picture, 0 to 1, below that.
VISIBLE, PICTURE_VISIBLE = 0.012, 0.02
#: Smoke must change the light by this share of how much it varies around, within so many pixels.
ROUGH_SHARE, ROUGH_PX = 0.35, 5.0
IGNORED = 255
#: What is labelled smoke in fewer pixels than this together is but the rim of something open.
LEAST_PX = 12
#: So is what is labelled of a patch of smoke if it is less than this share of the patch.
LEAST_SHARE = 0.25


@dataclass(frozen=True)
class Sample:
    """An image (bands, h, w) in the model's units, which bands it has, and labels.

    `trusted` says for each band whether its numbers are measurements; those of a stretched picture
    are not. `tag` says how it was made.
    """

    values: NDArray[np.float32]
    has: NDArray[np.bool_]
    trusted: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    target: NDArray[np.uint8]
    tag: str


def label(
    opacity: Field,
    change: Field,
    seen: Field,
    *,
    everywhere: bool = False,
    least: float = VISIBLE,
) -> NDArray[np.uint8]:
    """Return 1 for smoke, 0 for none, ignored where nobody could be sure.

    People outline patches and not pixels: what counts is the mean around a pixel. `seen` is the
    brightness of the image, 0 to 1: among clouds or rough land faint smoke is not told apart. Of
    smoke that lies `everywhere` more is asked, as it has no edge. A change below `least` is not
    seen; `change` and `seen` are both of light, or both of a picture of it.
    """
    around, patch = blur(opacity, 1.5), blur(change, 3.0)
    mean = blur(seen, ROUGH_PX)
    rough = np.sqrt(np.maximum(blur(seen * seen, ROUGH_PX) - mean * mean, 0))
    target = np.zeros(opacity.shape, np.uint8)
    target[np.maximum(opacity, around) > UNLABELLED] = IGNORED
    visible = np.maximum(VEIL_VISIBLE, VEIL_SHARE * mean) if everywhere else np.float32(least)
    plain = patch > np.maximum(visible, ROUGH_SHARE * rough)
    target[(around > LABELLED) & plain] = 1
    return target


def without_specks(target: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return labels in which smoke of a few pixels is left open."""
    patches, count = ndimage.label(target == 1)
    sizes = np.bincount(patches.ravel(), minlength=count + 1)
    small = sizes < LEAST_PX
    small[0] = False
    return np.where(small[patches], np.uint8(IGNORED), target)


def without_remnants(target: NDArray[np.uint8], opacity: Field) -> NDArray[np.uint8]:
    """Return labels in which a patch of smoke is left open if most of it is.

    What is left of a plume between clouds, or of a veil over rough land, is a shape of its own that
    no smoke has; as a label it teaches nothing.
    """
    patches, count = ndimage.label(opacity > UNLABELLED)
    sizes = np.bincount(patches.ravel(), minlength=count + 1)
    labelled = np.bincount(patches[target == 1], minlength=count + 1)
    remnant = labelled < LEAST_SHARE * sizes
    return np.where(remnant[patches] & (target == 1), np.uint8(IGNORED), target)


def farther(
    stage: Stage,
    layer: Layer,
    rng: np.random.Generator,
    most: float = 6.0,
    ground: tuple[float, float] | None = None,
) -> tuple[Stage, Layer]:
    """Return the smoke as if seen from far away: small, somewhere, once or several times.

    Its fire goes with it. In a view with a horizon smoke lies flatter the farther it is, and rises
    from rows in `ground`.
    """
    shape = layer.tau.shape
    tau, light = np.zeros(shape, np.float32), np.ones(shape, np.float32)
    # What left the view on one side thins out, as there is no straight end of smoke.
    fade = [np.minimum(1, 6 * (0.5 - np.abs(np.linspace(-0.5, 0.5, n)))) for n in shape]
    faded = layer.tau * (fade[0][:, None] * fade[1][None]).astype(np.float32)
    burning = _fields(stage.scenery.fire)
    burnt = [np.zeros(shape, np.float32) for _ in burning]
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        zoom = float(np.exp(rng.uniform(np.log(1.5), np.log(most))))
        flat = 1.0 if ground is None else float(rng.uniform(0.4, 1.0))
        small = (int(flat * shape[0] / zoom), int(shape[1] / zoom))
        shrunk = enlarge(blur(faded, zoom / 2), small)
        top, left = (int(rng.integers(0, n - m + 1)) for n, m in zip(shape, small, strict=True))
        if ground is not None:
            lowest = np.flatnonzero((shrunk > 0.1).any(axis=1))
            foot = int(lowest[-1]) if len(lowest) else small[0]
            top = int(np.clip(rng.uniform(*ground) - foot, 0, shape[0] - small[0]))
        part = np.s_[top : top + small[0], left : left + small[1]]
        tau[part] = np.maximum(tau[part], shrunk)
        light[part] = enlarge(np.broadcast_to(layer.light, shape), small)
        for there, here in zip(burning, burnt, strict=True):
            here[part] = np.maximum(here[part], enlarge(blur(there, zoom / 3), small))
    return _burning(stage, burnt), replace(layer, tau=tau, light=light)


def _fields(fire: Fire | None) -> list[Field]:
    return [] if fire is None else [fire.flame, fire.scar, fire.ember_k]


def _burning(stage: Stage, fields: list[Field]) -> Stage:
    """Return the stage with its fire in another place or size."""
    fire = stage.scenery.fire
    if fire is None:
        return stage
    flame, scar, ember = fields
    moved = replace(fire, flame=flame, scar=scar, ember_k=ember)
    return replace(stage, scenery=replace(stage.scenery, fire=moved))


def without_fire(stage: Stage, share: float, rng: np.random.Generator) -> Stage:
    """Return the stage, of a share of them without its fire: most smoke is seen, not its fire."""
    if rng.random() >= share:
        return stage
    return replace(stage, scenery=replace(stage.scenery, fire=None))


def pall(shape: Shape, particles: Particles, rng: np.random.Generator, *, thin: bool) -> Layer:
    """Return aged smoke over much or all of the view, with a soft edge or none."""
    texture = fractal(shape, rng, slope=float(rng.uniform(2.2, 3.2)))
    base = float(rng.uniform(0.15, 0.7) if thin else rng.uniform(0.5, 1.8))
    tau = base * np.exp(np.float32(rng.uniform(0.1, 0.45)) * texture)
    if rng.random() < 0.65:
        angle = float(rng.uniform(0, 2 * np.pi))
        y, x = np.mgrid[-1 : 1 : shape[0] * 1j, -1 : 1 : shape[1] * 1j].astype(np.float32)
        along = (
            np.cos(angle) * x
            + np.sin(angle) * y
            + np.float32(0.25) * fractal(shape, rng, slope=3.0)
        )
        start = float(rng.uniform(-0.9, 0.7))
        tau = tau * smoothstep(
            start, start + float(rng.uniform(0.15, 1.0)), along.astype(np.float32)
        )
    # Light is scattered once or twice in thin smoke: it never gets as bright as a thick core.
    particles = dimmed(particles, float(rng.uniform(0.4, 0.85 if thin else 1.0)))
    return Layer(tau.astype(np.float32), np.ones((1, 1), np.float32), particles)


def closer(
    stage: Stage, layer: Layer, rng: np.random.Generator, most: float = 3.5
) -> tuple[Stage, Layer]:
    """Return smoke and fire as if seen from nearer: a part, around some smoke, enlarged."""
    height, width = shape = layer.tau.shape
    thick = np.argwhere(layer.tau > 0.3 * layer.tau.max())
    if len(thick) == 0 or layer.tau.max() <= 0:
        return stage, layer
    zoom = float(np.exp(rng.uniform(np.log(1.2), np.log(most))))
    rows, columns = int(height / zoom), int(width / zoom)
    y, x = thick[int(rng.integers(len(thick)))]
    top = int(np.clip(y - rng.uniform(0.1, 0.9) * rows, 0, height - rows))
    left = int(np.clip(x - rng.uniform(0.1, 0.9) * columns, 0, width - columns))
    part = np.s_[top : top + rows, left : left + columns]
    detail = np.exp(np.float32(rng.uniform(0, 0.25)) * fractal(shape, rng, slope=2.0))
    tau = enlarge(layer.tau[part], shape) * detail
    burning = [enlarge(field[part], shape) for field in _fields(stage.scenery.fire)]
    seen = replace(layer, tau=tau.astype(np.float32), light=enlarge(layer.light[part], shape))
    return _burning(stage, burning), seen


def sharpened(layer: Layer, rng: np.random.Generator) -> Layer:
    """Return smoke without its thin rim, as fresh smoke has an edge."""
    peak = float(layer.tau.max())
    low = peak * float(rng.uniform(0.02, 0.15))
    kept = smoothstep(low, low * float(rng.uniform(1.5, 4)), layer.tau) if peak > 0 else 1
    return replace(layer, tau=np.asarray(layer.tau * kept, np.float32))


def dim_where_thin(layer: Layer, rng: np.random.Generator) -> Layer:
    """Return smoke whose thin parts are less bright: light is scattered once there, not often."""
    least = np.float32(rng.uniform(0.35, 0.9))
    share = least + (1 - least) * -np.expm1(-layer.tau / np.float32(1.5))
    return replace(layer, light=np.asarray(layer.light * share, np.float32))


def stretched(
    values: NDArray[np.float32],
    valid: NDArray[np.bool_],
    has: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Return reflectances as a picture of 8 bits, 0 to 1, as viewers and web services make it.

    Stretched between its own darkest and brightest pixels, each band or all together, or between
    limits that are the same for all scenes, in which clouds and thick smoke are all white.
    """
    low_q, high_q = float(rng.uniform(0, 3)), float(rng.uniform(96.5, 100))
    pixels = values[:, valid][:, ::7]
    how = rng.random()
    if how < 0.35:
        low, high = np.percentile(pixels, (low_q, high_q), axis=1)
    elif how < 0.6:
        low, high = np.percentile(pixels[has], (low_q, high_q))[:, None] * np.ones(len(values))
    else:
        each = np.exp(rng.normal(0, 0.1, len(values)) * (rng.random() < 0.5))
        # Nobody keeps a picture that is white nearly everywhere.
        least = np.percentile(pixels[has], 80)
        low = np.full(len(values), rng.uniform(0, 0.03))
        high = max(float(rng.uniform(0.18, 0.5)), float(least)) * each
    scaled = (values - low[:, None, None]) / np.maximum(high - low, 1e-3)[:, None, None]
    gamma = float(rng.uniform(0.5, 1.15))
    picture = np.clip(scaled, 0, 1) ** gamma
    if rng.random() < 0.3:
        grey = picture[has].mean(axis=0)
        picture = np.clip(grey + (picture - grey) * rng.uniform(0.8, 1.6), 0, 1)
    picture = np.asarray(np.rint(255 * picture), np.uint8)
    if has.sum() == 3 and rng.random() < 0.4:
        picture[has] = as_jpeg(picture[has], int(rng.integers(40, 96)))
    return np.asarray(picture / np.float32(255), np.float32)


def as_jpeg(picture: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """Return colours (3, y, x) as a JPEG file keeps them."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0))).save(
        file, "JPEG", quality=quality
    )
    return np.asarray(Image.open(file)).transpose(2, 0, 1)
