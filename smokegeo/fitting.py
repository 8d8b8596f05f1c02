"""Find the model for a scene: the one asked for, or the bundled one that fits its bands best."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet, Matching, match_bands
from smokegeo.errors import InputError, ModelError
from smokegeo.modelfile import Card, bundled_models, find_model, read_card
from smokegeo.scene.scene import Scene

log = logging.getLogger(__name__)


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
    fits = rank_models(scene.bands)
    if not fits:
        raise ModelError(
            "this version of smokegeo carries no model of its own. Train one with `smokegeo "
            "train`, and name it with --model."
        )
    refuse_misfit(scene, fits[0])
    return fits[0]


def rank_models(bands: BandSet) -> list[Fit]:
    """Return the bundled models, best first: most of the scene's bands, then most of their own."""
    fits = []
    for path in bundled_models().values():
        card = read_card(path)
        fits.append(Fit(path, card, match_bands(bands, card.bands)))
    return sorted(fits, key=lambda f: (-len(f.used), -len(f.used) / len(f.card.bands), f.card.name))


def refuse_misfit(scene: Scene, fit: Fit) -> None:
    """Refuse a scene without any band the model needs, naming both sides."""
    card = fit.card
    needed = int(card.input.get("min_bands", 1))
    if len(fit.used) >= needed:
        _say_absent(scene, fit)
        if doubt := card.training.get("provisional"):
            log.warning("model '%s' is provisional: %s", card.name, doubt)
        return
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
    log.info("%s lacks %s; the model goes without", scene.name, ", ".join(absent))
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
