"""Measure `smokegeo predict`: its overhead, its lead over the usual loop, its memory, its growth.

    python scripts/bench_predict.py [--parts overhead loop memory growth] [--quick]

Run it on an idle machine. Scenes are made up (seeded) and lie in a temporary folder.

overhead  predict on 4096 x 4096 x 4 uint16 against the bare forward passes of the folded network on
          the same tiles, in as many threads; taken in turns.
loop      the same scene, model and overlap through the loop a TorchGeo user would write: grid
          sampler, DataLoader, the network as trained, stitching in numpy, rasterio's shapes.
memory    peak of whole processes for 4096 and 16384 pixels a side, with a network that only looks
          at each pixel, so that all the rest is measured: reading, stitching, outlines, writing.
          Also with smoke on half of the pixels, most of it one plume of millions of points.
growth    time against area, with the same network, and the line through it.
Outlines alone are measured by bench_vectorize.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import rasterio
import torch
from rasterio.transform import from_origin
from rasterio.windows import Window
from scipy.ndimage import gaussian_filter

import smokegeo.pipeline
from smokegeo.bands import BandSet
from smokegeo.datasets.statistics import BandStatistics
from smokegeo.engine import Effort, Engine
from smokegeo.fitting import Fit
from smokegeo.infer import Loader
from smokegeo.modelfile import Card, load_model, save_model
from smokegeo.pipeline import Request, predict_scene, prepare
from smokegeo.scene.opening import open_scene
from smokegeo.sensors import sensor
from smokegeo.stitch import FULL
from smokegeo.writing.outputs import Outputs

PARTS = ("overhead", "loop", "memory", "growth")
_PATTERN_PX = 1024
_TILE, _OVERLAP = 512, 128


class PixelEngine:
    """Stands in for the network: smoke where the first band is bright.

    At a level of 0.2 that is about a tenth of all pixels, at 0.5 half of them.
    """

    level = 0.2

    def __init__(self, fit: Fit, effort: Effort, available: object = None) -> None:
        self.card, self.effort = fit.card, effort

    def __call__(self, tiles: np.ndarray) -> np.ndarray:
        """Return smoke from 0 to FULL."""
        return (np.clip(self.level + 0.25 * tiles[:, 0], 0, 1) * FULL).astype(np.uint16)


def main() -> None:
    """Measure what was asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--size", type=int, default=4096, help="side of the scene in pixels")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="small scenes, once: does it run?")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(*args.child)
        return
    if args.quick:
        args.size, args.repeats = 600, 1
    print(
        f"{platform.processor() or platform.machine()}, {args.threads} threads, "
        f"torch {torch.__version__}, load {os.getloadavg()[0]:.1f} at the start\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model(folder / "model.safetensors")
        if "overhead" in args.parts or "loop" in args.parts:
            against_others(folder, model, args)
        if "memory" in args.parts:
            memory(folder, model, (args.size, 4 * args.size), args.repeats)
        if "growth" in args.parts:
            growth(folder, model, [args.size // 2, args.size, 2 * args.size, 4 * args.size])


def against_others(folder: Path, model: Path, args: argparse.Namespace) -> None:
    """Print predict, the bare passes and the usual loop on one scene, taken in turns."""
    scene = make_scene(folder / "scene.tif", args.size)
    request = Request(model=model, effort=Effort(threads=args.threads), yes=True)
    ready = prepare(open_scene(scene), request)
    plan, engine = ready.plan, ready.engine
    forms: dict[str, Callable[[], object]] = {
        "predict": lambda: predict_scene(
            scene, Outputs(folder / "smoke.gpkg", overwrite=True), request
        ),
        "bare forward passes": lambda: forward_passes(plan, engine, args.threads),
    }
    if "loop" in args.parts:
        forms["TorchGeo loop"] = lambda: torchgeo_loop(scene, model, folder, args.threads)
    times: dict[str, list[float]] = {form: [] for form in forms}
    for _ in range(args.repeats):
        for form, run in forms.items():
            start = time.perf_counter()
            run()
            times[form].append(time.perf_counter() - start)
    ours = statistics.median(times["predict"])
    print(
        f"{args.size} x {args.size} x 4 uint16, {len(plan.grid)} tiles, median of {args.repeats}:\n"
    )
    print("| | seconds | predict is |\n|---|---:|---|")
    for form, seconds in times.items():
        middle = statistics.median(seconds)
        said = {"predict": "", "TorchGeo loop": f"{middle / ours:.2f} times faster"}
        print(f"| {form} | {middle:.1f} | {said.get(form, f'{ours / middle:.3f} of it')} |")
    print()


def forward_passes(plan: smokegeo.pipeline.Plan, engine: Engine, threads: int) -> None:
    """Run the network on as many tiles as the scene has, already in memory."""
    with Loader(plan.scene, plan.fit, plan.recipe) as loader:
        loaded, _ = loader(next(plan.grid.row_tiles(0)))
    if loaded is None:
        raise RuntimeError("the first tile is empty")
    with ThreadPoolExecutor(threads, initializer=lambda: torch.set_num_threads(1)) as pool:
        for future in [pool.submit(engine, loaded[None]) for _ in range(len(plan.grid))]:
            future.result()


def torchgeo_loop(scene: Path, model: Path, folder: Path, threads: int) -> int:
    """Do what a TorchGeo user would write today; return the number of polygons."""
    from rasterio.features import shapes
    from torch.utils.data import DataLoader
    from torchgeo.datasets import RasterDataset, stack_samples

    class Scenes(RasterDataset):
        filename_glob = scene.name

    torch.set_num_threads(threads)
    loaded = load_model(model)
    network = loaded.network()
    mean = torch.tensor(loaded.card.statistics.mean)[:, None, None]
    std = torch.tensor(loaded.card.statistics.std)[:, None, None]
    dataset = Scenes(str(scene.parent))
    sampler = _grid_sampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, collate_fn=stack_samples)
    with rasterio.open(scene) as src:
        transform, height, width = src.transform, src.height, src.width
    total = np.zeros((height, width), np.float32)
    weight = np.zeros((height, width), np.float32)
    queries = iter(list(sampler))
    with torch.inference_mode():
        for batch in loader:
            smoke = network((batch["image"].float() - mean) / std).softmax(1)[:, 1].numpy()
            for patch in smoke:
                left, top = _corner(next(queries), transform)
                rows, columns = min(_TILE, height - top), min(_TILE, width - left)
                total[top : top + rows, left : left + columns] += patch[:rows, :columns]
                weight[top : top + rows, left : left + columns] += 1
    mask = (total / np.maximum(weight, 1) >= 0.5).astype(np.uint8)
    found = [
        {"type": "Feature", "properties": {}, "geometry": geometry}
        for geometry, _ in shapes(mask, mask == 1, transform=transform)
    ]
    (folder / "loop.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": found})
    )
    return len(found)


