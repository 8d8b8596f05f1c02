"""The ideas inside the baselines we wrote ourselves, one by one."""

from __future__ import annotations

import pytest
import torch

from smokegeo.models.baselines import transbvm
from smokegeo.models.baselines.fosp import Layers, separation_loss
from smokegeo.models.baselines.mit import MLPHead
from smokegeo.models.baselines.ocrnet import ObjectContext
from smokegeo.models.baselines.protoseg import ProtoSeg
from smokegeo.models.baselines.segnext import factorised
from smokegeo.models.baselines.transbvm import Gauss, TransBVM, coherence_loss, transmission


def test_the_head_of_segformer_is_a_convolution_of_the_concatenation():
    torch.manual_seed(0)
    head = MLPHead((3, 5), 4).eval()
    fine, coarse = torch.randn(1, 3, 8, 8), torch.randn(1, 5, 4, 4)
    grown = torch.nn.functional.interpolate(head.align[1](coarse), size=(8, 8), mode="bilinear")
    joined = torch.cat([head.align[0](fine), grown], dim=1)
    expected = head.norm(head.fuse(joined)).relu()
    torch.testing.assert_close(head([fine, coarse]), expected, atol=1e-5, rtol=1e-4)


def test_more_rounds_factorise_better_and_stay_positive():
    torch.manual_seed(0)
    x = torch.rand(1, 12, 3) @ torch.rand(1, 3, 40)  # a product of rank 3
    start = torch.rand(1, 12, 3)
    errors = [float((factorised(x, start, n) - x).square().mean()) for n in (0, 7, 100)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01 * float(x.square().mean())
    assert (factorised(x, start, 7) >= 0).all()


def test_context_comes_from_the_regions_the_coarse_prediction_marks():
    torch.manual_seed(0)
    context = ObjectContext(8, 4).eval()
    pixels = torch.randn(1, 8, 4, 4)
    coarse = torch.full((1, 2, 4, 4), -50.0)
    coarse[:, 0, 0], coarse[:, 1, 3] = 50.0, 50.0  # the first row is one region, the last another
    changed = pixels.clone()
    changed[:, :, 1:3] += 5  # in neither
    before, after = context(pixels, coarse), context(changed, coarse)
    torch.testing.assert_close(before[:, :, 0], after[:, :, 0])
    changed[:, :, 0] += 5
    assert not torch.allclose(context(changed, coarse)[:, :, 3], before[:, :, 3])


def test_layers_that_explain_the_image_cost_nothing():
    image = torch.randn(1, 3, 4, 4)
    labels = torch.zeros(1, 16, 16, dtype=torch.long)
    clear = Layers(image, torch.randn_like(image), image, torch.zeros(1, 1, 4, 4))
    assert separation_loss(clear, labels) == 0
    cloudy = Layers(image, image, image, torch.full((1, 1, 4, 4), 0.5))
    assert separation_loss(cloudy, labels) == pytest.approx(0.5)
    # Opacity is free where smoke is labelled, or nothing is.
    assert separation_loss(cloudy, torch.ones_like(labels)) == 0
    assert separation_loss(cloudy, torch.full_like(labels, 255)) == 0


def test_transmission_is_low_where_all_bands_are_bright():
    image = torch.rand(1, 3, 20, 20) * 0.2
    image[:, :, 10:] += 0.8
    image[:, :, 0, 0] = 0.0
    seen = transmission(image)
    assert seen[0, 0, 16, 10] < 0.35
    assert seen[0, 0, 4, 10] > 0.7
    with_absent = torch.cat([image, torch.zeros(1, 1, 20, 20)], dim=1)
    torch.testing.assert_close(transmission(with_absent), seen)


def test_coherence_wants_the_same_answer_where_transmission_is_the_same():
    answer = torch.zeros(1, 1, 8, 8)
    answer[..., 4:] = 1
    known, flat = torch.ones_like(answer), torch.zeros_like(answer)
    assert coherence_loss(flat, flat, known) == 0
    across, along = coherence_loss(answer, flat, known), coherence_loss(answer, answer, known)
    assert along < 0.01 * across
    assert coherence_loss(answer, flat, torch.zeros_like(answer)) == 0


def test_a_distribution_is_no_distance_from_itself():
    one = Gauss(torch.randn(3, 8), torch.randn(3, 8))
    two = Gauss(one.mean + 1, one.log_variance)
    assert one.distance(one) == pytest.approx(0, abs=1e-5)
    assert two.distance(one) > 0.1


def test_where_trans_bvm_is_unsure_its_answer_is_nearer_to_a_half():
    torch.manual_seed(0)
    network = TransBVM(3, "realtime").eval()
    image = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        network.spread.weight.zero_()
        answers = []
        for spread in (-20.0, 5.0):
            network.spread.bias.fill_(spread)
            answers.append(network(image).softmax(dim=1)[:, 1])
    sure, unsure = ((answer - 0.5).abs() for answer in answers)
    assert (unsure < sure).all()


def test_the_answer_of_trans_bvm_is_the_mean_over_what_it_draws_in_training(monkeypatch):
    torch.manual_seed(0)
    network = TransBVM(3, "realtime").eval()
    with torch.no_grad():
        for part in (network.classify, network.spread):
            part.weight.zero_()
        network.classify.bias.copy_(torch.tensor([0.0, 2.0]))
        network.spread.bias.fill_(2.0)
        told = network(torch.randn(1, 3, 32, 32)).softmax(dim=1)[0, 1]
    assert told.amax() - told.amin() < 1e-6
    drawn = []
    monkeypatch.setattr(transbvm, "segmentation_loss", lambda y, _: drawn.append(y) or y.mean())
    image = torch.randn(8, 3, 128, 128)
    with torch.no_grad():
        network.terms(image, torch.ones(8, 128, 128, dtype=torch.long))
    mean = torch.cat(drawn).softmax(dim=1)[:, 1].mean()
    assert told.mean() == pytest.approx(float(mean), abs=0.01)


def test_only_pixels_classified_rightly_move_the_prototypes_of_protoseg():
    torch.manual_seed(0)
    network = ProtoSeg(3, "realtime", momentum=0.5).train()
    unit = torch.nn.functional.normalize(torch.randn(1, 256, 4, 4), dim=1)
    labels = torch.zeros(1, 16, 16, dtype=torch.long)
    before = network.prototypes.vectors.clone()
    network._prototype_loss(unit, torch.ones(1, 4, 4), labels)
    assert torch.equal(network.prototypes.vectors, before)
    network._prototype_loss(unit, torch.zeros(1, 4, 4), labels)
    assert not torch.equal(network.prototypes.vectors[0], before[0])
    assert torch.equal(network.prototypes.vectors[1], before[1])
    moved = network.prototypes.vectors.clone()
    network.eval()._prototype_loss(unit, torch.zeros(1, 4, 4), labels)
    assert torch.equal(network.prototypes.vectors, moved)
