"""MoP as a whole: any bands, any size, absent bands, the ablation table, one step of training."""

import logging

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from random_networks import last_absent, random_image, random_labels, random_network

from smokegeo.errors import UsageError
from smokegeo.models.config import ABLATION
from smokegeo.models.mop import MoP
from smokegeo.models.naive import naive_forward


def parameters(model) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("variant", "millions"), [("realtime", 3.19), ("accuracy", 9.10)])
def test_it_has_the_papers_number_of_parameters(variant, millions):
    model = MoP(variant=variant)
    assert parameters(model) / 1e6 == pytest.approx(millions, rel=0.02)
    routers = parameters(model.p_router) + parameters(model.f_router)
    assert routers == 426 + 18_775
    assert model.head.weight.shape == (2, 250, 1, 1)


@pytest.mark.parametrize("bands", [1, 2, 3, 13, 63, 240])
def test_any_number_of_bands(bands):
    model = MoP(bands=bands).eval()
    assert model(torch.randn(1, bands, 33, 32)).shape == (1, 2, 33, 32)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("size", [(1, 1), (1, 90), (31, 33), (32, 32), (45, 70), (64, 96)], ids=str)
def test_any_size(size, training):
    model = random_network().train(training)
    for batch in (1, 2):
        x = random_image(model, size, batch)
        assert model(x).shape == (batch, 2, *size)
        assert torch.isfinite(model(x, last_absent(model, batch))).all()


@pytest.mark.parametrize(
    ("bands", "switches", "remedy"),
    [
        (63, {}, "in 62 groups"),
        (25, {"dim": 50}, "in 12 groups"),
        (25, {"dim": 50, "band_groups": 25}, "leave out"),
    ],
)
def test_too_few_features_a_band_are_warned_of(bands, switches, remedy, caplog):
    with caplog.at_level(logging.WARNING, logger="smokegeo"):
        MoP(bands=bands, **switches)
    (record,) = caplog.records
    assert f"{bands} bands" in record.getMessage()
    assert remedy in record.getMessage()


def test_enough_features_a_band_are_no_cause_for_warning(caplog):
    MoP(bands=62)
    MoP(bands=63, **ABLATION["bl"])  # no bands to keep apart
    assert not caplog.records


def test_the_whole_network_equals_the_paper_written_out():
    model = random_network(bands=6, dim=48).double()
    x = random_image(model, (45, 70)).double()
    torch.testing.assert_close(model(x), naive_forward(model, x), atol=1e-10, rtol=0)


def test_the_written_out_form_is_of_the_full_network_only():
    for row in ("bl", "a", "d"):
        with pytest.raises(ValueError, match="full network"):
            naive_forward(random_network(**ABLATION[row]), torch.randn(1, 5, 32, 32))


# Absent bands


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("row", ABLATION)
@pytest.mark.parametrize("value", [7.0, float("nan")])
def test_what_an_absent_band_holds_changes_nothing(row, training, value):
    model = random_network(**ABLATION[row])
    available = last_absent(model)
    x = random_image(model, (40, 40))
    other = x.clone()
    other[1, -2:] = value
    outcomes = []
    for image in (x, other):
        model = random_network(**ABLATION[row]).train(training)
        done = model.run(image, available)
        model.loss(done, random_labels((40, 40)))
        outcomes.append((done, model.state_dict()))
    (first, state), (second, other_state) = outcomes
    assert torch.isfinite(first.logits).all()
    for name in ("logits", "routed", "common", "beta"):
        ours, theirs = getattr(first, name), getattr(second, name)
        assert ours is theirs is None or torch.equal(ours, theirs)
    for name, tensor in state.items():
        assert torch.equal(tensor, other_state[name]), name


def test_an_absent_band_is_left_out_of_the_weights_not_set_to_zero():
    model = random_network()
    x, available = random_image(model), last_absent(model)
    _, beta = model.routing(x, available)
    assert (beta[1, -2:] == 0).all()
    torch.testing.assert_close(beta.sum(dim=1), torch.ones(2, 16, 16))
    zeroed = x.clone()
    zeroed[1, -2:] = 0
    assert not torch.allclose(model(x, available)[1], model(zeroed)[1], atol=1e-3)
    torch.testing.assert_close(model(x, available)[0], model(x)[0])


