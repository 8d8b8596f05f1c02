"""The folded network: the same function for every switch, size and set of bands; only torch."""

import pytest
import torch
from random_networks import last_absent, random_image, random_network
from torch.utils.flop_counter import FlopCounterMode

from smokegeo.models.config import ABLATION, MoPConfig
from smokegeo.models.folded import FoldedMoP
from smokegeo.models.mop import MoP
from smokegeo.models.shapes import shapes

ROWS = [
    pytest.param({**switches, **fusion}, id=f"{row} {fusion.get('fusion', '')}".strip())
    for row, switches in ABLATION.items()
    for fusion in (
        [{}] if row == "bl" else [{"fusion": f} for f in ("mean", "sum", "concat", "spectral")]
    )
]
OTHERS = [
    pytest.param(switches, id=" ".join(f"{k}={v}" for k, v in switches.items()))
    for switches in (
        {"variant": "accuracy"},
        {"prototype_update": "gradient"},
        {"prototype_update": "none"},
        {"shared_p_router": False},
        {"rescale": True},
        {"rescale": True, "p_router": False},
        {"width_rule": "total"},
        {"band_groups": 2},
        {"band_groups": 2, **ABLATION["d"]},
        {"bands": 1},
        {"bands": 12, "dim": 12},
        {"bands": 25, "dim": 250},
        {"classes": 3, "prototypes": 2},
        {"classes": 4, "prototypes": 1, "fusion": "concat"},
    )
]


@pytest.mark.parametrize("switches", [*ROWS, *OTHERS])
@torch.no_grad()
def test_folding_changes_no_output(switches):
    model = random_network(**switches)
    folded = model.fold()
    spread = 0.0
    for size in ((45, 70), (1, 1)):
        x = random_image(model, size)
        for available in (None, last_absent(model)):
            if available is not None and model.config.bands == 1:
                available = torch.tensor([[1], [0]])
            wanted = model(x, available)
            spread = max(spread, wanted.std().item())
            torch.testing.assert_close(folded(x, available), wanted, atol=1e-4, rtol=0)
    assert spread > 0.05  # a constant would be easy to match


@torch.no_grad()
def test_one_row_or_column_of_features_is_border_on_both_sides():
    model = random_network()
    folded = model.fold()
    for size in ((32, 200), (200, 32), (34, 36), (129, 33)):
        x = random_image(model, size, 1)
        torch.testing.assert_close(folded(x), model(x), atol=1e-4, rtol=0)


@pytest.mark.parametrize("row", ABLATION)
@torch.no_grad()
def test_what_an_absent_band_holds_changes_nothing(row):
    model = random_network(**ABLATION[row])
    folded, available = model.fold(), last_absent(model)
    x = random_image(model)
    wanted = folded(x, available)
    for value in (7.0, float("nan"), float("inf")):
        x[1, -2:] = value
        assert torch.equal(folded(x, available), wanted)


def test_an_input_is_left_as_it_was():
    model = random_network()
    x = random_image(model)
    before = x.clone()
    model.fold()(x, last_absent(model))
    assert torch.equal(x, before)


def test_folding_leaves_the_trained_network_alone():
    model = random_network().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    folded = model.fold()
    folded(random_image(model))
    assert model.training
    assert not folded.training
    assert not any(p.requires_grad for p in folded.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@torch.no_grad()
def test_folded_networks_are_smaller_to_run_than_they_were_to_train():
    def cost(network):
        with FlopCounterMode(display=False) as counter:
            network(torch.zeros(1, 25, 64, 64))
        numbers = sum(value.numel() for value in network.state_dict().values())
        return counter.get_total_flops(), numbers

    model = MoP(bands=25).eval()
    folded = model.fold()
    assert all(less < 0.9 * more for less, more in zip(cost(folded), cost(model), strict=True))
    assert not any(isinstance(part, torch.nn.BatchNorm2d) for part in folded.modules())
    # Folded in double precision, run in single.
    assert {p.dtype for p in folded.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("trained", "told", "fact"),
    [
        ({"variant": "accuracy"}, {"variant": "realtime"}, "no place"),
        ({}, {"variant": "accuracy"}, "stages"),
        ({}, ABLATION["a"], "no place"),
        (ABLATION["bl"], {**ABLATION["bl"], "bands": 4}, "has shape"),
        ({}, {"bands": 4}, "has shape"),
        (ABLATION["a"], {}, "prototypes"),
        (ABLATION["a"], ABLATION["c"], "f_router"),
    ],
)
def test_weights_of_another_network_are_refused(trained, told, fact):
    state = random_network(**trained).state_dict()
    config = random_network(**told).config
    with pytest.raises((KeyError, ValueError, RuntimeError), match=fact):
        FoldedMoP(config, state)


def test_a_network_that_would_grow_much_by_folding_is_refused():
    config = MoPConfig(bands=1000, dim=10_000, band_groups=1000, prototypes=100, classes=10)
    small = {name: torch.zeros(()).expand(shape) for name, shape in shapes(config).items()}
    with pytest.raises(ValueError, match="1000 bands of 10 features are too many"):
        FoldedMoP(config, small)
