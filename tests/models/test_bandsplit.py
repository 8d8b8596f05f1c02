"""The individual branch: no band meets another, and absent bands count in no statistics."""

import pytest
import torch
from random_networks import random_image, random_network
from torch import nn

from smokegeo.models.bandsplit import BandNorm, BandSplitEncoder, gather_groups
from smokegeo.models.config import MoPConfig
from smokegeo.models.naive import naive_individual


def leaks(encoder: BandSplitEncoder, bands: int, present=None):
    """Return (groups, bands): the largest gradient of each group's features by each band."""
    config = encoder.config
    x = torch.randn(2, bands, 36, 33, requires_grad=True)
    features = encoder(x, present).unflatten(1, (config.groups, config.band_dim))
    rows = []
    for group in range(config.groups):
        # A random projection: the sum of a batch-normalised map has no gradient at all.
        target = (features[:, group] * torch.randn_like(features[:, group])).sum()
        (gradient,) = torch.autograd.grad(target, x, retain_graph=True)
        rows.append(gradient.abs().amax(dim=(0, 2, 3)))
    return torch.stack(rows)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize(
    "switches",
    [
        {"bands": 25, "dim": 250},
        {"bands": 5, "dim": 40},
        {"bands": 7, "dim": 40, "band_groups": 3},
        {"bands": 12, "dim": 12},
        {"bands": 1, "dim": 8},
    ],
    ids=["paper", "five", "uneven groups", "grouped by itself", "one"],
)
def test_no_gradient_passes_between_bands(switches, training):
    config = MoPConfig(**switches)
    encoder = random_network(**switches).individual.train(training)
    found = leaks(encoder, config.bands)
    inside = config.membership().T.bool()
    assert (found[~inside] == 0).all()
    assert (found[inside] > 1e-6).all()


def test_no_gradient_passes_between_bands_where_some_are_absent():
    encoder = random_network(bands=5).individual.train()
    present = torch.tensor([[1.0, 1, 1, 1, 1], [1, 1, 0, 1, 0]])
    found = leaks(encoder, 5, present)
    assert (found[~torch.eye(5, dtype=torch.bool)] == 0).all()
    assert (found.diagonal() > 1e-6).all()


@pytest.mark.parametrize("groups", [None, 2])
def test_merging_equals_align_resize_concatenate_fuse(groups):
    model = random_network(bands=5, band_groups=groups).double()
    x = random_image(model, (45, 70)).double()
    merged, written_out = model.individual(x), naive_individual(model.individual, x)
    assert merged.shape == (2, model.config.feature_dim, 12, 18)
    torch.testing.assert_close(merged, written_out, atol=1e-12, rtol=0)


def test_bands_of_uneven_groups_are_laid_out_with_zeros_in_the_gaps():
    encoder = BandSplitEncoder(MoPConfig(bands=5, dim=40, band_groups=2))
    x = torch.arange(1.0, 6).view(1, 5, 1, 1)
    assert gather_groups(x, encoder.order).flatten().tolist() == [1, 2, 0, 3, 4, 5]


def test_norm_statistics_are_those_of_the_present_samples():
    torch.manual_seed(0)
    x = torch.randn(4, 2, 5, 6) * 3 + 1
    present = torch.tensor([[1.0, 1], [1, 0], [0, 0], [1, 1]])
    norm = BandNorm(2).train()
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.normal_()
    out = norm(x, present)
    for channel, rows in ((0, [0, 1, 3]), (1, [0, 3])):
        plain = nn.BatchNorm2d(1).train()
        plain.load_state_dict(
            {
                "weight": norm.weight[channel : channel + 1],
                "bias": norm.bias[channel : channel + 1],
                "running_mean": torch.zeros(1),
                "running_var": torch.ones(1),
                "num_batches_tracked": torch.tensor(0),
            }
        )
        wanted = plain(x[rows, channel : channel + 1])
        torch.testing.assert_close(out[rows, channel : channel + 1], wanted)
        torch.testing.assert_close(norm.running_mean[channel], plain.running_mean[0])
        torch.testing.assert_close(norm.running_var[channel], plain.running_var[0])


def test_norm_of_a_band_nobody_has_stays_finite_and_learns_nothing():
    norm = BandNorm(2).train()
    out = norm(torch.randn(3, 2, 4, 4) * 100, torch.tensor([[1.0, 0]] * 3))
    assert torch.isfinite(out).all()
    assert norm.running_mean[1] == 0
    assert norm.running_var[1] == 1
    assert norm.running_mean[0] != 0


def test_norm_with_every_band_present_is_batch_norm():
    x = torch.randn(3, 4, 5, 5)
    masked, plain = BandNorm(4).train(), nn.BatchNorm2d(4).train()
    torch.testing.assert_close(masked(x, torch.ones(3, 4)), plain(x))
    torch.testing.assert_close(masked.running_var, plain.running_var)


def test_norm_does_not_overflow_in_half_precision():
    # 2 * 256 * 256 pixels are more than a 16-bit number can count.
    x = (torch.randn(2, 1, 256, 256) + 3).half()
    norm = BandNorm(1).train()
    out = norm(x, torch.ones(2, 1))
    assert out.dtype == torch.float16
    assert abs(out.float().mean()) < 0.01
    assert abs(norm.running_mean - 0.3) < 0.01


def test_drop_path_drops_whole_samples_and_keeps_the_expectation():
    torch.manual_seed(0)
    block = random_network(drop_path=0.5).individual.stages[3].blocks[-1].train()
    assert block.drop_path == 0.5  # it grows linearly to the last block
    x = torch.randn(200, 5 * block.norm.num_features // 5, 2, 2)
    residual = block(x) - x
    kept = (residual != 0).flatten(1).any(dim=1)
    assert 60 < kept.sum() < 140
    block.drop_path = 0.0
    full = block(x) - x
    torch.testing.assert_close(residual[kept], 2 * full[kept], atol=1e-4, rtol=1e-4)
