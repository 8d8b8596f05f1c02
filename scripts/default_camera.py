"""Simulated samples for the camera models: colour and heat (mss), and 25 bands (hss).

Views of a drone, a mountain camera or a mosaic camera at a plant. Sample number n is always the
same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from default_backgrounds import Background, crop
from default_common import (
    IGNORED,
    PICTURE_VISIBLE,
    Sample,
    as_jpeg,
    closer,
    farther,
    label,
    pall,
    without_fire,
    without_remnants,
    without_specks,
)
from default_heat import as_recorded, ground_warmth, seen_heat
from default_wildfire import drifting_smoke
from numpy.typing import NDArray

from smokegeo.bands import BandSet
from smokegeo.sensors import sensor
from smokegeo.simulate.fields import Field, blur
from smokegeo.simulate.frame import band_light, expose, smoke_layer
from smokegeo.simulate.optics import Layer
from smokegeo.simulate.scenarios import Casting
from smokegeo.simulate.stage import Stage, build_stage
from smokegeo.simulate.views import ImageryView, View

_SCENES = ("high_exposure", "low_visibility", "complex_background", "cloud_interference")
_SMOKES = ("early_stage", "high_transparency", "complex_shape")
_FULL_COUNT = 1023.0  # of a 10-bit camera
GAMMA = 2.2  # of pictures
#: Of the smoke below a drone, how much lies over everything, and how much drifts in strands.
_PALLS, _DRIFTING = 0.25, 0.35


def mss_view(
    number: int,
    rng: np.random.Generator,
    below: Ground | None,
    size: int,
    *,
    easy: bool = False,
) -> Sample:
    """Return a sample of colour and heat, of made-up land or what lies `below` the camera.

    Values are 0 to 255 and Celsius.
    """
    bands = sensor("mss").bands
    stage = camera_stage("mss", bands, size, rng, below)
    valid = np.ones((size, size), bool) if below is None else below.valid
    style, stage, layer = camera_smoke(stage, number, rng, 3.5)
    veiled = False
    if style != "none" and stage.scenery.horizon_px is None:  # a drone above its smoke
        draw = rng.random()
        if veiled := bool(draw < _PALLS):
            thin = bool(rng.random() < 0.4)
            style, layer = "pall", pall(stage.shape, stage.smoke, rng, thin=thin)
        elif draw < _PALLS + _DRIFTING:
            style = "drifting"
            stage, layer = drifting_smoke(stage, rng, near=True)
    stage = without_fire(stage, 0.6 if style == "none" else 0.35, rng)
    if not veiled and rng.random() < 0.3:
        horizon = stage.scenery.horizon_px
        rows = None if horizon is None else (horizon, 0.95 * size)
        stage, layer = farther(stage, layer, rng, ground=rows)
    exposed = expose(stage, layer, bands, rng)
    values = exposed.values.astype(np.float32)
    seen = values[:3].mean(axis=0) / 255
    change = picture_change(stage, layer, bands)
    target = label(exposed.opacity, change, seen, everywhere=veiled, least=PICTURE_VISIBLE)
    target = without_specks(without_remnants(target, exposed.opacity * valid))
    if rng.random() < 0.7:
        values[:3] = another_camera(values[:3], rng)
    has, trusted = np.ones(4, bool), np.ones(4, bool)
    if rng.random() < (0.2 if easy else 0.4):
        has[3] = False
    else:
        values[3], trusted[3] = as_recorded(seen_heat(stage, layer, rng), rng)
    target[~valid] = IGNORED
    ground = "made" if below is None else "real"
    return Sample(values, has, trusted, valid, target, f"{ground} {style}")


def picture_change(stage: Stage, smoke: Layer, bands: BandSet) -> Field:
    """Return how much smoke changes a camera's picture, 0 to 1, in the mean of its colours."""
    change = np.zeros(stage.shape, np.float32)
    for channel, band in zip(stage.sensor.channels[:3], bands.bands[:3], strict=True):
        light, _, difference = band_light(stage, smoke, band)
        shown = [
            np.clip(seen * np.float32(channel.gain) + np.float32(channel.offset), 0, 1)
            ** np.float32(channel.gamma)
            for seen in (light, light - difference)
        ]
        change += np.abs(shown[0] - shown[1]) / np.float32(3)
    return change


