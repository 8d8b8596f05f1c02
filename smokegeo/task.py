"""The Lightning task: MoP or a baseline, its loss, its optimiser and its scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from smokegeo.datasets.datamodule import mixed_seed
from smokegeo.datasets.layout import IGNORE
from smokegeo.errors import SmokegeoError
from smokegeo.metrics import Counts, ImageScore, Report, report
from smokegeo.models.baselines.padded import PaddedWithTerms
from smokegeo.models.build import build_network
from smokegeo.models.mop import MoP
from smokegeo.models.objective import segmentation_loss
from smokegeo.torchgeo_api import segmentation_task

if TYPE_CHECKING:
    from smokegeo.datasets.smoke import SmokeDataset

    BaseTask = Any
else:
    BaseTask = segmentation_task()

#: Thresholds tried on the validation split.
THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(1, 20))


class TrainingDivergedError(SmokegeoError):
    """The loss is no longer a number."""


class MoPSegmentationTask(BaseTask):  # type: ignore[misc]  # TorchGeo's class has no stubs
    """TorchGeo's segmentation task for MoP and, by name, for the baselines.

    The loss is two-class cross-entropy (binary cross-entropy of the softmax) plus 0.01 times the
    prototype loss, or the terms a baseline has of its own. Ignored pixels have no part in any of
    them, but for Mask2Former's, which takes them for pixels of neither class. The learning rate
    falls as a polynomial, per step.
    """

    monitor = "val_f1"
    mode = "max"

    def __init__(
        self,
        model: str = "mop",
        bands: int = 25,
        options: Mapping[str, Any] | None = None,
        *,
        iterations: int = 40_000,
        lr: float = 6e-5,
        weight_decay: float = 0.01,
        power: float = 0.9,
        warmup: int = 0,
        prototype_weight: float = 0.01,
        band_dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        """Describe the training.

        Args:
            model: "mop", or one of `smokegeo.models.build.ARCHITECTURES`.
            bands: Input bands.
            options: Options of the network, those of `MoPConfig` for MoP.
            iterations: Steps until the learning rate reaches 0.
            lr: Learning rate at the start.
            weight_decay: Of AdamW.
            power: Of the polynomial decay.
            warmup: Steps of linear warm-up; the paper has none.
            prototype_weight: Weight of the prototype loss.
            band_dropout: Chance of a band to be absent from a training sample.
            seed: Seed of dropout, drawn anew for every step so that resuming changes nothing.
        """
        super().__init__(
            model=model, in_channels=bands, num_classes=2, ignore_index=IGNORE, lr=lr, weights=None
        )
        self._scores: list[tuple[ImageScore, list[Counts]]] = []
        self.val_report: Report | None = None
        self.threshold = 0.5

    def configure_models(self) -> None:
        """Build the network."""
        h = self.hparams
        self.model = build_network(h["model"], h["bands"], h["options"])

    def configure_losses(self) -> None:
        """Nothing to build: the losses are functions."""

    def configure_metrics(self) -> None:
        """Nothing to build: scores are counted per image in `validation_step`."""

    def configure_optimizers(self) -> Any:
        """Return AdamW with polynomial decay per step; prototypes are never decayed."""
        h = self.hparams
        plain = [p for name, p in self.named_parameters() if "prototypes" not in name]
        protos = [p for name, p in self.named_parameters() if "prototypes" in name]
        groups: list[dict[str, Any]] = [{"params": plain}]
        if protos:
            groups.append({"params": protos, "weight_decay": 0.0})
        optimizer = torch.optim.AdamW(
            groups, lr=h["lr"], betas=(0.9, 0.999), weight_decay=h["weight_decay"]
        )
        total, power, warmup = h["iterations"], h["power"], h["warmup"]

        def factor(step: int) -> float:
            rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
            return float(rise * max(0.0, 1 - step / total) ** power)

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }

    def forward(self, x: Tensor, available: Tensor | None = None) -> Tensor:
        """Return logits (B, 2, H, W)."""
        logits: Tensor = self.model(x, available)
        return logits

    def training_step(self, batch: Mapping[str, Tensor], batch_idx: int) -> Tensor:
        """Return the loss of a batch; stop with the frames' names if it is not finite."""
        # One seed per step: what happened before, or in another process, does not matter.
        torch.manual_seed(mixed_seed(self.hparams["seed"], self.global_step, self.global_rank))
        image, labels = batch["image"], batch["mask"]
        available = self._drop_bands(image)
        terms = self.loss_terms(image, labels, available)
        weights = {"prototype": self.hparams["prototype_weight"]}
        loss = torch.stack([weights.get(name, 1.0) * terms[name] for name in terms]).sum()
        for name, value in terms.items():
            if name != "segmentation":
                self.log(f"train_{name}_loss", value.detach(), batch_size=len(image))
        if not torch.isfinite(loss):
            raise TrainingDivergedError(
                f"the loss became {loss.item()} at step {self.global_step} on frames "
                f"{', '.join(self._names(batch))}. Check these frames, or lower --lr."
            )
        self.log("train_loss", loss.detach(), prog_bar=True, batch_size=len(image))
        return loss

    def loss_terms(
        self, image: Tensor, labels: Tensor, available: Tensor | None
    ) -> dict[str, Tensor]:
        """Return what is minimised, term by term."""
        if isinstance(self.model, MoP):
            done = self.model.run(image, available)
            extra = self.model.loss(done, labels)
            return {"segmentation": segmentation_loss(done.logits, labels), "prototype": extra}
        if isinstance(self.model, PaddedWithTerms):
            return self.model.terms(image, labels, available)
        return {"segmentation": segmentation_loss(self.model(image, available), labels)}

    def validation_step(self, batch: Mapping[str, Tensor], batch_idx: int) -> None:
        """Score the images of a batch."""
        self._score(batch, self.trainer.datamodule.val_dataset)

    def test_step(self, batch: Mapping[str, Tensor], batch_idx: int) -> None:
        """Score the images of a batch."""
        self._score(batch, self.trainer.datamodule.test_dataset)

    def on_validation_epoch_start(self) -> None:
        """Forget the scores of the last round."""
        self._scores = []

    def on_validation_epoch_end(self) -> None:
        """Report the scores of all images of all processes, and the best threshold."""
        self.val_report, self.threshold = self._report("val")

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the threshold of the last validation beside the weights."""
        checkpoint["threshold"] = self.threshold

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take over that threshold; it is one half if there is none."""
        kept = checkpoint.get("threshold")
        self.threshold = kept if kept in THRESHOLDS else 0.5

    def on_test_epoch_start(self) -> None:
        """Forget the scores of the last round."""
        self._scores = []

    def on_test_epoch_end(self) -> None:
        """Report the scores of all images of all processes, at the threshold of the validation."""
        self._report("test", self.threshold)

    def on_train_epoch_end(self) -> None:
        """Do nothing: TorchGeo would report metrics of its own, which count the background."""

    def _report(self, split: str, threshold: float | None = None) -> tuple[Report, float]:
        """Return the scores at a threshold, or at the best one, and that threshold."""
        gathered = self._scores
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            parts: list[Any] = [None] * dist.get_world_size()
            dist.all_gather_object(parts, gathered)
            gathered = [score for part in parts for score in part]
        gathered = whole_images(gathered)
        if threshold is None:
            threshold = best_threshold([counts for _, counts in gathered])
        place = THRESHOLDS.index(threshold)
        # Scored at the threshold the model file would get: early in training the probabilities
        # may be ranked well long before any of them passes one half.
        result = report(replace(score, counts=counts[place]) for score, counts in gathered)
        for name, value in (("f1", result.total.f1_image), ("iou", result.total.iou_image)):
            self.log(f"{split}_{name}", value or 0.0, prog_bar=True, sync_dist=True)
        return result, threshold

    def _score(self, batch: Mapping[str, Tensor], dataset: SmokeDataset) -> None:
        smoke = self(batch["image"]).softmax(dim=1)[:, 1]
        for probability, labels, frame in zip(smoke, batch["mask"], batch["frame"], strict=True):
            values, truth = probability.float().cpu().numpy(), labels.cpu().numpy()
            record = dataset.records[int(frame)]
            score = ImageScore(record.id, Counts(), record.scenarios)
            self._scores.append((score, counts_by_threshold(values, truth)))

    def _drop_bands(self, image: Tensor) -> Tensor | None:
        """Return which bands each sample keeps, at least one; None if all stay."""
        rate = self.hparams["band_dropout"]
        if rate == 0:
            return None
        draw = torch.rand(image.shape[:2], device=image.device)
        # The luckiest band of each sample always stays.
        kept: Tensor = (draw >= rate) | (draw == draw.amax(dim=1, keepdim=True))
        return kept

    def _names(self, batch: Mapping[str, Tensor]) -> list[str]:
        records = self.trainer.datamodule.train_dataset.records
        return [records[int(frame)].id for frame in batch["frame"]]