def test_routed_features_of_an_absent_band_are_zero_without_routers_too():
    model = random_network(**ABLATION["a"])
    done = model.run(random_image(model), last_absent(model))
    assert (done.routed[1, -16:] == 0).all()
    assert (done.routed[0] != 0).any()


def test_a_group_exists_while_one_of_its_bands_does():
    model = random_network(bands=6, band_groups=3)
    available = torch.tensor([[1, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1, 1]])
    _, beta = model.routing(random_image(model), available)
    assert (beta[0, 1] == 0).all()
    assert (beta[0, [0, 2]] > 0).all()


def test_statistics_in_training_are_those_of_the_present_samples():
    """A band only one sample has is normalised as if that sample were alone."""
    x = random_image(random_network())
    both, alone = random_network().train(), random_network().train()
    available = torch.ones(2, 5)
    available[1] = 0
    both.individual(x, available)
    alone.individual(x[:1])
    for name, value in alone.individual.state_dict().items():
        if "num_batches" not in name:
            torch.testing.assert_close(both.individual.state_dict()[name], value, msg=name)


def test_availability_may_be_boolean_whole_or_real():
    model = random_network()
    x, available = random_image(model), last_absent(model)
    wanted = model(x, available)
    for kind in (torch.long, torch.float32, torch.uint8):
        assert torch.equal(model(x, available.to(kind)), wanted)


def test_no_band_at_all_still_gives_numbers():
    model = random_network()
    assert torch.isfinite(model(random_image(model), torch.zeros(2, 5))).all()


# Switches


def test_the_rows_of_the_ablation_table_differ_where_they_should():
    models = {row: random_network(**ABLATION[row]) for row in ABLATION}
    has = {
        row: tuple(
            getattr(m, part) is not None
            for part in ("common", "individual", "prototypes", "f_router", "p_router")
        )
        for row, m in models.items()
    }
    assert has == {
        "bl": (True, False, False, False, False),
        "a": (True, True, False, False, False),
        "b": (True, True, True, False, False),
        "c": (True, True, False, True, False),
        "d": (True, True, True, True, False),
        "e": (True, True, True, True, True),
    }
    sizes = {row: parameters(m) for row, m in models.items()}
    assert sizes["bl"] < sizes["a"] == sizes["b"] < sizes["c"] < sizes["d"] < sizes["e"]

    # The same weights in every row: outputs tell the rows apart, but prototypes alone do not.
    full = models["e"].state_dict()
    outputs = {}
    for row, model in models.items():
        state = {name: full[name] for name in model.state_dict()}
        if row == "c":
            state["f_router.weight"] = full["f_router.weight"][:, :40]
        model.load_state_dict(state)
        outputs[row] = model(random_image(model))
    assert torch.equal(outputs["a"], outputs["b"])
    rows = ["bl", "a", "c", "d", "e"]
    for i, first in enumerate(rows):
        for second in rows[i + 1 :]:
            assert not torch.allclose(outputs[first], outputs[second], atol=1e-4), (first, second)


def test_prototypes_without_routers_act_through_the_loss():
    model = random_network(**ABLATION["b"]).train()
    done = model.run(random_image(model))
    model.loss(done, random_labels()).backward()
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in model.individual.parameters())
    without = random_network(**ABLATION["a"]).train()
    assert without.loss(without.run(random_image(without)), random_labels()) == 0


def test_fusions_do_what_they_are_called():
    done = {}
    for fusion in ("mean", "sum", "concat", "spectral"):
        model = random_network(fusion=fusion)
        done[fusion] = (model, model.run(random_image(model)))
    model, out = done["mean"]
    joined = (out.common + out.routed) / 2
    torch.testing.assert_close(upsampled(model, joined), out.logits)
    model, out = done["sum"]
    torch.testing.assert_close(upsampled(model, out.common + out.routed), out.logits)
    model, out = done["concat"]
    assert model.head.in_channels == 80
    joined = torch.cat([out.common, out.routed], dim=1)
    torch.testing.assert_close(upsampled(model, joined), out.logits)
    model, out = done["spectral"]
    assert model.common is None
    torch.testing.assert_close(upsampled(model, out.routed), out.logits)


def upsampled(model, features):
    return F.interpolate(model.head(features), size=(64, 64), mode="bilinear")


