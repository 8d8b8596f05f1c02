"""Simulated samples for the camera models: colour and heat (mss), and 25 bands (hss).

Views of a drone, a mountain camera or a mosaic camera at a plant. Sample number n is always the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from default_backgrounds import Background, choose_background, crop
from default_common import (
    IGNORED,
    Sample,
    closer,
    farther,
    label,
    pall,
    without_remnants,
    without_specks,
)
from numpy.typing import NDArray

from smokegeo.bands import BandSet
from smokegeo.sensors import sensor
from smokegeo.simulate.frame import expose, smoke_layer
from smokegeo.simulate.optics import Layer
from smokegeo.simulate.scenarios import Casting
from smokegeo.simulate.stage import Stage, build_stage
from smokegeo.simulate.views import ImageryView, View

_SCENES = ("high_exposure", "low_visibility", "complex_background", "cloud_interference")
_SMOKES = ("early_stage", "high_transparency", "complex_shape")
_COLDEST_K = -18.0  # where a simulated thermal camera's span begins, above the air
_KELVIN = 273.15
_FULL_COUNT = 1023.0  # of a 10-bit camera
GAMMA = 2.2  # of pictures
#: Share of simulated views that are pictures taken from aircraft, where there are any.
AERIAL_SHARE = 0.4


def mss_view(
    number: int,
    rng: np.random.Generator,
    aerial: Sequence[Background],
    size: int,
    *,
    easy: bool = False,
) -> Sample:
    """Return a sample of colour and heat; values are 0 to 255 and Celsius."""
    bands = sensor("mss").bands
    view, valid = None, np.ones((size, size), bool)
    if aerial and rng.random() < AERIAL_SHARE:
        below = choose_background(aerial, rng, wooded=False)
        view, valid = _from_aircraft(below, size, rng)
    stage = camera_stage("mss", bands, size, rng, view)
    style, layer = camera_smoke(stage, number, rng)
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
    target = without_specks(without_remnants(target, exposed.opacity * valid))
    has, trusted = np.ones(4, bool), np.ones(4, bool)
    heat = rng.random()
    if heat < (0.2 if easy else 0.45):
        has[3] = False
    elif heat < 0.75:
        share = values[3] / 255
        values[3] = stage.air_k + _COLDEST_K + share * stage.thermal_span_k - _KELVIN
    else:
        trusted[3] = False  # the camera's own 8 bits
    target[~valid] = IGNORED
    ground = "made" if view is None else "real"
    return Sample(values, has, trusted, valid, target, f"{ground} {style}")


def _from_aircraft(
    picture: Background, size: int, rng: np.random.Generator
) -> tuple[ImageryView, NDArray[np.bool_]]:
    """Return a part of a picture as what a drone looks down on, and where it is known."""
    colours, _, valid = crop(picture, size, rng)
    # A picture shows light by a curve, which the simulated camera applies again.
    light = np.float32(rng.uniform(0.4, 0.7)) * colours[:3] ** np.float32(GAMMA)
    return ImageryView(dict(zip(("blue", "green", "red"), light, strict=True)), picture.name), valid


def hss_sample(number: int, seed: int, size: int = 128, *, easy: bool = False) -> Sample:
    """Return sample `number` of the 25-band stream; values are the counts of a 10-bit camera."""
    rng = np.random.default_rng([seed, number, 3])
    nominal = sensor("hss").bands
    shift = 0.0 if easy else float(rng.normal(0, 3))
    bands = BandSet(
        tuple(replace(b, wavelength_nm=(b.wavelength_nm or 0) + shift) for b in nominal)
    )
    stage = camera_stage("hss", bands, size, rng)
    style, layer = camera_smoke(stage, number, rng)
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


def camera_smoke(stage: Stage, number: int, rng: np.random.Generator) -> tuple[str, Layer]:
    """Return how smoke comes, and the smoke."""
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
