"""`smokegeo predict`: scenes become smoke polygons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smokegeo.cli.main import command
from smokegeo.cli.options import outline_options, scene_options

_FORMATS = ("gpkg", "geojson", "fgb", "parquet")


@command()
@click.argument("scenes", nargs=-1, required=True, metavar="SCENE...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Polygons of one scene: .gpkg, .geojson, .fgb or .parquet.",
)
@click.option(
    "--out-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the polygons of several scenes, one file each.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(_FORMATS),
    help="Format in --out-dir. [gpkg]",
)
@click.option(
    "--prob",
    type=click.Path(path_type=Path),
    help="Also write the probabilities, .tif; with --out-dir, into this folder.",
)
@click.option(
    "--map",
    "web_map",
    type=click.Path(path_type=Path),
    help="Also write a map that opens in any browser, .html; with --out-dir, into this folder.",
)
@click.option("--overwrite", is_flag=True, help="Replace outputs that exist.")
@click.option("--model", help="Name of a bundled model or path of a model file. [by the bands]")
@scene_options
@outline_options
@click.option("--tile", type=click.IntRange(32), help="Side of a tile in pixels. [the model's]")
@click.option("--overlap", type=click.IntRange(0), help="Overlap of tiles in pixels. [the model's]")
@click.option(
    "--fast",
    is_flag=True,
    help="Do not look at the scene enlarged: several times as fast, but small plumes are missed.",
)
@click.option(
    "--tta",
    type=click.Choice(["none", "flip", "full"]),
    default="none",
    help="Look at each tile mirrored (2x the time) or in all 8 positions (8x), and average.",
)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto")
@click.option(
    "--backend",
    type=click.Choice(["torch", "onnx"]),
    default="torch",
    help="onnx needs `pip install smokegeo[onnx]`.",
)
@click.option("--batch", type=click.IntRange(1), help="Tiles per pass on a graphics card. [8]")
@click.option("--threads", type=click.IntRange(1), help="Tiles at a time on a CPU. [the cores]")
@click.option(
    "--resume",
    is_flag=True,
    help="Keep and continue interrupted work; with --out-dir, skip finished scenes.",
)
@click.option(
    "--yes", is_flag=True, help="Start even if it will take very long; not needed with --dask."
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Spread the work over a Dask cluster, tcp://HOST:8786, or `local`.",
)
def predict(
    scenes: tuple[str, ...],
    out: Path | None,
    out_dir: Path | None,
    file_format: str | None,
    prob: Path | None,
    web_map: Path | None,
    overwrite: bool,
    dask: str | None,
    **settings: Any,
) -> None:
    """Find smoke in each SCENE and write it as polygons that QGIS opens with a style.

    A SCENE is a GeoTIFF, ENVI, JPEG 2000 or picture file, the folder of a Sentinel-2 (.SAFE),
    Landsat or HLS product, or a folder of band files named by colour (red.tif, nir.tif). Its bands
    are read from its metadata and matched to the model by wavelength; bands it lacks are left out.

    \b
    Examples:
      smokegeo predict scene.tif --out smoke.gpkg
      smokegeo predict scene.tif --out smoke.geojson --map smoke.html --prob prob.tif
      smokegeo predict *.tif --out-dir results --map maps --min-area 10000
      smokegeo predict photo.jpg --out smoke.gpkg --pixel-coords --map photo.html

    Results go to the files; one line per scene goes to standard output.
    """
    if out_dir is None:
        _refuse_mixture(scenes, out, file_format)
    else:
        _refuse_files(out, prob, web_map)

    from smokegeo.scene.rasters import find_file
    from smokegeo.writing.outputs import Outputs

    outputs = Outputs(out, prob, web_map, overwrite)
    if out_dir is None:  # the pipeline checks it too, but takes seconds to import
        outputs.check(scenes[0])
        find_file(Path(scenes[0]))

    from smokegeo.runs import Folders, outputs_for, predict_all
    from smokegeo.settings import request_from

    request = request_from(settings)
    if out_dir is None:
        jobs = [(scenes[0], outputs)]
    else:
        folders = Folders(out_dir, f".{file_format or 'gpkg'}", prob, web_map)
        jobs = outputs_for(scenes, folders, overwrite=overwrite)
    summary = predict_all(jobs, request, dask=dask, say=click.echo)
    if summary.failed:
        raise click.exceptions.Exit(summary.exit_code)


def _refuse_files(out: Path | None, prob: Path | None, web_map: Path | None) -> None:
    if out is not None:
        raise click.UsageError("--out-dir names the polygons' files; drop --out.")
    for option, path, suffixes in (("prob", prob, ".tif .tiff"), ("map", web_map, ".html .htm")):
        if path is not None and path.suffix.lower() in suffixes.split():
            raise click.UsageError(f"With --out-dir, --{option} names a folder: {path} is a file.")


def _refuse_mixture(scenes: tuple[str, ...], out: Path | None, file_format: str | None) -> None:
    if out is None:
        raise click.UsageError("Say where the polygons go: --out FILE, or --out-dir FOLDER.")
    if len(scenes) > 1:
        raise click.UsageError("Several scenes need --out-dir FOLDER instead of --out.")
    if file_format is not None:
        raise click.UsageError("--format is for --out-dir; --out names it by its suffix.")
