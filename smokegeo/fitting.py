"""Find the model for a scene: the one asked for, or the bundled one that fits its bands best."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet, Matching, match_bands
from smokegeo.errors import InputError, ModelError
from smokegeo.modelfile import Card, bundled_models, find_model, read_card
from smokegeo.scene.georeference import pixel_size_m
from smokegeo.scene.scene import Scene

log = logging.getLogger(__name__)

#: Cameras on drones see pixels up to this size.
_CAMERA_M = 2.0
#: Share of a model's bands from which on the size of pixels decides between models.
_ENOUGH = 0.5


@dataclass(frozen=True)
class Fit:
    """A model file and which of the scene's bands it will see."""

    path: Path
    card: Card
    matching: Matching

    @property
    def used(self) -> tuple[int, ...]:
        """The scene bands in use, in the order of the model's bands."""
        return tuple(i for i in self.matching.indexes if i is not None)

    @property
    def places(self) -> tuple[int, ...]:
        """The model bands they serve, in the same order."""
        return tuple(i for i, there in enumerate(self.matching.available) if there)

    def by_place(self, *columns: Sequence[float]) -> tuple[NDArray[np.float64], ...]:
        """Return numbers of the used bands, one per band of the model, NaN where it is absent."""
        out = np.full((len(columns), len(self.card.bands)), np.nan)
        out[:, list(self.places)] = columns
        return tuple(out)


def fit_model(scene: Scene, name: str | Path | None = None) -> Fit:
    """Return the model to use; a scene that no model can see is refused."""
    if name is not None:
        path = find_model(name)
        fit = Fit(path, read_card(path), match_bands(scene.bands, read_card(path).bands))
        refuse_misfit(scene, fit)
        return fit
    fits = rank_models(scene.bands, pixel_size_m(scene.place, scene.width, scene.height))
    if not fits:
        raise ModelError(
            "this version of smokegeo carries no model of its own. Train one with `smokegeo "
            "train`, and name it with --model."
        )
    refuse_misfit(scene, fits[0])
    return fits[0]


def rank_models(bands: BandSet, pixel_m: tuple[float, float] | None = None) -> list[Fit]:
    """Return the bundled models, best first: made for such pixels, with most of its bands.

    It is a model's own bands that count: a satellite's red edge and NIR also lie within those of a
    25-band camera, and say little of what that model knows. Colours and heat are seen by satellites
    and cameras alike: the size of the pixels on the ground tells. A scene without a place may be of
    a satellite still, if it has all bands of its model.
    """
    fits = []
    for path in bundled_models().values():
        card = read_card(path)
        fits.append(Fit(path, card, match_bands(bands, card.bands)))

    def rank(fit: Fit) -> tuple[Any, ...]:
        share = len(fit.used) / len(fit.card.bands)
        suits = share >= _ENOUGH and knows_pixels(fit.card, pixel_m)
        first = (share < 1, not suits) if pixel_m is None else (not suits, share < 1)
        return *first, -share, -len(fit.used), fit.card.name

    return sorted(fits, key=rank)


def knows_pixels(card: Card, pixel_m: tuple[float, float] | None) -> bool:
    """Say whether a model was trained on pixels of about this size; None is a camera's view."""
    if card.resolution_m is None or pixel_m is None:
        return (card.resolution_m is None) == (pixel_m is None)
    low, high = card.resolution_m
    return 0.5 * low <= math.sqrt(pixel_m[0] * pixel_m[1]) <= 2 * high


def doubt_of(fit: Fit, pixel_m: tuple[float, float] | None) -> str | None:
    """Return why a model may not know pixels of this size; nothing is said of unplaced scenes."""
    card = fit.card
    if pixel_m is None or knows_pixels(card, pixel_m):
        return None
    side = math.sqrt(pixel_m[0] * pixel_m[1])
    if card.resolution_m is not None:
        low, high = card.resolution_m
        return (
            f"the model was trained on pixels of {low:g} to {high:g} m; these are of {side:.3g} m"
        )
    # Of a model of the user's own, no size means that it is not known.
    if side > _CAMERA_M and fit.path in bundled_models().values():
        return f"the model was made for views of cameras, not for pixels of {side:.3g} m"
    return None


def refuse_misfit(scene: Scene, fit: Fit) -> None:
    """Refuse a scene without any band the model needs, naming both sides."""
    card = fit.card
    needed = int(card.input.get("min_bands", 1))
    if len(fit.used) >= needed:
        _say_absent(scene, fit)
        if doubt := doubt_of(fit, pixel_size_m(scene.place, scene.width, scene.height)):
            log.warning("%s: %s", scene.name, doubt)
        if doubt := card.training.get("provisional"):
            log.warning("model '%s' is provisional: %s", card.name, doubt)
        return
    if len(scene.bands) == 1 and needed > 1:
        raise InputError(
            f"{scene.name} has one band ({scene.bands[0].name}), and smoke is known by {needed} at "
            "least. Name the folder that holds all bands of the scene, or stack them in one file."
        )
    wanted = _span(card.bands)
    unnamed = "" if scene.bands_from != "band count" else " Name them with --bands or --sensor."
    raise InputError(
        f"{scene.name} has {len(scene.bands)} band(s) ({_span(scene.bands)}), of which model "
        f"'{card.name}' knows {len(fit.used)}; it needs {needed} of {wanted}.{unnamed}"
        " Name another model with --model."
    )


def _say_absent(scene: Scene, fit: Fit) -> None:
    absent = [
        b.name for b, there in zip(fit.card.bands, fit.matching.available, strict=True) if not there
    ]
    if not absent:
        return
    few = len(fit.used) < len(absent)
    log.log(
        logging.WARNING if few else logging.INFO,
        "%s lacks %s; the model goes without%s",
        scene.name,
        ", ".join(absent),
        ", and that is most of what it knows: expect little" if few else "",
    )
    config = fit.card.training.get("config", {})
    if fit.card.architecture != "mop" or not config.get("band_dropout", 0):
        log.warning(
            "model '%s' was not trained to go without bands, and %d of %d are absent; "
            "expect poor results",
            fit.card.name,
            len(absent),
            len(fit.card.bands),
        )


def _span(bands: BandSet) -> str:
    """Return the bands in few words."""
    if len(bands) <= 8:
        return ", ".join(bands.names)
    known = [nm for nm in bands.wavelengths_nm if nm is not None]
    if not known:
        return f"{', '.join(bands.names[:3])}, ..."
    return f"{min(known):g} to {max(known):g} nm"
