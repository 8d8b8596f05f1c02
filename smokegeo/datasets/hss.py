"""The paper's hyperspectral dataset."""

from __future__ import annotations

from smokegeo.datasets.smoke import SmokeDataset


class HSS(SmokeDataset):
    """HSSDataset: hyperspectral frames of industrial smoke, as TorchGeo rasters.

    Features:

    * 1,007 labelled frames from 20 industrial sites, every 18th of more than 18,000 video frames
    * 25 bands, 600 to 974 nm, from a XIMEA MQ022HG-IM-SM5X5-NIR snapshot camera (about 409 x 217)
    * pixel masks: smoke where at least two of three annotators marked it on the band average
    * seven scenario tags; the counts are high_exposure 214, low_visibility 118,
      complex_background 411, cloud_interference 264 (by scene) and early_stage 268,
      high_transparency 258, complex_shape 481 (by smoke)
    * split about 6 : 2 : 2; seeded here unless split files are shipped, by scene if asked

    Classes: 0 background, 1 smoke, 255 ignored.

    Format: `smokegeo prepare hss SRC DST` brings the native files into GeoTIFFs, `smokegeo
    simulate hss` makes frames of the same form. Ground-camera frames have no map position; see
    `datasets/hss/layout.md` for how they are placed.

    Known limits: the band centres are those the paper prints; frames of one video look alike, so a
    split by frame is optimistic; the licence of the published data is not stated.

    Citation: Hyperspectral Smoke Segmentation via Mixture of Prototypes, arXiv 2602.10858.
    """

    kind = "hss"
