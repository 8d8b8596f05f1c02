"""The prepared layout every smokegeo dataset has on disk, and the one writer of it.

    dataset.json        kind, bands, how frames are placed
    frames.csv          one row per frame: scene, scenario tags, size, smoke pixels
    images/ID.tif       all bands, wavelengths in the metadata
    masks/ID.tif        0 background, 1 smoke, 255 ignored (also the nodata value)
    votes/ID.tif        how many annotators marked each pixel (optional)
    splits/*.txt        frame ids of train, val and test
    checksums.sha256    of all of the above

Camera frames have no place on a map, TorchGeo needs one: frame number n gets the n-th cell of
a grid in a local coordinate system, one unit per pixel, far enough apart that no query of a
usual size meets two frames. Rasters that do have a place keep it.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.transform import Affine

from smokegeo import __version__
from smokegeo.bands import BandSet
from smokegeo.cubes import write_cube
from smokegeo.errors import InputError, UsageError
from smokegeo.files import sha256

FORMAT = 1
SPLITS = ("train", "val", "test")
IGNORE = 255

#: The paper's seven scenario tags: four of the scene, three of the smoke.
SCENE_SCENARIOS = ("high_exposure", "low_visibility", "complex_background", "cloud_interference")
SMOKE_SCENARIOS = ("early_stage", "high_transparency", "complex_shape")

#: Where camera frames live: a plane that is nowhere on Earth.
FRAME_CRS = CRS.from_wkt(
    'LOCAL_CS["smokegeo camera frames (no place on a map)",UNIT["metre",1],'
    'AXIS["Easting",EAST],AXIS["Northing",NORTH]]'
)
_GRID_COLUMNS = 64
_MIN_PITCH = 8192
_COLUMNS = (
    "id",
    "scene",
    "scenarios",
    "width",
    "height",
    "smoke_pixels",
    "ignored_pixels",
    "votes",
)


@dataclass(frozen=True)
class Frame:
    """One labelled sample on its way into a dataset.

    `mask` is (y, x) uint8: 0, 1 or 255. The cube has a CRS only if its pixels have a place.
    """

    id: str
    cube: xr.DataArray
    mask: NDArray[np.uint8]
    scene: str = ""
    scenarios: tuple[str, ...] = ()
    votes: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """A row of `frames.csv`."""

    id: str
    scene: str
    scenarios: tuple[str, ...]
    width: int
    height: int
    smoke_pixels: int
    ignored_pixels: int
    votes: bool


@dataclass(frozen=True)
class Layout:
    """A prepared dataset as found on disk."""

    root: Path
    kind: str
    bands: BandSet
    frames: tuple[FrameRecord, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def image(self, frame_id: str) -> Path:
        """Return the path of a frame's image."""
        return self.root / "images" / f"{frame_id}.tif"

    def mask(self, frame_id: str) -> Path:
        """Return the path of a frame's mask."""
        return self.root / "masks" / f"{frame_id}.tif"

    def split_ids(self, split: str) -> tuple[str, ...] | None:
        """Return the ids listed for a split, or None if no list was shipped."""
        path = self.root / "splits" / f"{split}.txt"
        if not path.is_file():
            return None
        return tuple(line.strip() for line in _lines(path) if line.strip())


def grid_pitch(sizes: Iterable[int]) -> int:
    """Return a spacing for frames of up to the given side lengths: room for 4x patches."""
    return max(_MIN_PITCH, 4096 * math.ceil(4 * max(sizes, default=1) / 4096))


def grid_transform(position: int, pitch: int = _MIN_PITCH) -> Affine:
    """Return the transform of the frame at a position of the grid, one unit per pixel.

    Coordinates are whole numbers, so that TorchGeo's resampling leaves every pixel as it is. No
    frame starts at the origin: GDAL takes a transform equal to the identity for none at all.
    """
    row, column = divmod(position, _GRID_COLUMNS)
    return Affine(1.0, 0.0, float((column + 1) * pitch), 0.0, -1.0, float(-(row + 1) * pitch))


def clean_id(text: str) -> str:
    """Return a frame id that is a safe file name everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "frame"


def write_frame(root: Path, frame: Frame, position: int, pitch: int = _MIN_PITCH) -> FrameRecord:
    """Write one frame's files; safe to call from several processes for different frames."""
    if frame.id != clean_id(frame.id):
        raise InputError(f"frame id {frame.id!r} is not a safe file name.")
    cube, mask = frame.cube, frame.mask
    height, width = cube.shape[1:]
    if mask.shape != (height, width):
        raise InputError(f"{frame.id}: image is {width}x{height}, mask {mask.shape[::-1]}.")
    if cube.rio.crs is None:
        cube = cube.rio.write_crs(FRAME_CRS).rio.write_transform(grid_transform(position, pitch))
    for folder in ("images", "masks", *(["votes"] if frame.votes is not None else [])):
        (root / folder).mkdir(exist_ok=True)
    write_cube(cube, root / "images" / f"{frame.id}.tif", tags={"FRAME": frame.id})
    _write_labels(root / "masks" / f"{frame.id}.tif", mask, cube, nodata=IGNORE)
    if frame.votes is not None:
        _write_labels(root / "votes" / f"{frame.id}.tif", frame.votes, cube, nodata=None)
    return FrameRecord(
        frame.id,
        frame.scene,
        frame.scenarios,
        width,
        height,
        int((mask == 1).sum()),
        int((mask == IGNORE).sum()),
        frame.votes is not None,
    )


