"""Seeded random fields: fractal noise, eddies, warps. All are (y, x) float32."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

Field = NDArray[np.float32]
Shape = tuple[int, int]


def fractal(
    shape: Shape,
    rng: np.random.Generator,
    *,
    slope: float = 4 / 3,
    largest_px: float | None = None,
    smallest_px: float = 1.0,
    stretch: float = 1.0,
    angle_rad: float = 0.0,
) -> Field:
    """Return zero-mean, unit-variance noise whose amplitude falls as wavenumber ** -slope.

    A slope of 4/3 is that of a scalar mixed by three-dimensional turbulence, 2 that of terrain.
    `stretch` draws the noise out along `angle_rad`, counted from +x towards +y.
    """
    coarse = int(smallest_px // 3)
    if coarse > 1:  # no detail that a coarser grid would lose
        small = (-(-shape[0] // coarse), -(-shape[1] // coarse))
        noise = fractal(
            small,
            rng,
            slope=slope,
            largest_px=(largest_px or max(shape)) / coarse,
            smallest_px=smallest_px / coarse,
            stretch=stretch,
            angle_rad=angle_rad,
        )
        return enlarge(noise, shape)
    rows, columns = (fft.next_fast_len(side, real=True) for side in shape)
    ky = np.fft.fftfreq(rows).astype(np.float32)[:, None]
    kx = np.fft.rfftfreq(columns).astype(np.float32)[None, :]
    cos, sin = np.float32(np.cos(angle_rad)), np.float32(np.sin(angle_rad))
    along, across = kx * cos + ky * sin, ky * cos - kx * sin
    squared = (along * np.float32(stretch)) ** 2 + across**2
    # Scales beyond the largest share one amplitude; those below the smallest fade out.
    gain = (squared + np.float32((largest_px or max(shape)) ** -2.0)) ** np.float32(-slope / 2)
    if smallest_px > 1:
        gain *= np.exp(-squared * np.float32(smallest_px**2))
    gain[0, 0] = 0
    spectrum = fft.rfft2(rng.standard_normal((rows, columns), dtype=np.float32))
    spectrum *= gain
    noise = fft.irfft2(spectrum, s=(rows, columns))[: shape[0], : shape[1]]
    return standardise(noise)


def standardise(field: Field) -> Field:
    """Return the field with mean 0 and standard deviation 1; a flat field becomes 0."""
    centred = field - field.mean(dtype=np.float64).astype(np.float32)
    spread = float(centred.std(dtype=np.float64))
    out: Field = (centred / np.float32(spread if spread > 1e-12 else 1.0)).astype(np.float32)
    return out


def eddies(shape: Shape, rng: np.random.Generator, **scales: float) -> tuple[Field, Field]:
    """Return a divergence-free velocity (vy, vx), periodic, with unit root-mean-square speed.

    It is the curl of a stream function; the slope gives Kolmogorov's energy spectrum.
    """
    stream = fractal(shape, rng, slope=7 / 3, **scales)
    vx = np.roll(stream, -1, 0) - np.roll(stream, 1, 0)
    vy = np.roll(stream, 1, 1) - np.roll(stream, -1, 1)
    speed = float(np.sqrt(np.mean(vx**2 + vy**2))) or 1.0
    return vy / np.float32(speed), vx / np.float32(speed)


def sample_periodic(field: Field, y: Field, x: Field) -> Field:
    """Return bilinear samples at the points (y, x) of a field that repeats in both directions."""
    rows, columns = field.shape
    y0, x0 = np.floor(y), np.floor(x)
    fy, fx = (y - y0).astype(np.float32), (x - x0).astype(np.float32)
    top, left = y0.astype(np.int64) % rows, x0.astype(np.int64) % columns
    bottom, right = (top + 1) % rows, (left + 1) % columns
    upper = field[top, left] * (1 - fx) + field[top, right] * fx
    lower = field[bottom, left] * (1 - fx) + field[bottom, right] * fx
    out: Field = upper * (1 - fy) + lower * fy
    return out


def warp(field: Field, dy: Field, dx: Field) -> Field:
    """Return the field looked up at pixels displaced by (dy, dx)."""
    rows, columns = field.shape
    y, x = grid((rows, columns))
    out: Field = ndimage.map_coordinates(
        field, [y + dy, x + dx], order=1, mode="nearest", output=np.float32
    )
    return out


def shift(field: Field, dy_px: float, dx_px: float) -> Field:
    """Return the field moved down and right by any distance, edges held."""
    rows = _between(field, _clipped(field.shape[0], -dy_px))
    moved = _between(rows.T, _clipped(field.shape[1], -dx_px))
    return np.ascontiguousarray(moved.T)


def grid(shape: Shape) -> tuple[Field, Field]:
    """Return the row and column of each pixel, as arrays that broadcast to `shape`."""
    y = np.arange(shape[0], dtype=np.float32)[:, None]
    x = np.arange(shape[1], dtype=np.float32)[None, :]
    return y, x


def blur(field: Field, sigma_px: float) -> Field:
    """Return the field under a Gaussian of the given width, edges held."""
    if sigma_px <= 0.05:
        return field
    out: Field = ndimage.gaussian_filter(
        field, sigma_px, mode="nearest", truncate=3.0, output=np.float32
    )
    return out


def smoothstep(low: float, high: float, field: Field) -> Field:
    """Return 0 below `low`, 1 above `high` and a smooth rise between."""
    t = np.clip((field - np.float32(low)) / np.float32(high - low), 0, 1)
    out: Field = t * t * (3 - 2 * t)
    return out


def enlarge(field: Field, shape: Shape) -> Field:
    """Return the field stretched bilinearly over a grid of another shape."""
    y = (np.arange(shape[0], dtype=np.float32) + 0.5) * (field.shape[0] / shape[0]) - 0.5
    x = (np.arange(shape[1], dtype=np.float32) + 0.5) * (field.shape[1] / shape[1]) - 0.5
    rows = _between(field, np.clip(y, 0, field.shape[0] - 1))
    return np.ascontiguousarray(_between(rows.T, np.clip(x, 0, field.shape[1] - 1)).T)


def _clipped(side: int, offset: float) -> Field:
    """Return the positions 0 to side - 1 moved by an offset, kept inside."""
    places: Field = np.arange(side, dtype=np.float32) + np.float32(offset)
    return np.clip(places, 0, side - 1)


def _between(field: Field, at: Field) -> Field:
    """Return rows of the field interpolated at fractional row numbers."""
    low = at.astype(np.int64)
    high = np.minimum(low + 1, field.shape[0] - 1)
    part = (at - low).astype(np.float32)[:, None]
    out: Field = field[low] * (1 - part) + field[high] * part
    return out
