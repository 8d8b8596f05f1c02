"""The folded network as an ONNX file: written for other programs, read by ONNX Runtime.

Batch, height and width are free, down to 32 pixels a side: the padding of smaller images is not
part of the file. `OnnxNetwork` pads them; other programs must do it themselves.
"""

from __future__ import annotations

import importlib
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from smokegeo.errors import ModelError, UsageError
from smokegeo.files import atomic_file
from smokegeo.models.folded import FoldedMoP
from smokegeo.models.padding import pad_small
from smokegeo.views import MEASURED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smokegeo.modelfile import Card

#: The newest operator set torch's exporter knows in every version we support.
OPSET = 18
#: An example to trace, of no round number: a size that got fixed by accident would show.
_EXAMPLE_PX = (72, 88)
_FREE = {0: "batch", 2: "height", 3: "width"}


def export_onnx(network: FoldedMoP, path: Path, card: Card | None = None) -> None:
    """Write the network as an ONNX file, whole or not at all.

    Inputs, float32: `image` (B, bands, H, W) and `available` (B, bands), which may be left out
    when all bands are there. Output: `logits` (B, classes, H, W).

    Images smaller than 32 pixels a side must be padded by the caller. With a card, the file's
    metadata say what the QGIS plugin Deepness wants to know, and hold the whole card as JSON.
    """
    onnx = _need("onnx")
    bands = network.config.bands
    example = (torch.zeros(2, bands, *_EXAMPLE_PX), torch.ones(2, bands))
    with atomic_file(path) as part:
        with torch.no_grad(), warnings.catch_warnings():
            # Tracing warns of every size it may have fixed, and of itself being the older way; the
            # result is checked against torch at other sizes in the tests.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network.eval(),
                example,
                str(part),
                dynamo=False,
                opset_version=OPSET,
                input_names=["image", "available"],
                output_names=["logits"],
                dynamic_axes={"image": _FREE, "available": {0: "batch"}, "logits": _FREE},
            )
        model = onnx.load(part)
        # With a value of its own, `available` need not be fed: Deepness takes one input only.
        every = onnx.numpy_helper.from_array(np.ones((1, bands), np.float32), "available")
        model.graph.initializer.append(every)
        _, channels, *sides = model.graph.output[0].type.tensor_type.shape.dim
        channels.dim_value = network.config.classes
        for side in sides:  # nor does it take two sides of different names
            side.ClearField("dim_param")
        for key, value in ({} if card is None else metadata(card)).items():
            model.metadata_props.add(key=key, value=value)
        onnx.checker.check_model(model)
        onnx.save(model, part)


def metadata(card: Card) -> dict[str, str]:
    """Return the card in the words of Deepness, each value as JSON, and whole as `smokegeo_card`.

    Deepness wants the ground resolution in cm and the overlap in per cent, and divides every image
    by 255 before it takes off the mean.
    """
    values: dict[str, Any] = {
        "model_type": "Segmentor",
        "class_names": dict(enumerate(card.classes)),
        "tiles_size": card.tile_px,  # its documentation has this name,
        "tile_size": card.tile_px,  # its code this one
        "tiles_overlap": round(100 * card.overlap_px / card.tile_px),
        "seg_thresh": card.threshold,
        "smokegeo_card": card.to_dict(),
    }
    if card.views == (MEASURED,):  # Deepness cannot show a band in relation to its scene
        values["standardization_mean"] = [value / 255 for value in card.statistics.mean]
        values["standardization_std"] = [value / 255 for value in card.statistics.std]
    if card.resolution_m is not None:
        # One number is wanted: the middle of the range, as resolutions go, by their ratio.
        low, high = card.resolution_m
        values["resolution"] = round(100 * (low * high) ** 0.5, 3)
    return {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}


class OnnxNetwork:
    """An exported network under ONNX Runtime, called like the network it was exported from."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        runtime = _need("onnxruntime")
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        if threads is not None:
            options.intra_op_num_threads = threads
        try:
            self.session = runtime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its exceptions share no base class
            fact = " ".join(str(error).split())
            raise ModelError(f"{path} is not a usable ONNX file ({fact[:120]}).") from error
        names = [item.name for item in self.session.get_inputs()]
        if names != ["image"]:
            raise ModelError(f"{path} was not exported by smokegeo (its inputs are {names}).")
        self.bands = int(self.session.get_inputs()[0].shape[1])

    def __call__(
        self, image: Tensor | NDArray[np.float32], available: Tensor | NDArray[Any] | None = None
    ) -> Tensor:
        """Return logits (B, classes, H, W) for an image (B, bands, H, W) of any size."""
        x = torch.as_tensor(image).detach().cpu().float()
        if x.ndim != 4 or x.shape[1] != self.bands:
            raise UsageError(f"an image of shape {tuple(x.shape)} is not (B, {self.bands}, H, W).")
        height, width = x.shape[2:]
        feed = {"image": pad_small(x).numpy()}
        if available is not None:
            feed["available"] = torch.as_tensor(available).detach().cpu().float().numpy()
        (logits,) = self.session.run(["logits"], feed)
        return torch.from_numpy(logits)[:, :, :height, :width]


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{module} is not installed, and ONNX needs it. Run `pip install smokegeo[onnx]`."
        ) from error
