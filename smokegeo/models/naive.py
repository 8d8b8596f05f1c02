"""MoP exactly as the paper writes it, concatenations and all.

Slow on purpose: tests compare the algebra used elsewhere with it, and the benchmark measures what
the algebra gains. Uses the weights of a `MoP`.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from smokegeo.models.bandsplit import BandSplitEncoder, gather_groups
from smokegeo.models.common import CommonBranch
from smokegeo.models.mop import MoP
from smokegeo.models.padding import pad_small
from smokegeo.models.routers import FRouter, PRouter


def naive_forward(model: MoP, x: Tensor) -> Tensor:
    """Return the logits of the full network (all switches on, all bands present)."""
    height, width = x.shape[2:]
    x = pad_small(x)
    prototypes = cast("Tensor", model.prototypes()) if model.prototypes is not None else None
    if model.individual is None or model.p_router is None or model.f_router is None:
        raise ValueError("the naive form is that of the full network")
    assert prototypes is not None  # noqa: S101  (a P-Router implies prototypes)
    assert model.common is not None  # noqa: S101  (fusion by mean implies both branches)
    individual = naive_individual(model.individual, x)
    alpha = naive_p_router(model.p_router, individual, prototypes)
    beta = naive_f_router(model.f_router, individual, alpha, prototypes)
    routed = individual * beta.repeat_interleave(model.config.band_dim, dim=1)
    fused = (naive_common(model.common, x) + routed) / 2
    logits = model.head(model.dropout(fused))
    return F.interpolate(logits, size=x.shape[2:], mode="bilinear")[:, :, :height, :width]


def naive_individual(encoder: BandSplitEncoder, x: Tensor) -> Tensor:
    """Align each map to D channels, resize, put them side by side band by band, fuse."""
    groups, band_dim = encoder.config.groups, encoder.config.band_dim
    maps = []
    x = gather_groups(x, encoder.order)
    for stage, align in zip(encoder.stages, encoder.align, strict=True):
        x = stage(x)
        maps.append(align(x))
    size = maps[0].shape[2:]
    same = [F.interpolate(m, size=size, mode="bilinear") for m in maps]
    stacked = torch.stack([m.view(m.shape[0], groups, band_dim, *size) for m in same], dim=2)
    return cast("Tensor", encoder.fuse(stacked.reshape(x.shape[0], -1, *size)))


def naive_common(branch: CommonBranch, x: Tensor) -> Tensor:
    """Align each map to D channels, resize, concatenate, fuse."""
    maps = [align(m) for align, m in zip(branch.align, branch.encoder(x), strict=True)]
    size = maps[0].shape[2:]
    same = [F.interpolate(m, size=size, mode="bilinear") for m in maps]
    return F.relu(branch.norm(branch.fuse(torch.cat(same, dim=1))))


def naive_p_router(router: PRouter, features: Tensor, prototypes: Tensor) -> Tensor:
    """Concatenate each band's features with all its prototypes at every pixel, convolve."""
    config = router.config
    b, _, h, w = features.shape
    outputs = []
    for band in range(config.groups):
        own = features[:, band * config.band_dim : (band + 1) * config.band_dim]
        flat = prototypes[:, band].reshape(1, -1, 1, 1).expand(b, -1, h, w)
        weight = router.weight[0 if config.shared_p_router else band]
        bias = router.bias[0 if config.shared_p_router else band]
        outputs.append(F.conv2d(torch.cat([own, flat], 1), weight[:, :, None, None], bias))
    return torch.stack(outputs, dim=1).softmax(dim=2)


def naive_f_router(router: FRouter, features: Tensor, alpha: Tensor, prototypes: Tensor) -> Tensor:
    """Aggregate the prototypes at every pixel, concatenate them with the features, convolve."""
    config = router.config
    b, _, h, w = features.shape
    shaped = alpha.view(b, config.groups, config.classes, config.prototypes, h, w)
    aggregated = torch.einsum("bgwkhx,wgkc->bwgchx", shaped, prototypes)
    joined = torch.cat([features, aggregated.reshape(b, -1, h, w)], dim=1)
    return F.conv2d(joined, router.weight[:, :, None, None], router.bias).softmax(dim=1)
