"""`smokegeo check`: every fault of a prepared dataset, at once."""

from __future__ import annotations

import json
from pathlib import Path

import click

from smokegeo.cli.main import command


@command()
@click.argument("root", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def check(root: Path, as_json: bool) -> None:
    """Check a prepared dataset: every file, pixel, checksum and split.

    ROOT is a folder that `smokegeo prepare` or `smokegeo simulate` wrote. All faulty samples are
    listed at once; the exit code is 3 if there is any.

    \b
    Example:
      smokegeo check smoke-hss
    """
    from smokegeo.datasets.layout import SPLITS, load_layout
    from smokegeo.datasets.splits import check_splits
    from smokegeo.datasets.verify import describe_faults, find_faults
    from smokegeo.errors import InputError

    layout = load_layout(root)
    faults = find_faults(layout, deep=True)
    splits = {name: layout.split_ids(name) or () for name in SPLITS}
    check_splits(splits, [record.id for record in layout.frames])
    counts = {name: len(ids) for name, ids in splits.items()}
    scenes = len({record.scene for record in layout.frames})
    facts = {
        "kind": layout.kind,
        "frames": len(layout.frames),
        "bands": len(layout.bands),
        "scenes": scenes,
        "splits": counts,
        "faults": [{"sample": f.sample, "kind": f.kind, "detail": f.detail} for f in faults],
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    elif not faults:
        shown = ", ".join(f"{name} {count}" for name, count in counts.items())
        click.echo(
            f"{root}: {len(layout.frames)} {layout.kind} frames of {len(layout.bands)} bands "
            f"from {scenes} scenes ({shown}). No fault found."
        )
    if faults:
        raise InputError(f"{root}: {describe_faults(faults, len(layout.frames))}")
