"""The shapes of all weights of a MoP, told without timm and before any memory is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from smokegeo.models.bandsplit import BandSplitEncoder
from smokegeo.models.config import REDUCTIONS, STAGE_CHANNELS, MoPConfig
from smokegeo.models.prototypes import Prototypes
from smokegeo.models.routers import FRouter, PRouter

Shape = tuple[int, ...]

#: Channel expansion in the blocks of the common branch's encoder.
_EXPANSION = 4
#: A counter that older files lack; torch loads them all the same.
_COUNTER = "num_batches_tracked"


def check_shapes(config: MoPConfig, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of this network, however well they fit together."""
    wanted = shapes(config)
    absent = [name for name in wanted if name not in weights and not name.endswith(_COUNTER)]
    if absent:
        raise ValueError(f"its weights lack {', '.join(absent[:3])}")
    if extra := sorted(set(weights) - set(wanted)):
        raise ValueError(f"its weights {', '.join(extra[:3])} have no place in this network")
    for name, value in weights.items():
        if value.shape != wanted[name]:
            raise ValueError(f"its {name} has shape {tuple(value.shape)}, not {wanted[name]}")


def shapes(config: MoPConfig) -> dict[str, Shape]:
    """Return the shape of each weight of a MoP by its name."""
    out = {} if config.fusion == "spectral" else dict(_common(config))
    both = 2 if config.fusion == "concat" else 1
    with torch.device("meta"):  # shapes without numbers
        parts = {
            "individual": BandSplitEncoder(config) if config.band_split else None,
            "prototypes": Prototypes(config) if config.psr else None,
            "p_router": PRouter(config) if config.p_router else None,
            "f_router": FRouter(config) if config.f_router else None,
            "head": nn.Conv2d(both * config.feature_dim, config.classes, 1),
        }
    for part, module in parts.items():
        if module is not None:
            for name, value in module.state_dict().items():
                out[f"{part}.{name}"] = tuple(value.shape)
    return out


def _common(config: MoPConfig) -> Iterator[tuple[str, Shape]]:
    """Yield the shapes of the common branch, whose encoder is timm's `pvt_v2`."""
    dim = config.feature_dim
    before = config.bands
    for stage, width in enumerate(STAGE_CHANNELS):
        at = f"common.encoder.stages_{stage}."
        down, kernel = f"{at}downsample.", 3
        if stage == 0:
            down, kernel = "common.encoder.patch_embed.", 7
        yield from _with_bias(f"{down}proj", width, before, kernel, kernel)
        yield from _with_bias(f"{down}norm", width)
        for block in range(config.depths[stage]):
            yield from _block(f"{at}blocks.{block}.", width, REDUCTIONS[stage])
        yield from _with_bias(f"{at}norm", width)
        yield from _with_bias(f"common.align.{stage}", dim, width, 1, 1)
        before = width
    yield "common.fuse.weight", (dim, 4 * dim, 1, 1)
    yield from _with_bias("common.norm", dim)
    yield "common.norm.running_mean", (dim,)
    yield "common.norm.running_var", (dim,)
    yield f"common.norm.{_COUNTER}", ()


def _block(at: str, width: int, reduction: int) -> Iterator[tuple[str, Shape]]:
    inner = width * _EXPANSION
    for norm in ("norm1", "norm2"):
        yield from _with_bias(f"{at}{norm}", width)
    yield from _with_bias(f"{at}attn.q", width, width)
    yield from _with_bias(f"{at}attn.kv", 2 * width, width)
    yield from _with_bias(f"{at}attn.proj", width, width)
    if reduction > 1:
        yield from _with_bias(f"{at}attn.sr", width, width, reduction, reduction)
        yield from _with_bias(f"{at}attn.norm", width)
    yield from _with_bias(f"{at}mlp.fc1", inner, width)
    yield from _with_bias(f"{at}mlp.dwconv", inner, 1, 3, 3)
    yield from _with_bias(f"{at}mlp.fc2", width, inner)


def _with_bias(name: str, *shape: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]
