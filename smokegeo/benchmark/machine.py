"""What the machine is called, for the foot of a table."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from smokegeo.train import Machine


def trained_on(machine: Machine) -> str:
    """Return the device that trains, its threads or precision, and the version of torch."""
    if machine.accelerator != "cpu" and torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    else:
        device = f"{processor()}, training with {torch.get_num_threads()} thread(s)"
    precision = "" if machine.precision == "32-true" else f", {machine.precision}"
    return f"{device}{precision}, torch {torch.__version__}"


def measured_on() -> str:
    """Return all that decides the costs measured in this process: if it differs, so may they."""
    card = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread(s){card}, torch {torch.__version__}"


def processor() -> str:
    """Return the processor's name and how many cores there are."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text("utf-8").splitlines()
        models = [line for line in lines if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{os.cpu_count()} cores of {name}"
