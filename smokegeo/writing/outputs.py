"""What a run is to write, checked before the work and written after it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smokegeo.errors import InputError, OutputError, UsageError
from smokegeo.files import atomic_files, check_output, same_file
from smokegeo.probability import Rows, finish
from smokegeo.scene.scene import Scene
from smokegeo.writing.plainly import said_plainly
from smokegeo.writing.write import check_format, fill_polygons, polygon_files

if TYPE_CHECKING:
    import geopandas
    import xarray as xr

    from smokegeo.writing.mappicture import Quicklook

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outputs:
    """Files to write: polygons, the probability raster, the HTML map; None leaves one out."""

    polygons: Path | None = None
    probability: Path | None = None
    web_map: Path | None = None
    overwrite: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """All files asked for."""
        return tuple(p for p in (self.polygons, self.probability, self.web_map) if p is not None)

    def check(self, source: str | Path | xr.DataArray) -> None:
        """Refuse outputs that could not be written, or would replace the scene."""
        if self.polygons is not None:
            check_format(self.polygons)
        _check_suffix(self.probability, "--prob", (".tif", ".tiff"))
        _check_suffix(self.web_map, "--map", (".html", ".htm"))
        for path in self.files:
            if isinstance(source, str | Path) and same_file(path, Path(source)):
                raise UsageError(f"{path} is the scene itself. Choose another output.")
            check_output(path, overwrite=self.overwrite)
            _probe(path)

    def check_scene(self, scene: Scene) -> None:
        """Refuse what would replace a file of the scene, or needs coordinates that it lacks."""
        for path in self.files:
            if any(same_file(path, Path(part)) for part in scene.paths):
                raise UsageError(f"{path} is a file of the scene. Choose another output.")
        if scene.crs is None and self.polygons is not None:
            check_format(self.polygons, georeferenced=False)

    def write(
        self,
        frame: geopandas.GeoDataFrame,
        raster: Rows,
        scene: Scene,
        threshold: float,
        facts: Mapping[str, str],
    ) -> tuple[Path, ...]:
        """Write everything or nothing; the polygons take their place last, and so mean success."""
        polygons: tuple[Path, ...] = ()
        if self.polygons is not None:
            rasters = [Path(part) for part in scene.paths]
            rasters += [] if self.probability is None else [self.probability]
            polygons = polygon_files(self.polygons, rasters)
        others = tuple(p for p in (self.probability, self.web_map) if p is not None)
        if not (files := others + polygons):
            return ()
        with atomic_files(files) as parts:
            part = dict(zip(files, parts, strict=True))
            if self.probability is not None:
                _write_probability(self.probability, part[self.probability], raster, scene, facts)
            if self.web_map is not None:
                from smokegeo.writing.webmap import map_page

                page = map_page(
                    frame,
                    quicklook=_picture(scene, self.web_map),
                    title=scene.name,
                    facts=facts,
                    threshold=threshold,
                    name=str(self.web_map),
                )
                with said_plainly(self.web_map, len(page)):
                    part[self.web_map].write_bytes(page)
            if self.polygons is not None:
                fill_polygons(
                    frame,
                    self.polygons,
                    [part[path] for path in polygons],
                    provenance=facts,
                    style_threshold=threshold,
                )
        return polygons[::-1] + others


def _picture(scene: Scene, path: Path) -> Quicklook | None:
    """Return the picture for the map; without one if it shows bands that cannot be read.

    The network may never have looked at them, and what it found must not be lost for a picture.
    """
    from smokegeo.writing.quicklook import quicklook

    try:
        return quicklook(scene)
    except InputError as error:
        log.warning("%s: the picture of the scene is left out: %s", path, error)
        return None


def _write_probability(
    path: Path, part: Path, raster: Rows, scene: Scene, facts: Mapping[str, str]
) -> None:
    tags = dict(facts)
    if scene.acquired is not None:  # for polygons drawn from the raster later
        tags["ACQUISITIONDATETIME"] = scene.acquired.isoformat()
    # A plain map, and at worst as much again and a third with overviews.
    with said_plainly(path, 65536 + 3 * raster.width * raster.height):
        finish(raster, part, scene.place, tags)


def _check_suffix(path: Path | None, option: str, suffixes: tuple[str, ...]) -> None:
    if path is not None and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} {path}: name a {suffixes[0]} file.")


def _probe(path: Path) -> None:
    """Make and remove a file where the output will be: rights alone do not tell."""
    probe = path.with_name(f".smokegeo-{os.getpid()}.probe")
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from error
