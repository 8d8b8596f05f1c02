"""The shapes of weights: those of the network itself, and nothing else passes."""

from __future__ import annotations

import pytest
import torch
from random_networks import random_network

from smokegeo.models.config import ABLATION
from smokegeo.models.mop import MoP
from smokegeo.models.shapes import check_shapes, shapes

SWITCHES = [
    *ABLATION.values(),
    {"variant": "accuracy"},
    {"fusion": "concat"},
    {"fusion": "spectral"},
    {"shared_p_router": False, "width_rule": "total"},
    {"bands": 12, "band_groups": 5, "classes": 3, "prototypes": 2},
]


@pytest.mark.parametrize("switches", SWITCHES)
def test_they_are_those_of_the_network(switches):
    network = MoP(**{"bands": 5, "dim": 40, **switches})
    assert shapes(network.config) == {k: tuple(v.shape) for k, v in network.state_dict().items()}


def test_weights_that_only_fit_together_are_refused():
    network = random_network()
    block = "common.encoder.stages_1.blocks.0."
    state = network.state_dict()
    check_shapes(network.config, state)
    wider = {
        f"{block}attn.q.weight": torch.zeros(100, 50),
        f"{block}attn.q.bias": torch.zeros(100),
        f"{block}attn.kv.weight": torch.zeros(200, 50),
        f"{block}attn.kv.bias": torch.zeros(200),
    }
    with pytest.raises(ValueError, match=r"attn\.q\.weight has shape \(100, 50\), not \(50, 50\)"):
        check_shapes(network.config, {**state, **wider})
    for name in ("p_router.bias", "individual.fuse.bias", f"{block}norm1.bias", "head.bias"):
        with pytest.raises(ValueError, match="has shape"):
            check_shapes(network.config, {**state, name: torch.zeros(1)})
    del state["common.norm.num_batches_tracked"]
    check_shapes(network.config, state)
