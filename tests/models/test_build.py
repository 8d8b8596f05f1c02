"""Networks by name: MoP, and baselines that take any size and absent bands."""

import pytest
import torch
from torch import nn

from smokegeo.errors import UsageError
from smokegeo.models.baselines.catalog import BACKBONES, METHODS
from smokegeo.models.build import ARCHITECTURES, Padded, build_network
from smokegeo.models.mop import MoP


class Doubled(nn.Module):
    """Refuses what smp's networks refuse, and keeps what it saw."""

    def forward(self, x):
        assert x.shape[2] % 32 == x.shape[3] % 32 == 0
        self.seen = x
        return 2 * x[:, :2]


def test_mop_is_built_with_its_options_for_these_bands():
    network = build_network("mop", 4, {"dim": 40, "fusion": "sum", "bands": 9})
    assert isinstance(network, MoP)
    assert (network.config.bands, network.config.fusion) == (4, "sum")


def test_padding_takes_any_size_and_gives_it_back():
    network = Padded(Doubled())
    for size in ((1, 1), (32, 64), (45, 70)):
        x = torch.randn(2, 3, *size)
        torch.testing.assert_close(network(x), 2 * x[:, :2])
    assert network.network.seen.shape == (2, 3, 64, 96)
    torch.testing.assert_close(network.network.seen[:, :, 50, 10], x[:, :, 44, 10])


def test_an_image_that_needs_no_padding_is_not_copied():
    network, x = Padded(Doubled()), torch.randn(1, 3, 32, 64)
    network(x)
    assert network.network.seen is x


def test_a_baseline_sees_zero_in_absent_bands_whatever_they_hold():
    network = Padded(Doubled())
    x = torch.randn(1, 3, 32, 32)
    x[0, 1] = float("nan")
    network(x, torch.tensor([[True, False, True]]))
    assert (network.network.seen[0, 1] == 0).all()
    assert torch.equal(network.network.seen[0, 2], x[0, 2])


@pytest.mark.parametrize("name", ["segformer"])
def test_baselines_take_any_bands_and_size(name):
    network = build_network(name, 7).eval()
    with torch.no_grad():
        assert network(torch.randn(1, 7, 33, 50)).shape == (1, 2, 33, 50)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(ARCHITECTURES) - set(METHODS)))
def test_networks_that_are_not_in_the_paper_train(name):
    network = build_network(name, 4).train()
    network(torch.randn(2, 4, 64, 64)).sum().backward()
    assert all(p.grad is not None for p in network.parameters() if p.requires_grad)


def test_an_unknown_name_or_option_is_refused():
    with pytest.raises(UsageError, match="'resnet' is not one of mop, pspnet"):
        build_network("resnet", 4)
    with pytest.raises(UsageError, match="unet has no option dim"):
        build_network("unet", 4, {"dim": 3})
    with pytest.raises(UsageError, match="no option colour"):
        build_network("mop", 4, {"colour": 3})


@pytest.mark.parametrize("name", ["unet", "upernet", "deeplabv3+"])
@pytest.mark.parametrize(
    "backbone",
    ["tu-hf_hub:someone/some-repo", "tu-local-dir:/etc", "tu-resnet18", "x", 5, None, []],
)
def test_a_backbone_is_one_of_a_few_and_never_a_place_to_load_from(name, backbone, monkeypatch):
    if (name, backbone) == ("deeplabv3+", None):
        pytest.skip("None is its own way to say that the variant decides")
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: pytest.fail("the network"))
    with pytest.raises(UsageError, match=r"backbone .* is not one of resnet18, "):
        build_network(name, 4, {"backbone": backbone})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unet", "upernet", "deeplabv3+"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_backbone_on_offer_can_be_built(name, backbone):
    assert build_network(name, 4, {"backbone": backbone})
