"""From scene to polygons, on one page: the stages, in order.

What can fail cheaply fails before the first tile: outputs, scene, model, bands, cost.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from smokegeo import __version__
from smokegeo.engine import Effort, Engine
from smokegeo.errors import Terminated, UsageError
from smokegeo.estimate import disk_bytes, estimate, refuse_unpayable
from smokegeo.files import need_space
from smokegeo.fitting import fit_model
from smokegeo.heap import give_back
from smokegeo.labels import Place
from smokegeo.outlines.vectorize import outline_strips
from smokegeo.probability import Part, Rows, analysed_share
from smokegeo.progress import track
from smokegeo.radiometry import Units, choose_scaling
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.scene.scene import Scene
from smokegeo.survey import look_for_blanks, survey
from smokegeo.sweep import Plan, sweep
from smokegeo.tiles import Grid
from smokegeo.views import make_recipe
from smokegeo.work import Work, open_work, work_path
from smokegeo.writing.doubts import heard
from smokegeo.writing.outputs import Outputs
from smokegeo.writing.polygons import place

if TYPE_CHECKING:
    import geopandas
    import xarray as xr

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outline:
    """How probabilities become polygons."""

    threshold: float | None = None  # the card's
    core: float | None = None
    edges: Literal["smooth", "pixel"] = "smooth"
    min_area_m2: float = 0.0
    simplify_px: float = 0.0

    @property
    def options(self) -> dict[str, Any]:
        """What is noted of it in a result's metadata, beside the threshold."""
        return {
            "edges": self.edges,
            "core": self.core,
            "min_area_m2": self.min_area_m2,
            "simplify_px": self.simplify_px,
        }


@dataclass(frozen=True)
class Request:
    """One run of the pipeline, whatever the scene."""

    model: str | Path | None = None
    scene: SceneOptions = field(default_factory=SceneOptions)
    scale: float | None = None
    offset: float | None = None
    tile_px: int | None = None  # the card's
    overlap_px: int | None = None  # the card's
    effort: Effort = field(default_factory=Effort)
    outline: Outline = field(default_factory=Outline)
    resume: bool = False
    yes: bool = False

    @property
    def units(self) -> Units | None:
        """What the user said of the scene's numbers, if anything."""
        return Units.said(self.scale, self.offset)


@dataclass(frozen=True)
class Prediction:
    """What was found in a scene, and what was written."""

    frame: geopandas.GeoDataFrame
    scene: str
    model: str
    threshold: float
    analysed_share: float
    files: tuple[Path, ...]

    def words(self) -> str:
        """Return the result in a sentence or two."""
        count, area = len(self.frame), float(self.frame["area_m2"].sum())
        parts = [f"{self.scene}: {count} smoke polygon{'' if count == 1 else 's'}"]
        if count and area > 0:
            parts.append(f", {area / 1e6:.3g} km2" if area >= 1e4 else f", {area:.4g} m2")
        if self.analysed_share == 0:
            parts.append("; it holds no valid pixels")
        elif self.analysed_share < 0.9995:
            parts.append(f"; {100 * (1 - self.analysed_share):.1f} % of it could not be analysed")
        return "".join(parts) + "."


def predict_scene(
    source: str | Path | xr.DataArray, outputs: Outputs, request: Request
) -> Prediction:
    """Find the smoke in one scene and write it."""
    scene, warnings = open_checked(source, outputs, request)
    ready = prepare(scene, request, warnings)
    plan, engine = ready.plan, ready.engine
    with tempfile.TemporaryDirectory() as nowhere:  # for results that are only returned
        anchor = outputs.polygons or Path(nowhere) / "smoke"
        if not request.yes:
            refuse_unpayable(scene, cost := estimate(plan.scene, plan.grid, engine))
            log.info("%s: %s", scene.name, cost.words())
        check_room(plan.scene, (anchor, *outputs.files))
        with open_work(
            anchor,
            plan.scene.width,
            plan.scene.height,
            fingerprint(ready),
            resume=request.resume,
        ) as work:
            _fill(work, plan, engine, anchor)
            give_back()
            return finish(work, plan, ready.threshold, outputs, request)