def counts_by_threshold(probability: Any, labels: Any) -> list[Counts]:
    """Return the counts of one image at each of `THRESHOLDS`."""
    # One pass over the pixels: histogram the probabilities of each class, then sum from above.
    edges = np.array([*THRESHOLDS, np.inf])
    valid = labels != IGNORE
    level = np.digitize(probability[valid], edges)  # how many thresholds a pixel reaches
    truth = labels[valid] == 1
    hits = np.bincount(level[truth], minlength=len(edges))
    false = np.bincount(level[~truth], minlength=len(edges))
    out = []
    for i in range(1, len(edges)):
        tp, fp = int(hits[i:].sum()), int(false[i:].sum())
        out.append(Counts(tp, fp, int(hits.sum()) - tp, int(false.sum()) - fp))
    return out


def whole_images(
    scores: Iterable[tuple[ImageScore, list[Counts]]],
) -> list[tuple[ImageScore, list[Counts]]]:
    """Return the counts of each image: those of its patches added up, if it was cut into some."""
    images: dict[str, tuple[ImageScore, list[Counts]]] = {}
    for score, counts in scores:
        if score.frame in images:
            before = images[score.frame][1]
            counts = [one + other for one, other in zip(before, counts, strict=True)]
        images[score.frame] = (score, counts)
    return list(images.values())


def best_threshold(images: list[list[Counts]]) -> float:
    """Return the threshold with the best mean F1 over images; 0.5 if none finds any smoke."""
    best, chosen = -1.0, 0.5
    for position, threshold in enumerate(THRESHOLDS):
        scores = [f1 for counts in images if (f1 := counts[position].f1) is not None]
        mean = sum(scores) / len(scores) if scores else -1.0
        # Ties go to the middle, the least surprising choice.
        if mean > best or (mean == best and abs(threshold - 0.5) < abs(chosen - 0.5)):
            best, chosen = mean, threshold
    return chosen if best > 0 else 0.5
