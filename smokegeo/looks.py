"""At which sizes a network looks at a scene, and what counts of what it sees."""

from __future__ import annotations

from dataclasses import dataclass

#: Sizes a network may look at, of a scene's own; others would show it nothing new.
SIZES = (0.25, 0.5, 1, 2, 3, 4)


@dataclass(frozen=True)
class Looks:
    """Sizes, and how what is seen at each is put together; `smokegeo.zoom` does it.

    The votes (log odds) of all `sizes` are averaged: much that looks like smoke at one, a cloud's
    edge, does not at another. Of that and what is seen `closer`, the most counts, so that plumes of
    some pixels are found, but a closer look must be surer, by a `margin` of votes: enlarged, more
    is mistaken for smoke, and the higher of two opinions is wrong more often than either.
    """

    sizes: tuple[float, ...] = (1,)
    closer: tuple[float, ...] = ()
    margin: float = 0.0

    @property
    def all(self) -> tuple[float, ...]:
        """The sizes of all looks, each once."""
        return tuple(dict.fromkeys(self.sizes + self.closer))

    def without_enlarged(self) -> Looks:
        """Return these looks but for those that enlarge, which take the most time."""
        return Looks(tuple(size for size in self.sizes if size <= 1) or (1,))


#: One look, at a scene as it is.
ONCE = Looks()
