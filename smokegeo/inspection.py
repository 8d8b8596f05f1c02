"""Preflight: what smokegeo sees in a scene, which model fits, and what the search will cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from smokegeo.estimate import Estimate, estimate
from smokegeo.fitting import doubt_of, rank_models
from smokegeo.modelfile import bundled_models
from smokegeo.pipeline import Request, prepare
from smokegeo.radiometry import in_digits
from smokegeo.scene.georeference import pixel_size_m
from smokegeo.scene.scene import Scene
from smokegeo.survey import Survey, look_for_blanks, survey


@dataclass(frozen=True)
class Inspection:
    """All that `smokegeo info` tells; `model` and after are None if no model is at hand."""

    scene: Scene
    found: Survey
    pixel_m: tuple[float, float] | None
    model: str | None = None
    matching: tuple[str, ...] = ()
    scaling: str = ""
    threshold: float | None = None
    cost: Estimate | None = None
    doubts: tuple[str, ...] = ()
    source: str = "SCENE"
    options: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        scene = self.scene
        return {
            "scene": scene.name,
            "width": scene.width,
            "height": scene.height,
            "dtype": scene.dtype,
            "crs": None if scene.crs is None else scene.crs.to_string(),
            "transform": list(scene.transform)[:6],
            "pixel_m": self.pixel_m,
            "acquired": None if scene.acquired is None else scene.acquired.isoformat(),
            "bands_from": scene.bands_from,
            "bands": [
                {
                    **asdict(band),
                    "low": _number(self.found.low[i]),
                    "high": _number(self.found.high[i]),
                }
                for i, band in enumerate(scene.bands)
            ],
            "valid_share": self.found.valid_share,
            "model": self.model,
            "matching": list(self.matching),
            "scaling": self.scaling,
            "threshold": self.threshold,
            "estimate": None if self.cost is None else asdict(self.cost),
            "doubts": list(self.doubts),
        }

    def lines(self) -> list[str]:
        """Return it for people."""
        scene = self.scene
        place = "none (pixel coordinates)" if scene.crs is None else scene.crs.to_string()[:70]
        pixel = (
            "" if self.pixel_m is None else ", pixels of {:.3g} x {:.3g} m".format(*self.pixel_m)
        )
        out = [
            f"{scene.name}: {scene.width} x {scene.height} pixels, {scene.dtype}",
            f"  place      {place}{pixel}",
            f"  acquired   {scene.acquired.isoformat() if scene.acquired else 'not said'}",
            f"  valid      {100 * self.found.valid_share:.1f} % of the pixels sampled",
            f"  bands      {len(scene.bands)}, known from {scene.bands_from}:",
        ]
        for i, band in enumerate(scene.bands):
            nm = "-" if band.wavelength_nm is None else f"{band.wavelength_nm:g} nm"
            low, high = (in_digits(found[i]) for found in (self.found.low, self.found.high))
            spread = "no valid pixels" if self.found.empty else f"{low} to {high}"
            out.append(f"    {i + 1:>3} {band.name:<12} {nm:>9}   {spread}")
        if self.model is None:
            out.append("  model      none of the bundled ones fits; name one with --model")
        else:
            out += [f"  model      {self.model}, threshold {self.threshold:g}"]
            out += [f"    {line}" for line in self.matching]
            out.append(f"  units      {self.scaling}")
        if self.cost is not None:
            out.append(f"  estimate   {self.cost.words()}")
        out += [f"  doubt      {doubt}" for doubt in self.doubts]
        if self.model is not None:
            out.append("Next:")
            out.append(f"  smokegeo predict {self.source} --out smoke.gpkg{self.options}")
        return out


def inspect(scene: Scene, request: Request) -> Inspection:
    """Look at a scene the way `predict` would, up to the first tile."""
    everything = range(len(scene.bands))
    pixel = pixel_size_m(scene.place, scene.width, scene.height)
    if request.model is None and not (bundled_models() and rank_models(scene.bands, pixel)[0].used):
        found = survey(scene, everything)
        return Inspection(*look_for_blanks(scene, found, everything), pixel)
    ready = prepare(scene, request)
    plan, threshold = ready.plan, ready.threshold
    scene, card = plan.part, plan.fit.card
    found = survey(scene, everything)
    doubt = doubt_of(plan.fit, pixel)
    return Inspection(
        scene,
        found,
        pixel,
        card.name,
        tuple(plan.fit.matching.lines()),
        ready.plan.units,
        threshold,
        estimate(plan.scene, plan.grid, ready.engine),
        () if doubt is None else (doubt,),
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
