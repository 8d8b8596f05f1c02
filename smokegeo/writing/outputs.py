"""What a run is to write, checked before the work and written after it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rasterio.errors import RasterioError

from smokegeo.errors import OutputError, UsageError, deepest_cause
from smokegeo.files import atomic_file, check_output
from smokegeo.probability import Rows, finish
from smokegeo.scene.scene import Scene
from smokegeo.writing.write import check_format, write_polygons

if TYPE_CHECKING:
    import geopandas
    import xarray as xr


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
            if isinstance(source, str | Path) and _same(path, Path(source)):
                raise UsageError(f"{path} is the scene itself. Choose another output.")
            check_output(path, overwrite=self.overwrite)
            _probe(path)

    def check_placed(self, scene: Scene) -> None:
        """Refuse formats that need coordinates for a scene without."""
        if scene.crs is None and self.polygons is not None:
            check_format(self.polygons, georeferenced=False)
        if scene.crs is None and self.web_map is not None:
            raise UsageError("--map needs a scene with coordinates.")

    def write(
        self,
        frame: geopandas.GeoDataFrame,
        raster: Rows,
        scene: Scene,
        threshold: float,
        facts: Mapping[str, str],
    ) -> tuple[Path, ...]:
        """Write everything; the polygons last, so that they are there only if all is."""
        written: list[Path] = []
        if self.probability is not None:
            _write_probability(self.probability, raster, scene, facts)
            written.append(self.probability)
        if self.web_map is not None:
            from smokegeo.writing.quicklook import quicklook
            from smokegeo.writing.webmap import write_map

            write_map(
                self.web_map,
                frame,
                quicklook=quicklook(scene),
                title=scene.name,
                facts=facts,
                threshold=threshold,
            )
            written.append(self.web_map)
        if self.polygons is not None:
            files = write_polygons(
                frame, self.polygons, provenance=facts, style_threshold=threshold
            )
            written = [*files, *written]
        return tuple(written)


def _write_probability(path: Path, raster: Rows, scene: Scene, facts: Mapping[str, str]) -> None:
    tags = dict(facts)
    if scene.acquired is not None:  # for polygons drawn from the raster later
        tags["ACQUISITIONDATETIME"] = scene.acquired.isoformat()
    try:
        with atomic_file(path) as part:
            finish(raster, part, scene.place, tags)
    except RasterioError as error:
        raise OutputError(
            f"{path}: cannot be written ({deepest_cause(error)}). Nothing was written."
        ) from error


def _check_suffix(path: Path | None, option: str, suffixes: tuple[str, ...]) -> None:
    if path is not None and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} {path}: name a {suffixes[0]} file.")


def _same(path: Path, source: Path) -> bool:
    try:
        return path.samefile(source)
    except OSError:
        return False


def _probe(path: Path) -> None:
    """Make and remove a file where the output will be: rights alone do not tell."""
    probe = path.with_name(f".smokegeo-{os.getpid()}.probe")
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from error
