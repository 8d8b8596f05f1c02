"""What is judged and who judges it: images as users' files hold them, models, and a plain rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr
from default_common import Sample
from default_kinds import Kind
from numpy.typing import NDArray

from smokegeo.engine import Effort
from smokegeo.pipeline import Request, prepare
from smokegeo.probability import NODATA, STEPS
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.sweep import sweep


@dataclass(frozen=True)
class Picture:
    """An image as a file holds it: numbers (bands, y, x), names of bands, validity, labels.

    `labels` are 0, 1 for smoke and 255 for unknown; `measured` is False for stretched pictures.
    """

    name: str
    values: NDArray
    bands: tuple[str, ...]
    valid: NDArray[np.bool_]
    labels: NDArray[np.uint8]
    tag: str = ""
    measured: bool = True

    def only(self, bands: Sequence[str]) -> Picture:
        """Return the picture with these bands at most."""
        kept = [i for i, name in enumerate(self.bands) if name in bands]
        return replace(self, values=self.values[kept], bands=tuple(self.bands[i] for i in kept))

    def reflectance(self, band: str) -> NDArray[np.float32]:
        """Return a band from 0 to about 1."""
        full = 255.0 if self.values.max(initial=0) <= 255 else 10_000.0
        return self.values[self.bands.index(band)].astype(np.float32) / np.float32(full)


#: Draws smoke (y, x), 0 to 1, in a picture.
Judge = Callable[[Picture], NDArray[np.float32]]


def as_picture(kind: Kind, sample: Sample, name: str) -> Picture:
    """Return a simulated sample as a user's file would hold it."""
    places = np.flatnonzero(sample.has)
    values, measured = sample.values[places], bool(sample.trusted.all())
    if kind.dtype == "uint16" and len(kind.bands) == 6 and not measured:
        values = np.rint(values * (255 / 10_000)).astype(np.uint8)
    elif kind.dtype == "uint8" and not measured:  # colours and heat of 8 bits
        values = np.rint(np.clip(values, 0, 255)).astype(np.uint8)
    elif kind.dtype == "uint16":
        values = np.rint(np.clip(values, 0, 65_535)).astype(np.uint16)
    bands = tuple(kind.bands.names[i] for i in places)
    return Picture(name, values, bands, sample.valid, sample.target, sample.tag, measured)


def network_judge(path: Path, threads: int = 1) -> Judge:
    """Return a model as a judge: what `predict` would draw, tile by tile, in its own scaling."""

    def judge(picture: Picture) -> NDArray[np.float32]:
        values, nodata = picture.values.copy(), None
        if values.dtype.kind in "ui":  # a file of whole numbers stays one: its type says much
            blank = np.iinfo(values.dtype).max
            nodata = "none" if picture.valid.all() else str(blank)
            values = np.minimum(values, blank - 1).astype(values.dtype)
            values[:, ~picture.valid] = blank
        else:
            values[:, ~picture.valid] = np.nan
        array = xr.DataArray(
            values,
            dims=("band", "y", "x"),
            coords={"band": list(picture.bands)},
            name=picture.name,
        )
        options = SceneOptions(pixel_coords=True, bands=",".join(picture.bands), nodata=nodata)
        scene = open_scene(array, options)
        request = Request(model=path, effort=Effort(threads=threads))
        ready = prepare(scene, request)
        rows = len(ready.plan.grid.rows)
        lines = [part for _, _, part in sweep(ready.plan, ready.engine, 0, rows)]
        stored = np.concatenate(lines)
        return np.where(stored == NODATA, 0, stored / np.float32(STEPS)).astype(np.float32)

    return judge


def remembered(judge: Judge) -> Judge:
    """Return a judge that draws each picture once, however many tables it stands in."""
    drawn: dict[tuple[str, tuple[str, ...]], NDArray[np.float32]] = {}

    def again(picture: Picture) -> NDArray[np.float32]:
        key = picture.name, picture.bands
        if key not in drawn:
            drawn[key] = judge(picture)
        return drawn[key]

    return again


def satellite_rule(picture: Picture) -> NDArray[np.float32]:
    """Say smoke where it is bright and blue, and where there are such bands dark in SWIR.

    What a reader would try first: blue above 0.16, more than half of red besides, and SWIR2 well
    below blue.
    """
    blue, red = picture.reflectance("blue"), picture.reflectance("red")
    smoke = (blue > 0.16) & (blue - 0.5 * red > 0.09)
    if "swir2" in picture.bands:
        smoke &= picture.reflectance("swir2") < 0.75 * blue
    return smoke.astype(np.float32)


def grey_rule(picture: Picture) -> NDArray[np.float32]:
    """Say smoke where a colour photograph is bright and grey: what a reader would try first."""
    red, green, blue = (picture.reflectance(name) for name in ("red", "green", "blue"))
    bright = (red + green + blue) / 3
    spread = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    return ((bright > 0.45) & (bright < 0.95) & (spread < 0.1)).astype(np.float32)


def falling_rule(picture: Picture) -> NDArray[np.float32]:
    """Say smoke where a 25-band frame is brighter than most and falls off with wavelength."""
    values = picture.values.astype(np.float32)
    count = max(1, len(values) // 3)
    short, long = values[:count].mean(axis=0), values[-count:].mean(axis=0)
    bright = short > np.quantile(short, 0.6)
    return (bright & (short > 1.15 * long)).astype(np.float32)


RULES: dict[str, Judge] = {
    "satellite": satellite_rule,
    "mss": grey_rule,
    "hss": falling_rule,
}
