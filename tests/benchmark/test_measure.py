"""What a model costs: counted exactly where it can be, plausible where it is measured."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from smokegeo.benchmark import measure as measuring
from smokegeo.benchmark.measure import count_flops, measure, measure_apart
from smokegeo.models.build import build_network


class Attention(nn.Module):
    """Attention of 2 heads of 4 channels over 6 pixels, fused or written out."""

    def __init__(self, fused):
        super().__init__()
        self.fused = fused

    def forward(self, x):
        q = x.view(1, 2, 6, 4)
        if self.fused:
            return F.scaled_dot_product_attention(q, q, q)
        return (q @ q.transpose(2, 3)).softmax(dim=3) @ q


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


def test_convolutions_are_counted_twice_per_product():
    conv = nn.Conv2d(3, 5, 3, padding=1, bias=False)
    assert count_flops(lambda: conv(torch.zeros(1, 3, 4, 4))) == 2 * 16 * 3 * 5 * 9


def test_fused_attention_counts_like_the_written_out_one():
    x = torch.randn(1, 48)
    counted = [count_flops(partial(Attention(fused), x)) for fused in (True, False)]
    assert counted[0] == counted[1] == 2 * 2 * (2 * 6 * 6 * 4)


def test_the_fast_path_of_multi_head_attention_is_counted_and_left_as_it_was():
    before = torch.backends.mha.get_fastpath_enabled()
    flops = count_flops(partial(Heads().eval(), torch.randn(1, 6, 8)))
    assert flops == 2 * 6 * 8 * (24 + 8) + 2 * 2 * (2 * 6 * 6 * 4)
    assert torch.backends.mha.get_fastpath_enabled() == before


@pytest.mark.parametrize("name", ["mop", "segformer"])
def test_a_network_is_measured_without_being_trained(name, monkeypatch):
    monkeypatch.setattr(measuring, "keep_nothing", lambda: None)  # this process lives on
    cost = measure(name, 4, {"variant": "realtime"}, 64, repeats=1)
    assert cost.parameters == sum(p.numel() for p in build_network(name, 4).parameters())
    assert cost.gflops > 0
    assert 0 < cost.cpu_ms < 60_000
    assert cost.size_px == 64
    assert f"torch {torch.__version__}" in cost.measured_on


@pytest.mark.slow
def test_a_larger_image_takes_more_memory():
    small, large = (measure_apart("mop", 4, {}, size) for size in (64, 512))
    assert large.gflops >= 64 * small.gflops  # attention grows faster than the image
    if small.cpu_mb is None or large.cpu_mb is None:
        pytest.skip("this system does not tell the peak of memory")
    assert large.cpu_mb > small.cpu_mb + 10
