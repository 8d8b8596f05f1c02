"""The common branch: MiT's widths in timm's network, and the same without timm."""

import pytest
import timm
import torch
from random_networks import random_image, random_network

from smokegeo.models.common import CommonBranch
from smokegeo.models.config import HEADS, REDUCTIONS, STAGE_CHANNELS, MoPConfig
from smokegeo.models.lean_mit import LeanMiT
from smokegeo.models.naive import naive_common
from smokegeo.models.weights import Weights


def test_the_encoder_has_as_many_parameters_as_mit_with_these_widths():
    branch = CommonBranch(MoPConfig())
    assert sum(p.numel() for p in branch.encoder.parameters()) == 2_063_725


@pytest.mark.parametrize("variant", ["realtime", "accuracy"])
def test_timms_weights_give_the_same_maps_without_timm(variant):
    config = MoPConfig(bands=4, variant=variant)
    torch.manual_seed(0)
    encoder = timm.create_model(
        "pvt_v2_b0",
        features_only=True,
        in_chans=4,
        embed_dims=STAGE_CHANNELS,
        depths=config.depths,
        num_heads=HEADS,
        sr_ratios=REDUCTIONS,
        mlp_ratios=(4, 4, 4, 4),
    ).eval()
    with torch.no_grad():
        for name, value in encoder.named_parameters():
            if name.endswith("bias"):
                value.normal_(0, 0.2)
            elif "norm" in name:
                value.uniform_(0.5, 1.5)
        lean = LeanMiT(config, Weights(encoder.state_dict())).eval()
        for size in ((64, 64), (75, 101)):
            x = torch.randn(2, 4, *size)
            wanted = encoder(x)
            got = lean(encoder.patch_embed.proj(x))
            assert [m.shape for m in got] == [m.shape for m in wanted]
            for ours, theirs in zip(got, wanted, strict=True):
                torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_weights_of_other_widths_are_refused():
    encoder = timm.create_model("pvt_v2_b0", features_only=True, in_chans=4)
    with pytest.raises((ValueError, RuntimeError)):
        LeanMiT(MoPConfig(bands=4), Weights(encoder.state_dict()))


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_merging_equals_align_resize_concatenate_fuse(training):
    model = random_network().double().train(training)
    x = random_image(model, (45, 70)).double()
    merged, written_out = model.common(x), naive_common(model.common, x)
    assert merged.shape == (2, 40, 12, 18)
    torch.testing.assert_close(merged, written_out, atol=1e-12, rtol=0)
