"""MoP for inference: the same function with all the linear algebra done beforehand.

Built from a configuration and the weights of a `MoP`, with plain torch only: timm, TorchGeo and
Lightning are not needed to run a trained model. What is folded, exactly:

* batch norms into the convolutions beside them;
* in a band block, 1x1 expansion and 3x3 convolution into one 3x3 (see `_BandBlock` for the border);
* align and fuse of both branches into one 1x1 convolution a stage;
* routers and head through the individual branch: the features X_indi are only ever used by 1x1
  convolutions, so each stage maps straight to the P-Router's logits, the F-Router's and the head's
  products, and the D channels of X_indi never exist;
* prototypes into the P-Router's bias and a small matrix on alpha;
* the head before resizing: two logits are brought to full size, not D channels.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.models.bandsplit import EXPANSION
from smokegeo.models.config import MoPConfig
from smokegeo.models.lean_mit import LeanMiT, conv
from smokegeo.models.padding import pad_small
from smokegeo.models.resize import sum_resized
from smokegeo.models.shapes import check_shapes
from smokegeo.models.weights import Weights

#: What folding may make of the routers, in numbers of 8 bytes; the paper's network has 60,000.
_MOST_NUMBERS = 100_000_000


class FoldedMoP(nn.Module):
    """(B, bands, H, W) and optionally `available` (B, bands) to logits (B, classes, H, W)."""

    def __init__(self, config: MoPConfig, state: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        check_shapes(config, state)
        _check_size(config)
        weights = Weights({name: value.detach().cpu().double() for name, value in state.items()})
        scale = 0.5 if config.fusion == "mean" else 1.0
        head = weights["head.weight"][:, :, 0, 0] * scale
        halves = torch.split(head, config.feature_dim, dim=1)  # two only when concatenated
        self.stem, self.stem_split = _stem(config, weights)
        self.common = None
        if config.fusion != "spectral":
            self.common = _Common(config, weights, halves[0])
        self.individual = None
        if config.band_split:
            self.individual = _Individual(config, weights, halves[-1])
        self.bias: Tensor
        self.register_buffer("bias", weights["head.bias"].float())
        self.members: Tensor
        self.register_buffer("members", config.membership())
        self.eval().requires_grad_(False)

    def forward(self, x: Tensor, available: Tensor | None = None) -> Tensor:
        """Return logits (B, classes, H, W)."""
        height, width = x.shape[2], x.shape[3]
        present = None
        if available is not None:
            x = torch.where(available.bool()[:, :, None, None], x, torch.zeros((), device=x.device))
            present = (available.to(x.dtype) @ self.members > 0).to(x.dtype)
        x = pad_small(x)
        first, second = torch.split(self.stem(x), self.stem_split, dim=1)
        logits = self.bias[:, None, None]
        if self.common is not None:
            logits = logits + self.common(first)
        if self.individual is not None:
            logits = logits + self.individual(second, present)
        size = (x.shape[2], x.shape[3])
        return F.interpolate(logits, size=size, mode="bilinear")[:, :, :height, :width]


def _stem(config: MoPConfig, state: Weights) -> tuple[nn.Conv2d, list[int]]:
    """Return the first convolution of both branches as one: they read the same large image."""
    weights, biases = [], []
    if config.fusion != "spectral":
        weights.append(state["common.encoder.patch_embed.proj.weight"])
        biases.append(state["common.encoder.patch_embed.proj.bias"])
    if config.band_split:
        weight, bias = _band_stem(config, state)
        weights.append(weight)
        biases.append(bias)
    sizes = [len(weight) for weight in weights]
    if config.fusion == "spectral":
        sizes = [0, *sizes]
    elif not config.band_split:
        sizes = [*sizes, 0]
    return conv(torch.cat(weights), torch.cat(biases), stride=4), sizes


def _check_size(config: MoPConfig) -> None:
    """Refuse a network of which folding would make very much more than its weights are."""
    readers = config.classes + config.f_router + config.classes * config.prototypes
    if config.band_split and readers * config.groups * config.feature_dim > _MOST_NUMBERS:
        raise ValueError(f"{config.groups} bands of {config.band_dim} features are too many")


def _band_stem(config: MoPConfig, state: Weights) -> tuple[Tensor, Tensor]:
    """Return the grouped first convolution of the individual branch, norm folded, made dense."""
    scale, shift = _norm(state.part("individual.stages.0.norm."))
    grouped = state["individual.stages.0.down.weight"] * scale[:, None, None, None]
    bias = state["individual.stages.0.down.bias"] * scale + shift
    dense = grouped.new_zeros(len(grouped), config.bands, *grouped.shape[2:])
    width = config.stage_widths[0]
    for group, bands in enumerate(config.group_members()):
        rows = slice(group * width, (group + 1) * width)
        dense[rows, list(bands)] = grouped[rows, : len(bands)]
    return dense, bias


class _Common(nn.Module):
    """The common branch after its stem, up to its share of the logits, at a quarter of the size."""

    def __init__(self, config: MoPConfig, state: Weights, head: Tensor) -> None:
        super().__init__()
        self.encoder = LeanMiT(config, state.part("common.encoder."))
        dim = config.feature_dim
        scale, shift = _norm(state.part("common.norm."))
        fuse = state["common.fuse.weight"][:, :, 0, 0] * scale[:, None]
        bias = shift
        self.project = nn.ParameterList()
        for i in range(4):
            own = fuse[:, i * dim : (i + 1) * dim]
            self.project.append(_fixed(own @ state[f"common.align.{i}.weight"][:, :, 0, 0]))
            bias = bias + own @ state[f"common.align.{i}.bias"]
        self.bias = _fixed(bias[:, None, None])
        self.head = _fixed(head)

    def forward(self, stem: Tensor) -> Tensor:
        maps = [_mix(w, m) for w, m in zip(self.project, self.encoder(stem), strict=True)]
        return _mix(self.head, sum_resized(maps).add_(self.bias).relu_())


class _Individual(nn.Module):
    """The individual branch and the routers up to their share of the logits."""

    def __init__(self, config: MoPConfig, state: Weights, head: Tensor) -> None:
        super().__init__()
        self.config = config
        self.stages = nn.ModuleList(
            _BandStage(config, state.part(f"individual.stages.{i}."), i) for i in range(4)
        )
        self.project = nn.ParameterList()
        readers, bias = self._readers(state, head)
        merged, feature_bias = _merged(config, state)
        groups, band_dim = config.groups, config.band_dim
        spread = feature_bias.view(groups, band_dim)
        # Each reader is (outputs, groups, band_dim): what it takes from each band.
        for weight in merged:
            through = torch.einsum("ogc,gcw->ogw", readers, weight)
            self.project.append(_fixed(through.reshape(len(readers), -1)))
        # The bias of X_indi, band by band: an absent band must not bring its share.
        self.band_bias: Tensor
        self.register_buffer("band_bias", torch.einsum("ogc,gc->og", readers, spread).float())
        self.out_bias: Tensor
        self.register_buffer("out_bias", bias.float())

    def _readers(self, state: Weights, head: Tensor) -> tuple[Tensor, Tensor]:
        """Return all 1x1 weights that read X_indi, stacked, and their biases.

        In this order: the head, class by class and band by band; the F-Router; the P-Router.
        """
        config = self.config
        groups, band_dim, classes = config.groups, config.band_dim, config.classes
        eye = torch.eye(groups, dtype=head.dtype)
        by_band = head.view(classes, groups, band_dim)
        rows = [torch.einsum("wgc,gh->wghc", by_band, eye).reshape(-1, groups, band_dim)]
        biases = [head.new_zeros(classes * groups)]
        self.mixing = None
        self.constant: Tensor | None
        self.register_buffer("constant", None)
        if config.f_router:
            router = state["f_router.weight"]
            rows.append(router[:, : config.feature_dim].view(groups, groups, band_dim))
            biases.append(state["f_router.bias"])
        if config.psr and config.f_router:
            vectors = nn.functional.normalize(state["prototypes.vectors"], dim=-1)
            on_prototypes = router[:, config.feature_dim :].view(groups, classes, groups, band_dim)
            mixing = torch.einsum("owgc,wgkc->ogwk", on_prototypes, vectors)
            if config.p_router:
                self.mixing = _fixed(mixing.reshape(groups, -1))
                weight, bias = _p_router(config, state, vectors)
                rows.append(torch.einsum("goc,gh->gohc", weight, eye).reshape(-1, groups, band_dim))
                biases.append(bias.reshape(-1))
            else:
                mean = mixing.sum(dim=(2, 3)) / config.prototypes
                self.register_buffer("constant", mean.float())
        return torch.cat(rows), torch.cat(biases)

    def forward(self, x: Tensor, present: Tensor | None) -> Tensor:
        config = self.config
        groups, classes = config.groups, config.classes
        maps = []
        for i, stage in enumerate(self.stages):
            x = stage(x)
            gated = x
            if present is not None:
                gate = present.repeat_interleave(config.stage_widths[i], dim=1)
                gated = x * gate[:, :, None, None]
            maps.append(_mix(self.project[i], gated))
        everything = sum_resized(maps)
        if present is None:
            everything += (self.out_bias + self.band_bias.sum(dim=1))[:, None, None]
        else:
            everything += (self.out_bias + present @ self.band_bias.T)[:, :, None, None]
        b, _, h, w = everything.shape
        products = everything[:, : classes * groups].view(b, classes, groups, h, w)
        if not config.f_router:
            return products.sum(dim=2)
        start = classes * groups
        logits = everything[:, start : start + groups]
        if self.mixing is not None:
            alpha = everything[:, start + groups :].view(b, groups, -1, h, w).softmax(dim=2)
            if present is not None:
                alpha = alpha * present[:, :, None, None, None]
            logits = logits + _mix(self.mixing, alpha.view(b, -1, h, w))
        elif self.constant is not None:
            if present is None:
                logits = logits + self.constant.sum(dim=1)[:, None, None]
            else:
                logits = logits + (present @ self.constant.T)[:, :, None, None]
        if present is not None:
            absent = present[:, :, None, None] == 0
            logits = logits.masked_fill(absent, torch.finfo(logits.dtype).min)
        beta = logits.softmax(dim=1)
        if config.rescale:
            beta = beta * (groups if present is None else present.sum(1)[:, None, None, None])
        if present is not None:
            beta = beta * present[:, :, None, None]
        return (products * beta[:, None]).sum(dim=2)


class _BandStage(nn.Module):
    def __init__(self, config: MoPConfig, state: Weights, index: int) -> None:
        super().__init__()
        self.down = None
        if index > 0:  # the first is in the stem
            scale, shift = _norm(state.part("norm."))
            weight = state["down.weight"] * scale[:, None, None, None]
            bias = state["down.bias"] * scale + shift
            self.down = conv(weight, bias, groups=config.groups, stride=2)
        self.blocks = nn.ModuleList(
            _BandBlock(config.groups, state.part(f"blocks.{i}."))
            for i in range(config.depths[index])
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.down is not None:
            x = self.down(x)
        for block in self.blocks:
            x = block(x)
        return x


class _BandBlock(nn.Module):
    """A band block with norm, expansion and 3x3 in one 3x3 convolution.

    The constant that norm and expansion add passes through the 3x3 as well, and there its padding
    shows: along the border, kernel taps that lie outside see 0 instead of the constant. The folded
    bias is right in the interior; `_mend_border` takes the missing taps out again.
    """

    def __init__(self, groups: int, state: Weights) -> None:
        super().__init__()
        scale, shift = _norm(state.part("norm."))
        width = len(scale) // groups
        inner = width * EXPANSION
        expand = state["expand.weight"].view(groups, inner, width)
        constant = torch.einsum("goi,gi->go", expand, shift.view(groups, width))
        constant = constant + state["expand.bias"].view(groups, inner)
        expand = expand * scale.view(groups, 1, width)
        mix = state["mix.weight"].view(groups, inner, inner, 3, 3)
        weight = torch.einsum("gomyx,gmi->goiyx", mix, expand)
        taps = torch.einsum("gomyx,gm->goyx", mix, constant).reshape(-1, 3, 3)
        bias = state["mix.bias"] + taps.sum(dim=(1, 2))
        self.mix = conv(weight.reshape(groups * inner, width, 3, 3), bias, groups=groups)
        self.reduce = conv(state["reduce.weight"], state["reduce.bias"], groups=groups)
        self.taps: Tensor
        self.register_buffer("taps", taps.float())

    def forward(self, x: Tensor) -> Tensor:
        y = self._mend_border(self.mix(x))
        out: Tensor = x + self.reduce(F.gelu(y))
        return out

    def _mend_border(self, y: Tensor) -> Tensor:
        if torch.onnx.is_in_onnx_export():  # no writing into slices there
            inside = torch.ones_like(y[:1, :1])
            full = self.taps.sum(dim=(1, 2))[:, None, None]
            return y - full + F.conv2d(inside, self.taps[:, None], padding=1)
        taps = self.taps
        y[:, :, 0] -= taps[:, 0].sum(dim=1)[:, None]
        y[:, :, -1] -= taps[:, 2].sum(dim=1)[:, None]
        y[:, :, :, 0] -= taps[:, :, 0].sum(dim=1)[:, None]
        y[:, :, :, -1] -= taps[:, :, 2].sum(dim=1)[:, None]
        for row, tap_row in ((0, 0), (-1, 2)):
            for column, tap_column in ((0, 0), (-1, 2)):
                y[:, :, row, column] += taps[:, tap_row, tap_column]  # taken out twice
        return y


def _merged(config: MoPConfig, state: Weights) -> tuple[list[Tensor], Tensor]:
    """Return, per stage, fuse after align as (groups, band_dim, width), and X_indi's bias."""
    groups, band_dim = config.groups, config.band_dim
    fuse = state["individual.fuse.weight"].view(groups, band_dim, 4, band_dim)
    bias = state["individual.fuse.bias"].view(groups, band_dim)
    weights = []
    for i in range(4):
        align = state[f"individual.align.{i}.weight"].view(groups, band_dim, -1)
        weights.append(torch.bmm(fuse[:, :, i], align))
        own = state[f"individual.align.{i}.bias"].view(groups, band_dim, 1)
        bias = bias + torch.bmm(fuse[:, :, i], own)[..., 0]
    return weights, bias.reshape(-1)


def _p_router(config: MoPConfig, state: Weights, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the P-Router's weights on features (groups, outputs, band_dim) and its bias."""
    weight = state["p_router.weight"].expand(config.groups, -1, -1)
    stacked = vectors.transpose(0, 1).reshape(config.groups, -1, 1)
    bias = state["p_router.bias"] + (weight[:, :, config.band_dim :] @ stacked)[..., 0]
    return weight[:, :, : config.band_dim], bias


def _norm(state: Weights) -> tuple[Tensor, Tensor]:
    """Return the scale and shift a batch norm amounts to in evaluation."""
    scale = state["weight"] * torch.rsqrt(state["running_var"] + 1e-5)
    return scale, state["bias"] - state["running_mean"] * scale


def _fixed(values: Tensor) -> nn.Parameter:
    return nn.Parameter(values.float().contiguous(), requires_grad=False)


def _mix(weight: Tensor, x: Tensor) -> Tensor:
    """Apply a 1x1 convolution (outputs, inputs) as one matrix product.

    Several times faster on CPUs than a convolution call, and takes channels-last maps as they are.
    """
    return torch.matmul(weight, x.flatten(2)).view(x.shape[0], -1, x.shape[2], x.shape[3])