def open_checked(
    source: str | Path | xr.DataArray, outputs: Outputs, request: Request
) -> tuple[Scene, list[str]]:
    """Open a scene, refuse what could not be done with it, and return it with its warnings."""
    with heard() as warnings:
        outputs.check(source)
        scene = open_scene(source, request.scene)
        _check_request(scene, outputs, request)
    return scene, warnings


def check_room(scene: Scene, paths: Iterable[Path]) -> None:
    """Refuse to begin what the disks of these files have no room for."""
    for folder in {path.parent: None for path in paths}:
        need_space(folder, disk_bytes(scene))


def _check_request(scene: Scene, outputs: Outputs, request: Request) -> None:
    """Refuse what could not be done at the end, before anything is done."""
    outputs.check_scene(scene)
    if scene.crs is None and request.outline.min_area_m2 > 0:
        raise UsageError("a minimum area in m2 needs a scene with coordinates. Drop --min-area.")
    if request.resume and (outputs.polygons is None or not scene.paths):
        raise UsageError("only a scene in a file with polygons to write can be resumed.")


@dataclass(frozen=True)
class Prepared:
    """All decisions taken, the network loaded, no tile done."""

    plan: Plan
    engine: Engine
    threshold: float


def prepare(scene: Scene, request: Request, warnings: Sequence[str] = ()) -> Prepared:
    """Decide everything that decides the map: model, bands, units, tiles, device.

    A part of a scene is seen as it is in the whole: in the same units, with what lies around it.
    `warnings` are those given of the scene so far.
    """
    with heard() as more:
        ready = _decide(scene, request)
    said = tuple(dict.fromkeys((*warnings, *more)))
    return replace(ready, plan=replace(ready.plan, warnings=said))


