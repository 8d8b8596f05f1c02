"""One large georeferenced scene with its truth: many fires, drawn in windows, band after band."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.features import shapes
from scipy import ndimage

from smokegeo.bands import BandSet
from smokegeo.consensus import Agreement, merge_masks
from smokegeo.cubes import tag_bands
from smokegeo.errors import UsageError
from smokegeo.files import atomic_folder, need_space
from smokegeo.labels import Place, write_labels
from smokegeo.progress import track
from smokegeo.simulate.annotators import annotate, visible_smoke
from smokegeo.simulate.clouds import shadow
from smokegeo.simulate.fields import Field, Shape
from smokegeo.simulate.frame import Visibility
from smokegeo.simulate.kinds import Kind, check_size, find_kind
from smokegeo.simulate.land import BIOMES, land
from smokegeo.simulate.optics import Layer, draw_smoke
from smokegeo.simulate.placement import frame_place
from smokegeo.simulate.plume import Emission, lit_side, make_flow, optical_depth
from smokegeo.simulate.scenarios import SCENES, SMOKES
from smokegeo.simulate.spectra import Material
from smokegeo.simulate.stage import (
    Scenery,
    Stage,
    direction,
    draw_air,
    draw_sensor,
    glowing_sources,
    meter,
)
from smokegeo.simulate.thermal import Fire, fire_front
from smokegeo.simulate.views import DownView

#: Side of the window in which one fire and its plume are computed.
_PLUME_SIDE_PX = 1024


@dataclass(frozen=True, slots=True)
class SceneFacts:
    """What came out: size, polygons, share of smoke, annotator agreement."""

    width: int
    height: int
    polygons: int
    smoke_share: float
    agreement: Agreement

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready form."""
        return {
            "width": self.width,
            "height": self.height,
            "polygons": self.polygons,
            "smoke_share": round(self.smoke_share, 5),
            "agreement": {str(v): round(s, 4) for v, s in self.agreement.shares().items()},
        }


def simulate_scene(
    out: Path, kind: str, size: tuple[int, int], seed: int, *, overwrite: bool = False
) -> SceneFacts:
    """Write `scene.tif`, `mask.tif` and `truth.geojson` for one scene of (width, height) pixels."""
    spec = find_kind(kind)
    check_size(*size)
    if seed < 0:
        raise UsageError(f"seed {seed} is negative; use zero or more.")
    width, height = size
    need_space(out, width * height * (len(spec.bands) * spec.bytes_per_value + 1))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(spec.code, 5)))
    place = frame_place(0, seed, (1, 1), spec.scene_pixel_m)
    marks = ("scene.tif", "truth.geojson")
    with atomic_folder(out, overwrite=overwrite, marks=marks) as root:
        stage, smoke = _prepare(spec, (height, width), rng)
        seen = _write_bands(root / "scene.tif", stage, smoke, spec.bands, place, rng)
        consensus = merge_masks(annotate(seen, rng))
        write_labels(root / "mask.tif", consensus.mask, place)
        polygons = _write_truth(root / "truth.geojson", consensus.mask, smoke.tau, place)
    return SceneFacts(width, height, polygons, float(consensus.mask.mean()), consensus.agreement)


def _prepare(kind: Kind, shape: Shape, rng: np.random.Generator) -> tuple[Stage, Layer]:
    """Draw land, air, fires and smoke of the whole scene."""
    preset = replace(SCENES["cloud_interference"], cloud_cover=(0.06, 0.25))
    biome = BIOMES[str(rng.choice(["temperate", "boreal", "tropical", "savanna", "mountain"]))]
    surface = land(shape, rng, biome, scale_px=float(rng.uniform(80, 130)), sun=direction(rng))
    light = float(rng.uniform(0.9, 1.1))
    view = DownView(surface, light, float(rng.uniform(0.015, 0.04)))
    fire, tau, turn = _fires(surface.material != Material.WATER, rng)
    scenery = Scenery(view, (), None, fire)
    sun = direction(rng)
    behind, before, clouds = draw_air(scenery, rng, preset, sun)
    sunlit = shadow(clouds[0], (-18 * sun[0], -18 * sun[1])) if clouds else None
    flow = make_flow(rng, 3.0, angle_rad=turn, rise=0.0, turbulence=0.3)
    exposure = meter(view, (*behind, *before), kind.bands, light, preset, rng)
    sensor = draw_sensor(kind.name, kind.bands, rng, exposure, overexposed=False)
    stage = Stage(
        scenery, behind, before, clouds, sunlit, flow, 3.0, sun, draw_smoke(rng), light,
        float(rng.uniform(285, 305)), float(rng.uniform(70, 160)), sensor,
    )  # fmt: skip
    lit = np.clip(lit_side(tau, *sun, 0.32, 2.5), 0.4, 1.5)
    return stage, Layer(tau, lit, stage.smoke)


