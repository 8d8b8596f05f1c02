"""PSPNet: a dilated ResNet whose last map is pooled to four grids and read beside them.

Zhao et al., "Pyramid Scene Parsing Network", CVPR 2017. smp's implementation over a whole ResNet
at stride 8, ResNet-18 (realtime) or ResNet-50 (accuracy); the paper that compares does not name
its backbones.

Deviations: no auxiliary classifier on the fourth stage, no ImageNet weights, and smp's head: no
norm after pooling to a single cell, a 1x1 convolution that joins the grids, a 3x3 one that
classifies.
"""

from __future__ import annotations

from torch import nn

BACKBONES = {"realtime": "resnet18", "accuracy": "resnet50"}


def build(bands: int, variant: str = "realtime") -> nn.Module:
    """Return a PSPNet with weights at their random start."""
    import segmentation_models_pytorch as smp

    # smp would stop after the third stage by default; the original dilates the last two.
    network: nn.Module = smp.PSPNet(
        BACKBONES[variant],
        encoder_weights=None,
        encoder_depth=5,
        in_channels=bands,
        classes=2,
        upsampling=8,
    )
    network.encoder.make_dilated(8)  # type: ignore[union-attr, operator]  # smp's own method
    return network
