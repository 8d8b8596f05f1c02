"""`smokegeo predict`: a scene becomes smoke polygons."""

from __future__ import annotations

from pathlib import Path

import click

from smokegeo.cli.main import command
from smokegeo.errors import ModelError


@command()
@click.argument("scene", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Polygons to write.")
def predict(scene: Path, out: Path) -> None:
    """Find smoke in SCENE and write it as polygons.

    This version carries no model yet: it refuses, with exit code 4, until one ships.
    """
    raise ModelError(
        f"{scene} cannot be searched and {out} is not written: this version of smokegeo carries no "
        "model yet. Simulated data to train on comes from `smokegeo simulate`."
    )
