"""The routers: the paper's shapes, sums and numbers, without the paper's large tensors."""

import pytest
import torch
from random_networks import random_network
from torch.autograd.graph import saved_tensors_hooks

from smokegeo.models.config import MoPConfig
from smokegeo.models.mop import MoP
from smokegeo.models.naive import naive_f_router, naive_p_router
from smokegeo.models.routers import FRouter, PRouter


def parts(**switches):
    """Return routers in double precision with features and prototypes that want gradients."""
    model = random_network(**switches).double()
    config = model.config
    torch.manual_seed(1)
    features = torch.randn(2, config.feature_dim, 5, 7, dtype=torch.double, requires_grad=True)
    prototypes = model.prototypes().detach().requires_grad_()
    return model.p_router, model.f_router, features, prototypes


def test_parameters_have_the_papers_shapes():
    config = MoPConfig()
    p_router, f_router = PRouter(config), FRouter(config)
    assert p_router.weight.shape == (1, 6, 70)  # (classes K + 1) D/d to classes K
    assert f_router.weight.shape == (25, 750)  # (1 + classes) D to d
    assert sum(p.numel() for p in p_router.parameters()) == 426
    assert sum(p.numel() for p in f_router.parameters()) == 18_775
    each = PRouter(MoPConfig(shared_p_router=False))
    assert sum(p.numel() for p in each.parameters()) == 25 * 426
    assert FRouter(MoPConfig(psr=False, p_router=False)).weight.shape == (25, 250)


@pytest.mark.parametrize(
    "switches",
    [{}, {"shared_p_router": False}, {"classes": 3, "prototypes": 2}, {"band_groups": 2}],
    ids=["shared", "per band", "three classes", "grouped"],
)
def test_outputs_and_gradients_equal_the_concatenated_form(switches):
    p_router, f_router, features, prototypes = parts(**switches)
    wanted = [features, prototypes, *p_router.parameters(), *f_router.parameters()]
    results = []
    for p_form, f_form in (
        (p_router, f_router),
        (
            lambda x, p: naive_p_router(p_router, x, p),
            lambda x, a, p: naive_f_router(f_router, x, a, p),
        ),
    ):
        alpha = p_form(features, prototypes)
        beta = f_form(features, alpha, prototypes)
        torch.manual_seed(2)
        target = (alpha * torch.randn_like(alpha)).sum() + (beta * torch.randn_like(beta)).sum()
        results.append([alpha, beta, *torch.autograd.grad(target, wanted)])
    for ours, papers in zip(*results, strict=True):
        assert papers.abs().max() > 1e-6
        torch.testing.assert_close(ours, papers, atol=1e-10, rtol=0)


def test_the_concatenated_tensors_are_never_kept_for_backward():
    config = MoPConfig()
    p_router, f_router = PRouter(config), FRouter(config)
    features = torch.randn(1, 250, 16, 16, requires_grad=True)
    prototypes = torch.randn(2, 25, 3, 10)
    largest = 0

    def keep(tensor):
        nonlocal largest
        largest = max(largest, tensor.untyped_storage().nbytes())
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        f_router(features, p_router(features, prototypes), prototypes).sum()
    assert largest == features.numel() * 4  # X_indi itself; the paper's has 750 or 1750 channels


def test_alpha_sums_to_one_over_classes_and_prototypes():
    p_router, _, features, prototypes = parts()
    alpha = p_router(features, prototypes)
    assert alpha.shape == (2, 5, 6, 5, 7)
    torch.testing.assert_close(alpha.sum(dim=2), torch.ones(2, 5, 5, 7).double())
    assert alpha.std(dim=2).max() > 0.01


def test_beta_sums_to_one_over_the_bands_that_exist():
    p_router, f_router, features, prototypes = parts()
    present = torch.tensor([[1.0, 1, 1, 1, 1], [0, 1, 0, 1, 1]]).double()
    alpha = p_router(features, prototypes)
    beta = f_router(features, alpha, prototypes, present)
    torch.testing.assert_close(beta.sum(dim=1), torch.ones(2, 5, 7).double())
    assert (beta[1, [0, 2]] == 0).all()
    assert (beta[1, [1, 3, 4]] > 0).all()
    everything = f_router(features, alpha, prototypes)
    torch.testing.assert_close(beta[0], everything[0])


def test_beta_ignores_features_and_alpha_of_absent_bands():
    p_router, f_router, features, prototypes = parts()
    present = torch.tensor([[1.0, 1, 1, 0, 1]] * 2).double()
    other = features.detach().clone()
    other[:, 24:32] = 100  # the fourth band's eight channels
    betas = [f_router(x, p_router(x, prototypes), prototypes, present) for x in (features, other)]
    assert torch.equal(*betas)


def test_a_sample_without_any_band_gets_no_weights_and_no_nan():
    p_router, f_router, features, prototypes = parts()
    beta = f_router(features, p_router(features, prototypes), prototypes, torch.zeros(2, 5))
    assert (beta == 0).all()


def test_without_p_router_the_mean_prototype_is_a_constant():
    """Row d of the ablation: a bias, the same at every pixel."""
    _, f_router, features, prototypes = parts()
    even = torch.full((2, 5, 6, 5, 7), 1 / 3, dtype=torch.double)
    wanted = naive_f_router(f_router, features, even, prototypes)
    torch.testing.assert_close(f_router(features, None, prototypes), wanted, atol=1e-10, rtol=0)
    torch.testing.assert_close(
        f_router(features, None, prototypes, torch.ones(2, 5)), wanted, atol=1e-10, rtol=0
    )


def test_prototypes_reach_the_p_router_as_a_bias_only():
    p_router, _, features, prototypes = parts()
    with torch.no_grad():
        old = p_router(features, prototypes).log()
        new = p_router(features, prototypes.flip(2)).log()
    shift = (new - old) - (new - old)[:, :, :1]  # softmax does not see a common constant
    torch.testing.assert_close(shift, shift[:1, :, :, :1, :1].expand_as(shift))
    assert shift.abs().max() > 0.1


def test_routing_is_that_of_the_whole_network():
    model = MoP(bands=4, dim=40).eval()
    alpha, beta = model.routing(torch.randn(1, 4, 40, 48))
    assert alpha.shape == (1, 4, 6, 10, 12)
    assert beta.shape == (1, 4, 10, 12)
    with pytest.raises(ValueError, match="no routing"):
        MoP(bands=4, dim=40, psr=False, p_router=False).routing(torch.randn(1, 4, 32, 32))