def _decide(scene: Scene, request: Request) -> Prepared:
    fit = fit_model(scene, request.model)
    card = fit.card
    log.info("%s: model '%s', bands from %s", scene.name, card.name, scene.bands_from)
    found = survey(scene.entire, fit.used)
    scene, found = look_for_blanks(scene, found, fit.used)
    scaling = choose_scaling(scene, found, fit.matching, card, request.units)
    log.info("%s: %s", scene.name, scaling.words)
    recipe = make_recipe(
        card.views,
        fit.matching.available,
        scaling.normaliser(card),
        *fit.by_place(found.mean, found.std),
        trusted=scaling.trusted,
        limit=card.limit,
    )
    whole = scene.entire
    reduction = card.reduction_for(whole.width, whole.height) if scene.crs is None else 1
    if reduction > 1:
        log.info("%s: seen at 1/%d of its size", scene.name, reduction)
    tile = request.tile_px or card.tile_px * reduction
    overlap = request.overlap_px
    if overlap is None:
        overlap = min(card.overlap_px * reduction, tile // 4)
    around, wanted = scene.grown(overlap)
    grid = Grid(around.width, around.height, tile, overlap)
    threshold = card.threshold if request.outline.threshold is None else request.outline.threshold
    engine = Engine(fit, request.effort.resolved(), recipe.available, reduction)
    plan = Plan(around, fit, recipe, grid, wanted, scaling.words, reduction=reduction)
    return Prepared(plan, engine, threshold)


def finish(
    work: Work, plan: Plan, threshold: float, outputs: Outputs, request: Request
) -> Prediction:
    """Draw the outlines of a finished probability map and write all that was asked for."""
    scene, fit = plan.part, plan.fit
    raster: Rows = work.raster
    if plan.wanted is not None and plan.wanted != plan.scene.whole:
        box = plan.wanted
        raster = Part(raster, box.column, box.row, box.width, box.height)
    frame = draw(
        raster,
        scene.place,
        threshold,
        request.outline,
        model=f"{fit.card.name} {fit.card.sha256[:12]}",
        source=scene.name,
        acquired=scene.acquired,
    )
    give_back()
    facts, share = provenance(plan, threshold, request), analysed_share(raster)
    facts["analysed_share"] = f"{share:.6g}"
    if request.scene.skip_damaged:
        facts["damaged_blocks"] = str(len(work.damaged))
    files = outputs.write(frame, raster, scene, threshold, facts)
    return Prediction(frame, scene.name, fit.card.name, threshold, share, files)


def draw(
    raster: Rows,
    where: Place,
    threshold: float,
    outline: Outline,
    *,
    model: str,
    source: str,
    acquired: datetime | None,
) -> geopandas.GeoDataFrame:
    """Return the smoke in a probability map as polygons in their place, with attributes."""
    placed = place(
        outline_strips(raster, threshold, edges=outline.edges, core=outline.core),
        where.transform,
        where.crs,
        min_area_m2=outline.min_area_m2,
        simplify_px=outline.simplify_px,
        model=model,
        source=source,
        acquired=acquired,
    )
    if outline.simplify_px:
        log.info("simplifying changed the total area by %+.2f %%", 100 * placed.area_drift)
    return placed.frame


def provenance(plan: Plan, threshold: float, request: Request) -> dict[str, str]:
    """Return what made a result, and what is doubtful about it, for its metadata.

    Neither time nor path is in it: the same input makes the same file, anywhere.
    """
    scene, fit = plan.part, plan.fit
    known = fit.matching.available
    return {
        "software": f"smokegeo {__version__}",
        "model": fit.card.name,
        "model_sha256": fit.card.sha256,
        "scene": scene.name,
        "scene_size": f"{scene.width} x {scene.height}",
        "bands": "; ".join(fit.matching.lines()),
        "bands_absent": f"{known.count(False)} of {len(known)}",
        "units": plan.units,
        "seen_at": f"1/{plan.reduction} of its size" if plan.reduction > 1 else "full size",
        "warnings": json.dumps(plan.warnings, ensure_ascii=False),
        "threshold": f"{threshold:g}",
        "options": json.dumps(
            {
                **request.outline.options,
                "tile": request.tile_px,
                "overlap": request.overlap_px,
                "tta": request.effort.tta,
                "fast": request.effort.fast,
                "backend": request.effort.backend,
                "scale": request.scale,
                "offset": request.offset,
                "raw": request.scene.raw,
                "bbox": request.scene.bbox,
                "window": request.scene.window,
                "nodata": request.scene.nodata,
            }
        ),
    }


def fingerprint(ready: Prepared) -> Mapping[str, Any]:
    """Return what an interrupted run must share with the one that continues it."""
    plan, effort = ready.plan, ready.engine.effort
    scene, recipe = plan.scene, plan.recipe
    files = []
    for name in scene.paths:
        path = Path(name)
        with path.open("rb") as handle:
            head = hashlib.sha256(handle.read(65536)).hexdigest()
        files.append([path.name, path.stat().st_size, path.stat().st_mtime_ns, head])
    return {
        "scene": files,
        "part": [*scene.offset, scene.width, scene.height],
        "layers": [repr(layer) for layer in scene.layers],
        "nodata": [list(scene.blanks), list(scene.sentinels)],
        "model": plan.fit.card.sha256,
        "bands": list(plan.fit.matching.indexes),
        "units": [
            recipe.gain.tolist(),
            recipe.shift.tolist(),
            recipe.present.tolist(),
            recipe.limit,
        ],
        "tiles": [plan.grid.tile_px, plan.grid.overlap_px, plan.reduction],
        "network": [effort.device, effort.backend, effort.tta, effort.fast],
        "version": __version__,
    }


def _fill(work: Work, plan: Plan, engine: Engine, anchor: Path) -> None:
    """Compute what is missing of the map, saying how far it is and how to go on if interrupted."""
    grid = plan.grid
    columns, rows = len(grid.columns), len(grid.rows)
    if work.rows_done:
        log.info("going on after %d of %d tiles", work.rows_done * columns, len(grid))
    if work.rows_done == rows:
        return
    left = (rows - max(0, work.rows_done - 1)) * columns
    try:
        for row, start, lines in sweep(
            plan, engine, work.rows_done, rows, lambda tiles: track(tiles, "tiles", left)
        ):
            work.raster.write(start, lines)
            work.save(row + 1, plan.scene.damaged)
    except (KeyboardInterrupt, Terminated):
        how = (
            f"run the same command again to go on ({work_path(anchor).name} keeps what is done)"
            if work.resumable
            else "nothing was kept; with --resume it could go on"
        )
        log.warning(
            "interrupted after %d of %d tiles; %s", work.rows_done * columns, len(grid), how
        )
        raise
