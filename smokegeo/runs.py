"""Several scenes in one run, and the Python way in: `smokegeo.predict`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smokegeo.errors import SmokegeoError, UsageError, deepest_cause, printable
from smokegeo.files import check_output
from smokegeo.pipeline import Prediction, Request, predict_scene
from smokegeo.settings import request_from
from smokegeo.writing.outputs import Outputs
from smokegeo.writing.wgs84 import to_wgs84

if TYPE_CHECKING:
    import geopandas
    import xarray as xr

    SceneSource = str | Path | xr.DataArray

log = logging.getLogger(__name__)
Job = tuple[str, Outputs]


@dataclass(frozen=True)
class NamedOutputs(Outputs):
    """Outputs that are named after their scene, so that a run that goes on finds them again."""


@dataclass(frozen=True)
class Summary:
    """What became of all scenes."""

    done: int
    failed: tuple[tuple[str, SmokegeoError], ...]

    @property
    def exit_code(self) -> int:
        """That of the first scene that failed, 0 if none did."""
        return self.failed[0][1].exit_code if self.failed else 0


def predict(
    scenes: SceneSource | Iterable[SceneSource],
    out: str | Path | None = None,
    model: str | Path | None = None,
    *,
    prob: str | Path | None = None,
    web_map: str | Path | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> geopandas.GeoDataFrame:
    """Find smoke in one scene or several; return the polygons, and write them if asked to.

    Args:
        scenes: A path, an `xarray.DataArray` (band, y, x) with rioxarray georeference, or several.
        out: Polygons to write, one scene only: .gpkg, .geojson, .fgb or .parquet.
        model: Name of a bundled model or path of a model file; by default the one that fits.
        prob: Probability raster to write, .tif; one scene only.
        web_map: HTML map to write; one scene only.
        overwrite: Replace files that exist.
        settings: The options of `smokegeo predict`, with underscores: bands, threshold, tile ...

    The polygons are in the scene's coordinate system; those of several scenes in WGS84.
    """
    single = isinstance(scenes, str | Path) or hasattr(scenes, "dims")
    every: list[Any] = [scenes] if single else list(scenes)  # type: ignore[arg-type]
    if not every:
        raise UsageError("no scene was given.")
    if len(every) > 1 and (out or prob or web_map):
        raise UsageError("outputs can be named for one scene only; loop over the scenes.")
    outputs = Outputs(_path(out), _path(prob), _path(web_map), overwrite)
    request = request_from({"model": model, **settings})
    frames = [predict_scene(scene, outputs, request).frame for scene in every]
    if single:
        return frames[0]
    return _joined(frames)


def predict_all(
    jobs: Sequence[Job], request: Request, *, dask: str | None, say: Callable[[str], None]
) -> Summary:
    """Work on scene after scene; with several, one that fails does not stop the rest."""
    wanted = []
    for job in jobs:
        if _is_kept(job, resume=request.resume):
            say(printable(f"{job[0]}: {job[1].polygons} exists already and is kept."))
        else:
            wanted.append(job)
    run: Iterable[tuple[Job, Prediction | SmokegeoError]]
    if dask is not None and wanted:
        from smokegeo.cluster import predict_on_cluster

        run = predict_on_cluster(wanted, request, dask)
    else:
        run = ((job, _try(job, request, alone=len(jobs) == 1)) for job in wanted)
    done, failed = 0, []
    for (scene, _), result in run:
        if isinstance(result, SmokegeoError):
            if len(jobs) == 1:
                raise result
            failed.append((scene, result))
            log.error("Error: %s", result)
        else:
            done += 1  # the polygons themselves are in their file, and need not be kept
            say(printable(_line(result)))
    if len(jobs) > 1:
        kept = len(jobs) - len(wanted)
        say(f"{done} of {len(jobs)} scenes done{f', {kept} kept' if kept else ''}.")
        for scene, error in failed:
            say(printable(f"  failed: {error if scene in str(error) else f'{scene}: {error}'}"))
    return Summary(done, tuple(failed))


@dataclass(frozen=True)
class Folders:
    """Where the outputs of several scenes go: polygons with a suffix, and more if asked for."""

    polygons: Path
    suffix: str = ".gpkg"
    probability: Path | None = None
    web_map: Path | None = None

    def outputs(self, stem: str, *, overwrite: bool) -> NamedOutputs:
        """Return the files of a scene."""
        return NamedOutputs(
            self.polygons / f"{stem}{self.suffix}",
            None if self.probability is None else self.probability / f"{stem}_prob.tif",
            None if self.web_map is None else self.web_map / f"{stem}.html",
            overwrite,
        )

    def make(self) -> None:
        """Make those that do not exist."""
        for folder in (self.polygons, self.probability, self.web_map):
            try:
                if folder is not None:
                    folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"{folder}: cannot be made ({error.strerror}).") from error


def outputs_for(scenes: Sequence[str], folders: Folders, *, overwrite: bool) -> list[Job]:
    """Return the outputs of each scene, named after it; refuse names that meet.

    Whether an output that exists is in the way is for `predict_all` to say.
    """
    folders.make()
    jobs: list[Job] = []
    taken: dict[Path, str] = {}
    read = {_identity(Path(scene)): scene for scene in scenes}
    read.pop(None, None)
    for scene in scenes:
        name = Path(os.path.abspath(scene)).name
        known = (".tif", ".tiff", ".jp2", ".dat", ".img", ".safe", ".png", ".jpg", ".jpeg", ".hdr")
        stem = Path(name).stem if Path(name).suffix.lower() in known else name
        outputs = folders.outputs(stem, overwrite=overwrite)
        for path in outputs.files:
            if path in taken:
                raise UsageError(
                    f"{scene} and {taken[path]} would both be written to {path}. Rename one, or "
                    "give each an --out-dir of its own."
                )
            if (there := _identity(path)) in read:
                raise UsageError(
                    f"{path}, an output of {scene}, is the scene {read[there]}. "
                    "Choose another folder."
                )
            taken[path] = scene
            check_output(path, overwrite=True)
        jobs.append((scene, outputs))
    return jobs


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what a file is known by, whatever its name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_kept(job: Job, *, resume: bool) -> bool:
    """Say whether a run that goes on leaves a scene out because its result is there.

    A result is there only if it is whole. Without --resume it is in the way, and so is a part of
    one, which is said before the first scene is begun.
    """
    _, outputs = job
    if outputs.overwrite or not isinstance(outputs, NamedOutputs):
        return False
    there = [path for path in outputs.files if path.is_file()]
    missing = [path for path in outputs.files if path not in there]
    if resume and there and missing:
        raise UsageError(
            f"{there[0]} exists, but {missing[0]} does not. Delete the former to have this scene "
            "done again, or pass --overwrite to have all done again."
        )
    if resume and not missing:
        return True
    for path in outputs.files:
        check_output(path)
    return False


def _try(job: Job, request: Request, *, alone: bool) -> Prediction | SmokegeoError:
    scene, outputs = job
    try:
        return predict_scene(scene, outputs, request)
    except Exception as error:
        if alone:
            raise
        return as_failure(scene, error)


def as_failure(scene: str, error: Exception) -> SmokegeoError:
    """Return an error of ours for whatever stopped a scene, so that the next can go on."""
    if isinstance(error, SmokegeoError):
        return error
    log.debug("traceback of the error below", exc_info=error)
    return SmokegeoError(
        f"{scene}: internal error, {type(error).__name__}: {deepest_cause(error)} (please report)."
    )


def _line(result: Prediction) -> str:
    files = ", ".join(str(path) for path in result.files)
    return f"{result.words()} Wrote {files}." if files else result.words()


def _joined(frames: list[geopandas.GeoDataFrame]) -> geopandas.GeoDataFrame:
    """Return the polygons of several scenes in WGS84, or in pixels if that is what they are in."""
    import geopandas
    import pandas as pd  # type: ignore[import-untyped]

    crs = None if frames[0].crs is None else "OGC:CRS84"
    if crs is not None:
        # Not to_crs: a polygon over the antimeridian would go around the globe the other way.
        frames = [
            frame.set_geometry(to_wgs84(frame.geometry.to_numpy(), frame.crs), crs=crs)
            for frame in frames
        ]
    joined = pd.concat(frames, ignore_index=True)
    joined["id"] = range(1, len(joined) + 1)
    return geopandas.GeoDataFrame(joined, crs=crs)


def _path(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)
