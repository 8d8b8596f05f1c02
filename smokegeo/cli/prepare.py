"""`smokegeo prepare`: native frames become a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smokegeo.cli.main import command

if TYPE_CHECKING:
    from smokegeo.prepare.run import Prepared


@command()
@click.argument("kind", type=click.Choice(["hss", "mss"]))
@click.argument("src", type=click.Path(path_type=Path))
@click.argument("dst", type=click.Path(path_type=Path))
@click.option("--bands", metavar="LIST", help="Wavelengths in nm or names of the bands, in order.")
@click.option(
    "--mosaic",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Your camera's bands and filter order, for raw mosaic frames.",
)
@click.option(
    "--every",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Take every N-th frame of a scene.",
)
@click.option(
    "--split-by",
    type=click.Choice(["frame", "scene"]),
    default="frame",
    help="Deal single frames or whole scenes into train, val and test, if no lists are shipped.",
)
@click.option("--seed", type=int, default=0, help="Seed of that deal.")
@click.option("--skip-faulty", is_flag=True, help="Leave faulty samples out instead of refusing.")
@click.option("--download", is_flag=True, help="First fetch the paper's data into SRC.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset at DST.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def prepare(
    kind: str, src: Path, dst: Path, as_json: bool, mosaic: Path | None, **choices: Any
) -> None:
    """Turn native smoke data in SRC into a dataset at DST that smokegeo and TorchGeo read.

    KIND is hss (hyperspectral cubes, 25 bands in the paper) or mss (RGB and thermal pairs).
    SRC is a folder, or a .zip, .tar or .tar.gz of one. Cubes may be npy, npz, mat, h5, tif,
    ENVI, one picture per band, raw 5x5 mosaics or parquet; datasets/hss/layout.md and
    datasets/mss/layout.md show what is understood.

    \b
    Examples:
      smokegeo prepare hss HSSDataset/ hss                    a folder as it was unpacked
      smokegeo prepare hss HSSDataset.zip hss                 or the archive itself
      smokegeo prepare hss native hss --download              fetch the paper's data first
      smokegeo prepare hss video hss --every 18 --split-by scene
      smokegeo prepare hss raw hss --mosaic my-camera.toml    raw frames, own calibration
      smokegeo prepare mss "254p Frame Pairs" mss             FLAME2 pairs with masks/

    Faults of all samples are told at once, and nothing is written unless every sample is good
    (or --skip-faulty says to leave them out). SRC is never changed.
    """
    import json

    from smokegeo.prepare.run import Options
    from smokegeo.prepare.run import prepare as run

    done = run(kind, src, dst, Options(mosaic=mosaic, **choices))
    if as_json:
        head = {"path": str(done.root), "kind": done.kind, **done.bands.to_dict()}
        click.echo(json.dumps({**head, **done.facts}, ensure_ascii=False))
        return
    for line in _report(done):
        click.echo(line)
    click.echo(f"Next: smokegeo check {dst}")


def _report(done: Prepared) -> list[str]:
    facts = done.facts
    bands = done.bands.names
    votes = max(facts["annotators"])
    values = " or ".join("{" + ", ".join(map(str, each)) + "}" for each in facts["mask_values"][:4])
    drawn = f"{votes} annotators, merged by majority" if votes > 1 else "one per frame"
    splits = ", ".join(f"{name} {count}" for name, count in facts["splits"].items())
    lines = [
        f"form      {', '.join(facts['forms'])}",
        f"samples   {facts['samples']}",
        f"bands     {len(bands)}: {bands[0]} to {bands[-1]}",
        f"sizes     {', '.join(facts['sizes'][:6])}{' ...' if len(facts['sizes']) > 6 else ''}",
        f"dtype     {', '.join(facts['dtypes'])}",
        f"masks     {drawn}, values {values}",
        f"splits    {splits} ({facts['splits_from']})",
        f"scenes    {facts['scenes'] or 'unknown'}",
        f"place     {'georeferenced' if facts['georeferenced'] else 'camera frames, on a grid'}",
    ]
    if facts["verified_files"]:
        lines.append(f"sha-256   {facts['verified_files']} files verified")
    if facts["left_out"]:
        names = list(facts["left_out"])
        more = ", ..." if len(names) > 20 else ""
        lines.append(f"left out  {len(names)}: {', '.join(names[:20])}{more}")
    return [*lines, f"Dataset written to {done.root}."]
