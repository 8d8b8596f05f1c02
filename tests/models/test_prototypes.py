"""Prototypes: transport, momentum update, loss; written out by hand and compared."""

import math
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F  # noqa: N812
from torch import nn
from two_processes import CONFIG, one_rank, prototypes, unlike_halves

from smokegeo.models.config import MoPConfig
from smokegeo.models.prototypes import assign, contrastive_loss, sinkhorn


def features(batch: int = 2, size: int = 6, seed: int = 1, config: MoPConfig = CONFIG):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, config.feature_dim, size, size, generator=generator)


def unit_vectors(x, config: MoPConfig = CONFIG):
    """What is compared with the prototypes: (groups, N, D/d) unit vectors of all pixels."""
    shaped = x.view(len(x), config.groups, config.band_dim, -1).permute(1, 0, 3, 2)
    return F.normalize(shaped.reshape(config.groups, -1, config.band_dim), dim=-1)


def labels(batch: int = 2, size: int = 6, seed: int = 2):
    generator = torch.Generator().manual_seed(seed)
    out = torch.randint(0, 2, (batch, size, size), generator=generator)
    out[:, 0] = 255
    return out


# Transport


def test_sinkhorn_gives_every_prototype_and_every_pixel_its_share():
    torch.manual_seed(0)
    similarity = torch.rand(4, 3, 50) * 2 - 1
    mask = torch.ones(4, 50, dtype=torch.bool)
    plan = sinkhorn(similarity, mask, rounds=500)
    torch.testing.assert_close(plan.sum(dim=2), torch.full((4, 3), 1 / 3), atol=1e-4, rtol=0)
    torch.testing.assert_close(plan.sum(dim=1), torch.full((4, 50), 1 / 50), atol=1e-6, rtol=0)


@pytest.mark.parametrize("rounds", [3, 200])
def test_sinkhorn_with_a_mask_is_sinkhorn_of_the_selected_pixels(rounds):
    torch.manual_seed(0)
    similarity = torch.rand(2, 3, 40) * 2 - 1
    mask = torch.rand(2, 40) < 0.4
    similarity[0, :, ~mask[0]] += 5  # must not matter, not even for the scale
    plan = sinkhorn(similarity, mask, rounds)
    for group in range(2):
        chosen = mask[group]
        alone = sinkhorn(
            similarity[group : group + 1, :, chosen],
            torch.ones(1, int(chosen.sum()), dtype=torch.bool),
            rounds,
        )[0]
        torch.testing.assert_close(plan[group][:, chosen], alone)
        assert (plan[group][:, ~chosen] == 0).all()


def test_sinkhorn_spreads_pixels_that_all_prefer_one_prototype():
    torch.manual_seed(0)
    similarity = torch.rand(1, 3, 300) * 0.1
    similarity[:, 0] += 0.5
    chosen = sinkhorn(similarity, torch.ones(1, 300, dtype=torch.bool)).argmax(dim=1)
    assert torch.bincount(chosen[0], minlength=3).min() > 50


def test_sinkhorn_without_pixels_is_zero_and_finite():
    assert (sinkhorn(torch.rand(2, 3, 9), torch.zeros(2, 9, dtype=torch.bool)) == 0).all()


def test_sinkhorn_survives_similarities_at_both_ends():
    similarity = torch.full((1, 2, 4), -1.0)
    similarity[0, 0, 0] = 1.0
    plan = sinkhorn(similarity, torch.ones(1, 4, dtype=torch.bool))
    assert torch.isfinite(plan).all()
    assert (plan.sum(dim=1) > 0).all()


def test_pixels_are_matched_within_their_own_class():
    cosines = torch.eye(4).view(1, 2, 2, 4)  # each pixel is like one prototype of its class
    masks = torch.tensor([[[True, True, False, False]], [[False, False, True, True]]])
    assert assign(cosines, masks).tolist() == [[0, 1, 0, 1]]


# Loss


def loss_by_hand(vectors, unit, target, small, tau):
    """Eq. 6 as it stands: over matched prototypes, with every negative named."""
    classes, groups, count, _ = vectors.shape
    total, terms = 0.0, 0
    for group in range(groups):
        for pixel, own in enumerate(small.flatten().tolist()):
            if own == 255:
                continue
            x = unit[group, pixel]
            match = int(target[group, pixel])
            positive = math.exp(float(x @ vectors[own, group, match]) / tau)
            negatives = sum(
                math.exp(float(x @ vectors[c, group, k]) / tau)
                for c in range(classes)
                for k in range(count)
                if (c, k) != (own, match)
            )
            total -= math.log(positive / (positive + negatives))
            terms += 1
    return total / terms


