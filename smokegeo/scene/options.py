"""What a user may say about a scene that its file does not say, or says wrongly."""

from __future__ import annotations

from dataclasses import dataclass

from smokegeo.errors import UsageError
from smokegeo.scene.scene import SENTINELS


@dataclass(frozen=True)
class SceneOptions:
    """The options; see `smokegeo predict --help`."""

    bands: str | None = None
    sensor: str | None = None
    nodata: str | None = None
    raw: bool = False
    crs: str | None = None
    pixel_coords: bool = False
    skip_damaged: bool = False
    bbox: str | None = None
    window: str | None = None
    sha256: str | None = None

    @property
    def nodata_value(self) -> float | None:
        """The user's nodata as a number; None if there is none or the user said `none`."""
        if self.nodata is None or self.nodata.casefold() == "none":
            return None
        try:
            return float(self.nodata)
        except ValueError:
            raise UsageError(f"--nodata {self.nodata!r} is neither a number nor `none`.") from None

    @property
    def ignores_nodata(self) -> bool:
        """True if the user said that every pixel holds data."""
        return self.nodata is not None and self.nodata_value is None

    @property
    def sentinels(self) -> tuple[float, ...]:
        """Numbers to take for missing data; none once the user has said what is missing."""
        return SENTINELS if self.nodata is None else ()
