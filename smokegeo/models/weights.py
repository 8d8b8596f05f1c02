"""Named tensors that remember which of them were used."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


class Weights:
    """The tensors whose names begin with `prefix`, read by the rest of their names.

    Folding picks weights one by one. What nobody picked shows that the weights are of another
    network than the configuration says: `unread` is folding's strict loading.
    """

    def __init__(
        self, values: Mapping[str, Tensor], prefix: str = "", read: set[str] | None = None
    ) -> None:
        self._values = values
        self._prefix = prefix
        self._read: set[str] = set() if read is None else read

    def __getitem__(self, name: str) -> Tensor:
        value = self._values[self._prefix + name]
        self._read.add(self._prefix + name)
        return value

    def part(self, prefix: str) -> Weights:
        """Return the tensors further down, with the same memory."""
        return Weights(self._values, self._prefix + prefix, self._read)

    def unread(self) -> list[str]:
        """Return the full names of all tensors that were never read, sorted."""
        return sorted(set(self._values) - self._read)
