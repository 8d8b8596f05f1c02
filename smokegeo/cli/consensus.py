"""`smokegeo consensus`: many annotators' masks to one, with agreement statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smokegeo.cli.main import command

if TYPE_CHECKING:
    from smokegeo.consensus import Agreement

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@command()
@click.argument("masks", nargs=-1, required=True, type=_FILE, metavar="MASK...")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Merged mask to write, .tif or .png.",
)
@click.option(
    "--votes",
    type=click.Path(path_type=Path),
    help="Raster of votes per pixel to write.  [default: OUT with _votes]",
)
@click.option("--cube", type=_FILE, help="The image they marked; with --grey.")
@click.option(
    "--grey",
    type=click.Path(path_type=Path),
    help="Band-averaged grey image of --cube to write, as annotators see it.",
)
@click.option("--overwrite", is_flag=True, help="Replace existing outputs.")
@click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON.")
def consensus(
    masks: tuple[Path, ...],
    out: Path,
    votes: Path | None,
    cube: Path | None,
    grey: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Merge three or more annotators' masks of one image by majority.

    A pixel is smoke where at least two thirds of the MASKs say so. Also writes how many
    annotators marked each pixel, and prints how far they agreed.

    \b
    Examples:
      smokegeo consensus anna.png ben.png carl.png --out mask.png
      smokegeo consensus a.tif b.tif c.tif --out mask.tif --cube frame.tif --grey grey.png
    """
    from smokegeo.consensus import band_average, merge_masks
    from smokegeo.cubes import read_cube
    from smokegeo.errors import InputError, UsageError
    from smokegeo.files import check_output
    from smokegeo.labels import read_labels, write_labels

    votes = votes or out.with_name(f"{out.stem}_votes{out.suffix}")
    if (cube is None) != (grey is None):
        raise UsageError("--cube and --grey go together: which image, and where to write it.")
    outputs = [out, votes, *([grey] if grey else [])]
    if len({path.resolve() for path in outputs}) != len(outputs):
        raise UsageError("two outputs have the same name.")
    for path in outputs:
        check_output(path, overwrite=overwrite)
        if any(path.resolve() == mask.resolve() for mask in masks):
            raise UsageError(f"{path} is one of the inputs.")

    read = [read_labels(path) for path in masks]
    place = read[0].place
    for path, labels in zip(masks, read, strict=True):
        if labels.place != place:
            raise InputError(f"{path} lies elsewhere than {masks[0]}: CRS or transform differ.")
        if (labels.values == 255).any():
            raise InputError(f"{path} marks pixels as ignored (255); a vote is 0 or 1.")
    merged = merge_masks([labels.values for labels in read])
    picture = None if cube is None else band_average(read_cube(cube))
    write_labels(out, merged.mask, place)
    write_labels(votes, merged.votes, place)
    if picture is not None and grey is not None:
        write_labels(grey, picture, place)
    facts = _facts(merged.agreement)
    if as_json:
        click.echo(json.dumps({"mask": str(out), "votes": str(votes), **facts}, indent=2))
    else:
        for line in _lines(merged.agreement):
            click.echo(line)
        click.echo(f"wrote {', '.join(map(str, outputs))}")


def _facts(agreement: Agreement) -> dict[str, Any]:
    return {
        "annotators": agreement.annotators,
        "votes_needed": agreement.needed,
        "pixels_marked": sum(agreement.pixels_by_votes),
        "share_of_marked": {str(k): round(v, 6) for k, v in agreement.shares().items()},
        "share_of_mask": {str(k): round(v, 6) for k, v in agreement.mask_shares().items()},
    }


def _lines(agreement: Agreement) -> list[str]:
    n = agreement.annotators

    def row(shares: dict[int, float]) -> str:
        return ", ".join(f"{k}/{n} {100 * share:.2f} %" for k, share in shares.items())

    return [
        f"of the pixels marked by anyone: {row(agreement.shares())}",
        f"of the pixels in the mask:      {row(agreement.mask_shares())}",
    ]
