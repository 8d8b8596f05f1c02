"""DeepLabV3+: atrous pyramid pooling over a ResNet, and a decoder that adds one fine map.

Chen et al., "Encoder-Decoder with Atrous Separable Convolution for Semantic Image Segmentation",
ECCV 2018. smp's implementation at stride 16, over ResNet-18 (realtime) or ResNet-50 (accuracy);
`backbone` names another (`catalog.BACKBONES`).

Deviations: a ResNet instead of Xception, and no ImageNet weights. Rates are those of the paper for
stride 16. Crops of less than 300 pixels or so have maps too small for the largest of them, and
those of 96 pixels for all: there, training reaches the middle tap of each alone.
"""

from __future__ import annotations

from torch import nn

BACKBONES = {"realtime": "resnet18", "accuracy": "resnet50"}
#: Of the atrous convolutions; smp's own default is twice that, the paper's for stride 8.
RATES = (6, 12, 18)


def build(bands: int, variant: str = "realtime", backbone: str | None = None) -> nn.Module:
    """Return a DeepLabV3+ with weights at their random start."""
    import segmentation_models_pytorch as smp

    network: nn.Module = smp.DeepLabV3Plus(
        backbone or BACKBONES[variant],
        encoder_weights=None,
        decoder_atrous_rates=RATES,
        in_channels=bands,
        classes=2,
    )
    return network
