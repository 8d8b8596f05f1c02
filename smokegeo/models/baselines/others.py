"""Networks of TorchGeo that the paper does not compare with: FCN, U-Net and UPerNet.

U-Net and UPerNet have a ResNet-18 unless `backbone` names another (`catalog.BACKBONES`); FCN is
plain convolutions. No pretrained weights.
"""

from __future__ import annotations

from torch import nn

from smokegeo.torchgeo_api import torchgeo_network


def unet(bands: int, backbone: str = "resnet18") -> nn.Module:
    """Return a U-Net with weights at their random start."""
    return torchgeo_network("unet", backbone, bands)


def fcn(bands: int) -> nn.Module:
    """Return TorchGeo's plain fully convolutional network."""
    return torchgeo_network("fcn", "none", bands)


def upernet(bands: int, backbone: str = "resnet18") -> nn.Module:
    """Return a UPerNet with weights at their random start."""
    return torchgeo_network("upernet", backbone, bands)
