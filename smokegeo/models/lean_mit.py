"""MiT for inference in plain torch, from the weights of timm's `pvt_v2`.

Tokens stay in (B, H, W, C) order; a convolution sees them as channels-last images without a copy.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.config import HEADS, REDUCTIONS, STAGE_CHANNELS, MoPConfig
from smokegeo.models.weights import Weights


class LeanMiT(nn.Module):
    """The output of the first convolution to the four stages' maps (B, C, h, w)."""

    def __init__(self, config: MoPConfig, state: Weights) -> None:
        super().__init__()
        self.embeds = nn.ModuleList()
        self.stages = nn.ModuleList()
        self.norms = nn.ModuleList()
        for i, depth in enumerate(config.depths):
            name = "patch_embed." if i == 0 else f"stages_{i}.downsample."
            self.embeds.append(_Embed(state.part(name), project=i > 0))
            stage = state.part(f"stages_{i}.")
            self.stages.append(
                nn.Sequential(
                    *(
                        _Block(stage.part(f"blocks.{j}."), HEADS[i], REDUCTIONS[i])
                        for j in range(depth)
                    )
                )
            )
            self.norms.append(_layer_norm(stage.part("norm."), 1e-6))
            if len(stage["norm.weight"]) != STAGE_CHANNELS[i]:
                raise ValueError("these are not the weights of MoP's common branch")
        self.to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the maps of all stages, channels last in memory."""
        maps = []
        for embed, stage, norm in zip(self.embeds, self.stages, self.norms, strict=True):
            tokens: Tensor = norm(stage(embed(x)))
            x = tokens.permute(0, 3, 1, 2)
            maps.append(x)
        return maps


class _Embed(nn.Module):
    def __init__(self, state: Weights, project: bool) -> None:
        super().__init__()
        self.proj = None
        if project:
            self.proj = conv(state["proj.weight"], state["proj.bias"], stride=2)
        self.norm = _layer_norm(state.part("norm."), 1e-5)

    def forward(self, x: Tensor) -> Tensor:
        if self.proj is not None:
            x = self.proj(x)
        out: Tensor = self.norm(x.permute(0, 2, 3, 1))
        return out


class _Block(nn.Module):
    def __init__(self, state: Weights, heads: int, reduction: int) -> None:
        super().__init__()
        self.norm1 = _layer_norm(state.part("norm1."), 1e-6)
        self.attention = _Attention(state.part("attn."), heads, reduction)
        self.norm2 = _layer_norm(state.part("norm2."), 1e-6)
        self.fc1 = _linear(state["mlp.fc1.weight"], state["mlp.fc1.bias"])
        depthwise = state["mlp.dwconv.weight"]
        self.dwconv = conv(depthwise, state["mlp.dwconv.bias"], groups=len(depthwise))
        self.fc2 = _linear(state["mlp.fc2.weight"], state["mlp.fc2.bias"])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        y: Tensor = self.fc1(self.norm2(x)).permute(0, 3, 1, 2)
        mixed: Tensor = self.fc2(F.gelu(self.dwconv(y)).permute(0, 2, 3, 1))
        return x + mixed


class _Attention(nn.Module):
    def __init__(self, state: Weights, heads: int, reduction: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = _linear(state["q.weight"], state["q.bias"])
        self.kv = _linear(state["kv.weight"], state["kv.bias"])
        self.proj = _linear(state["proj.weight"], state["proj.bias"])
        self.reduce = self.norm = None
        if reduction > 1:
            self.reduce = conv(state["sr.weight"], state["sr.bias"], stride=reduction, padding=0)
            self.norm = _layer_norm(state.part("norm."), 1e-5)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        source = x
        if self.reduce is not None and self.norm is not None:
            source = self.norm(self.reduce(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
        q = self.q(x).view(b, h * w, self.heads, -1).transpose(1, 2)
        kv = self.kv(source).view(b, source.shape[1] * source.shape[2], 2, self.heads, -1)
        k, v = kv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(y.transpose(1, 2).reshape(b, h, w, c))
        return out


def conv(
    weight: Tensor, bias: Tensor, *, groups: int = 1, stride: int = 1, padding: int | None = None
) -> nn.Conv2d:
    """Return a convolution with the given weights; without `padding` it keeps the size."""
    outputs, inputs, kernel, _ = weight.shape
    around = kernel // 2 if padding is None else padding
    made = nn.Conv2d(inputs * groups, outputs, kernel, stride, around, groups=groups)
    made.weight.data = weight.float().contiguous()
    made.bias.data = bias.float().contiguous()  # type: ignore[union-attr]
    return made


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0])
    linear.weight.data, linear.bias.data = weight.float().contiguous(), bias.float()
    return linear


def _layer_norm(state: Weights, eps: float) -> nn.LayerNorm:
    norm = nn.LayerNorm(len(state["weight"]), eps=eps)
    norm.weight.data, norm.bias.data = state["weight"].float(), state["bias"].float()
    return norm
