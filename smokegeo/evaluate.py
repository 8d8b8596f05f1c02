"""Score a model on a split of a prepared dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smokegeo.bands import Matching, match_bands
from smokegeo.blanks import fill_blanks
from smokegeo.datasets.layout import FRAME_CRS
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.datasets.transforms import without_value
from smokegeo.errors import InputError, ModelError
from smokegeo.frameunits import FrameUnits
from smokegeo.metrics import ImageScore, Report, count, report
from smokegeo.modelfile import Card, Model
from smokegeo.progress import track
from smokegeo.radiometry import Units
from smokegeo.torchgeo_api import frame_slices
from smokegeo.views import make_recipe
from smokegeo.zoom import smoke_seen

#: Frames are looked at whole; those of more pixels would not fit into memory.
LARGEST_PIXELS = 4096 * 4096


def evaluate(
    model: Model,
    dataset: SmokeDataset,
    threshold: float | None = None,
    said: Units | None = None,
) -> Report:
    """Return the scores of a model at its card's threshold, or at the one given.

    `said` is the user's word on how the frames' numbers become the model's units.
    """
    level = model.card.threshold if threshold is None else threshold
    return report(
        ImageScore(frame, count(probability >= level, labels), tags)
        for frame, tags, probability, labels in probabilities(model, dataset, said)
    )


def split_by_scene(card: Card, dataset: str) -> bool:
    """Return whether the model was trained on this kind of dataset with scenes kept together.

    Data without splits of their own are dealt anew whenever they are opened. Dealt in another way
    than for the training, the test split would hold frames the model was trained on.
    """
    config = card.training.get("config", {})
    return config.get("dataset") == dataset and config.get("by_scene") is True


def probabilities(
    model: Model, dataset: SmokeDataset, said: Units | None = None
) -> Iterator[tuple[str, tuple[str, ...], np.ndarray, np.ndarray]]:
    """Yield frame id, scenario tags, smoke probability (H, W) and labels (H, W) of each frame."""
    refuse_large(dataset)
    matching = matched(model, dataset)
    network = model.for_inference()
    card = model.card
    units = FrameUnits(card, dataset, matching, said)
    queries = list(frame_slices(dataset))
    for query in track(queries, "scoring", len(queries)):
        sample = dataset[query]
        channels, available = channels_of(sample, units)
        reduction = reduction_of(dataset, card, channels)
        with torch.inference_mode():
            seen = smoke_seen(network, channels, available, card.looks, card.smoke, reduction)
        smoke = seen[0].numpy()
        record = dataset.records[int(sample["frame"])]
        yield record.id, record.scenarios, smoke, sample["mask"].numpy()


def channels_of(sample: dict[str, Any], units: FrameUnits) -> tuple[Tensor, Tensor | None]:
    """Return a frame as the model's network sees it, (1, C, H, W), and which channels (1, C) are.

    None instead of the latter says that all of them are there.
    """
    card, matching = units.card, units.matching
    image = pick_bands(sample["image"], matching).numpy()
    valid = ~without_value(sample["image"], sample["mask"]).numpy()
    scaling = units.scaling(int(sample["frame"]), sample["image"].numpy(), valid)
    own = image[:, valid].astype(np.float64)
    recipe = make_recipe(
        card.views,
        matching.available,
        scaling.normaliser(card),
        own.mean(axis=1),
        own.std(axis=1),
        trusted=scaling.trusted,
        limit=card.limit,
    )
    channels = recipe.channels(image, valid, range(len(card.bands)))
    fill_blanks(channels, valid)
    ready = torch.from_numpy(recipe.cut(channels))[None]
    return ready, None if all(recipe.available) else torch.tensor([recipe.available])


def refuse_large(dataset: SmokeDataset) -> None:
    """Refuse frames that are too large to be looked at whole."""
    for record in dataset.records:
        if record.width * record.height > LARGEST_PIXELS:
            raise InputError(
                f"{dataset.layout.image(record.id)} has {record.width} x {record.height} pixels, "
                f"more than {LARGEST_PIXELS} to be looked at whole. Find its smoke tile by tile "
                "with `smokegeo predict`, or make the dataset of smaller frames."
            )


def reduction_of(dataset: SmokeDataset, card: Card, channels: Tensor) -> int:
    """Return to one part in how many of its size a frame is brought, as `predict` would."""
    height, width = channels.shape[2:]
    return card.reduction_for(width, height) if dataset.crs == FRAME_CRS else 1


def matched(model: Model, dataset: SmokeDataset) -> Matching:
    """Match the dataset's bands to the model's; refuse if none fits."""
    matching = match_bands(dataset.band_set, model.card.bands)
    if not any(matching.available):
        raise ModelError(
            f"{model.path.name} needs {', '.join(model.card.bands.names)}; the dataset has none of "
            f"them ({', '.join(dataset.band_set.names)})."
        )
    return matching


def pick_bands(image: Tensor, matching: Matching) -> Tensor:
    """Return the image in the model's band order; absent bands are 0 until they are left out."""
    out = image.new_zeros(len(matching.entries), *image.shape[1:])
    for position, index in enumerate(matching.indexes):
        if index is not None:
            out[position] = image[index]
    return out
