"""Mask2Former: queries that each find a mask and a class, matched to the true ones.

Cheng et al., "Masked-attention Mask Transformer for Universal Image Segmentation", CVPR 2022. The
implementation of Hugging Face's transformers, an optional extra: `pip install
smokegeo[mask2former]`. Swin-T, 100 queries and 9 decoder layers (accuracy); for realtime, which the
paper leaves out, half its width, 20 queries and 3 layers.

Deviations: the logits are the logarithms of its class-weighted masks, so that their softmax adds up
to 1. Stochastic depth in the encoder is 0.1, transformers' default for Swin (0.3 in the original).
No pretrained weights. Pixels labelled 255 belong to no mask in its loss.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor, nn

from smokegeo.errors import ModelError
from smokegeo.models.baselines.blocks import resize

SIZES: dict[str, dict[str, dict[str, Any]]] = {
    "realtime": {
        "swin": {"embed_dim": 48, "depths": [2, 2, 2, 2]},
        "decoder": {
            "hidden_dim": 128,
            "feature_size": 128,
            "mask_feature_size": 128,
            "dim_feedforward": 512,
            "encoder_feedforward_dim": 512,
            "encoder_layers": 3,
            "decoder_layers": 4,
            "num_queries": 20,
        },
    },
    "accuracy": {"swin": {"embed_dim": 96, "depths": [2, 2, 6, 2]}, "decoder": {}},
}
CLASSES = 2
_LEAST = 1e-6


class Mask2Former(nn.Module):
    """(B, bands, H, W) to logits (B, 2, H, W)."""

    def __init__(self, bands: int, variant: str) -> None:
        super().__init__()
        library = _transformers()
        size = SIZES[variant]
        swin = library.SwinConfig(
            num_channels=bands,
            num_heads=[3, 6, 12, 24],
            out_features=["stage1", "stage2", "stage3", "stage4"],
            **size["swin"],
        )
        config = library.Mask2FormerConfig(
            backbone_config=swin, num_labels=CLASSES, **size["decoder"]
        )
        self.network = library.Mask2FormerForUniversalSegmentation(config)
        for name, parameter in self.network.named_parameters():
            if "encoder.swin.layernorm." in name:  # reads the last map, whose own norm is used
                parameter.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        done = self.network(pixel_values=x)
        classes = done.class_queries_logits.softmax(dim=-1)[..., :CLASSES]
        masks = done.masks_queries_logits.sigmoid()
        belief = torch.einsum("bqc,bqhw->bchw", classes, masks)
        return resize(belief, x).clamp(min=_LEAST).log()

    def terms(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the matched loss of masks and classes, over the images with any label."""
        sets = [[kind for kind in range(CLASSES) if (row == kind).any()] for row in labels]
        some = [i for i, kinds in enumerate(sets) if kinds]
        if not some:
            return {"segmentation": 0.0 * self(x).sum()}
        masks = [torch.stack([labels[i] == kind for kind in sets[i]]).float() for i in some]
        kinds = [torch.tensor(sets[i], device=x.device) for i in some]
        done = self.network(pixel_values=x[some], mask_labels=masks, class_labels=kinds)
        return {"segmentation": done.loss.sum()}


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise ModelError(
            "mask2former needs the package transformers. Run `pip install smokegeo[mask2former]`."
        ) from error


def build(bands: int, variant: str = "realtime") -> nn.Module:
    """Return a Mask2Former with weights at their random start."""
    return Mask2Former(bands, variant)
