"""`smokegeo train`: a dataset becomes a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smokegeo.cli.main import command

_NUMBER = click.IntRange(min=1)


@command()
@click.option("--dataset", help="Kind of dataset: hss, mss or satellite.  [default: hss]")
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    help="Prepared dataset.  [default: datasets/KIND/data]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the results.  [default: runs/KIND-MODEL-VARIANT]",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML settings; options on the command line win. See configs/.",
)
@click.option(
    "--model",
    help="mop, or a method it is compared with: pspnet, deeplabv3+, ocrnet, segnext, segformer, "
    "mask2former, protoseg, fosp, trans-bvm; also unet, fcn, upernet.  [default: mop]",
)
@click.option(
    "--variant",
    type=click.Choice(["realtime", "accuracy"]),
    help="Small and fast, or large.  [default: realtime]",
)
@click.option("--iterations", type=_NUMBER, help="Training steps.  [default: 40000]")
@click.option("--batch-size", type=_NUMBER, help="Samples a step, on each device.  [default: 4]")
@click.option(
    "--crop", "crop_px", type=_NUMBER, help="Side of the training crops in pixels.  [default: 512]"
)
@click.option("--lr", type=float, help="Learning rate at the start.  [default: 6e-5]")
@click.option(
    "--band-dropout", type=float, help="Chance of a band to be absent in training.  [default: 0]"
)
@click.option("--val-every", type=_NUMBER, help="Steps between two validations.  [default: 1000]")
@click.option("--patience", type=_NUMBER, help="Stop after this many validations without gain.")
@click.option(
    "--by-scene",
    is_flag=True,
    default=None,
    help="Keep scenes together if the data ship no splits.",
)
@click.option("--seed", type=int, help="Seed of weights, order and augmentation.  [default: 0]")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other setting of the YAML file, options.rescale=true for example.",
)
@click.option("--resume", is_flag=True, help="Continue the training in --out.")
@click.option("--overwrite", is_flag=True, help="Start anew in an --out that exists.")
@click.option("--accelerator", default="auto", help="cpu, gpu, mps ... as in Lightning.")
@click.option("--devices", default="auto", help="How many or which devices, as in Lightning.")
@click.option("--strategy", default="auto", help="auto or ddp, as in Lightning.")
@click.option(
    "--precision", default="32-true", help="16-mixed or bf16-mixed on GPUs, as in Lightning."
)
@click.option("--workers", type=click.IntRange(min=0), default=0, help="Loader processes.")
def train(
    config: Path | None,
    out: Path | None,
    root: Path | None,
    variant: str | None,
    settings: tuple[str, ...],
    resume: bool,
    overwrite: bool,
    accelerator: str,
    devices: str,
    strategy: str,
    precision: str,
    workers: int,
    **given: Any,
) -> None:
    """Train MoP, or a baseline, on a prepared dataset.

    The defaults are the paper's recipe: 512-pixel crops, flips, scaling by 0.5 to 2, AdamW at
    6e-5 with weight decay 0.01, polynomial decay, 40,000 steps of 4 samples. Ends with
    OUT/model.safetensors: the weights of the best validation, with a card.

    \b
    Examples:
      smokegeo train --dataset hss --root smoke-hss
      smokegeo train --config configs/hss_realtime.yaml --root smoke-hss --iterations 2000
      smokegeo train --dataset mss --root smoke-mss --model segformer --variant accuracy
      smokegeo train --out runs/hss-mop-realtime --resume
    """
    import os

    import yaml

    from smokegeo.errors import UsageError
    from smokegeo.models.baselines.catalog import METHODS
    from smokegeo.train import Machine, TrainConfig, read_config
    from smokegeo.train import train as run

    plain: dict[str, Any] = {}
    if resume:
        if out is None:
            raise UsageError("--resume needs --out, the folder of the training to continue.")
        plain = read_config(out / "config.yaml")
    if config is not None:
        plain |= read_config(config)
    plain |= {name: value for name, value in given.items() if value is not None}
    if root is not None:
        plain["root"] = str(root)
    if variant is not None:
        _put(plain, ["options", "variant"], variant)
    for item in settings:
        name, found, text = item.partition("=")
        if not found:
            raise UsageError(f"--set {item}: write NAME=VALUE.")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise UsageError(f"--set {item}: {text!r} is no value as YAML has them.") from None
        _put(plain, name.split("."), value)
    chosen = TrainConfig.from_dict(plain)
    if out is None:
        size = chosen.options.get("variant", "realtime") if chosen.model in METHODS else "baseline"
        out = Path("runs") / f"{chosen.dataset}-{chosen.model.replace('+', 'plus')}-{size}"
    # Lightning starts the other processes of a node with this very command.
    first = "LOCAL_RANK" not in os.environ
    if first and out.exists() and any(out.iterdir()) and not (resume or overwrite):
        raise UsageError(f"{out} exists already. Pass --resume, --overwrite, or another --out.")
    machine = Machine(accelerator, devices, strategy, precision, workers)
    try:
        path = run(chosen, out, machine, resume=resume)
    except KeyboardInterrupt:
        if not (out / "checkpoints" / "last.ckpt").is_file():  # else it has said how to go on
            click.echo(
                "Interrupted before the first checkpoint; --overwrite begins anew.", err=True
            )
        raise click.exceptions.Exit(130) from None
    click.echo(f"wrote {path}")
    click.echo(f"Next: smokegeo evaluate {path} --dataset {chosen.dataset} --root {chosen.folder}")


def _put(target: dict[str, Any], names: list[str], value: Any) -> None:
    """Set a value in nested settings, `options.rescale` for example."""
    from smokegeo.errors import UsageError

    for name in names[:-1]:
        target[name] = target.get(name) or {}  # `options:` in a file may have nothing below it
        if not isinstance(target[name], dict):
            raise UsageError(f"{'.'.join(names)}: {name} has no settings of its own.")
        target = target[name]
    target[names[-1]] = value
