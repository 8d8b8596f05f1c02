"""`smokegeo info`: a look at a scene before any work."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from smokegeo.cli.main import command
from smokegeo.cli.options import scene_options


@command()
@click.argument("scene")
@click.option("--model", help="Name of a bundled model or path of a model file. [by the bands]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@scene_options
def info(scene: str, as_json: bool, **settings: Any) -> None:
    """Say what is in SCENE: bands, place, valid pixels, which model fits, and the cost.

    The scene is opened, its bands are matched and its units decided as by `smokegeo predict`, with
    the same options for scenes. The cost is told, and nothing is refused because of it.

    \b
    Examples:
      smokegeo info scene.tif
      smokegeo info scene.tif --model runs/mine/model.safetensors --json
    """
    from smokegeo.errors import printable
    from smokegeo.scene.rasters import find_file

    find_file(Path(scene))  # before imports that take seconds

    from smokegeo.inspection import inspect
    from smokegeo.scene.opening import open_scene
    from smokegeo.settings import request_from

    request = request_from(settings)
    found = inspect(open_scene(scene, request.scene), request)
    said = [(f"--{k.replace('_', '-')}", v) for k, v in settings.items() if v not in (None, False)]
    words = "".join(f" {k}" if v is True else f" {k} {shlex.quote(str(v))}" for k, v in said)
    found = replace(found, source=shlex.quote(scene), options=words)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        click.echo("\n".join(printable(line) for line in found.lines()))
