"""Memory does not grow with the area of what is outlined (A3 50)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.windows import Window

PEAK = """if True:
    import sys
    from pathlib import Path
    from smokegeo.cli.main import main
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    lines = Path("/proc/self/status").read_text().splitlines()
    print("peak", next(int(line.split()[1]) // 1024 for line in lines if "VmHWM" in line))
"""


def peak_mb(folder: Path, side: int) -> int:
    """Outline a raster of probabilities with smoke in its corners; return the peak of memory."""
    path = folder / f"prob{side}.tif"
    profile = {"driver": "GTiff", "dtype": "uint8", "count": 1, "nodata": 255, "sparse_ok": True}
    profile |= {"tiled": True, "blockxsize": 512, "blockysize": 512, "crs": "EPSG:32633"}
    profile |= {"transform": rasterio.Affine(10, 0, 5e5, 0, -10, 5e6)}
    with rasterio.open(path, "w", width=side, height=side, compress="deflate", **profile) as dst:
        dst.scales = (1 / 250,)  # as predict writes it
        smoke = np.full((40, 40), 200, "uint8")
        for left, top in ((0, 0), (side - 40, side - 40)):
            dst.write(smoke, 1, window=Window(left, top, 40, 40))
    command = [sys.executable, "-c", PEAK, "vectorize", str(path), "--threshold", "0.5"]
    command += ["--out", str(folder / "a.gpkg"), "--overwrite"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_outlining_a_raster_of_400_million_pixels_takes_no_copy_of_it(tmp_path) -> None:
    assert peak_mb(tmp_path, 20_000) < peak_mb(tmp_path, 1_000) + 150  # the raster is 400 MB