def _grid_sampler(dataset: object) -> object:
    """Return TorchGeo's grid of patches, under whichever name this version has."""
    import torchgeo.samplers as samplers

    stride = _TILE - _OVERLAP
    if hasattr(samplers, "GriddedPatchSampler"):
        return samplers.GriddedPatchSampler(
            dataset, size=_TILE, stride=stride, units=samplers.Units.PIXELS
        )
    return samplers.GridGeoSampler(dataset, _TILE, stride, units=samplers.Units.PIXELS)


def _corner(query: object, transform: rasterio.Affine) -> tuple[int, int]:
    x, y = query[0], query[1]  # type: ignore[index]
    column, row = ~transform @ (x.start, y.stop)
    return max(0, round(column)), max(0, round(row))


def memory(folder: Path, model: Path, sizes: tuple[int, int], repeats: int) -> None:
    """Print the peak memory of predict for a small and a large scene."""
    print("| side, px | smoke | peak memory, MB | seconds | polygons |\n|---:|---:|---:|---:|---:|")
    peaks = []
    for size, level in ((sizes[0], 0.2), (sizes[1], 0.2), (sizes[1], 0.5)):
        scene = make_scene(folder / f"scene{size}.tif", size)
        runs = [in_child(scene, model, folder / "smoke.gpkg", level) for _ in range(repeats)]
        peaks.append(statistics.median(run["peak_mb"] for run in runs))
        seconds = statistics.median(run["seconds"] for run in runs)
        share = "half" if level == 0.5 else "a tenth"
        print(f"| {size} | {share} | {peaks[-1]:.0f} | {seconds:.1f} | {runs[0]['polygons']} |")
        scene.unlink()
    area = (sizes[1] / sizes[0]) ** 2
    print(f"\n{area:.0f} times the area takes {peaks[1] / peaks[0]:.2f} times the memory.\n")


