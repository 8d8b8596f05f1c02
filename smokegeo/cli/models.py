"""`smokegeo models`: which models there are, and what their cards say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smokegeo.cli.main import command

if TYPE_CHECKING:
    from smokegeo.modelfile import Card


@command()
@click.argument("action", type=click.Choice(["list", "show"]), default="list")
@click.argument("name", required=False)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="runs",
    help="Where to look for your own models.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the cards as JSON.")
def models(action: str, name: str | None, folder: Path, as_json: bool) -> None:
    """List the models, or show the card of one.

    Lists those inside the package and the model files below --folder. `show` takes a bundled
    model's name or the path of a model file.

    \b
    Examples:
      smokegeo models
      smokegeo models show runs/hss-mop-realtime/model.safetensors
    """
    from smokegeo.errors import ModelError, UsageError, printable
    from smokegeo.modelfile import SUFFIX, bundled_models, find_model, read_card

    if action == "show":
        if name is None:
            raise UsageError("`smokegeo models show` needs a model's name or path.")
        path = find_model(name)
        card = read_card(path)
        click.echo(json.dumps(card.to_dict(), indent=2) if as_json else _describe(card, name))
        return
    local = {str(path): path for path in sorted(folder.rglob(f"*{SUFFIX}"))}
    found = {}
    for label, path in {**bundled_models(), **local}.items():
        try:
            found[label] = read_card(path)
        except ModelError as error:
            click.echo(printable(f"Warning: {error}"), err=True)
    if as_json:
        click.echo(json.dumps({k: card.to_dict() for k, card in found.items()}, indent=2))
    elif not found:
        text = f"No model is bundled yet, and none lies below {folder}. `smokegeo train` makes one."
        click.echo(printable(text))
    else:
        for label, card in found.items():
            doubt = " Provisional." if "provisional" in card.training else ""
            text = f"{label}: {card.architecture}, {len(card.bands)} bands. {card.summary}"
            click.echo(printable(text.rstrip() + doubt))


def _describe(card: Card, name: str) -> str:
    from smokegeo.errors import printable

    bands = ", ".join(
        band.name if band.wavelength_nm is None else f"{band.name} ({band.wavelength_nm:g} nm)"
        for band in card.bands
    )
    kind = _dataset_kind(card)
    score = card.metrics.get("validation", {}).get("total", {}).get("f1_image")
    low, high = card.input.get("minimum"), card.input.get("maximum")
    lines = [
        f"{card.name}: {card.summary}".rstrip(": "),
        f"  architecture  {card.architecture} {card.options.get('variant', '')}".rstrip(),
        f"  bands         {bands}",
        f"  input         {card.input.get('dtype')}, {low} to {high}",
        f"  threshold     {card.threshold:g}",
        f"  tiles         {card.tile_px} px, overlapping by {card.overlap_px}",
        f"  trained on    {card.training.get('frames')} frames ({card.training.get('date')})",
        f"  validation F1 {'-' if score is None else f'{100 * score:.2f} %, mean over images'}",
        f"  licence       {card.licence or '-'}",
        f"  smokegeo      {card.smokegeo}",
        f"  sha256        {card.sha256}",
        *(f"  provisional   {doubt}" for doubt in [card.training.get("provisional")] if doubt),
        "Next:",
        f"  smokegeo predict scene.tif --out smoke.gpkg --model {name}",
        *([] if kind is None else [f"  smokegeo evaluate {name} --dataset {kind} --root DATA"]),
    ]
    return "\n".join(map(printable, lines))


def _dataset_kind(card: Card) -> str | None:
    """Return the kind of dataset a model was trained on, None if its card does not tell."""
    from smokegeo.datasets import KINDS

    config = card.training.get("config")
    stated = config.get("dataset") if isinstance(config, dict) else None
    return next((k for said in (stated, card.bands.sensor) for k in KINDS if k == said), None)
