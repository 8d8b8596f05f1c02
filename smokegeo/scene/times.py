"""When a picture was taken, in UTC, as tags and names say it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

#: Tags that may hold the time of the picture, the surest first.
_TAGS = ("ACQUISITIONDATETIME", "acquisition_time", "acquisition time", "TIFFTAG_DATETIME")
#: Names of Sentinel-2's products, of their tiles, and of both in Earth Engine.
_SENTINEL2 = re.compile(
    r"(?:S2[A-Z]_MSIL(?:1C|2A)_|T\d\d[A-Z]{3}_)(?P<one>\d{8}T\d{6})(?!\d)"
    r"|(?<!\d)(?P<other>\d{8}T\d{6})_\d{8}T\d{6}_T\d\d[A-Z]{3}"
)


def taken(places: Iterable[Mapping[str, str]], name: str) -> datetime | None:
    """Return when a picture was taken, if a tag or else the name says so in a form that is clear.

    `places` are groups of tags, the surest first.
    """
    places = list(places)
    for key in _TAGS:
        for tags in places:
            time = read_time(tags.get(key))
            if time is not None:
                return time
    match = _SENTINEL2.search(name)
    return None if match is None else read_time(match["one"] or match["other"])


def read_time(text: str | None) -> datetime | None:
    """Return a time in UTC, None if the text has none; a day alone would pass for midnight."""
    text = re.sub(r"^(\d{4}):(\d\d):(\d\d)", r"\1-\2-\3", (text or "").strip())
    if not re.search(r"\d[T ]\d", text):
        return None
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
