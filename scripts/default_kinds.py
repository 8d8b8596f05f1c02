"""The three default models: their bands and numbers, their networks, where their samples come from.

A sample is a small scene of its own: what a network sees of it is made with the statistics of all
of it, as `predict` does, and then cut into crops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from default_backgrounds import Background, read_aerial, read_backgrounds
from default_camera import hss_sample
from default_common import Sample
from default_photos import Photo, mss_sample, read_photos
from default_satellite import satellite_sample
from numpy.typing import NDArray
from torch import Tensor

from smokegeo.bands import BandSet
from smokegeo.blanks import fill_blanks
from smokegeo.looks import ONCE, Looks
from smokegeo.models.config import ABLATION
from smokegeo.models.mop import MoP
from smokegeo.sensors import sensor
from smokegeo.views import VIEWS, make_recipe

#: Where what a network sees is cut off.
LIMIT = 8.0


@dataclass(frozen=True)
class Kind:
    """A default model: its bands and numbers, and where its samples come from."""

    bands: BandSet
    mean: tuple[float, ...]
    std: tuple[float, ...]
    maximum: tuple[float, ...]
    dtype: str
    size_px: int
    crop_px: int
    upright: bool  # the sky is above: samples are mirrored, never turned
    resolution_m: tuple[float, float] | None
    summary: str
    read: Callable[[Path], Sequence[Any]]
    make: Callable[[int, int, Sequence[Any], int, bool], Sample]
    facts: Mapping[str, Any]
    looks: Looks = ONCE  # at which sizes the network looks at a scene
    zooms: tuple[int, ...] = (1,)  # and crops are enlarged in training, step by step in turn
    part_share: float = 0.0  # of samples that are a small part of their scene
    # Which of thresholds about as good: the highest spares false outlines, as photographs bring;
    # the lowest finds most.
    threshold: Literal["highest", "lowest"] = "highest"

    @property
    def dim(self) -> int:
        """D of the network: a multiple of the bands near the paper's 250."""
        return 240 if len(self.bands) == 6 else 250 // len(self.bands) * len(self.bands)


def _satellite_backgrounds(folder: Path) -> Sequence[Background]:
    return read_backgrounds(folder, judging=False)


def _satellite(number: int, seed: int, have: Sequence[Any], size: int, easy: bool) -> Sample:
    sample = satellite_sample(number, seed, have, size, easy=easy)
    return replace(sample, values=sample.values * np.float32(10_000))


KINDS = {
    "satellite": Kind(
        sensor("satellite").bands,
        (1300, 1300, 1400, 2400, 2200, 1600),
        (1200, 1200, 1300, 1500, 1500, 1300),
        (10_000.0,) * 6,
        "uint16",
        256,
        128,
        False,
        (1.0, 60.0),
        "Smoke from above: blue, green, red, NIR, SWIR1, SWIR2, or some of them.",
        _satellite_backgrounds,
        _satellite,
        {"min_bands": 2},
        # From afar fewer clouds are mistaken for smoke; plumes of some pixels are lost at a quarter
        # of the resolution.
        looks=Looks(sizes=(1, 0.5), closer=(2,), margin=1.5),
        zooms=(1, 2),
        part_share=0.6,
        threshold="lowest",  # thin smoke all over a scene is what is lost
    ),
    "mss": Kind(
        sensor("mss").bands,
        (110, 110, 110, 25),
        (60, 60, 60, 25),
        (255, 255, 255, 500),
        "uint8",
        256,
        192,  # where the horizon lies says much of what may be smoke
        True,
        None,
        "Smoke seen by drones and mountain cameras: red, green, blue and heat, or colour alone.",
        lambda folder: [*read_photos(folder), *read_aerial(folder, judging=False)],
        lambda n, seed, have, size, easy: mss_sample(n, seed, have, size, easy=easy),
        # Photographs of the training have 512 rows, and were seen at half to twice their size.
        {"min_bands": 3, "heat": "celsius", "side_px": 640},
        looks=Looks(sizes=(1, 0.5, 2)),  # what they agree on is smoke more often
        part_share=0.3,
    ),
    "hss": Kind(
        sensor("hss").bands,
        (330.0,) * 25,
        (200.0,) * 25,
        (1023.0,) * 25,
        "uint16",
        192,
        128,
        True,
        None,
        "Plumes seen by a ground camera with 25 bands from 600 to 974 nm.",
        lambda folder: (),
        lambda n, seed, have, size, easy: hss_sample(n, seed, size, easy=easy),
        {"min_bands": 4, "full": 1023},
    ),
}


def build(name: str, row: str = "e") -> MoP:
    """Return the untrained network: each band is a group of its own, seen in two ways.

    Its routers begin even: all bands count alike until something is learnt of them.
    """
    kind = KINDS[name]
    network = MoP(
        bands=len(kind.bands) * len(VIEWS),
        band_groups=None if row == "bl" else len(kind.bands),
        dim=kind.dim,
        width_rule="equal",
        momentum=0.99,
        drop_path=0.0,  # these trainings are short of steps, not of data
        dropout=0.0,
        **{**ABLATION[row], "rescale": ABLATION[row].get("f_router", True)},
    )
    for router in (network.p_router, network.f_router):
        if router is not None:
            torch.nn.init.zeros_(router.weight)
    return network


def credits(have: Sequence[Any]) -> list[str]:
    """Return whose imagery took part, with its licence."""
    sources = {b.source for b in have if isinstance(b, Background)}
    found = sorted({f"{source.credit} ({source.licence})" for source in sources})
    return [*found, "SmokeSeg (MIT)"] if any(isinstance(h, Photo) for h in have) else found


def _with_the_rest(
    mean: NDArray[np.float32], std: NDArray[np.float32], rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return mean and spread of a scene of which these are a part's: other land, sea, clouds."""
    count = len(mean)
    brighter = np.exp(rng.normal(0.1, 0.4) + rng.normal(0, 0.12, count)).astype(np.float32)
    rougher = np.exp(rng.normal(0.1, 0.6) + rng.normal(0, 0.12, count)).astype(np.float32)
    other, spread = mean * brighter, std * rougher
    share = np.float32(rng.uniform(0.1, 1))
    variance = share * std**2 + (1 - share) * spread**2
    variance += share * (1 - share) * (mean - other) ** 2
    return share * mean + (1 - share) * other, np.sqrt(variance)


def as_tensors(kind: Kind, sample: Sample, number: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return channels, which of them are there, and labels; as `predict` makes them of a scene."""
    rng = np.random.default_rng([seed, 2, number])
    pixels = sample.values[:, sample.valid]
    mean, std = pixels.mean(axis=1), pixels.std(axis=1)
    # A scene is larger than a sample: its mean and spread differ from those of a part.
    mean = mean + rng.normal(0, 0.25) * std
    std = std * np.float32(np.exp(rng.normal(0, 0.2)))
    if rng.random() < kind.part_share:
        mean, std = _with_the_rest(mean, std, rng)
    gain = 1 / np.array(kind.std, np.float32)
    recipe = make_recipe(
        VIEWS,
        sample.has.tolist(),
        (gain, -np.array(kind.mean, np.float32) * gain),
        mean,
        std,
        trusted=sample.trusted.tolist(),
        limit=LIMIT,
    )
    places = np.flatnonzero(sample.has).tolist()
    channels = recipe.channels(sample.values[places], sample.valid, places)
    fill_blanks(channels, sample.valid)
    return (
        torch.from_numpy(recipe.cut(channels)).half(),
        torch.tensor(recipe.available),
        torch.from_numpy(sample.target),
    )
