"""What to say of bands that mean nothing here, or that may mean something else."""

from __future__ import annotations

from collections.abc import Sequence

from smokegeo.bandnames import is_some_infrared, parse_band_name
from smokegeo.bands import Band
from smokegeo.sensors import sensors

_RGB = {"red", "green", "blue"}


def not_understood(
    names: Sequence[str | None], texts: Sequence[str], indexes: Sequence[int]
) -> str | None:
    """Say which bands have no name (None), by number and description, and how to give them one."""
    unknown = [
        (index, text)
        for name, text, index in zip(names, texts, indexes, strict=True)
        if name is None
    ]
    if not unknown:
        return None
    first, last = unknown[0][0], unknown[-1][0]
    if len(unknown) == 1:
        which = f"band {first} ({unknown[0][1] or 'no description'}) is"
    elif last - first == len(unknown) - 1 and not any(text for _, text in unknown):
        which = f"bands {first} to {last} are"
    else:
        which = f"bands {', '.join(f'{i} ({text})' if text else f'{i}' for i, text in unknown)} are"
    # One band beside the colours is most often heat, several are a satellite's.
    pool = ("thermal",) if len(unknown) == 1 else ("nir", "swir1", "swir2")
    spare = [word for word in pool if word not in names]
    unique = len({*names} - {None}) + len(unknown) == len(names)
    example = ""
    if unique and len(unknown) <= len(spare):
        example = f", for instance {','.join(name or spare.pop(0) for name in names)}"
    return f"{which} not understood; name each in order with --bands{example}"


def doubt_of_counting(texts: Sequence[str], sensor: str | None) -> str | None:
    """Doubt names B1, B2, B3, ... where the sensor's own bands are seldom stacked so.

    Sentinel-2 has B8A after B8; the sixth band of sunlight of Landsat 4 to 7 is B7.
    """
    last = len(texts)
    counting = [f"b{number}" for number in range(1, last + 1)]
    odd = (sensor == "sentinel2" and last > 2) or (sensor in ("landsat5", "landsat7") and last == 6)
    if sensor is None or not odd or [text.casefold() for text in texts] != counting:
        return None
    title = sensors()[sensor].title.partition(",")[0]
    return (
        f"B1 to B{last} are taken for the bands of these numbers of {title}; if the names only "
        "count, name each band in order with --bands"
    )


def doubt_of_heat(
    found: Sequence[Band | None],
    texts: Sequence[str],
    indexes: Sequence[int],
    clear: Sequence[bool],
) -> tuple[list[Band | None], str | None]:
    """Take `T` beside red, green and blue for heat, and say that `IR` there may be heat.

    `clear` says of each band whether it can be no mask: T may stand for transparency, too.
    """
    bands, names = [*found], [band.name if band else "" for band in found]
    other = [position for position, name in enumerate(names) if name not in _RGB]
    if len(names) != 4 or len(other) != 1 or not set(names) > _RGB:
        return bands, None
    (at,) = other
    if texts[at].casefold() == "t" and clear[at]:
        bands[at] = parse_band_name("thermal")
        taken, else_, names[at] = "thermal infrared", "near infrared", "nir"
    elif is_some_infrared(texts[at]):
        taken, else_, names[at] = "near infrared", "heat", "thermal"
    else:
        return bands, None
    return bands, (
        f"band {indexes[at]} ({texts[at]}) is taken for {taken}; if it is {else_}, give "
        f"--bands {','.join(names)}"
    )


def doubt_of_repeats(bands: Sequence[Band], indexes: Sequence[int]) -> str | None:
    """Say which bands are there more than once, as in a file of two dates."""
    places: dict[Band, list[int]] = {}
    for band, index in zip(bands, indexes, strict=True):
        if band.wavelength_nm is not None:
            places.setdefault(band, []).append(index)
    words = [
        f"{band.name} is there {len(at)} times (bands {', '.join(map(str, at))})"
        for band, at in places.items()
        if len(at) > 1
    ]
    if not words:
        return None
    others = f", {len(words) - 1} more likewise" if len(words) > 1 else ""
    return (
        f"{words[0]}{others}; the first is used. Choose with --bands, - for each one to leave out"
    )
