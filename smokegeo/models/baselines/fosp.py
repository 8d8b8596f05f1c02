"""FoSp: find where smoke is from two sides, take it apart from what is behind it, and join both.

Yao et al., "FoSp: Focus and Separation Network for Early Smoke Segmentation", AAAI 2024. Over
MiT-B0 (realtime) or MiT-B3 (accuracy), in three parts:

* focus: a cascade from the coarse maps (where is it?) and one from the fine maps (how far does it
  reach?) meet at 1/8 of the size, each step guided by the prediction before it;
* separation: the image as a layer of smoke over a layer of background, with an opacity;
* domain fusion: each of the two decides what counts of the other.

Deviations: written from the paper's idea, not from its code. The original learns its background
from an inpainter pretrained on colour images, which does not exist for other bands and whose files
are not free. Here the background layer must equal the image where no smoke is labelled, and both
layers together must give the image everywhere. No ImageNet weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.datasets.layout import IGNORE
from smokegeo.models.baselines.blocks import ConvNormReLU, resize
from smokegeo.models.baselines.mit import WIDTHS, mit
from smokegeo.models.objective import segmentation_loss

DIM = {"realtime": 64, "accuracy": 256}
FOCUS_WEIGHT, SEPARATION_WEIGHT = 0.4, 0.1


@dataclass(frozen=True)
class Layers:
    """An image at 1/4 of its size as smoke over background."""

    image: Tensor
    smoke: Tensor
    background: Tensor
    opacity: Tensor


class Focus(nn.Module):
    """Two cascades that meet in the middle: (B, dim, H/8, W/8) and three coarse predictions."""

    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        self.where, self.reach = nn.Conv2d(dim, classes, 1), nn.Conv2d(dim, classes, 1)
        self.down, self.up = ConvNormReLU(dim, dim, 3), ConvNormReLU(dim, dim, 3)
        self.meet = ConvNormReLU(2 * dim, dim, 3)
        self.middle = nn.Conv2d(dim, classes, 1)

    def forward(self, maps: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Take maps at 1/4, 1/8, 1/16, 1/32; return the focused features and predictions."""
        fine, upper, lower, coarse = maps
        where, reach = self.where(coarse), self.reach(fine)
        lower = self.down(_guided(lower, where) + resize(coarse, lower))
        upper = self.up(_guided(upper, reach) + resize(fine, upper))
        focused = self.meet(torch.cat([upper, resize(lower, upper)], dim=1))
        return focused, [where, reach, self.middle(focused)]


def _guided(features: Tensor, prediction: Tensor) -> Tensor:
    """Strengthen features where smoke is predicted."""
    smoke = prediction.softmax(dim=1)[:, 1:].sum(dim=1, keepdim=True)
    return features * (1 + resize(smoke, features))


class Separation(nn.Module):
    """Take the image apart; what differs from the background says where smoke is."""

    def __init__(self, dim: int, bands: int) -> None:
        super().__init__()
        self.read = ConvNormReLU(2 * dim, dim, 3)
        self.layers = nn.Conv2d(dim, 2 * bands + 1, 1)
        self.contrast = ConvNormReLU(dim + bands + 1, dim, 3)
        self.bands = bands

    def forward(self, image: Tensor, fine: Tensor, focused: Tensor) -> tuple[Tensor, Layers]:
        """Return features (B, dim, H/4, W/4) and the layers."""
        features = self.read(torch.cat([fine, resize(focused, fine)], dim=1))
        smoke, background, opacity = self.layers(features).split((self.bands, self.bands, 1), dim=1)
        small = F.avg_pool2d(image, 4)
        layers = Layers(small, smoke, background, opacity.sigmoid())
        seen = torch.cat([features, small - background, layers.opacity], dim=1)
        return self.contrast(seen), layers


class DomainFusion(nn.Module):
    """Let what was found and what was taken apart weight each other."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.by_focus, self.by_separation = nn.Conv2d(dim, dim, 1), nn.Conv2d(dim, dim, 1)
        self.join = ConvNormReLU(2 * dim, dim, 3)

    def forward(self, focused: Tensor, separated: Tensor) -> Tensor:
        """Return features of the shape of both."""
        found = focused * (1 + self.by_separation(separated).sigmoid())
        apart = separated * (1 + self.by_focus(focused).sigmoid())
        out: Tensor = self.join(torch.cat([found, apart], dim=1))
        return out


class FoSp(nn.Module):
    """(B, bands, H, W) to logits (B, classes, H, W)."""

    def __init__(self, bands: int, variant: str, classes: int = 2) -> None:
        super().__init__()
        dim = DIM[variant]
        self.encoder = mit(bands, variant)
        self.align = nn.ModuleList(ConvNormReLU(width, dim) for width in WIDTHS[variant])
        self.focus = Focus(dim, classes)
        self.separation = Separation(dim, bands)
        self.fusion = DomainFusion(dim)
        self.classify = nn.Sequential(nn.Dropout2d(0.1), nn.Conv2d(dim, classes, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return self._parts(x)[0]

    def terms(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the losses of the prediction, of the coarse ones, and of the layers."""
        logits, coarse, layers = self._parts(x)
        focus = torch.stack([segmentation_loss(resize(c, x), labels) for c in coarse]).mean()
        return {
            "segmentation": segmentation_loss(logits, labels),
            "focus": FOCUS_WEIGHT * focus,
            "separation": SEPARATION_WEIGHT * separation_loss(layers, labels),
        }

    def _parts(self, x: Tensor) -> tuple[Tensor, list[Tensor], Layers]:
        maps = [align(m) for align, m in zip(self.align, self.encoder(x), strict=True)]
        focused, coarse = self.focus(maps)
        separated, layers = self.separation(x, maps[0], focused)
        fused = self.fusion(resize(focused, separated), separated)
        return resize(self.classify(fused), x), coarse, layers


def separation_loss(layers: Layers, labels: Tensor) -> Tensor:
    """Return how far the layers are from the image, and the background where there is no smoke."""
    mixed = layers.opacity * layers.smoke + (1 - layers.opacity) * layers.background
    whole = (mixed - layers.image).abs().mean(dim=1, keepdim=True)
    apart = (layers.background - layers.image).abs().mean(dim=1, keepdim=True) + layers.opacity
    # A cell of 4 x 4 pixels is known, or clear, if all of them are.
    known, clear = (
        (F.avg_pool2d(part[:, None].float(), 4) == 1).float()
        for part in (labels != IGNORE, labels == 0)
    )
    return _mean_where(known, whole) + _mean_where(clear, apart)


def _mean_where(where: Tensor, values: Tensor) -> Tensor:
    return (values * where).sum() / where.sum().clamp(min=1)


def build(bands: int, variant: str = "realtime") -> nn.Module:
    """Return a FoSp with weights at their random start."""
    return FoSp(bands, variant)