def test_rescale_multiplies_by_the_number_of_present_bands():
    plain, louder = random_network(), random_network(rescale=True)
    x, available = random_image(plain), last_absent(plain)
    torch.testing.assert_close(louder.run(x).routed, 5 * plain.run(x).routed)
    torch.testing.assert_close(
        louder.run(x, available).routed[1], 3 * plain.run(x, available).routed[1]
    )


def test_the_individual_branch_is_divided_by_about_the_number_of_bands_at_the_start():
    torch.manual_seed(0)
    model = MoP().eval()
    done = model.run(torch.randn(1, 25, 64, 64))
    ratio = (done.routed.norm() / done.individual.norm()).item()
    assert ratio == pytest.approx(1 / 25, rel=0.2)


@pytest.mark.parametrize(
    "switches",
    [
        {"prototypes": 1},
        {"prototypes": 5},
        {"classes": 3},
        {"dim": 50},
        {"prototype_update": "gradient"},
        {"prototype_update": "none"},
        {"momentum": 0.9, "tau": 1.0},
        {"shared_p_router": False},
        {"width_rule": "equal"},
        {"update_correct_only": True},
        {"variant": "accuracy"},
    ],
    ids=str,
)
def test_every_other_switch_trains(switches):
    model = random_network(**switches).train()
    step(model, classes=model.config.classes)
    gradients = [p.grad for p in model.parameters()]
    assert all(g is not None and torch.isfinite(g).all() for g in gradients)


def test_equal_width_keeps_the_number_of_parameters():
    sizes = [parameters(MoP(bands=bands, width_rule="equal")) for bands in (4, 8, 13, 25)]
    assert max(sizes) / min(sizes) < 1.03


def test_unknown_switches_are_refused():
    with pytest.raises(UsageError, match="no option colour"):
        MoP(colour="red")


# Training


def step(model, available=None, classes: int = 2, size=(64, 64)):
    """Run one step as the task does: the prototypes move before the backward pass."""
    labels = random_labels(size, classes=classes)
    done = model.run(random_image(model, size), available)
    extra = model.loss(done, labels)
    loss = F.cross_entropy(done.logits, labels, ignore_index=255) + 0.01 * extra
    loss.backward()
    return done, extra


def test_a_step_reaches_every_parameter_and_moves_the_prototypes():
    model = random_network(momentum=0.5).train()
    before = model.prototypes.vectors.clone()
    step(model)
    assert not torch.equal(model.prototypes.vectors, before)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
    for name in ("p_router.weight", "f_router.weight"):
        assert model.get_parameter(name).grad.abs().max() > 0


def test_evaluation_moves_nothing():
    model = random_network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    step(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_absent_bands_send_no_gradient_to_their_weights():
    model = random_network().train()
    available = torch.ones(2, 5)
    available[:, 4] = 0
    step(model, available)
    down = model.individual.stages[0].down.weight.grad.unflatten(0, (5, -1))
    assert (down[4] == 0).all()
    assert (down[:4] != 0).flatten(1).any(dim=1).all()


def test_labels_of_an_image_that_had_to_be_padded_stay_in_place():
    """Only the quarter of the features that the image covers has labels."""
    model = random_network(momentum=0.5)
    x, labels = random_image(model, (16, 16)), random_labels((16, 16))
    done = model.run(x)
    padded = torch.full((2, 32, 32), 255)
    padded[:, :16, :16] = labels
    wanted = model.prototypes.loss(done.individual, padded)
    assert model.loss(done, labels) == wanted
    assert model.prototypes.loss(done.individual, labels) != wanted


def test_all_pixels_ignored_is_a_step_without_effect():
    model = random_network().train()
    before = model.prototypes.vectors.clone()
    done = model.run(random_image(model))
    loss = model.loss(done, torch.full((2, 64, 64), 255))
    loss.backward()
    assert loss == 0
    assert torch.equal(model.prototypes.vectors, before)


@pytest.mark.parametrize("absent", [False, True])
def test_half_precision_trains_without_infinities(absent):
    model = random_network().train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        done, extra = step(model, last_absent(model) if absent else None)
    assert extra.dtype == torch.float32
    assert torch.isfinite(extra)
    assert torch.isfinite(done.logits).all()
    assert torch.isfinite(model.prototypes.vectors).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_double_precision_works_with_absent_bands_and_loss():
    model = random_network().double().train()
    done = model.run(random_image(model).double(), last_absent(model))
    assert done.logits.dtype == torch.float64
    assert torch.isfinite(model.loss(done, random_labels()))
