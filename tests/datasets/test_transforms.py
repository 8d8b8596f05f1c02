"""Transforms keep image and mask together."""

from __future__ import annotations

import pytest
import torch

from smokegeo.datasets.statistics import BandStatistics
from smokegeo.datasets.transforms import (
    Compose,
    Normalise,
    RandomCrop,
    RandomFlip,
    RandomScale,
    resize,
)


def sample(height=20, width=30):
    """A sample whose mask can be read off its image: smoke where the image is 1."""
    mask = (torch.rand(height, width, generator=torch.Generator().manual_seed(0)) < 0.3).long()
    return {"image": mask.float()[None].repeat(2, 1, 1), "mask": mask, "frame": torch.tensor([0])}


@pytest.mark.parametrize("seed", range(8))
def test_flips_and_crops_move_image_and_mask_together(seed):
    torch.manual_seed(seed)
    out = Compose(RandomCrop(12), RandomFlip(vertical=True))(sample())
    assert out["mask"].shape == (12, 12)
    assert torch.equal(out["image"][0], out["mask"].float())
    assert out["frame"] == 0


def test_flip_happens_about_half_the_time():
    torch.manual_seed(0)
    flip, original = RandomFlip(), sample()
    same = sum(torch.equal(flip(original)["mask"], original["mask"]) for _ in range(200))
    assert 70 < same < 130


def test_small_samples_are_padded_with_ignored_pixels():
    out = RandomCrop(40)(sample())
    assert out["image"].shape == (2, 40, 40)
    assert (out["mask"] == 255).sum() == 40 * 40 - 20 * 30
    assert (out["image"][:, out["mask"] == 255] == 0).all()


def test_scaling_stays_in_range_and_keeps_labels():
    torch.manual_seed(0)
    sizes = set()
    for _ in range(30):
        out = RandomScale(0.5, 2.0)(sample())
        assert out["image"].shape[1:] == out["mask"].shape
        assert set(out["mask"].unique().tolist()) <= {0, 1}
        sizes.add(out["mask"].shape[0])
    assert min(sizes) >= 10
    assert max(sizes) <= 40
    assert len(sizes) > 10


def test_resize_to_the_same_size_changes_nothing():
    original = sample()
    out = resize(original, (20, 30))
    assert torch.equal(out["mask"], original["mask"])
    assert torch.allclose(out["image"], original["image"])


def test_normalising_fills_pixels_without_value_and_survives_a_constant_band():
    statistics = BandStatistics(("a", "b"), (1.0, 5.0), (2.0, 0.0), (0, 5), (3, 5), 10)
    image = torch.stack([torch.full((4, 4), 3.0), torch.full((4, 4), 5.0)])
    mask = torch.zeros(4, 4, dtype=torch.long)
    mask[0, :2] = 255
    image[:, 0, 0] = 0  # as the dataset leaves a pixel without a value
    out = Normalise(statistics)({"image": image, "mask": mask})
    assert (out["image"][0] == 1.0).all()
    assert (out["image"][1] == 0).all()
    assert out["image"][0, 0, 1] == 1.0  # what nobody could label is seen all the same
