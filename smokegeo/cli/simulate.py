"""`smokegeo simulate`: datasets and scenes with smoke whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from smokegeo.cli.main import command
from smokegeo.errors import UsageError


@command()
@click.argument("kind", type=click.Choice(["hss", "mss", "satellite"]))
@click.option("--out", required=True, metavar="DIR", help="Folder to write.")
@click.option("--count", default=20, help="Number of frames.")
@click.option("--seed", default=0, help="Same seed, same files.")
@click.option("--size", metavar="WxH", help="Frame size in pixels; each kind has its own.")
@click.option("--scene", metavar="WxH", help="Write one large georeferenced scene instead.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    help="Only this scenario (repeatable): high_exposure, low_visibility, complex_background, "
    "cloud_interference; early_stage, high_transparency, complex_shape.",
)
@click.option("--backgrounds", metavar="DIR", help="Use your own GeoTIFFs as backgrounds.")
@click.option(
    "--bits",
    type=click.Choice(["8", "10", "12", "16"]),
    help="Bit depth of the sensor; each kind has its own.",
)
@click.option(
    "--stretch",
    type=click.Choice(["bands", "joint"]),
    help="Deliver 8-bit pictures, contrast stretched band by band or jointly.",
)
@click.option("--workers", type=int, help="Processes; by default one per core.", show_default=False)
@click.option("--overwrite", is_flag=True, help="Replace what simulate or prepare wrote to DIR.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def simulate(
    kind: str,
    out: str,
    count: int,
    seed: int,
    size: str | None,
    scene: str | None,
    scenarios: tuple[str, ...],
    backgrounds: str | None,
    bits: str | None,
    stretch: str | None,
    workers: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Simulate smoke, with its truth, as a dataset to train on or a scene to try predict on.

    KIND is hss (25 bands, ground camera at stacks), mss (colour and thermal, drone) or
    satellite (six bands from blue to short-wave infrared, in a UTM zone).

    \b
    Examples:
      smokegeo simulate hss --out smoke-hss --count 200
      smokegeo simulate satellite --out clouds --scenario cloud_interference
      smokegeo simulate satellite --out scene --scene 4096x4096
    """
    import json
    import os

    folder = Path(out)
    _check_workers(workers)
    if scene is not None:
        if size or scenarios or backgrounds or bits or stretch or workers or _is_given("count"):
            raise UsageError("--scene takes --seed and no other option of the frames.")
        from smokegeo.simulate.scene import simulate_scene

        extent = _parse_size("--scene", scene)
        scene_facts = simulate_scene(folder, kind, extent, seed, overwrite=overwrite).to_dict()
        click.echo(json.dumps(scene_facts) if as_json else _scene_text(folder, scene_facts))
        return
    from smokegeo.simulate.backgrounds import find_backgrounds
    from smokegeo.simulate.dataset import DatasetPlan, simulate_dataset
    from smokegeo.simulate.frame import Rendering
    from smokegeo.simulate.kinds import find_kind

    spec = find_kind(kind)
    width, height = (spec.width, spec.height) if size is None else _parse_size("--size", size)
    rendering = Rendering(None if bits is None else int(bits), stretch)
    plan = DatasetPlan(kind, count, seed, (width, height), scenarios, rendering=rendering)
    if backgrounds is not None:
        _check_backgrounds(Path(backgrounds), folder)
        usable = find_backgrounds(Path(backgrounds), spec.bands, (height, width))
        plan = replace(plan, backgrounds=usable)
    facts = simulate_dataset(
        folder, plan, workers=workers or os.cpu_count() or 1, overwrite=overwrite
    ).to_dict()
    click.echo(json.dumps(facts) if as_json else _dataset_text(folder, facts))


def _check_workers(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers} is too small; use 1 or more.")


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


def _check_backgrounds(backgrounds: Path, out: Path) -> None:
    """Refuse backgrounds that --overwrite would delete."""
    if backgrounds.resolve().is_relative_to(out.resolve()):
        raise UsageError(
            f"--backgrounds {backgrounds} lies in --out {out}, which is replaced as a whole. "
            "Choose another folder to write to."
        )


def _dataset_text(folder: Path, facts: dict[str, Any]) -> str:
    scales = ", ".join(f"{n / facts['frames']:.0%} {name}" for name, n in facts["scales"].items())
    return (
        f"{folder}: {facts['frames']} frames; smoke {scales}; {_agreement_text(facts)}.\n"
        f"Next: smokegeo check {folder}"
    )


def _scene_text(folder: Path, facts: dict[str, Any]) -> str:
    return (
        f"{folder}: scene.tif of {facts['width']}x{facts['height']} pixels, mask.tif, "
        f"truth.geojson with {facts['polygons']} polygons; smoke on {facts['smoke_share']:.1%}; "
        f"{_agreement_text(facts)}.\n"
        f"Next: open {folder / 'scene.tif'} and {folder / 'truth.geojson'} in QGIS."
    )


def _agreement_text(facts: dict[str, Any]) -> str:
    shares = facts["agreement"]
    marks = ", ".join(f"{votes}/{len(shares)} {share:.1%}" for votes, share in shares.items())
    return f"annotators agree {marks}"


def _parse_size(option: str, text: str) -> tuple[int, int]:
    """Return (width, height) from text such as 409x217."""
    width, cross, height = text.lower().partition("x")
    if not (cross and width.isdecimal() and height.isdecimal()):
        raise UsageError(f"{option} {text!r} is not a size such as 409x217.")
    return int(width), int(height)