def test_the_loss_equals_both_forms_of_the_paper():
    module = prototypes().eval()
    x, y = features(), labels()
    got = module.loss(x, y)
    unit, vectors = unit_vectors(x), module()
    target = assign(module.cosines(x), module.masks(y, None))
    by_hand = loss_by_hand(vectors, unit, target, y, CONFIG.tau)
    assert got.item() == pytest.approx(by_hand, rel=1e-5)

    valid = y.flatten() != 255
    cross = 0.0
    for group in range(CONFIG.groups):
        logits = unit[group] @ vectors[:, group].reshape(6, -1).T / CONFIG.tau
        wanted = y.flatten() * 3 + target[group]
        cross += F.cross_entropy(logits[valid], wanted[valid]).item()
    assert got.item() == pytest.approx(cross / CONFIG.groups, rel=1e-5)


def test_features_are_compared_band_by_band_as_unit_vectors():
    module = prototypes().eval()
    x = features()
    scale = torch.tensor([3.0, 0.2, 11.0]).repeat_interleave(4)[None, :, None, None]
    torch.testing.assert_close(module.loss(x * scale, labels()), module.loss(x, labels()))
    own = F.normalize(x[1, 4:8, 1, 1], dim=0)
    torch.testing.assert_close(module.cosines(x)[1, :, :, 36 + 7], module()[:, 1] @ own)


def test_the_loss_has_a_gradient_for_the_features_that_matches_pulls():
    module = prototypes().eval()
    x = features().requires_grad_()
    before = module.loss(x, labels())
    before.backward()
    assert module.loss((x - 20 * x.grad).detach(), labels()) < before


def test_ignored_pixels_influence_neither_loss_nor_update():
    outcomes = []
    for filler in (0.0, 1e4):
        module = prototypes()
        x, y = features(), labels()
        x[:, :, 0] = filler * features(seed=5)[:, :, 0]
        loss = module.loss(x, y)
        outcomes.append((loss, module.vectors.clone()))
    assert outcomes[0][0] == outcomes[1][0]
    assert torch.equal(outcomes[0][1], outcomes[1][1])


def test_an_absent_band_of_a_sample_influences_neither_loss_nor_update():
    present = torch.tensor([[1.0, 1, 1], [1, 0, 1]])
    outcomes = []
    for seed in (3, 4):
        module = prototypes()
        x = features()
        x[1, 4:8] = features(seed=seed)[1, 4:8]
        outcomes.append((module.loss(x, labels(), present), module.vectors.clone()))
    assert outcomes[0][0] == outcomes[1][0]
    assert torch.equal(outcomes[0][1], outcomes[1][1])


def test_a_mask_of_ignored_pixels_only_costs_nothing_and_moves_nothing():
    module = prototypes()
    before = module.vectors.clone()
    x = features().requires_grad_()
    loss = module.loss(x, torch.full((2, 6, 6), 255))
    loss.backward()
    assert loss == 0
    assert (x.grad == 0).all()
    assert torch.equal(module.vectors, before)


def test_an_absent_class_keeps_its_prototypes_while_the_other_moves():
    module = prototypes()
    before = module.vectors.clone()
    loss = module.loss(features(), torch.zeros(2, 6, 6, dtype=torch.long))
    assert torch.isfinite(loss)
    assert torch.equal(module.vectors[1], before[1])
    assert not torch.equal(module.vectors[0], before[0])


def test_labels_of_another_size_are_taken_by_nearest_neighbour():
    module = prototypes().eval()
    small = labels()
    large = small.repeat_interleave(4, dim=1).repeat_interleave(4, dim=2)
    torch.testing.assert_close(module.loss(features(), large), module.loss(features(), small))


def test_labels_need_not_be_contiguous():
    assert torch.isfinite(prototypes().loss(features(), labels().transpose(1, 2)))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_around_it_leaves_transport_in_single(kind):
    module = prototypes()
    x = features().to(kind)
    with torch.autocast("cpu", dtype=kind if kind == torch.bfloat16 else torch.bfloat16):
        loss = module.loss(x, labels())
    assert loss.dtype == torch.float32
    other = prototypes()
    torch.testing.assert_close(loss, other.loss(x.float(), labels()), atol=0, rtol=0)
    assert torch.equal(module.vectors, other.vectors)


# Update


