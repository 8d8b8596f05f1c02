"""The bands a user says a raster has: `--bands` and `--sensor`, before anything the file says."""

from __future__ import annotations

from collections.abc import Sequence

from smokegeo.banddoubts import doubt_of_counting, doubt_of_repeats
from smokegeo.bandnames import guess_sensor, is_auxiliary, parse_band_name
from smokegeo.bandreading import BandReading, band_at, other_order, unique, usual_stack
from smokegeo.bands import Band, BandSet
from smokegeo.errors import InputError, UsageError
from smokegeo.rastermeta import RasterMeta, bare_wavelengths
from smokegeo.sensors import Sensor
from smokegeo.sensors import sensor as find_sensor

#: What stands for a band to leave out.
_SKIPPED = "-"


def from_names(
    text: str, sensor: str | None, meta: RasterMeta, data: tuple[int, ...]
) -> BandReading:
    """Read `--bands`, with the help of `--sensor` if it is there."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) not in (len(data), meta.count):
        raise UsageError(
            f"--bands names {len(names)} bands, the raster has {len(data)}; name each one in "
            f"order, {_SKIPPED} for one to leave out."
        )
    indexes = data if len(names) == len(data) else tuple(range(1, meta.count + 1))
    indexes = tuple(i for i, n in zip(indexes, names, strict=True) if n != _SKIPPED)
    names = named_bands(text)
    if not names:
        raise UsageError("--bands leaves out all bands; name those to look at.")
    if sensor is not None:
        preset = find_sensor(sensor)
        chosen = tuple(
            _in_preset(name, preset) or preset.bands[preset.bands.index(name)] for name in names
        )
        _refuse_twice(chosen)
        return BandReading(BandSet(chosen, preset.name), indexes, "explicit choice")
    hint = guess_sensor(names, meta.tags, meta.filename)
    found = [parse_band_name(name, hint.name) for name in names]
    if numbers := bare_wavelengths(names):
        found = [band_at(nm) for nm in numbers]
    warnings = [hint.warning] if hint.warning else []
    warnings += [
        f"band {n} is not understood" for n, band in zip(names, found, strict=True) if not band
    ]
    bands = tuple(band or Band(name) for name, band in zip(names, found, strict=True))
    _refuse_twice(bands)
    return BandReading(BandSet(bands), indexes, "explicit choice", tuple(warnings))


def named_bands(text: str) -> list[str]:
    """Return the names in what a user says of the bands, without those to leave out."""
    names = (name.strip() for name in text.split(","))
    return [name for name in names if name not in ("", _SKIPPED)]


def _refuse_twice(bands: Sequence[Band]) -> None:
    """Refuse one name for two bands, with a way to leave one out."""
    names = [band.name.casefold() for band in bands]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"--bands names {name} twice; put {_SKIPPED} for each band to leave out, as in "
                f"red,green,blue,nir,{_SKIPPED},{_SKIPPED}."
            )


def from_sensor(name: str, meta: RasterMeta, data: tuple[int, ...]) -> BandReading:
    """Read `--sensor`; which of its bands these are, descriptions or their number say."""
    preset, source = find_sensor(name), "explicit choice"
    texts = [(meta.descriptions[index - 1] or "").strip() for index in data]
    found: list[Band] = []
    for text in texts:
        band = _in_preset(text, preset)
        if band is None and is_auxiliary(text):
            band = Band(text)
        if band is None:
            break
        found.append(band)
    if len(found) == len(data):  # described, perhaps a subset or in another order
        doubts = (doubt_of_counting(texts, preset.name), doubt_of_repeats(found, data))
        bands = BandSet(unique(found, data), preset.name)
        return BandReading(bands, data, source, tuple(filter(None, doubts)))
    stack = preset.bands if len(preset.bands) == len(data) else None
    if stack is None and not any(texts):
        stack = usual_stack(preset, len(data))
    if stack is not None:
        other = other_order(stack)
        note = f"{len(data)} bands are taken for {', '.join(stack.names)}, in this order"
        if other is not None:
            note += f"; if it is another, give --bands, such as {other}"
        told = other is not None or len(stack) < len(preset.bands)
        return BandReading(stack, data, source, notes=(note,) if told else ())
    raise InputError(
        f"{meta.filename or 'the raster'} has {len(data)} bands, {preset.title} has "
        f"{len(preset.bands)}, and nothing says which one band {data[len(found)]} is. "
        f"Name each in order with --bands {','.join(preset.bands.names[:3])},..."
    )


def _in_preset(name: str, preset: Sensor) -> Band | None:
    """Return the preset's own band of that name or number, if it has one."""
    parsed = parse_band_name(name, preset.name)
    wanted = {name.casefold(), parsed.name.casefold() if parsed else ""}
    return next((band for band in preset.bands if band.name.casefold() in wanted), None)
