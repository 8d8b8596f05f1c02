"""From light to numbers: blur, band shifts, gain, noise, saturation, curve, quantisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smokegeo.bands import BandSet
from smokegeo.simulate.fields import Field, blur, shift
from smokegeo.simulate.optics import THERMAL_NM
from smokegeo.simulate.spectra import sunlight

#: Reflectance one stands for in satellite products, and what their 12-bit counters can hold.
REFLECTANCE_SCALE = 10000
_SATELLITE_FULL = 1.6


@dataclass(frozen=True, slots=True)
class Channel:
    """One band's electronics: number = curve(gain * light + offset), then noise and clipping."""

    gain: float
    offset: float
    shift_y_px: float
    shift_x_px: float
    gamma: float


@dataclass(frozen=True)
class SensorModel:
    """A sensor as it was set on one day; light 1 is full scale before `full_number`."""

    channels: tuple[Channel, ...]
    blur_px: float
    read_noise: float
    shot_noise: float
    bits: int
    full_number: int
    dtype: np.dtype[Any]

    def record(
        self, light: Field, band: int, rng: np.random.Generator
    ) -> NDArray[np.unsignedinteger[Any]]:
        """Return the numbers (y, x) the sensor writes for the light of one band."""
        channel = self.channels[band]
        if max(abs(channel.shift_y_px), abs(channel.shift_x_px)) > 0.05:
            light = shift(light, channel.shift_y_px, channel.shift_x_px)
        signal = blur(light, self.blur_px) * np.float32(channel.gain) + np.float32(channel.offset)
        spread = np.sqrt(
            np.maximum(signal, 0) * np.float32(self.shot_noise**2) + np.float32(self.read_noise**2)
        )
        signal += spread * rng.standard_normal(signal.shape, dtype=np.float32)
        np.clip(signal, 0, 1, out=signal)
        if channel.gamma != 1:
            signal **= np.float32(channel.gamma)
        levels = np.float32(2**self.bits - 1)
        signal = np.rint(signal * levels) * np.float32(self.full_number / levels)
        numbers: NDArray[np.unsignedinteger[Any]] = np.rint(signal).astype(self.dtype)
        return numbers

    def with_bits(self, bits: int) -> SensorModel:
        """Return the same sensor with another depth; calibrated numbers keep their scale."""
        if self.full_number != 2**self.bits - 1:  # reflectance, not raw counts
            return replace(self, bits=bits)
        dtype = np.dtype(np.uint8 if bits <= 8 else np.uint16)
        return replace(self, bits=bits, full_number=2**bits - 1, dtype=dtype)


def stretch_contrast(
    values: NDArray[np.unsignedinteger[Any]], how: str
) -> NDArray[np.unsignedinteger[Any]]:
    """Return an 8-bit picture of (band, y, x) numbers, as image viewers make it.

    From the 2nd to the 98th percentile, of each band ("bands") or of all together ("joint").
    """
    axis = (1, 2) if how == "bands" else None
    low, high = (np.percentile(values, q, axis=axis, keepdims=True) for q in (2, 98))
    scaled = (values - low) / np.maximum(high - low, 1e-6)
    return np.asarray(np.rint(np.clip(scaled, 0, 1) * 255), np.uint8)


@dataclass(frozen=True, slots=True)
class Exposure:
    """How bright the picture comes out: the light that maps to full scale, and a black level."""

    white: float
    black: float


def draw_satellite(
    bands: BandSet, rng: np.random.Generator, exposure: Exposure | None
) -> SensorModel:
    """Draw a calibrated push-broom imager: reflectance x 10000 from 12-bit counters.

    With an exposure it is set to high gain and saturates over bright ground, as Landsat 7 did.
    """
    top = _SATELLITE_FULL if exposure is None else min(_SATELLITE_FULL, exposure.white)
    channels = tuple(
        Channel(
            float(rng.normal(1, 0.02)) / top,
            float(rng.normal(0, 0.002)),
            float(rng.normal(0, 0.12)),
            float(rng.normal(0, 0.12)),
            1.0,
        )
        for _ in bands
    )
    full = round(top * REFLECTANCE_SCALE)
    noise = float(rng.uniform(0.0005, 0.004))
    blur_px = float(rng.uniform(0.35, 0.8))
    return SensorModel(channels, blur_px, noise, noise, 12, full, np.dtype(np.uint16))


def draw_mosaic(bands: BandSet, rng: np.random.Generator, exposure: Exposure) -> SensorModel:
    """Draw a snapshot mosaic camera: 10 bits, uneven filters, each band seen 1/5 px aside."""
    side = int(np.ceil(np.sqrt(len(bands))))
    order = rng.permutation(len(bands))
    responses = [_silicon(band.wavelength_nm or 700.0) for band in bands]
    mean = sum(responses) / len(responses)
    channels = []
    for position in range(len(bands)):
        row, column = divmod(int(order[position]), side)
        # The makers thin the filters of strong bands, which takes away half of the contrast.
        response = float((responses[position] / mean) ** 0.5 * rng.normal(1, 0.05))
        gain = response / (exposure.white - exposure.black)
        channels.append(
            Channel(
                gain,
                -exposure.black * gain + float(rng.normal(0.02, 0.004)),
                (row - side // 2) / side,
                (column - side // 2) / side,
                1.0,
            )
        )
    return SensorModel(
        tuple(channels),
        float(rng.uniform(0.4, 0.9)),
        float(rng.uniform(0.003, 0.008)),
        float(rng.uniform(0.006, 0.02)),
        10,
        1023,
        np.dtype(np.uint16),
    )


def draw_camera(bands: BandSet, rng: np.random.Generator, exposure: Exposure) -> SensorModel:
    """Draw a drone's colour camera with a thermal one beside it: 8 bits, display curve."""
    cast = rng.normal(1, 0.05, len(bands))
    aside = rng.normal(0, 1.0, 2)
    channels = []
    for position, band in enumerate(bands):
        if (band.wavelength_nm or 0) > THERMAL_NM:
            gain = float(rng.normal(1, 0.03))
            channels.append(Channel(gain, 0.0, float(aside[0]), float(aside[1]), 1.0))
            continue
        gain = float(cast[position]) / (exposure.white - exposure.black)
        channels.append(Channel(gain, -exposure.black * gain, 0.0, 0.0, 1 / 2.2))
    return SensorModel(
        tuple(channels),
        float(rng.uniform(0.4, 1.0)),
        float(rng.uniform(0.001, 0.003)),
        float(rng.uniform(0.004, 0.015)),
        8,
        255,
        np.dtype(np.uint8),
    )


def _silicon(wavelength_nm: float) -> float:
    """Return what a silicon sensor in sunlight collects; it goes blind towards 1000 nm."""
    efficiency = np.interp(wavelength_nm, (400, 600, 750, 900, 1000), (0.7, 1.0, 0.9, 0.55, 0.3))
    return float(efficiency) * sunlight(wavelength_nm)
