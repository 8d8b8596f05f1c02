"""DeepLabV3+: atrous pyramid pooling over a ResNet, and a decoder that adds one fine map.

Chen et al., "Encoder-Decoder with Atrous Separable Convolution for Semantic Image Segmentation",
ECCV 2018. smp's implementation at stride 16, over ResNet-18 (realtime) or ResNet-50 (accuracy);
`backbone` names another (`catalog.BACKBONES`).

Deviations: a ResNet instead of Xception, and no ImageNet weights.
"""

from __future__ import annotations

from torch import nn

BACKBONES = {"realtime": "resnet18", "accuracy": "resnet50"}


def build(bands: int, variant: str = "realtime", backbone: str | None = None) -> nn.Module:
    """Return a DeepLabV3+ with weights at their random start."""
    import segmentation_models_pytorch as smp

    network: nn.Module = smp.DeepLabV3Plus(
        backbone or BACKBONES[variant], encoder_weights=None, in_channels=bands, classes=2
    )
    return network
