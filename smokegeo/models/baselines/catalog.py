"""Which methods there are: those of the paper's tables, in their order, and a few more."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from smokegeo.errors import UsageError

VARIANTS = ("realtime", "accuracy")
#: The encoders of smp that `backbone` may name. A card comes from anyone, and smp takes other names
#: for places to load a network from: a hub on the network, a folder of this machine.
BACKBONES = (
    *(f"resnet{depth}" for depth in (18, 34, 50, 101, 152)),
    "mobilenet_v2",
    *(f"efficientnet-b{size}" for size in range(5)),
)


@dataclass(frozen=True)
class Method:
    """A method of the paper: its name in tables, its kind, and its encoder in each variant.

    `in_paper` are the variants the paper's tables have; `differs` says in a few words what keeps
    ours from being the original. Raise `revision` whenever a change of the code changes what the
    method learns: a benchmark then trains it anew instead of keeping the results of old code.
    """

    title: str
    family: str
    encoders: tuple[str, str]
    differs: str
    in_paper: tuple[str, ...] = VARIANTS
    revision: int = 1


#: The ten methods of the paper; all but MoP are built by a module of this package.
METHODS: Mapping[str, Method] = {
    "pspnet": Method("PSPNet", "CNN", ("ResNet-18", "ResNet-50"), "smp's; no auxiliary classifier"),
    "deeplabv3+": Method(
        "DeepLabV3+", "CNN", ("ResNet-18", "ResNet-50"), "smp's; ResNet, not Xception", revision=2
    ),
    "trans-bvm": Method(
        "Trans-BVM",
        "CNN",
        ("ResNet-18", "ResNet-50"),
        "our own from the idea; dark channel over all bands; no sampling after training",
        in_paper=("accuracy",),
        revision=2,
    ),
    "ocrnet": Method("OCRNet", "CNN", ("HRNet-W18-small-v2", "HRNet-W48"), "our own head"),
    "segnext": Method(
        "SegNeXt",
        "CNN",
        ("MSCAN-T", "MSCAN-B"),
        "our own; fixed bases and one gradient step in the Hamburger",
    ),
    "mask2former": Method(
        "Mask2Former",
        "Transformer",
        ("a narrow Swin", "Swin-T"),
        "that of transformers; less stochastic depth",
        in_paper=("accuracy",),
    ),
    "segformer": Method("SegFormer", "Transformer", ("MiT-B0", "MiT-B3"), "timm's encoder"),
    "fosp": Method(
        "FoSp",
        "Transformer",
        ("MiT-B0", "MiT-B3"),
        "our own from the idea, without the colour inpainter",
    ),
    "protoseg": Method(
        "ProtoSeg",
        "Transformer",
        ("MiT-B0", "MiT-B3"),
        "our own; scaled logits instead of a norm over two classes",
    ),
    "mop": Method("MoP", "Transformer", ("narrow MiT, band split",) * 2, "our own from the text"),
}
#: Where a network is made: module of this package, and function.
_BUILDERS: Mapping[str, tuple[str, str]] = {
    "pspnet": ("pspnet", "build"),
    "deeplabv3+": ("deeplabv3plus", "build"),
    "trans-bvm": ("transbvm", "build"),
    "ocrnet": ("ocrnet", "build"),
    "segnext": ("segnext", "build"),
    "mask2former": ("mask2former", "build"),
    "segformer": ("segformer", "build"),
    "fosp": ("fosp", "build"),
    "protoseg": ("protoseg", "build"),
    "unet": ("others", "unet"),
    "fcn": ("others", "fcn"),
    "upernet": ("others", "upernet"),
}
BASELINES = tuple(_BUILDERS)


def builder(name: str) -> Callable[..., nn.Module]:
    """Return the function that makes a baseline; its module is imported only now."""
    module, function = _BUILDERS[name]
    found: Callable[..., nn.Module] = getattr(
        importlib.import_module(f"smokegeo.models.baselines.{module}"), function
    )
    return found


def checked_options(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a baseline, the defaults included; refuse what it does not have."""
    known = {
        item.name: item.default
        for item in inspect.signature(builder(name)).parameters.values()
        if item.default is not inspect.Parameter.empty
    }
    if unknown := sorted(set(given) - set(known)):
        raise UsageError(
            f"model {name} has no option {', '.join(unknown)}; it has {', '.join(known)}."
        )
    chosen = {**known, **given}
    if "variant" in chosen and chosen["variant"] not in VARIANTS:
        raise UsageError(
            f"model {name}: variant {chosen['variant']!r} is not one of {', '.join(VARIANTS)}."
        )
    if "backbone" in given and given["backbone"] not in (known["backbone"], *BACKBONES):
        raise UsageError(
            f"model {name}: backbone {given['backbone']!r} is not one of {', '.join(BACKBONES)}."
        )
    return chosen
