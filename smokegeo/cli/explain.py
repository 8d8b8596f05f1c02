"""`smokegeo explain`: the paper's figures for a trained MoP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smokegeo.cli.main import command
from smokegeo.cli.options import units_options


@command()
@click.argument("model")
@click.option("--dataset", default="hss", help="Kind of dataset: hss, mss or satellite.")
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    help="Prepared dataset.  [default: datasets/KIND/data]",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write.")
@click.option(
    "--split", type=click.Choice(["train", "val", "test"]), default="test", help="Split to show."
)
@click.option(
    "--frames",
    default="4",
    metavar="N|ID,...",
    help="Frames to draw: a number, from much to little smoke, or ids separated by commas.",
)
@click.option("--without-psr", metavar="MODEL", help="Model without prototypes, to compare.")
@click.option("--without-split", metavar="MODEL", help="Model without band split, to compare.")
@units_options
@click.option("--overwrite", is_flag=True, help="Replace a folder of figures.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def explain(
    model: str,
    dataset: str,
    root: Path | None,
    out: Path,
    split: str,
    frames: str,
    without_psr: str | None,
    without_split: str | None,
    scale: float | None,
    offset: float | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Draw what the parts of MODEL do, as in the paper's figures.

    Writes PNGs: the weight of each band at each pixel (band_weights_FRAME), the features with and
    without these weights (activation_FRAME), how far channels of different bands are correlated
    (correlation), and a t-SNE map of smoke and background pixels (tsne). MODEL is a MoP with an
    F-Router: a file that `smokegeo train` made, or a bundled model (hss, mss or satellite).

    \b
    Example:
      smokegeo explain runs/hss-mop-realtime/model.safetensors --root smoke-hss --out figures
    """
    import json

    from smokegeo.datasets import dataset_class, default_root
    from smokegeo.errors import printable
    from smokegeo.evaluate import split_by_scene
    from smokegeo.explain.run import Rivals, choose_frames
    from smokegeo.explain.run import explain as draw
    from smokegeo.modelfile import load_model
    from smokegeo.radiometry import Units

    said = Units.said(scale, offset)
    reader = dataset_class(dataset)
    loaded = load_model(model)
    rivals = Rivals(*(load_model(name) if name else None for name in (without_psr, without_split)))
    folder = root or default_root(dataset)
    data = reader(folder, split, by_scene=split_by_scene(loaded.card, dataset))
    chosen = choose_frames(data, frames)
    facts = draw(loaded, data, out, chosen, rivals, overwrite=overwrite, said=said)
    if as_json:
        click.echo(json.dumps({"split": split, "out": str(out), **facts}, indent=2))
    else:
        for line in (*_lines(facts), f"wrote {len(facts['files'])} figures to {out}"):
            click.echo(printable(line))


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return the numbers a reader wants first."""
    lines = []
    for branch, means in facts["correlation"].items():
        if means["between_bands"] is not None:
            name = branch.replace("_", " ")
            lines.append(f"mean |r| between bands, {name}: {means['between_bands']:.3f}")
    for name, values in facts["separation"].items():
        lines.append(f"silhouette of smoke and background, {name}: {values['features']:.3f}")
    weights = facts["band_weights"]
    for region in ("smoke", "background"):
        if weights[region] is not None:
            ranked = sorted(zip(weights[region], weights["bands"], strict=True), reverse=True)
            best = ", ".join(f"{band} ({weight:.3f})" for weight, band in ranked[:3])
            lines.append(f"heaviest bands in {region}: {best}")
    return lines
