"""The individual branch: an encoder in which no band ever meets another.

Every convolution is grouped by band, every norm works channel by channel, and features of the
four stages are put side by side band by band, so that a grouped convolution over them still keeps
bands apart.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.config import MoPConfig
from smokegeo.models.resize import sum_resized

#: Channel expansion inside a block.
EXPANSION = 4


class BandNorm(nn.BatchNorm2d):
    """Batch normalisation that leaves absent bands out of its statistics.

    An absent band is all zeros; counted in, it would shift mean and variance for the samples that
    do have the band. LayerNorm would mix bands, GroupNorm would erase a band's level.
    """

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Normalise (B, C, H, W); `present` is (B, C) with 1 where a channel's band exists."""
        single = x.numel() == x.shape[1]  # torch refuses to train on one value per channel
        if not self.training or (present is None and not single):
            return super().forward(x)
        if present is None:
            present = x.new_ones(x.shape[:2])
        kind = x.dtype
        if kind in (torch.float16, torch.bfloat16):  # sums over many pixels overflow in half
            x = x.float()
        weight = present[:, :, None, None].to(x.dtype)
        pixels = x.shape[2] * x.shape[3]
        count = weight.sum(dim=(0, 2, 3)) * pixels
        seen = count > 0
        safe = count.clamp(min=1)
        mean = (x * weight).sum(dim=(0, 2, 3)) / safe
        centred = x - mean[None, :, None, None]
        var = (centred.square() * weight).sum(dim=(0, 2, 3)) / safe
        self._remember(mean.detach(), var.detach(), count)
        # A band absent from the whole batch has no statistics: any finite scale will do.
        scale = cast("Tensor", self.weight) * torch.rsqrt(torch.where(seen, var, 1.0) + self.eps)
        shift = cast("Tensor", self.bias)
        return (centred * scale[None, :, None, None] + shift[None, :, None, None]).to(kind)

    @torch.no_grad()
    def _remember(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        running_mean = cast("Tensor", self.running_mean)
        running_var = cast("Tensor", self.running_var)
        step = cast("float", self.momentum) * (count > 1).to(mean.dtype)  # one value has no spread
        unbiased = var * count / (count - 1).clamp(min=1)
        running_mean += step * (mean - running_mean)
        running_var += step * (unbiased - running_var)


class BandBlock(nn.Module):
    """A residual block of 1x1 expansion, 3x3 and 1x1 reduction, all grouped by band."""

    def __init__(self, width: int, groups: int, drop_path: float) -> None:
        super().__init__()
        channels, inner = width * groups, width * groups * EXPANSION
        self.norm = BandNorm(channels)
        self.expand = nn.Conv2d(channels, inner, 1, groups=groups)
        self.mix = nn.Conv2d(inner, inner, 3, padding=1, groups=groups)
        self.reduce = nn.Conv2d(inner, channels, 1, groups=groups)
        self.drop_path = drop_path

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Return features of the same shape."""
        y = self.reduce(F.gelu(self._spread(self.norm(x, present))))
        return x + _drop_path(y, self.drop_path if self.training else 0.0)

    def _spread(self, x: Tensor) -> Tensor:
        """Return expansion and 3x3 as one 3x3 convolution: its product is small, its maps are not.

        The expansion's bias passes through the 3x3, too; along the border, where kernel taps lie
        outside, less of it. A channel of ones in each band carries it.
        """
        groups, inner = self.mix.groups, self.mix.weight.shape[1]
        bias = cast("Tensor", self.expand.bias)
        expand = torch.cat([self.expand.weight[:, :, 0, 0], bias[:, None]], dim=1)
        mix = self.mix.weight.view(groups, inner, inner, 9)
        weight = torch.einsum("gomt,gmi->goit", mix, expand.view(groups, inner, -1))
        b, _, h, w = x.shape
        ones = x.new_ones(b, groups, 1, h, w)
        x = torch.cat([x.view(b, groups, -1, h, w), ones], dim=2).flatten(1, 2)
        return F.conv2d(
            x, weight.reshape(groups * inner, -1, 3, 3), self.mix.bias, padding=1, groups=groups
        )


class BandStage(nn.Module):
    """A strided convolution that halves (or quarters) the map, then blocks, grouped by band."""

    def __init__(
        self, inputs: int, width: int, groups: int, depth: int, stride: int, drops: list[float]
    ) -> None:
        super().__init__()
        kernel = 7 if stride == 4 else 3
        channels = width * groups
        self.down = nn.Conv2d(
            inputs * groups, channels, kernel, stride, padding=kernel // 2, groups=groups
        )
        self.norm = BandNorm(channels)
        self.blocks = nn.ModuleList(BandBlock(width, groups, drops[i]) for i in range(depth))
        self.width = width

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Return (B, groups * width, H / stride, W / stride)."""
        spread = None if present is None else present.repeat_interleave(self.width, dim=1)
        x = self.norm(self.down(x), spread)
        for block in self.blocks:
            x = block(x, spread)
        return x


class BandSplitEncoder(nn.Module):
    """The individual branch: (B, bands, H, W) to X_indi (B, D, H/4, W/4), band after band."""

    def __init__(self, config: MoPConfig) -> None:
        super().__init__()
        self.config = config
        groups, widths = config.groups, config.stage_widths
        members = config.group_members()
        size = max(len(group) for group in members)
        drops = _drop_rates(config)
        inputs = (size, *widths[:-1])
        self.stages = nn.ModuleList(
            BandStage(inputs[i], widths[i], groups, config.depths[i], 4 if i == 0 else 2, drops[i])
            for i in range(4)
        )
        self.align = nn.ModuleList(
            nn.Conv2d(width * groups, config.feature_dim, 1, groups=groups) for width in widths
        )
        self.fuse = nn.Conv2d(4 * config.feature_dim, config.feature_dim, 1, groups=groups)
        self.order: Tensor
        self.register_buffer("order", group_order(config), persistent=False)

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Encode; `present` is (B, groups) with 1 where the band exists."""
        maps = []
        x = gather_groups(x, self.order)
        for stage in self.stages:
            x = stage(x, present)
            maps.append(x)
        return self.merge(maps)

    def merge(self, maps: list[Tensor]) -> Tensor:
        """Align the four maps, bring them to one size and fuse them.

        Aligning and fusing are both linear, and a 1x1 convolution commutes with bilinear
        resizing: each map goes through the product of the two at its own resolution, and only
        the sum is made at full size. The concatenated tensor of 4 D channels never exists.
        """
        groups = self.config.groups
        pairs = zip(self.merged_weights(), maps, strict=True)
        return sum_resized([F.conv2d(x, *linear, groups=groups) for linear, x in pairs])

    def merged_weights(self) -> list[tuple[Tensor, Tensor | None]]:
        """Return, per stage, the grouped 1x1 weights of fuse after align; the bias goes first."""
        groups, band_dim = self.config.groups, self.config.band_dim
        # fuse takes [band][stage][channel]: a slice per stage, one matrix per band.
        fuse = self.fuse.weight.view(groups, band_dim, 4, band_dim)
        bias = cast("Tensor", self.fuse.bias).view(groups, band_dim)
        merged: list[tuple[Tensor, Tensor | None]] = []
        for i, module in enumerate(self.align):
            conv = cast("nn.Conv2d", module)
            align = conv.weight.view(groups, band_dim, -1)
            weight = torch.bmm(fuse[:, :, i], align)
            offset = torch.bmm(fuse[:, :, i], cast("Tensor", conv.bias).view(groups, band_dim, 1))
            bias = bias + offset[..., 0]
            merged.append((weight.view(groups * band_dim, -1, 1, 1), None))
        return [(merged[0][0], bias.view(-1)), *merged[1:]]


def group_order(config: MoPConfig) -> Tensor:
    """Return which input channel each slot of each group takes; `bands` stands for nothing."""
    members = config.group_members()
    size = max(len(group) for group in members)
    slots = [list(group) + [config.bands] * (size - len(group)) for group in members]
    return torch.tensor(slots).flatten()


def gather_groups(x: Tensor, order: Tensor) -> Tensor:
    """Lay out the bands group by group, with zeros where a group is smaller than the largest."""
    if len(order) == x.shape[1]:
        return x  # one band a group, or groups of equal size: neighbours are in place already
    nothing = x.new_zeros(x.shape[0], 1, *x.shape[2:])
    return torch.cat([x, nothing], dim=1)[:, order]


def _drop_rates(config: MoPConfig) -> list[list[float]]:
    """Return the drop-path rate of each block, growing linearly with depth."""
    total = sum(config.depths)
    rates = [config.drop_path * i / max(1, total - 1) for i in range(total)]
    out, start = [], 0
    for depth in config.depths:
        out.append(rates[start : start + depth])
        start += depth
    return out


def _drop_path(x: Tensor, rate: float) -> Tensor:
    """Drop the whole residual of some samples, keeping the expectation."""
    if rate == 0.0:
        return x
    keep = x.new_empty(x.shape[0], 1, 1, 1).bernoulli_(1 - rate).div_(1 - rate)
    return x * keep
