"""The model file: weights and the card that says how to use them, in one safetensors file.

Nothing in it can run code. The card is JSON in the file's metadata: which bands, which statistics,
which threshold and tile, how the network is built, what it was trained on and how well it did.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smokegeo import __version__
from smokegeo.bands import BandSet
from smokegeo.cardcheck import SMOKE, card_faults
from smokegeo.datasets.statistics import BandStatistics
from smokegeo.errors import ModelError, UsageError
from smokegeo.files import atomic_file
from smokegeo.looks import Looks
from smokegeo.views import MEASURED

if TYPE_CHECKING:
    import torch

FORMAT = 1
SUFFIX = ".safetensors"
_KEY = "smokegeo_card"
_MAX_HEADER_BYTES = 100_000_000
#: Pictures are brought to one part in this many of their size at most.
_MOST_REDUCED = 16
#: Tensors of so many numbers are not halved: norms and the head, by which all others are
#: multiplied. In a default model that is 0.1 MB, for a fifth of the error of storing in 16 bits.
_FEW = 3000
#: What torch, timm and we raise when card and weights do not belong together.
_UNFIT = (
    KeyError,
    IndexError,
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    OSError,
    UsageError,
)


@dataclass(frozen=True)
class Card:
    """All a user of the weights must know.

    architecture and options rebuild the network; bands and statistics say what it eats, in the
    units of `input` (dtype, minimum, maximum of the training data); a pixel is smoke where its
    probability reaches `threshold`; scenes are cut into tiles of tile_px that overlap by
    overlap_px.
    """

    name: str
    architecture: str
    options: Mapping[str, Any]
    bands: BandSet
    statistics: BandStatistics
    threshold: float = 0.5
    tile_px: int = 512
    overlap_px: int = 128
    classes: tuple[str, ...] = ("background", "smoke")
    resolution_m: tuple[float, float] | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    licence: str = ""
    summary: str = ""
    smokegeo: str = __version__
    sha256: str = ""

    def __post_init__(self) -> None:
        if fault := next(card_faults(self), None):
            raise UsageError(f"card {self.name}: {fault}.")

    @property
    def smoke(self) -> int:
        """The place of smoke among the network's outputs."""
        return self.classes.index(SMOKE)

    @property
    def views(self) -> tuple[str, ...]:
        """How the network sees each band; see `smokegeo.views`."""
        return tuple(self.input.get("views", (MEASURED,)))

    @property
    def looks(self) -> Looks:
        """At which sizes the network looks at a scene."""
        return Looks(
            tuple(self.input.get("sizes", (1,))),
            tuple(self.input.get("closer", ())),
            float(self.input.get("closer_margin", 0)),
        )

    def reduction_for(self, width: int, height: int) -> int:
        """Return to one part in how many of its size a picture without a place is to be brought.

        Cameras have many more pixels than the pictures of a training; see `smokegeo.zoom`.
        """
        most = self.input.get("side_px")
        return 1 if most is None else min(_MOST_REDUCED, -(-min(width, height) // int(most)))

    def doubt_for(self, bands: int) -> str | None:
        """Return what is known to be worse in a scene with so many of the bands, if anything."""
        few = self.training.get("few")
        if not few or bands >= few["below"]:
            return None
        return f"with fewer than {few['below']}, {few.get('doubt', 'expect worse results')}"

    @property
    def limit(self) -> float | None:
        """Where the network's input is cut off on both sides, if it is."""
        value = self.input.get("limit")
        return None if value is None else float(value)

    @property
    def channels(self) -> int:
        """The network's input channels: one for each view of each band."""
        return len(self.bands) * len(self.views)

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain values."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["bands"] = self.bands.to_dict()
        data["statistics"] = self.statistics.to_dict()
        return {"format": FORMAT, **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Card:
        """Build a card from what `to_dict` wrote; keys of later versions are passed over."""
        known = {item.name for item in fields(cls)}
        plain = {key: value for key, value in data.items() if key in known}
        plain["bands"] = BandSet.from_dict(data["bands"])
        plain["statistics"] = BandStatistics.from_dict(data["statistics"])
        plain["classes"] = tuple(data["classes"])
        if plain.get("resolution_m") is not None:
            low, high = data["resolution_m"]
            plain["resolution_m"] = (float(low), float(high))
        return cls(**plain)


@dataclass(frozen=True)
class Model:
    """A loaded model file."""

    card: Card
    state: Mapping[str, torch.Tensor]
    path: Path

    def network(self) -> torch.nn.Module:
        """Return the network as it was trained, with these weights."""
        from smokegeo.models.build import build_network

        card = self.card
        if card.architecture == "mop":
            # Compares all shapes first, so that no card can ask for more memory than its weights.
            self.for_inference()
        try:
            network = build_network(card.architecture, card.channels, card.options)
            network.load_state_dict(dict(self.state), strict=True)
        except _UNFIT as error:
            raise ModelError(_misfit(self.path, error)) from error
        return network.eval()

    def for_inference(self) -> torch.nn.Module:
        """Return the fastest equivalent network: folded, for MoP, without importing timm."""
        if self.card.architecture != "mop":
            return self.network()
        from smokegeo.models.config import MoPConfig
        from smokegeo.models.folded import FoldedMoP

        try:
            options = {**self.card.options, "bands": self.card.channels}
            return FoldedMoP(MoPConfig.from_dict(options), self.state)
        except _UNFIT as error:
            raise ModelError(_misfit(self.path, error)) from error


def save_model(
    path: Path, card: Card, state: Mapping[str, torch.Tensor], *, half: bool = False
) -> Card:
    """Write a model file, whole or not at all; return the card with its checksum.

    With `half`, floating-point weights are stored in 16 bits and read back as 32; a tensor of few
    numbers, or with values too large for 16 bits, stays as it is.
    """
    import torch
    from safetensors.torch import save

    tensors = {}
    for name, value in state.items():
        value = value.detach().cpu().contiguous()
        shrinks = half and value.is_floating_point() and value.numel() > _FEW
        small = value.half() if shrinks else value.clone()
        tensors[name] = small if torch.isfinite(small).all() else value.clone()
    card = Card(**{**_shallow(card), "sha256": _digest(tensors), "smokegeo": __version__})
    with atomic_file(path) as part, torch.no_grad():
        # Not save_file: it writes files that nobody else may read.
        part.write_bytes(save(tensors, {_KEY: json.dumps(card.to_dict(), ensure_ascii=False)}))
    return card


def load_model(name: str | Path) -> Model:
    """Load a bundled model by name, or a model file by path, checking all of it."""
    from safetensors import SafetensorError, safe_open

    path = find_model(name)
    card = read_card(path)
    try:
        with safe_open(path, framework="pt") as handle:
            stored = {key: handle.get_tensor(key) for key in handle.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelError(_damaged(path, error)) from error
    if _digest(stored) != card.sha256:
        raise ModelError(f"{path}: the weights do not match the card's checksum. Copy it again.")
    state = {k: v.float() if v.is_floating_point() else v for k, v in stored.items()}
    return Model(card, state, path)


def read_card(path: str | Path) -> Card:
    """Read only the card of a model file, without torch."""
    path = Path(path)
    try:
        _check_kind(path)
        with path.open("rb") as handle:
            (length,) = struct.unpack("<Q", handle.read(8))
            if not 2 <= length <= min(_MAX_HEADER_BYTES, path.stat().st_size - 8):
                raise ValueError("its header is cut off")
            header = json.loads(handle.read(length))
        text = header.get("__metadata__", {}).get(_KEY)
        if text is None:
            raise ModelError(
                f"{path} holds weights but no smokegeo card; smokegeo did not write it."
            )
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ModelError(
                f"{path} has format {data['format']}, this smokegeo reads {FORMAT}. Update it."
            )
        return Card.from_dict(data)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (struct.error, ArithmeticError, LookupError, ValueError, TypeError) as error:
        raise ModelError(_damaged(path, error)) from error
    except (AttributeError, UsageError, RecursionError) as error:  # a band without name, say
        raise ModelError(_damaged(path, error)) from error


def find_model(name: str | Path) -> Path:
    """Return the file a model name or path stands for."""
    text = str(name)
    if "://" in text:
        raise UsageError(f"{text}: models are read from local files only. Download it first.")
    bundled = bundled_models()
    if text in bundled:
        return bundled[text]
    path = Path(text)
    if not path.is_file():
        known = f" Bundled models: {', '.join(bundled)}." if bundled else " None is bundled yet."
        raise ModelError(f"{text}: no such model file.{known}")
    return path.resolve()


def bundled_models() -> dict[str, Path]:
    """Return name -> file of the models inside the package."""
    folder = Path(str(files("smokegeo") / "weights"))
    return {path.stem: path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def _check_kind(path: Path) -> None:
    """Refuse what is plainly something else, and say what it is."""
    with path.open("rb") as handle:
        head = handle.read(64)
    if head[8:9] == b"{":  # safetensors: a length of eight bytes, which may look like a pickle's
        return
    if head.startswith(b"version https://git-lfs"):
        raise ModelError(f"{path} is a Git LFS pointer, not the model. Run `git lfs pull`.")
    if head.startswith((b"PK\x03\x04", b"\x80")):
        raise ModelError(
            f"{path} is a PyTorch checkpoint, not a model file. Checkpoints only resume training; "
            "`smokegeo train` writes model.safetensors beside them."
        )
    if head.lstrip()[:1] in (b"<", b"{") or len(head) < 10:
        raise ModelError(f"{path} is not a model file (a failed download?). Fetch it again.")


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Return a SHA-256 over names, types, shapes and values of all tensors."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _damaged(path: Path, error: BaseException) -> str:
    fact = " ".join(str(error).split())
    return f"{path} is damaged or incomplete ({fact[:120]}). Copy it again."


def _misfit(path: Path, error: BaseException) -> str:
    fact = " ".join(str(error).split())
    return f"{path}: card and weights do not belong together ({fact[:120]})."


def _shallow(card: Card) -> dict[str, Any]:
    return {item.name: getattr(card, item.name) for item in fields(card)}
