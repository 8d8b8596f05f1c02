"""Physically based smoke, cloud and background simulator."""

from __future__ import annotations

from smokegeo.simulate.frame import SimulatedFrame, simulate_frame

__all__ = ["SimulatedFrame", "simulate_frame"]
