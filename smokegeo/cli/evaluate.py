"""`smokegeo evaluate`: the paper's table for a model."""

from __future__ import annotations

import json
from pathlib import Path

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
@click.option(
    "--split", type=click.Choice(["train", "val", "test"]), default="test", help="Split to score."
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Smoke from this probability on.  [default: the card's]",
)
@units_options
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def evaluate(
    model: str,
    dataset: str,
    root: Path | None,
    split: str,
    threshold: float | None,
    scale: float | None,
    offset: float | None,
    as_json: bool,
) -> None:
    """Score MODEL, a model file or a bundled model's name, on a dataset.

    Prints the paper's table: F1 and mIoU of the smoke class for images with little (below 0.5 %),
    medium and much (above 2.5 %) smoke and in total, as means over images and over all pixels
    together, then by scenario. A dataset that ships no splits is split as it was for the training.

    \b
    Example:
      smokegeo evaluate runs/hss-mop-realtime/model.safetensors --dataset hss --root smoke-hss
    """
    from smokegeo.datasets import dataset_class, default_root
    from smokegeo.errors import printable
    from smokegeo.evaluate import evaluate as score
    from smokegeo.evaluate import split_by_scene
    from smokegeo.metrics import table
    from smokegeo.modelfile import load_model
    from smokegeo.radiometry import Units

    said = Units.said(scale, offset)
    reader = dataset_class(dataset)
    loaded = load_model(model)
    folder = root or default_root(dataset)
    data = reader(folder, split, by_scene=split_by_scene(loaded.card, dataset))
    result = score(loaded, data, threshold, said)
    level = loaded.card.threshold if threshold is None else threshold
    if as_json:
        facts = {"model": loaded.card.name, "split": split, "threshold": level}
        click.echo(json.dumps({**facts, **result.to_dict()}, indent=2))
    else:
        title = f"{loaded.card.name} on the {split} split of {folder}, threshold {level:g}"
        for line in (title, *table(result).split("\n")):
            click.echo(printable(line))
