"""Print how long one simulated frame takes on one core, for each kind.

    python scripts/bench_simulate.py [FRAMES]

The first number is the simulation alone, as training calls it; the second also writes the files.
"""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path

from smokegeo.datasets.layout import Frame, write_frame
from smokegeo.simulate import simulate_frame
from smokegeo.simulate.kinds import KINDS


def main(count: int = 24) -> None:
    """Time `count` frames in a row of each kind."""
    logging.getLogger("smokegeo").setLevel(logging.WARNING)
    print(
        "kind       size      bands  simulate ms  slowest ms  with files ms   (median of",
        f"{count})",
    )
    for kind in KINDS.values():
        simulated, written = [], []
        simulate_frame(kind.name, 0, 99)  # imports and caches
        with tempfile.TemporaryDirectory() as folder:
            for index in range(count):
                start = time.perf_counter()
                made = simulate_frame(kind.name, index)
                middle = time.perf_counter()
                frame = Frame(str(index), made.cube, made.mask, votes=made.votes)
                write_frame(Path(folder), frame, index)
                simulated.append(1000 * (middle - start))
                written.append(1000 * (time.perf_counter() - start))
        print(
            f"{kind.name:10} {kind.width}x{kind.height:<5} {len(kind.bands):5}"
            f"{statistics.median(simulated):13.0f}{max(simulated):12.0f}"
            f"{statistics.median(written):15.0f}"
        )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
