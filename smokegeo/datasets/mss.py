"""The paper's multispectral dataset."""

from __future__ import annotations

from smokegeo.datasets.smoke import SmokeDataset


class MSS(SmokeDataset):
    """MSSDataset: drone frames in red, green, blue and thermal infrared, as TorchGeo rasters.

    Features:

    * 200 labelled RGB and thermal pairs, chosen from FLAME2's 53,451 frames of prescribed burns
    * 4 bands: a colour camera and an uncooled thermal camera, 254 x 254
    * pixel masks of smoke
    * split about 8 : 1 : 1; seeded here unless split files are shipped, by scene if asked and if
      folders or names tell scenes, as those of FLAME2's frames do not

    Classes: 0 background, 1 smoke, 255 ignored.

    Format: `smokegeo prepare mss SRC DST` pairs the frames, `smokegeo simulate mss` makes frames
    of the same form. Drone frames have no map position; see `datasets/mss/layout.md`.

    Known limits: the thermal channel is a rendered 8-bit picture, not a temperature; the test
    split holds about 20 frames, so differences of a few points are noise.

    Citation: Hyperspectral Smoke Segmentation via Mixture of Prototypes, arXiv 2602.10858;
    FLAME2, IEEE DataPort, doi 10.21227/swyw-6j78 (CC BY 4.0).
    """

    kind = "mss"