@dataclass(frozen=True)
class Ground(ImageryView):
    """Real ground with a guess of how much warmer than the air it is (y, x)."""

    warmth: Field = field(default_factory=lambda: np.zeros((1, 1), np.float32))
    valid: NDArray[np.bool_] = field(default_factory=lambda: np.ones((1, 1), bool))

    def warmth_k(self) -> Field:
        """Return the guess."""
        return self.warmth


def seen_from_aircraft(picture: Background, size: int, rng: np.random.Generator) -> Ground:
    """Return a part of a picture as what a drone looks down on."""
    colours, _, valid = crop(picture, size, rng)
    return as_ground(colours[2::-1], valid, picture.name, rng)


def as_ground(
    colours: NDArray[np.float32], valid: NDArray[np.bool_], name: str, rng: np.random.Generator
) -> Ground:
    """Return a picture's red, green and blue, 0 to 1, as ground below a camera."""
    # A picture shows light by a curve, which the simulated camera applies again.
    light = np.float32(rng.uniform(0.4, 0.7)) * colours ** np.float32(GAMMA)
    bands = dict(zip(("red", "green", "blue"), light, strict=True))
    return Ground(bands, name, warmth=ground_warmth(colours, rng), valid=valid)


def another_camera(colours: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a photograph, 0 to 255, as another camera would have taken it on another day."""
    if rng.random() < 0.3:  # haze, as thick everywhere
        air = np.percentile(colours, 97, axis=(1, 2)).astype(np.float32)[:, None, None]
        colours = colours + np.float32(rng.uniform(0, 0.4)) * (air - colours)
    grey = colours.mean(axis=0)
    colours = grey + (colours - grey) * np.float32(rng.uniform(0.5, 1.4))
    # Most of a picture is not so bright that it is all white.
    most = 240 / max(1.0, float(np.percentile(colours, 80)))
    gain = min(np.exp(rng.normal(0, 0.2)), most) * np.exp(rng.normal(0, 0.06, (3, 1, 1)))
    colours = np.clip(colours * gain, 0, 255)
    colours = 255 * (colours / 255) ** float(np.exp(rng.normal(0, 0.2)))
    if rng.random() < 0.25:
        softness = float(rng.uniform(0.4, 1.2))
        colours = np.stack([blur(colour.astype(np.float32), softness) for colour in colours])
    if rng.random() < 0.3:
        colours = colours + rng.normal(0, rng.uniform(1, 7), colours.shape)
    picture = np.rint(np.clip(colours, 0, 255)).astype(np.uint8)
    if rng.random() < 0.3:
        picture = as_jpeg(picture, int(rng.integers(25, 90)))
    return picture.astype(np.float32)


def hss_sample(number: int, seed: int, size: int = 128, *, easy: bool = False) -> Sample:
    """Return sample `number` of the 25-band stream; values are the counts of a 10-bit camera."""
    rng = np.random.default_rng([seed, number, 3])
    nominal = sensor("hss").bands
    shift = 0.0 if easy else float(rng.normal(0, 3))
    bands = BandSet(
        tuple(replace(b, wavelength_nm=(b.wavelength_nm or 0) + shift) for b in nominal)
    )
    stage = camera_stage("hss", bands, size, rng)
    style, stage, layer = camera_smoke(stage, number, rng, 2.0)
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


def camera_stage(
    kind: str, bands: BandSet, size: int, rng: np.random.Generator, view: View | None = None
) -> Stage:
    """Draw what a camera looks at; a view given is the ground below it."""
    scene = str(rng.choice(_SCENES, p=[0.2, 0.12, 0.36, 0.32]))
    return build_stage(kind, (size, size), bands, scene, rng, view)


def camera_smoke(
    stage: Stage, number: int, rng: np.random.Generator, nearest: float
) -> tuple[str, Stage, Layer]:
    """Return how smoke comes, the smoke, and the stage with the fire below it.

    Some of it is seen from nearer, at most so many times.
    """
    style = str(rng.choice(["none", *_SMOKES, "core"], p=[0.22, 0.2, 0.2, 0.25, 0.13]))
    if style == "none":
        nothing = np.zeros(stage.shape, np.float32)
        return style, stage, Layer(nothing, np.ones((1, 1), np.float32), stage.smoke)
    kind = "complex_shape" if style == "core" else style
    layer = smoke_layer(stage, Casting(number, int(rng.integers(0, 12)), "", kind), rng)
    if style == "core":
        layer = replace(layer, tau=layer.tau * np.float32(rng.uniform(2, 5)))
    if rng.random() < 0.3:
        stage, layer = closer(stage, layer, rng, nearest)
    return style, stage, layer
