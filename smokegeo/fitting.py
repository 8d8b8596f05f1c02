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

from smokegeo.bandnames import guess_sensor, sensor_clue
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
#: Presets of instruments in space, and the one for all of them.
_IN_SPACE = {
    *("landsat5", "landsat7", "landsat8", "planetscope4", "planetscope8", "satellite", "sentinel2")
}
#: Readings of bands that a photograph has, too, whatever its file is called.
_GUESSES = ("colour interpretation", "band count")


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
    pixel_m = pixel_size_m(scene.place, scene.width, scene.height)
    fits = rank_models(scene.bands, pixel_m, "" if scene.bands_from in _GUESSES else scene.name)
    if not fits:
        raise ModelError(
            "this version of smokegeo carries no model of its own. Train one with `smokegeo "
            "train`, and name it with --model."
        )
    best = next((fit for fit in fits if len(fit.used) >= _needed(fit.card)), fits[0])
    refuse_misfit(scene, best, least=min(_needed(fit.card) for fit in fits))
    return best


def rank_models(
    bands: BandSet, pixel_m: tuple[float, float] | None = None, name: str = ""
) -> list[Fit]:
    """Return the bundled models, best first: made for such pixels, with most of its bands.

    It is a model's own bands that count: a satellite's red edge and NIR also lie within those of a
    25-band camera, and say little of what that model knows. Colours and heat are seen by satellites
    and cameras alike: the size of the pixels on the ground tells. A scene without a place may be of
    a satellite still, if it has all bands of its model, or if its bands or its `name` say so.
    """
    in_space = pixel_m is None and _is_of_satellite(bands, name)
    fits = []
    for path in bundled_models().values():
        card = read_card(path)
        fits.append(Fit(path, card, match_bands(bands, card.bands)))

    def rank(fit: Fit) -> tuple[Any, ...]:
        share = len(fit.used) / len(fit.card.bands)
        known = fit.card.resolution_m is not None if in_space else knows_pixels(fit.card, pixel_m)
        # A drone's picture may have a place; with heat, all of the model's bands, it is one.
        known |= share == 1 and fit.card.resolution_m is None and _may_be_drone(pixel_m)
        known |= _is_too_coarse(fit.card, pixel_m)  # and no camera's still
        suits = share >= _ENOUGH and known
        unplaced = pixel_m is None and not in_space
        first = (share < 1, not suits) if unplaced else (not suits, share < 1)
        return *first, -share, -len(fit.used), fit.card.name

    return sorted(fits, key=rank)


def _is_of_satellite(bands: BandSet, name: str) -> bool:
    """Say whether the names of bands, or a scene's, tell of an instrument in space."""
    hint = guess_sensor(bands.names)
    sure = hint.name is not None and hint.warning is None
    return sure or bands.sensor in _IN_SPACE or sensor_clue(filename=name) is not None


def knows_pixels(card: Card, pixel_m: tuple[float, float] | None) -> bool:
    """Say whether a model was trained on pixels of about this size; None is a camera's view."""
    if card.resolution_m is None or pixel_m is None:
        return (card.resolution_m is None) == (pixel_m is None)
    low, high = card.resolution_m
    return 0.5 * low <= math.sqrt(pixel_m[0] * pixel_m[1]) <= 2 * high


def _may_be_drone(pixel_m: tuple[float, float] | None) -> bool:
    return pixel_m is not None and math.sqrt(pixel_m[0] * pixel_m[1]) <= _CAMERA_M


def _is_too_coarse(card: Card, pixel_m: tuple[float, float] | None) -> bool:
    """Say whether pixels are larger than those of a satellite's model, and than any camera's."""
    if card.resolution_m is None or pixel_m is None:
        return False
    return math.sqrt(pixel_m[0] * pixel_m[1]) > max(card.resolution_m[1], _CAMERA_M)


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
    if not _may_be_drone(pixel_m) and fit.path in bundled_models().values():
        return f"the model was made for views of cameras, not for pixels of {side:.3g} m"
    return None


def _needed(card: Card) -> int:
    return int(card.input.get("min_bands", 1))


def refuse_misfit(scene: Scene, fit: Fit, least: int | None = None) -> None:
    """Refuse a scene without the bands the model needs, naming both sides.

    `least` is what any model needs, if the user did not ask for this one.
    """
    card = fit.card
    needed = _needed(card)
    if len(fit.used) >= needed:
        _say_absent(scene, fit)
        if doubt := doubt_of(fit, pixel_size_m(scene.place, scene.width, scene.height)):
            log.warning("%s: %s", scene.name, doubt)
        if doubt := card.training.get("provisional"):
            log.warning("model '%s' is provisional: %s", card.name, doubt)
        if doubt := card.doubt_for(len(fit.used)):
            log.warning(
                "%s has %d of the model's %d bands; %s",
                *(scene.name, len(fit.used), len(card.bands), doubt),
            )
        return
    least = needed if least is None else least
    if len(scene.bands) == 1 and least > 1:
        raise InputError(
            f"{scene.name} has one band ({scene.bands[0].name}), and smoke is known by {least} at "
            "least. Name the folder that holds all bands of the scene, or stack them in one file."
        )
    if not fit.used and not any(scene.bands.wavelengths_nm):
        raise InputError(
            f"{scene.name} has {len(scene.bands)} band(s) ({_span(scene.bands)}), none of which is "
            f"known. {_how_to_name(len(scene.bands))}"
        )
    wanted = _span(card.bands)
    unnamed = "" if scene.bands_from != "band count" else " Name them with --bands or --sensor."
    raise InputError(
        f"{scene.name} has {len(scene.bands)} band(s) ({_span(scene.bands)}), of which model "
        f"'{card.name}' knows {len(fit.used)}; it needs {needed} of {wanted}.{unnamed}"
        " Name another model with --model."
    )


def _how_to_name(count: int) -> str:
    """Return how to say what so many bands are."""
    example = ("blue", "green", "red", "nir", "swir1", "swir2")
    names = ",".join(example[:count]) + (" and so on" if count > len(example) else "")
    remedy = f"Name each in order, for instance --bands {names}."
    if count == 12:
        remedy += " If they are Sentinel-2's without B10, give --sensor sentinel2."
    return remedy


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
