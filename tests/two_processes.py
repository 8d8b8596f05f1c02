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


def separated(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features so near their prototypes that matching alone or together gives the same."""
    module = prototypes()
    generator = torch.Generator().manual_seed(9)
    y = torch.arange(batch * 36).view(batch, 6, 6) % 2
    which = (torch.arange(batch * 36) // 2) % 3
    own = module.vectors[y.flatten(), :, which]  # pixels, groups, channels
    x = own + 0.02 * torch.randn(own.shape, generator=generator)
    return x.reshape(batch, 6, 6, 12).permute(0, 3, 1, 2).contiguous(), y


def one_rank(rank: int, folder: str) -> None:
    """Train on this rank's half of a batch of four and leave the prototypes in `folder`."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    x, y = separated(4)
    y[2:][y[2:] == 1] = 255  # the second rank has no pixel of class 1
    module = prototypes()
    own = slice(2 * rank, 2 * rank + 2)
    for _ in range(3):
        module.loss(x[own], y[own])
    torch.save(module.vectors, f"{folder}/rank{rank}.pt")
    dist.destroy_process_group()
