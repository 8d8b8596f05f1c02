"""At which sizes a network looks at a scene, and what counts of what it sees."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Looks:
    """Sizes, and how what is seen at each is put together; `smokegeo.zoom` does it.

    The looks that enlarge nothing, as it is and from `afar` (at one part in so many of its size),
    are averaged: what looks like smoke from near, a cloud's edge, may be plain from afar. Of that
    and the closer looks, `zooms` above 1, the most counts, but these must be surer, by a `margin`
    of votes (log odds): enlarged, more is mistaken for smoke, and the higher of two opinions is
    wrong more often than either.
    """

    zooms: tuple[int, ...] = (1,)
    margin: float = 0.0
    afar: int = 1

    def without_closer(self) -> Looks:
        """Return these looks but for all zooms after the first, which take the most time."""
        return replace(self, zooms=self.zooms[:1])


#: One look, at a scene as it is.
ONCE = Looks()
