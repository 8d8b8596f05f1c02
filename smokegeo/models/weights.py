"""Named tensors, read part by part."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


class Weights:
    """The tensors whose names begin with `prefix`, read by the rest of their names."""

    def __init__(self, values: Mapping[str, Tensor], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix

    def __getitem__(self, name: str) -> Tensor:
        return self._values[self._prefix + name]

    def part(self, prefix: str) -> Weights:
        """Return the tensors further down."""
        return Weights(self._values, self._prefix + prefix)
