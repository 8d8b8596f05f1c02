"""The numbers of a dataset's frames in the units of a model, decided as for scenes of `predict`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import rasterio
import xarray as xr
from numpy.typing import NDArray

from smokegeo.bands import Matching
from smokegeo.datasets.smoke import SmokeDataset
from smokegeo.labels import Place
from smokegeo.modelfile import Card
from smokegeo.radiometry import Scaling, Units, choose_scaling
from smokegeo.scene.arrays import ArrayLayer
from smokegeo.scene.georeference import PICTURE
from smokegeo.scene.scene import Scene, Source
from smokegeo.survey import survey
from smokegeo.writing.doubts import heard

log = logging.getLogger(__name__)

#: What a card says of units if its network did not learn from numbers just as they are stored.
_SAYS_UNITS = ("views", "heat", "full")


class FrameUnits:
    """Decides, frame by frame, how stored numbers become those a model was trained on.

    A model that `smokegeo train` made takes numbers as they are stored, as long as their type is
    the one it was trained on and the user does not say otherwise.
    """

    def __init__(
        self, card: Card, dataset: SmokeDataset, matching: Matching, said: Units | None = None
    ) -> None:
        self.card, self.dataset, self.matching, self.said = card, dataset, matching, said
        trained, stored = card.input.get("dtype"), self._stored(dataset.layout.frames[0].id)
        as_trained = trained in (None, stored) and said is None
        self.as_stored = as_trained and not any(name in card.input for name in _SAYS_UNITS)
        self._told = self._warned = False

    def scaling(self, frame: int, image: NDArray[np.float32], valid: NDArray[np.bool_]) -> Scaling:
        """Return the scaling of a frame, by its number and its values in the dataset's bands."""
        if self.as_stored:
            count = len(self.card.bands)
            return Scaling((1.0,) * count, (0.0,) * count, "")
        scene = self._scene(self.dataset.records[frame].id, image, valid)
        found = survey(scene, [i for i in self.matching.indexes if i is not None])
        with self._one_warning():
            scaling = choose_scaling(scene, found, self.matching, self.card, self.said)
        if not self._told:
            log.info("%s: %s", scene.name, scaling.words)
            self._told = True
        return scaling

    def _scene(self, name: str, image: NDArray[np.float32], valid: NDArray[np.bool_]) -> Scene:
        values = xr.DataArray(np.where(valid, image, np.float32(np.nan)), dims=("band", "y", "x"))
        return Scene(
            name=name,
            width=valid.shape[1],
            height=valid.shape[0],
            place=Place(None, PICTURE),
            bands=self.dataset.band_set,
            layers=(ArrayLayer(values, dtype=self._stored(name)),),
            sources=tuple(Source(0, i) for i in range(len(image))),
        )

    def _stored(self, name: str) -> str:
        with rasterio.open(self.dataset.layout.image(name), driver="GTiff") as src:
            return str(src.dtypes[0])

    @contextmanager
    def _one_warning(self) -> Iterator[Any]:
        """Let a doubt about units be told of one frame: the others are mostly like it."""
        logger = logging.getLogger("smokegeo.radiometry")
        before, logger.disabled = logger.disabled, logger.disabled or self._warned
        try:
            with heard() as doubts:
                yield
            self._warned |= bool(doubts)
        finally:
            logger.disabled = before