def _fires(burnable: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Fire, Field, float]:
    """Return all fires and the optical depth of their smoke, and the wind's direction."""
    shape = burnable.shape
    flame, scar, ember, tau = (np.zeros(shape, dtype=np.float32) for _ in range(4))
    turn = float(rng.uniform(0, 2 * np.pi))
    count = max(2, round(shape[0] * shape[1] / 700_000))
    kelvin = 1000.0
    for _ in range(min(count, 40)):
        side = min(_PLUME_SIDE_PX, *shape)
        top = int(rng.integers(0, shape[0] - side + 1))
        left = int(rng.integers(0, shape[1] - side + 1))
        part = (slice(top, top + side), slice(left, left + side))
        angle = turn + float(rng.normal(0, 0.25))
        centre = (side * (0.5 - 0.33 * np.sin(angle)), side * (0.5 - 0.33 * np.cos(angle)))
        radius = float(np.exp(rng.uniform(np.log(3), np.log(0.05 * side + 4))))
        fire = fire_front((side, side), rng, centre, radius, angle, flame_share=0.04)
        fire = fire.within(burnable[part])
        for whole, piece in ((flame, fire.flame), (scar, fire.scar), (ember, fire.ember_k)):
            np.maximum(whole[part], piece, out=whole[part])
        plume = _plume(fire, angle, rng)
        # A plume must not end at its window: fade it out along the border.
        tau[part] += plume * _window_fade(side)
        kelvin = fire.flame_k
    return Fire(flame, kelvin, scar, ember), tau, turn


def _plume(fire: Fire, angle_rad: float, rng: np.random.Generator) -> Field:
    """Return the optical depth of one fire's smoke in its window."""
    shape = fire.flame.shape
    preset = SMOKES[str(rng.choice(list(SMOKES), p=[0.25, 0.25, 0.5]))]
    unit_px = float(rng.uniform(2.2, min(shape) / 130 + 2.5))
    flow = make_flow(
        rng, unit_px, angle_rad=angle_rad, rise=0.0, turbulence=float(rng.uniform(0.16, 0.4))
    )
    low, high = preset.sources
    emission = Emission(
        glowing_sources(fire, rng, int(rng.integers(low, high + 1)), 2.5),
        time_s=200.0,
        duration_s=float(rng.uniform(*preset.duration_s)),
        peak_tau=float(rng.uniform(*preset.peak_tau)),
        spread=float(rng.uniform(*preset.spread)),
        detail=float(rng.uniform(*preset.detail)),
    )
    return optical_depth(shape, emission, flow, unit_px, rng)


def _window_fade(side: int) -> Field:
    ramp = np.clip(np.minimum(np.arange(side), np.arange(side)[::-1]) / (0.06 * side), 0, 1)
    smooth = (ramp * ramp * (3 - 2 * ramp)).astype(np.float32)
    out: Field = smooth[:, None] * smooth[None, :]
    return out


def _write_bands(
    path: Path, stage: Stage, smoke: Layer, bands: BandSet, place: Place, rng: np.random.Generator
) -> Field:
    """Write the scene band by band and return the smoke (y, x) as annotators see it."""
    height, width = stage.shape
    visibility = Visibility(stage, bands)
    with rasterio.open(
        path, "w", driver="GTiff", width=width, height=height, count=len(bands),
        dtype=stage.sensor.dtype, crs=place.crs, transform=place.transform, tiled=True,
        compress="deflate", predictor=2, zlevel=1, interleave="band", bigtiff="IF_SAFER",
    ) as dst:  # fmt: skip
        tag_bands(dst, bands)
        for position, band in enumerate(track(bands, "simulated bands", len(bands))):
            light = visibility.light(smoke, band)
            dst.write(stage.sensor.record(light, position, rng), position + 1)

    return visible_smoke(visibility.opacity, visibility.change)


def _write_truth(path: Path, mask: NDArray[np.uint8], tau: Field, place: Place) -> int:
    """Write the outlines of connected smoke in WGS84 and return how many there are."""
    import geopandas as gpd
    from shapely.geometry import shape as to_geometry

    labels, count = ndimage.label(mask)
    ids = np.arange(1, count + 1)
    found = shapes(labels.astype(np.int32), mask=mask == 1, transform=place.transform)
    outlines = {int(value): to_geometry(outline) for outline, value in found}
    pixels = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    depth = np.bincount(labels.ravel(), tau.ravel(), minlength=count + 1)[1:] / pixels
    frame = gpd.GeoDataFrame(
        {"id": ids, "pixels": pixels, "tau_mean": depth.round(3)},
        geometry=[outlines[int(number)] for number in ids],
        crs=place.crs,
    )
    frame.to_crs(4326).to_file(path, driver="GeoJSON", engine="pyogrio", RFC7946="YES")
    return int(count)
