"""Trans-BVM: a segmentation that knows how sure it is, guided by how much light the smoke lets by.

Yan, Zhang and Barnes, "Transmission-Guided Bayesian Generative Model for Smoke Segmentation", AAAI
2022. A ResNet-18 (realtime, which the paper leaves out) or ResNet-50 (accuracy) with a top-down
decoder, and three ideas:

* a latent variable, drawn from a posterior of image and labels in training, explains why the same
  image may be labelled in several ways;
* an uncertainty head gives the spread of each pixel's logit;
* a coherence loss wants neighbours with the same transmission to have the same answer, where
  transmission is the dark channel's: 1 minus the darkest band around a pixel.

Deviations: written from the paper's idea alone, as its code has no licence. The dark channel is
taken over all bands, each scaled to 0 to 1 in its image. After training, the latent variable is
the prior's mean and the spread is integrated by a formula that is nearly exact, where the original
averages random draws: the same image gives the same answer. No ImageNet weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from smokegeo.datasets.layout import IGNORE
from smokegeo.models.baselines.blocks import ConvNormReLU, channels, resize
from smokegeo.models.objective import segmentation_loss

ENCODERS = {"realtime": "resnet18", "accuracy": "resnet50"}
DIM = {"realtime": 64, "accuracy": 128}
LATENT = 8
KL_WEIGHT, COHERENCE_WEIGHT = 0.1, 0.1
#: Pixels of 1/4 of the size: window of neighbours, and how fast their weight falls.
WINDOW, REACH, LIKENESS = 5, 2.0, 0.1


@dataclass(frozen=True)
class Gauss:
    """A normal distribution of the latent variable: (B, LATENT) each."""

    mean: Tensor
    log_variance: Tensor

    def sample(self) -> Tensor:
        """Draw, so that gradients reach both numbers."""
        return self.mean + torch.randn_like(self.mean) * (0.5 * self.log_variance).exp()

    def distance(self, other: Gauss) -> Tensor:
        """Return the mean Kullback-Leibler divergence from another."""
        spread = (self.log_variance - other.log_variance).exp()
        shift = (self.mean - other.mean).square() / other.log_variance.exp()
        return 0.5 * (other.log_variance - self.log_variance + spread + shift - 1).sum(1).mean()


class Latent(nn.Module):
    """A few strided convolutions that say what the latent variable may be."""

    def __init__(self, inputs: int, width: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [nn.Conv2d(inputs, width, 3, stride=2, padding=1), nn.ReLU()]
            inputs = width
        self.read = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.out = nn.Linear(width, 2 * LATENT)

    def forward(self, x: Tensor) -> Gauss:
        """Return the distribution for images (B, C, h, w)."""
        mean, log_variance = self.out(self.read(x)).chunk(2, dim=1)
        return Gauss(mean, log_variance.clamp(-6, 6))


class TransBVM(nn.Module):
    """(B, bands, H, W) to logits (B, classes, H, W)."""

    def __init__(self, bands: int, variant: str, classes: int = 2) -> None:
        super().__init__()
        import timm

        dim = DIM[variant]
        self.encoder = timm.create_model(
            ENCODERS[variant], features_only=True, out_indices=(1, 2, 3, 4), in_chans=bands
        )
        self.align = nn.ModuleList(ConvNormReLU(width, dim) for width in channels(self.encoder))
        self.smooth = nn.ModuleList(ConvNormReLU(dim, dim, 3) for _ in range(3))
        self.prior, self.posterior = Latent(bands), Latent(bands + 1)
        self.inject = nn.Linear(LATENT, dim)
        self.mix = nn.Sequential(ConvNormReLU(dim, dim, 3), nn.Dropout2d(0.1))
        self.classify, self.spread = nn.Conv2d(dim, classes, 1), nn.Conv2d(dim, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, smaller where the network is less sure of them."""
        small = F.avg_pool2d(x, 4)
        answer = self._answer(self._decode(x), self.prior(small).mean)
        logits, spread = (resize(part, x) for part in answer)
        # The mean of a sigmoid under a normal distribution of its argument, nearly. That is the
        # difference of two logits, each with noise of its own: twice the variance of one.
        return logits / (1 + torch.pi / 4 * spread.square()).sqrt()

    def terms(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the losses under posterior and prior, their divergence, and coherence."""
        small = F.avg_pool2d(x, 4)
        smoke = F.avg_pool2d((labels[:, None] == 1).float(), 4)
        prior, posterior = self.prior(small), self.posterior(torch.cat([small, smoke], dim=1))
        features = self._decode(x)
        losses, answers = [], []
        for latent in (posterior.sample(), prior.sample()):
            logits, spread = self._answer(features, latent)
            answers.append(logits)
            # Resized first: means of neighbours would have less noise than the head asks for.
            full, spread = resize(logits, x), resize(spread, x)
            losses.append(segmentation_loss(full + spread * torch.randn_like(full), labels))
        known = (F.avg_pool2d((labels[:, None] != IGNORE).float(), 4) == 1).float()
        coherence = coherence_loss(answers[0].softmax(dim=1)[:, 1:2], transmission(small), known)
        return {
            "segmentation": torch.stack(losses).mean(),
            "divergence": KL_WEIGHT * posterior.distance(prior),
            "coherence": COHERENCE_WEIGHT * coherence,
        }

    def _decode(self, x: Tensor) -> Tensor:
        """Return features (B, dim, H/4, W/4), coarse maps added to finer ones."""
        *finer, y = [align(m) for align, m in zip(self.align, self.encoder(x), strict=True)]
        for smooth, features in zip(self.smooth, reversed(finer), strict=True):
            y = smooth(features + resize(y, features))
        decoded: Tensor = y
        return decoded

    def _answer(self, features: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (B, classes, h, w) and their spread (B, 1, h, w)."""
        mixed = self.mix(features + self.inject(latent)[:, :, None, None])
        return self.classify(mixed), F.softplus(self.spread(mixed))


def transmission(image: Tensor) -> Tensor:
    """Return the share of light that reaches the sensor (B, 1, h, w), by the dark channel."""
    flat = image.flatten(2)
    low, high = flat.amin(dim=2)[..., None, None], flat.amax(dim=2)[..., None, None]
    span = high - low
    scaled = (image - low) / span.clamp(min=1e-6)
    scaled = torch.where(span > 0, scaled, 1.0)  # a constant band, an absent one say, has no say
    dark = scaled.amin(dim=1, keepdim=True)
    dark = -F.max_pool2d(-dark, WINDOW, stride=1, padding=WINDOW // 2)
    return 1 - 0.95 * dark


def coherence_loss(smoke: Tensor, guide: Tensor, known: Tensor) -> Tensor:
    """Return how much near pixels of like transmission differ; all arguments are (B, 1, h, w)."""
    steps = torch.arange(WINDOW, device=smoke.device) - WINDOW // 2
    near = torch.exp(-(steps[:, None] ** 2 + steps**2) / (2 * REACH**2)).flatten()[None, :, None]
    alike = torch.exp(-_differences(guide).square() / (2 * LIKENESS**2))
    both = F.unfold(known, WINDOW, padding=WINDOW // 2) * known.flatten(2)
    weight = (near * alike).detach() * both
    return (weight * _differences(smoke).abs()).sum() / weight.sum().clamp(min=1)


def _differences(x: Tensor) -> Tensor:
    """Return each pixel's difference to each of its neighbours (B, WINDOW squared, h * w)."""
    return F.unfold(x, WINDOW, padding=WINDOW // 2) - x.flatten(2)


def build(bands: int, variant: str = "realtime") -> nn.Module:
    """Return a Trans-BVM with weights at their random start."""
    return TransBVM(bands, variant)
