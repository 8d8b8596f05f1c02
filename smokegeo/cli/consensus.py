"""`smokegeo consensus`: many annotators' masks to one, with agreement statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smokegeo.cli.main import command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from smokegeo.consensus import Agreement
    from smokegeo.labels import Labels

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
    from smokegeo.consensus import merge_masks
    from smokegeo.errors import InputError, UsageError, printable
    from smokegeo.files import check_output, same_file
    from smokegeo.labels import label_driver, read_labels, write_together

    votes = votes or out.with_name(f"{out.stem}_votes{out.suffix}")
    if (cube is None) != (grey is None):
        raise UsageError("--cube and --grey go together: which image, and where to write it.")
    outputs = [out, votes, *([grey] if grey else [])]
    if len({path.resolve() for path in outputs}) != len(outputs):
        raise UsageError("two outputs have the same name.")
    inputs = [*masks, *([cube] if cube else [])]
    for path in outputs:
        label_driver(path)
        check_output(path, overwrite=overwrite)
        if any(same_file(path, given) for given in inputs):
            raise UsageError(f"{path} is one of the inputs. Choose another output.")

    read = [read_labels(path) for path in masks]
    place = read[0].place
    for path, labels in zip(masks, read, strict=True):
        if labels.place != place:
            raise InputError(f"{path} lies elsewhere than {masks[0]}: CRS or transform differ.")
        if (labels.values == 255).any():
            raise InputError(f"{path} marks pixels as ignored (255); a vote is 0 or 1.")
    merged = merge_masks([labels.values for labels in read])
    images = {out: merged.mask, votes: merged.votes}
    if cube is not None and grey is not None:
        images[grey] = _grey(cube, masks[0], read[0])
    write_together(images, place)
    facts = _facts(merged.agreement)
    if as_json:
        click.echo(json.dumps({"mask": str(out), "votes": str(votes), **facts}, indent=2))
    else:
        for line in _lines(merged.agreement):
            click.echo(line)
        click.echo(printable(f"wrote {', '.join(map(str, outputs))}"))


def _grey(cube: Path, mask: Path, labels: Labels) -> NDArray[np.uint8]:
    """Return the grey image of a cube; refuse one that the masks are not of."""
    from smokegeo.consensus import band_average
    from smokegeo.cubes import read_cube
    from smokegeo.errors import InputError

    pixels, place = read_cube(cube), labels.place
    if pixels.shape[1:] != labels.values.shape:
        (high, wide), (height, width) = pixels.shape[1:], labels.values.shape
        raise InputError(
            f"{cube} is {wide}x{high} pixels and {mask} {width}x{height}. Give what was marked."
        )
    crs, transform = pixels.rio.crs, pixels.rio.transform()
    placed = crs is not None and place.crs is not None  # PNGs of a cube with a place have none
    if placed and (crs, transform) != (place.crs, place.transform):
        raise InputError(f"{cube} lies elsewhere than {mask}: CRS or transform differ.")
    return band_average(pixels)


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
