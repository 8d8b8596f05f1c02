"""One of two processes that train prototypes together; apart, so that `spawn` can import it."""

from __future__ import annotations

import torch
import torch.distributed as dist

from smokegeo.models.config import MoPConfig
from smokegeo.models.prototypes import Prototypes

CONFIG = MoPConfig(bands=3, dim=12, momentum=0.7)


def prototypes(config: MoPConfig = CONFIG, seed: int = 0) -> Prototypes:
    """Return prototypes in training, the same for the same seed."""
    torch.manual_seed(seed)
    return Prototypes(config).train()


def unlike_halves(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features whose halves lie near different prototypes, so that matching each half alone,
    with equal shares for all prototypes, is not the same as matching all together."""
    generator = torch.Generator().manual_seed(9)
    x = torch.randn(batch, 12, 6, 6, generator=generator)
    x[: batch // 2] += 1.5
    y = torch.arange(batch * 36).view(batch, 6, 6) % 2
    y[batch // 2 :][y[batch // 2 :] == 1] = 255  # the second half has no pixel of class 1
    return x, y


def one_rank(rank: int, folder: str) -> None:
    """Train on this rank's half of a batch of four and leave the prototypes in `folder`."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    x, y = unlike_halves(4)
    module = prototypes()
    own = slice(2 * rank, 2 * rank + 2)
    for _ in range(3):
        module.loss(x[own], y[own])
    torch.save(module.vectors, f"{folder}/rank{rank}.pt")
    dist.destroy_process_group()
