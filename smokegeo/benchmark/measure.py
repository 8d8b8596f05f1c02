"""What a model costs: parameters, arithmetic, and time and memory for one image."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from smokegeo.benchmark.machine import measured_on
from smokegeo.heap import give_back, keep_nothing
from smokegeo.models.build import build_network
from smokegeo.models.mop import MoP

_REPEATS = 9
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Cost:
    """Cost of segmenting one image of size_px; None where it could not be measured.

    `parameters` are those that were trained. The rest is of the network that predicts, which for
    MoP is the folded one. Memory is that of its weights and of what one image adds to them.
    `measured_on` names the machine: times and memory of two machines cannot be compared.
    """

    parameters: int
    gflops: float
    size_px: int
    threads: int
    cpu_ms: float
    cpu_mb: float | None
    measured_on: str
    gpu: str | None = None
    gpu_ms: float | None = None
    gpu_mb: float | None = None


def measure_apart(name: str, bands: int, options: Mapping[str, Any], size_px: int) -> Cost:
    """Measure a network in a process of its own, whose memory nothing else has touched."""
    # Not forked: a fork would begin with all the memory this process has.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(measure, name, bands, dict(options), size_px).result()


def measure(
    name: str, bands: int, options: Mapping[str, Any], size_px: int, repeats: int = _REPEATS
) -> Cost:
    """Measure a network on the processor, and on a graphics card if there is one.

    It is built anew: random weights cost what trained ones do.
    """
    built = build_network(name, bands, options).eval()
    parameters = sum(p.numel() for p in built.parameters())
    network = built.fold() if isinstance(built, MoP) else built
    image = torch.zeros(1, bands, size_px, size_px)
    cpu_ms = milliseconds(lambda: network(image), repeats)
    flops = count_flops(lambda: network(image))
    cpu_mb = _megabytes_of(network, image)  # last: it makes the process slower
    card = _on_card(network, image, repeats) if torch.cuda.is_available() else ()
    threads, where = torch.get_num_threads(), measured_on()
    return Cost(parameters, flops / 1e9, size_px, threads, cpu_ms, cpu_mb, where, *card)


def _on_card(network: nn.Module, image: Tensor, repeats: int) -> tuple[str, float, float]:
    """Return the card's name, milliseconds, and the megabytes of its memory that were in use."""
    network, image = network.cuda(), image.cuda()
    torch.cuda.reset_peak_memory_stats()

    def work() -> None:
        network(image)
        torch.cuda.synchronize()

    took = milliseconds(work, 4 * repeats)
    return torch.cuda.get_device_name(), took, torch.cuda.max_memory_allocated() / 1e6


@torch.inference_mode()
def milliseconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median time of some work, after doing it once for nothing."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[1:])


@torch.no_grad()
def count_flops(work: Callable[[], Any]) -> int:
    """Return the floating-point operations of the convolutions and matrix products in some work.

    torch leaves out two forms of attention that run on CPUs: the fused one is counted here by its
    formula, and the fast path of nn.MultiheadAttention is switched off meanwhile.
    """
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    counter = FlopCounterMode(display=False, custom_mapping={fused: _attention_flops})
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with counter:
            work()
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return counter.get_total_flops()


def _attention_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Return the operations of two matrix products: weights, and what they weight."""
    batch, heads, rows, width = query
    columns = key[2]
    return int(2 * batch * heads * rows * columns * (width + value[3]))


@torch.inference_mode()
def _megabytes_of(network: nn.Module, image: Tensor) -> float | None:
    """Return the memory of a network and one image, by the kernel's account; None but on Linux."""
    network(image[:, :, :32, :32])  # libraries take memory of their own at first use
    give_back()  # or the image would fit into what came before
    keep_nothing()
    try:
        before = _account("VmRSS")
        _CLEAR.write_text("5")  # count the peak anew
        network(image)
        added = _account("VmHWM") - before
    except (OSError, KeyError):
        return None
    weights: int = sum(value.nbytes for value in network.state_dict().values())
    return (added + weights) / 1e6


def _account(name: str) -> int:
    """Return a number of bytes the kernel keeps about this process."""
    lines = dict(line.split(":", 1) for line in _STATUS.read_text("utf-8").splitlines())
    return int(lines[name].split()[0]) * 1024
