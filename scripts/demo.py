"""Show smokegeo at work on sample data; run by `make demo`.

Finds the smoke in the bundled sample scene and writes it as GeoPackage, GeoJSON and a map for the
browser, then simulates a few hyperspectral frames and draws them. Everything lands in `demo/`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo"
SAMPLE = ROOT / "datasets" / "satellite" / "sample"


def main() -> None:
    """Run the demo and say where the results lie."""
    DEMO.mkdir(exist_ok=True)
    scene = SAMPLE / "scene.tif"
    smokegeo("info", scene)
    smokegeo(
        *("predict", scene, "--out", DEMO / "smoke.gpkg", "--prob", DEMO / "prob.tif"),
        *("--map", DEMO / "smoke.html", "--overwrite"),
    )
    smokegeo("vectorize", DEMO / "prob.tif", "--out", DEMO / "smoke.geojson", "--overwrite")
    draw_sample_scene(DEMO / "smoke.png", DEMO / "smoke.geojson")
    frames = DEMO / "hss"
    smokegeo("simulate", "hss", "--out", frames, "--count", 9, "--seed", 2, "--overwrite")
    draw_frames(frames, DEMO / "hss.png")
    print("\nResults:")
    for name, what in (
        ("smoke.html", "the smoke found in the sample scene, as a map: open it in a browser"),
        ("smoke.gpkg", "the same polygons, with a style: open them in QGIS"),
        ("smoke.geojson", "the same for everything else"),
        ("prob.tif", "the probability of smoke in every pixel"),
        ("smoke.png", "what was found (orange) and what is there (white)"),
        ("hss.png", "nine simulated hyperspectral frames with their masks"),
    ):
        print(f"  {DEMO / name}   {what}")


def smokegeo(*args: object) -> None:
    """Run a smokegeo command as a user would, showing it."""
    words = [str(arg) for arg in args]
    print("$ smokegeo", *words, flush=True)
    subprocess.run([sys.executable, "-m", "smokegeo", *words], check=True)


def draw_sample_scene(path: Path, found: Path) -> None:
    """Draw the sample scene's true colours, what was found in it and what is there."""
    import geopandas
    import matplotlib.pyplot as plt

    from smokegeo.composite import composite
    from smokegeo.cubes import cube_bands, read_cube

    cube = read_cube(SAMPLE / "scene.tif")
    left, bottom, right, top = cube.rio.bounds()
    figure, axis = plt.subplots(figsize=(7, 7))
    axis.imshow(composite(cube.values, cube_bands(cube)), extent=(left, right, bottom, top))
    for file, colour in ((SAMPLE / "truth.geojson", "white"), (found, "orange")):
        polygons = geopandas.read_file(file).to_crs(cube.rio.crs)
        if len(polygons):
            polygons.boundary.plot(ax=axis, color=colour, linewidth=1)
    axis.set_axis_off()
    figure.savefig(path, dpi=100, bbox_inches="tight")
    plt.close(figure)


def draw_frames(root: Path, path: Path) -> None:
    """Draw every frame of a dataset as false colour with its mask outlined."""
    import matplotlib.pyplot as plt

    from smokegeo import HSS
    from smokegeo.composite import composite
    from smokegeo.torchgeo_api import frame_slices

    dataset = HSS(root, split=None)
    figure, axes = plt.subplots(3, 3, figsize=(13, 8))
    for axis, query in zip(axes.flat, frame_slices(dataset), strict=False):
        sample = dataset[query]
        axis.imshow(composite(sample["image"].numpy(), dataset.band_set))
        if (sample["mask"] == 1).any():
            axis.contour(sample["mask"].numpy() == 1, [0.5], colors="orange", linewidths=0.8)
        axis.set_title(", ".join(dataset.scenarios(int(sample["frame"]))), fontsize=8)
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
