"""Measure time and memory of vectorising a large probability raster.

    python scripts/bench_vectorize.py

Makes a seeded raster of about 38,000 plumes, then runs each method in a process of its own, in
turn, several times: `vectorize` with both kinds of edges and all attributes, and for comparison the
usual way, GDAL's polygoniser on the whole array and shapely polygons, without attributes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from rasterio.errors import NotGeoreferencedWarning
from scipy.ndimage import gaussian_filter

from smokegeo.probability import NODATA, create, open_probability, quantise

METHODS = ("shapes", "smooth", "pixel")
NAMES = {
    "shapes": "whole array, rasterio shapes, no attributes",
    "smooth": "`vectorize`, smooth edges, attributes",
    "pixel": "`vectorize`, pixel edges, attributes",
}
THRESHOLD = 0.5
#: Width of the plumes, in pixels, so that 10,000 × 10,000 of them hold about 38,000.
SIGMA_PX = 7.0
_ROWS = 500


def main() -> None:
    """Print a Markdown table, one line per method."""
    warnings.simplefilter("ignore", NotGeoreferencedWarning)  # pixels are all we need
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=10_000, help="columns and rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a raster of 2000 pixels, once")
    parser.add_argument("--child", nargs=2, metavar=("METHOD", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(measure(args.child[0], Path(args.child[1]))))
        return
    if args.quick:
        args.size, args.repeats = 2000, 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prob.tif"
        smoke = make_raster(path, args.size)
        runs: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
        for _ in range(args.repeats):
            for method in METHODS:
                command = [sys.executable, __file__, "--child", method, str(path)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                runs[method].append(json.loads(done.stdout))
    print(
        f"{args.size} × {args.size} pixels, {smoke:.0%} smoke, median of {args.repeats}, "
        f"load {os.getloadavg()[0]:.1f}\n"
    )
    print("| method | polygons | vertices | time | peak memory | above imports |")
    print("|---|---|---|---|---|---|")
    usual = statistics.median(run["seconds"] for run in runs["shapes"])
    for method in METHODS:
        middle = {key: statistics.median(r[key] for r in runs[method]) for key in runs[method][0]}
        print(
            f"| {NAMES[method]} | {middle['polygons']:.0f} | {middle['vertices']:.0f} "
            f"| {middle['seconds']:.1f} s ({middle['seconds'] / usual:.2f}×) "
            f"| {middle['peak_mb']:.0f} MB | {middle['peak_mb'] - middle['base_mb']:.0f} MB |"
        )


def make_raster(path: Path, size: int) -> float:
    """Write a smooth random field with a corner that was not analysed; return the smoke share."""
    rng = np.random.default_rng(7)
    margin = int(4 * SIGMA_PX) + 1
    spread = 1 / (2 * np.sqrt(np.pi) * SIGMA_PX)  # of white noise after the filter
    smoke = 0
    noise = rng.standard_normal((2 * margin, size), np.float32)
    with create(path, size, size, crs=None, transform=None) as dst:
        for start in range(0, size, _ROWS):
            rows = min(_ROWS, size - start)
            noise = np.concatenate([noise, rng.standard_normal((rows, size), np.float32)])
            field = gaussian_filter(noise, SIGMA_PX)[margin : margin + rows] / spread
            values = quantise(1 / (1 + np.exp(-3 * (field - 1.2))))
            row, column = np.mgrid[start : start + rows, :size]
            values[row + 4 * column < size // 2] = NODATA
            smoke += int(((values >= THRESHOLD * 250) & (values != NODATA)).sum())
            dst.write(values, 1, window=((start, start + rows), (0, size)))
            noise = noise[-2 * margin :]
    return smoke / size**2


def measure(method: str, path: Path) -> dict[str, float]:
    """Run one method in this process; memory is the process's own peak."""
    import rasterio.features
    import shapely

    from smokegeo.outlines.vectorize import vectorize

    base = _peak_mb()
    start = time.perf_counter()
    with open_probability(path) as raster:
        if method == "shapes":
            values = raster.rows(0, raster.height)
            smoke = ((values >= THRESHOLD * 250) & (values != NODATA)).astype(np.uint8)
            found = rasterio.features.shapes(smoke, mask=smoke, connectivity=4)
            outlines = np.array([shapely.geometry.shape(shape) for shape, _ in found])
        else:
            outlines = vectorize(raster, THRESHOLD, edges=method).outlines
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "polygons": len(outlines),
        "vertices": int(shapely.get_num_coordinates(outlines).sum()),
        "base_mb": base,
        "peak_mb": _peak_mb(),
    }


def _peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the parent's memory before exec
        line = next(n for n in status.read_text().splitlines() if n.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS counts bytes


if __name__ == "__main__":
    main()
