"""Open thousands of damaged rasters: each works, or is refused with an error of ours.

    python tests/faults/fuzzing.py FOLDER SEED COUNT

A program of its own, so that a crash or a hang of GDAL fails one test, not the whole run. FOLDER
keeps the file that was looked at last.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import rasterio
from bright_engine import NAMES
from faults.scenes import TILED, cube, plume, write_scene

from smokegeo.errors import SmokegeoError
from smokegeo.scene.layers import Box
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.survey import look_for_blanks, survey

#: Numbers that break sums, sizes and offsets.
NASTY = (0, 1, 2, 3, 4, 8, 127, 255, 256, 32767, 65535, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
ENVI_VALUES = ("-1", "0", "1e9", "999999999", "nan", "{", "}", "{1,2", "x", "", "12", "bip", "\x00")
#: Of one core. PROJ takes a second to compare an unknown projection with all it knows.
SLOW_S = 4.0


def originals(folder: Path) -> list[Path]:
    """Write good files of many inner structures."""
    smoke = plume((40, 52))
    pixels = cube(smoke)
    made = [
        write_scene(folder / "tiled.tif", pixels, compress="deflate", **TILED),
        write_scene(folder / "strips.tif", pixels, interleave="band", blockysize=7),
        write_scene(folder / "pixel.tif", pixels, interleave="pixel", compress="lzw", predictor=2),
        write_scene(folder / "big.tif", pixels, BIGTIFF="YES", compress="packbits"),
        write_scene(folder / "endian.tif", pixels, ENDIANNESS="BIG", nodata=0),
        write_scene(folder / "float.tif", cube(smoke, dtype="float32"), nodata=np.nan, **TILED),
        write_scene(folder / "jpeg.tif", cube(smoke, 3, "uint8", 50, 200), compress="jpeg"),
        write_scene(folder / "bits.tif", cube(smoke, 4, "uint8", 1, 3), nbits=4),
        write_scene(folder / "scaled.tif", pixels, scales=(1e-4,) * 4, offsets=(-0.1,) * 4),
        write_scene(folder / "inner.tif", pixels, mask=~smoke),
        write_scene(folder / "lossless.jp2", pixels, driver="JP2OpenJPEG", QUALITY="100"),
        write_scene(folder / "cube.dat", pixels, driver="ENVI"),
    ]
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False):
        made.append(write_scene(folder / "mask.tif", pixels, mask=~smoke))
    return made


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a file with a few bytes changed, most of them where its structure is told."""
    new = bytearray(data)
    ends = (16, 600, len(new))
    for _ in range(rng.choice((1, 1, 2, 3, 8, 30))):
        if not new:
            break
        reach = min(len(new), rng.choice(ends))
        start = rng.randrange(reach) if rng.random() < 0.7 else len(new) - 1 - rng.randrange(reach)
        kind = rng.randrange(7)
        if kind == 0:
            new[start] = rng.randrange(256)
        elif kind == 1:
            new[start] ^= 1 << rng.randrange(8)
        elif kind == 2:
            size = rng.choice((2, 4, 8))
            word = (rng.choice(NASTY) % 256**size).to_bytes(size, rng.choice(("little", "big")))
            new[start : start + size] = word
        elif kind == 3:
            del new[start:]
        elif kind == 4:
            del new[start : start + rng.randrange(1, 40)]
        elif kind == 5:
            other = rng.randrange(len(new))
            size = rng.randrange(1, 40)
            new[start : start + size] = new[other : other + size]
        else:
            new[start : start + 12] = rng.randbytes(12)
    return bytes(new)


def mutated_header(text: str, rng: random.Random) -> str:
    """Return an ENVI header with a value or two replaced, a line lost or bytes changed."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(lines))
        key, equals, _ = lines[place].partition("=")
        if rng.random() < 0.7 and equals:
            lines[place] = f"{key}= {rng.choice((*ENVI_VALUES, str(rng.choice(NASTY))))}"
        elif rng.random() < 0.5:
            del lines[place]
            lines = lines or [""]
        else:
            lines[place] = mutated(lines[place].encode(), rng).decode("latin-1")
    return "\n".join(lines)


def look(path: Path, rng: random.Random) -> str:
    """Open, survey and read a scene as predict does; return what became of it."""
    options = SceneOptions(
        pixel_coords=rng.random() < 0.3,
        skip_damaged=rng.random() < 0.3,
        bands=",".join(NAMES) if rng.random() < 0.2 else None,
    )
    try:
        scene = open_scene(path, options)
        bands = range(min(4, len(scene.bands)))
        found = survey(scene, bands)
        scene, _ = look_for_blanks(scene, found, bands)
        with scene.open() as reader:
            values, valid = reader.read(
                Box(0, 0, min(64, scene.width), min(64, scene.height)), bands
            )
        assert np.isfinite(values[:, valid]).all()
    except SmokegeoError as error:
        return "refused" if re.fullmatch(r"[^\n]+", str(error)) else f"TROUBLE: {error}"
    return "read"


def say(text: str) -> None:
    """Write a line that is there even if the next file crashes us."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(folder: Path, seed: int, count: int) -> int:
    """Look at `count` damaged files; return how many made trouble."""
    rng = random.Random(seed)
    whole = folder / "whole"
    files = originals(whole)
    header = (whole / "cube.hdr").read_text()
    seen: Counter[str] = Counter()
    slowest = 0.0
    for number in range(count):
        original = files[number % len(files)]
        path = folder / f"now{original.suffix}"
        if original.suffix == ".dat":
            shutil.copy(original, path)
            (folder / "now.hdr").write_text(mutated_header(header, rng), "utf-8")
        else:
            path.write_bytes(mutated(original.read_bytes(), rng))
            if original.name == "mask.tif":
                Path(f"{path}.msk").write_bytes(mutated(Path(f"{original}.msk").read_bytes(), rng))
        start = time.process_time()
        try:
            outcome = look(path, rng)
        except Exception:
            outcome = f"TROUBLE: {traceback.format_exc()}"
        took = time.process_time() - start
        slowest = max(slowest, took)
        if took > SLOW_S:
            outcome = f"TROUBLE: {took:.1f} s"
        if outcome.startswith("TROUBLE"):
            say(f"file {number} from {original.name}: {outcome}")
            outcome = "TROUBLE"
        seen[outcome] += 1
        for left in folder.glob("now.*"):
            if outcome == "TROUBLE":
                left.rename(folder / left.name.replace("now", f"trouble{number}"))
            else:
                left.unlink()
    say(f"{dict(seen)} slowest {slowest:.2f} s")
    return seen["TROUBLE"]


if __name__ == "__main__":
    sys.exit(min(1, main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
