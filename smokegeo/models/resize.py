"""Feature maps of several resolutions brought to one and added up, as matrix products.

Small maps with many channels spend more time in `F.interpolate` and its gradient than in the
convolutions around it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def sum_resized(maps: list[Tensor]) -> Tensor:
    """Bring all maps (B, C, h, w) to the size of the first, bilinearly, and add them up.

    Bilinear resizing is a matrix on the rows and one on the columns. Written so, the columns take
    one product per map and the rows one for all maps together, straight into the sum.
    """
    first = maps[0]
    b, c, height, width = first.shape
    narrow = [torch.matmul(m, _resizer(m.shape[3], width, m).T) for m in maps[1:]]
    rows = torch.cat([_resizer(m.shape[2], height, m) for m in maps[1:]], dim=1)
    stacked = torch.cat(narrow, dim=2).flatten(0, 1)
    return torch.baddbmm(
        first.reshape(b * c, height, width), rows.expand(b * c, -1, -1), stacked
    ).view(b, c, height, width)


def _resizer(source: int, target: int, like: Tensor) -> Tensor:
    """Return the matrix (target, source) of linear interpolation, as `F.interpolate` does it."""
    eye = torch.eye(source, dtype=like.dtype, device=like.device)
    return F.interpolate(eye[None], size=target, mode="linear")[0].T