def finish_layout(
    root: Path,
    kind: str,
    bands: BandSet,
    frames: Sequence[FrameRecord],
    splits: Mapping[str, Sequence[str]],
    facts: Mapping[str, Any] | None = None,
) -> Layout:
    """Write the tables that make a folder of frames a dataset, checksums last."""
    facts = dict(facts or {})
    head = {"format": FORMAT, "kind": kind, "smokegeo": __version__, "frames": len(frames)}
    text = json.dumps({**head, **bands.to_dict(), "facts": facts}, indent=2, ensure_ascii=False)
    (root / "dataset.json").write_text(text + "\n", "utf-8")
    with (root / "frames.csv").open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(_COLUMNS)
        for f in frames:
            tags = ";".join(f.scenarios)
            table.writerow(
                [
                    f.id,
                    f.scene,
                    tags,
                    f.width,
                    f.height,
                    f.smoke_pixels,
                    f.ignored_pixels,
                    int(f.votes),
                ]
            )
    (root / "splits").mkdir(exist_ok=True)
    for name, ids in splits.items():
        (root / "splits" / f"{name}.txt").write_text("".join(f"{i}\n" for i in ids), "utf-8")
    _write_checksums(root)
    return Layout(root, kind, bands, tuple(frames), facts)


def load_layout(root: Path, kind: str | None = None) -> Layout:
    """Read a prepared dataset's tables; say what to do if there is none."""
    root = Path(root)
    name = kind or "hss"
    if not (root / "dataset.json").is_file():
        raise InputError(f"{root} holds no prepared dataset. {_remedy(root, name)}")
    try:
        head = json.loads((root / "dataset.json").read_text("utf-8"))
        if head["format"] != FORMAT:
            raise InputError(
                f"{root} has layout format {head['format']}, this smokegeo reads {FORMAT}. Make it "
                "again, or use the smokegeo that made it."
            )
        if kind is not None and head["kind"] != kind:
            raise InputError(
                f"{root} holds a {head['kind']} dataset, not {kind}. Name that kind or another "
                "folder."
            )
        bands = BandSet.from_dict(head)
        with (root / "frames.csv").open(newline="", encoding="utf-8") as handle:
            frames = tuple(_record(row) for row in csv.DictReader(handle))
        if len(frames) != head["frames"]:
            raise ValueError(f"{len(frames)} rows for {head['frames']} frames")
    except (OSError, AttributeError, KeyError, TypeError, ValueError, UsageError) as error:
        raise InputError(
            f"{root}: dataset.json or frames.csv is damaged ({error}). Copy or make it again."
        ) from error
    return Layout(root, str(head["kind"]), bands, frames, head.get("facts", {}))


def _remedy(root: Path, kind: str) -> str:
    """Say which commands make a dataset; they would refuse a folder that holds something else."""
    there = root.is_file() or (root.is_dir() and any(root.iterdir()))
    folder = "FOLDER" if there else str(root)
    then = ", then give --root FOLDER" if there else ""
    simulate = f"make one with `smokegeo simulate {kind} --out {folder}`{then}."
    if kind == "satellite":  # there is none to prepare
        return simulate[0].upper() + simulate[1:]
    return (
        f"Prepare one with `smokegeo prepare {kind} SRC {folder}` (--download fetches the "
        f"paper's), or {simulate}"
    )


def read_checksums(root: Path) -> dict[str, str]:
    """Return relative path -> SHA-256 from `checksums.sha256`; empty if there is none."""
    path = root / "checksums.sha256"
    if not path.is_file():
        return {}
    sums = {}
    for line in _lines(path):
        digest, _, text = line.partition(" ")
        name = text.strip(" *")
        if not re.fullmatch(r"[0-9a-fA-F]{64}", digest) or not name:
            raise InputError(f"{path}: the line {line[:40]!r} is not a SHA-256 and a file name.")
        place = PureWindowsPath(name)  # knows the separators and roots of every system
        if place.anchor or ".." in place.parts:
            raise InputError(f"{path}: {name[:80]!r} lies outside of the dataset.")
        sums[name] = digest.lower()
    return sums


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: it is not text in UTF-8. Copy it again.") from error


def _record(row: Mapping[str, str]) -> FrameRecord:
    # A dataset comes from anyone; an id becomes the name of files to open.
    if row["id"] != clean_id(row["id"]):
        raise ValueError(f"frame id {row['id'][:80]!r} is not a safe file name")
    return FrameRecord(
        row["id"],
        row["scene"],
        tuple(tag for tag in row["scenarios"].split(";") if tag),
        int(row["width"]),
        int(row["height"]),
        int(row["smoke_pixels"]),
        int(row["ignored_pixels"]),
        row["votes"] == "1",
    )


def _write_labels(
    path: Path, labels: NDArray[np.uint8], like: xr.DataArray, nodata: int | None
) -> None:
    height, width = labels.shape
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=width,
        height=height,
        count=1,
        dtype="uint8",
        nodata=nodata,
        crs=like.rio.crs,
        transform=like.rio.transform(),
        compress="deflate",
    ) as dst:
        dst.write(labels, 1)


def _write_checksums(root: Path) -> None:
    target = root / "checksums.sha256"
    files = sorted(path for path in root.rglob("*") if path.is_file() and path != target)
    lines = [f"{sha256(path)}  {path.relative_to(root).as_posix()}\n" for path in files]
    target.write_text("".join(lines), "utf-8")
