"""Show smokegeo at work on sample data; run by `make demo`.

Looks at the bundled sample scene, then simulates a few hyperspectral frames, checks them and
draws them. Everything lands in `demo/`.
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
    draw_sample_scene(DEMO / "sample_scene.png")
    frames = DEMO / "hss"
    smokegeo("simulate", "hss", "--out", frames, "--count", 9, "--seed", 1, "--overwrite")
    smokegeo("check", frames)
    draw_frames(frames, DEMO / "hss.png")
    print("\nResults:")
    print(f"  {DEMO / 'sample_scene.png'}   the bundled simulated satellite scene with its smoke")
    print(f"  {DEMO / 'hss.png'}            nine simulated hyperspectral frames with their masks")
    print(f"  {frames}                a dataset of them, ready for TorchGeo (images open in QGIS)")


def smokegeo(*args: object) -> None:
    """Run a smokegeo command as a user would, showing it."""
    words = [str(arg) for arg in args]
    print("$ smokegeo", *words, flush=True)
    subprocess.run([sys.executable, "-m", "smokegeo", *words], check=True)


def draw_sample_scene(path: Path) -> None:
    """Draw the sample scene's true colours with the outline of its simulated smoke."""
    import matplotlib.pyplot as plt

    from smokegeo.cubes import cube_bands, read_cube
    from smokegeo.composite import composite
    from smokegeo.labels import read_labels

    cube = read_cube(SAMPLE / "scene.tif")
    bands = cube_bands(cube)
    listed = ", ".join(f"{band.name} {band.wavelength_nm:g} nm" for band in bands)
    print(f"sample scene: {cube.sizes['x']} x {cube.sizes['y']} pixels, {cube.rio.crs}; {listed}")
    figure, axis = plt.subplots(figsize=(7, 7))
    axis.imshow(composite(cube.values, bands))
    axis.contour(read_labels(SAMPLE / "mask.tif").values == 1, [0.5], colors="orange", linewidths=1)
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