def test_the_update_is_equation_5_with_unit_vectors():
    module = prototypes()
    before = module.vectors.clone()
    x, y = features(), labels()
    unit = unit_vectors(x)
    target = assign(module.cosines(x), module.masks(y, None))
    module.loss(x, y)
    moved = 0
    for own in range(2):
        for group in range(3):
            for k in range(3):
                chosen = (y.flatten() == own) & (target[group] == k)
                wanted = before[own, group, k]
                if chosen.any():
                    mean = unit[group, chosen].mean(dim=0)
                    wanted = 0.7 * wanted + 0.3 * mean / mean.norm()
                    wanted = wanted / wanted.norm()
                    moved += 1
                torch.testing.assert_close(module.vectors[own, group, k], wanted)
    assert moved == 18


def test_the_update_comes_after_the_loss_and_only_in_training():
    x, y = features(), labels()
    module = prototypes().eval()
    before = module.vectors.clone()
    in_evaluation = module.loss(x, y)
    assert torch.equal(module.vectors, before)
    in_training = module.train().loss(x, y)
    assert in_training == in_evaluation  # both with the old prototypes
    assert not torch.equal(module.vectors, before)


def test_only_pixels_the_head_has_right_move_the_prototypes_if_asked():
    config = MoPConfig(bands=3, dim=12, momentum=0.7, update_correct_only=True)
    x, y = features(), labels()
    right = y.clone()
    right[:, 3:] = 1 - y[:, 3:].clamp(max=1)
    module = prototypes(config)
    before = module.vectors.clone()
    loss = module.loss(x, y, None, right)
    plain = prototypes()
    assert loss == plain.loss(x, y)  # the loss still counts them all
    assert not torch.equal(module.vectors, plain.vectors)
    wrong = prototypes(config)
    wrong.loss(x, y, None, 1 - y.clamp(max=1))
    assert torch.equal(wrong.vectors, before)


@pytest.mark.parametrize("update", ["momentum", "gradient", "none"])
def test_each_kind_of_update_does_what_it_says(update):
    module = prototypes(MoPConfig(bands=3, dim=12, momentum=0.7, prototype_update=update))
    before = module.vectors.detach().clone()
    loss = module.loss(features(), labels())
    if update == "gradient":
        assert isinstance(module.vectors, nn.Parameter)
        loss.backward()
        assert (module.vectors.grad.abs().amax(dim=-1) > 0).all()
    else:
        assert not list(module.parameters())
    assert torch.equal(module.vectors, before) == (update != "momentum")
    assert "vectors" in module.state_dict()


def test_prototypes_start_and_stay_unit_vectors():
    module = prototypes()
    for seed in range(3):
        norms = module().norm(dim=-1)
        torch.testing.assert_close(norms, torch.ones_like(norms))
        module.loss(features(seed=seed), labels())


def test_the_update_does_not_break_the_backward_pass_of_what_used_the_prototypes():
    module = prototypes()
    x = features().requires_grad_()
    used = (torch.einsum("wgkc,wgkc->", module(), module()) * x).square().sum()
    loss = module.loss(x, labels()) + used  # the buffer has changed since `used`
    loss.backward()
    assert torch.isfinite(x.grad).all()


# Several processes


@pytest.mark.slow
def test_two_processes_update_as_one_on_the_joined_batch(tmp_path: Path):
    mp.spawn(one_rank, (str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / f"rank{r}.pt", weights_only=True) for r in (0, 1))
    assert torch.equal(first, second)
    x, y = unlike_halves(4)
    module = prototypes()
    before = module.vectors.clone()
    for _ in range(3):
        module.loss(x, y)
    assert not torch.allclose(module.vectors, before, atol=1e-4)
    torch.testing.assert_close(first, module.vectors, atol=1e-6, rtol=0)


def test_matching_half_a_batch_alone_differs_from_matching_all_of_it():
    x, y = unlike_halves(4)  # so the test above cannot pass by each process matching alone
    module = prototypes()
    cosines, masks = module.cosines(x), module.masks(y, None)
    half = slice(0, 2 * 36)
    together = assign(cosines, masks)[:, half]
    alone = assign(cosines[..., half], masks[..., half])
    assert not torch.equal(together, alone)


def test_the_cross_entropy_form_counts_only_valid_pixels():
    cosines = torch.rand(1, 2, 2, 4) * 2 - 1
    masks = torch.tensor([[[True, False, False, False]], [[False, True, False, False]]])
    target = torch.tensor([[1, 0, 0, 1]])
    alone = contrastive_loss(cosines[..., :2], target[:, :2], masks[..., :2], 0.1)
    torch.testing.assert_close(contrastive_loss(cosines, target, masks, 0.1), alone)