def growth(folder: Path, model: Path, sizes: list[int]) -> None:
    """Print time against area and the exponent of the line through it."""
    print("| side, px | seconds | seconds per Mpx |\n|---:|---:|---:|")
    areas, seconds = [], []
    for size in sizes:
        scene = make_scene(folder / f"scene{size}.tif", size)
        run = in_child(scene, model, folder / "smoke.gpkg")
        areas.append(size * size / 1e6)
        seconds.append(run["seconds"])
        print(f"| {size} | {seconds[-1]:.1f} | {seconds[-1] / areas[-1]:.3f} |")
        scene.unlink()
    slope, start = np.polyfit(areas, seconds, 1)
    power, _ = np.polyfit(np.log(areas), np.log(seconds), 1)
    print(
        f"\nseconds = {start:.1f} + {slope:.3f} per Mpx; time grows with area to the {power:.2f}.\n"
    )


def in_child(scene: Path, model: Path, out: Path, level: float = 0.2) -> dict[str, float]:
    """Run predict in a process of its own, with the stand-in network."""
    command = [sys.executable, __file__, "--child", str(scene), str(model), str(out), str(level)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # type: ignore[no-any-return]


def child(scene: str, model: str, out: str, level: str) -> None:
    """Run predict here and print time and peak memory as JSON."""
    PixelEngine.level = float(level)
    smokegeo.pipeline.Engine = PixelEngine  # type: ignore[assignment,misc]
    start = time.perf_counter()
    done = predict_scene(scene, Outputs(Path(out), overwrite=True), Request(model=model, yes=True))
    result = {
        "seconds": time.perf_counter() - start,
        "peak_mb": peak_mb(),
        "polygons": len(done.frame),
    }
    print(json.dumps(result))


def peak_mb() -> float:
    """Return the peak of this process alone; getrusage would count the one that started it too."""
    status = Path("/proc/self/status").read_text()
    return next(
        int(line.split()[1]) * 1024 / 1e6 for line in status.splitlines() if "VmHWM" in line
    )


def make_model(path: Path) -> Path:
    """Write an untrained MoP realtime for four bands: its speed is that of a trained one."""
    from smokegeo.models.mop import MoP

    torch.manual_seed(0)
    bands = BandSet(sensor("satellite").bands.bands[:4])
    network = MoP(bands=4)
    numbers = {"mean": (2000.0,) * 4, "std": (1000.0,) * 4, "minimum": (0.0,) * 4}
    statistics_ = BandStatistics(bands.names, maximum=(10_000.0,) * 4, pixels=1, **numbers)
    card = Card(
        name="bench",
        architecture="mop",
        options=network.config.to_dict(),
        bands=bands,
        statistics=statistics_,
        tile_px=_TILE,
        overlap_px=_OVERLAP,
        input={"dtype": "uint16", "minimum": 0, "maximum": 10_000},
    )
    save_model(path, card, network.state_dict())
    return path


def make_scene(path: Path, size: int) -> Path:
    """Write a tiled scene of four bands, a smooth random pattern over and over."""
    random = np.random.default_rng(0)
    pattern = np.stack(
        [gaussian_filter(random.normal(size=(_PATTERN_PX,) * 2), 12, mode="wrap") for _ in range(4)]
    )
    pattern = np.clip(2000 + 1000 * pattern / pattern.std(), 1, 9999).astype(np.uint16)
    profile = {"driver": "GTiff", "dtype": "uint16", "count": 4, "width": size, "height": size}
    profile |= {"tiled": True, "blockxsize": 512, "blockysize": 512, "compress": "deflate"}
    profile |= {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_600_000, 10, 10)}
    names = ("blue", "green", "red", "nir")
    with rasterio.Env(GDAL_CACHEMAX=256), rasterio.open(path, "w", zlevel=1, **profile) as dst:
        for index, name in enumerate(names, start=1):
            dst.set_band_description(index, name)
        for top in range(0, size, _PATTERN_PX):
            for left in range(0, size, _PATTERN_PX):
                rows, columns = min(_PATTERN_PX, size - top), min(_PATTERN_PX, size - left)
                dst.write(pattern[:, :rows, :columns], window=Window(left, top, columns, rows))
    return path


if __name__ == "__main__":
    main()
