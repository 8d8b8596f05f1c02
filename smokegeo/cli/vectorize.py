"""`smokegeo vectorize`: new polygons from a probability raster, without new inference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smokegeo.cli.main import command
from smokegeo.cli.options import outline_options, place_options


@command()
@click.argument("prob", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Polygons to write: .gpkg, .geojson, .fgb or .parquet.",
)
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
@place_options
@outline_options
def vectorize(prob: Path, out: Path, overwrite: bool, **settings: Any) -> None:
    """Draw smoke polygons from PROB, the raster that `smokegeo predict --prob` wrote.

    Another threshold, minimum area or smoothing takes seconds this way. A raster of probabilities
    from 0 to 1 by another program works as well.

    \b
    Examples:
      smokegeo vectorize prob.tif --out stricter.gpkg --threshold 0.8
      smokegeo vectorize prob.tif --out plumes.gpkg --threshold 0.3 --core 0.9 --min-area 50000
    """
    from smokegeo.errors import printable
    from smokegeo.scene.rasters import find_file
    from smokegeo.writing.outputs import Outputs

    Outputs(out, overwrite=overwrite).check(prob)  # before imports that take seconds
    find_file(prob)

    from smokegeo.redraw import redraw
    from smokegeo.settings import request_from

    request = request_from(settings)
    result = redraw(
        prob,
        out,
        request.outline,
        crs=request.scene.crs,
        pixel_coords=request.scene.pixel_coords,
        overwrite=overwrite,
    )
    click.echo(printable(result))
