"""Write polygons and a small picture of the scene as one HTML file that needs no internet.

All the page uses is inside it, and its Content-Security-Policy forbids the rest: only the scripts
and styles whose hashes it lists are run, and only inlined pictures are shown.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import math
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from smokegeo.files import atomic_file
from smokegeo.writing.mapoutlines import Outlines, in_degrees, into_window, lighten
from smokegeo.writing.mappicture import Quicklook, flat, grid, warped
from smokegeo.writing.qgisstyle import ProbabilityClass, probability_classes

if TYPE_CHECKING:
    import geopandas

log = logging.getLogger(__name__)

#: Beyond this, browsers get slow; the largest polygons are kept.
MAX_POLYGONS = 5_000
_LISTED = 25
#: Facts that few will read, and those that are said elsewhere on the page.
_FOLDED = ("model_sha256", "bands", "options")
_TOLD = ("warnings",)
_PROJECTION = {
    False: "The map is in Web Mercator; areas are measured on the ellipsoid.",
    True: "The picture has no place on Earth: positions and sizes are in its pixels.",
}


def write_map(
    path: Path,
    polygons: geopandas.GeoDataFrame,
    *,
    quicklook: Quicklook | None,
    title: str,
    facts: Mapping[str, str],
    threshold: float,
) -> None:
    """Write the map of `polygons` (as `place` makes them) over `quicklook` to `path`.

    Polygons without a coordinate system are drawn on a photograph, in its pixels.
    """
    page = map_page(
        polygons,
        quicklook=quicklook,
        title=title,
        facts=facts,
        threshold=threshold,
        name=str(path),
    )
    with atomic_file(path) as part:
        part.write_bytes(page)


def map_page(
    polygons: geopandas.GeoDataFrame,
    *,
    quicklook: Quicklook | None,
    title: str,
    facts: Mapping[str, str],
    threshold: float,
    name: str = "the map",
) -> bytes:
    """Return the page; `name` is for what there is to say of it.

    `facts` are shown in their order; all text may hold anything, it is escaped here.
    """
    in_pixels = polygons.crs is None
    size = "pixels" if in_pixels else "area_m2"
    classes = probability_classes(threshold)
    found, total = len(polygons), float(np.nansum(polygons[size].to_numpy(float)))
    polygons = polygons.sort_values([size, "id"], ascending=[False, True])[:MAX_POLYGONS]
    notes, doubts = [], _doubts(facts)
    if found > len(polygons):
        notes.append(f"Only the {len(polygons):,} largest of {found:,} outlines are drawn.")
    outlines = polygons.geometry.to_numpy()
    if in_pixels:
        picture = None if quicklook is None else flat(quicklook)
    else:
        outlines = in_degrees(outlines, polygons.crs)
        west = _west_edge(outlines, quicklook)
        outlines = into_window(outlines, west)
        picture = None if quicklook is None else warped(quicklook, west)
    if quicklook is not None and picture is None:
        log.warning("%s: the scene lies outside of Web Mercator, so its picture is left out.", name)
    outlines, simplified = lighten(outlines)
    if simplified:
        notes.append("The outlines are simplified for this map.")
    for note in notes:
        log.warning("%s: %s", name, note)
    shown = [_properties(row, classes, in_pixels) for row in polygons.to_dict("records")]
    features = [
        {"type": "Feature", "properties": properties, "geometry": shapely.geometry.mapping(outline)}
        for properties, outline in zip(shown, outlines, strict=True)
    ]
    page = _fill(
        title=_text(title),
        summary=_summary(found, _size(total, in_pixels), threshold, facts),
        notes="".join(f'<p class="note">{_text(note)}</p>' for note in (*doubts, *notes)),
        largest=_largest(shown),
        legend=_legend(classes),
        facts=_facts({key: facts[key] for key in facts if key not in (*_FOLDED, *_TOLD)}),
        folded=_folded({key: facts[key] for key in _FOLDED if key in facts}),
        colours="".join(f":root{{--class-{n}:{c.colour}}}" for n, c in enumerate(classes)),
        polygons=_json({"type": "FeatureCollection", "features": features}),
        projection=_PROJECTION[in_pixels],
        settings=_json(
            {
                "picture": picture,
                "inPixels": in_pixels,
                "colours": [entry.colour for entry in classes],
            }
        ),
    )
    return page.encode("utf-8")


def _west_edge(outlines: Outlines, quicklook: Quicklook | None) -> float:
    """Return where the map begins: at 0 if that keeps a scene over the antimeridian whole."""
    lon = shapely.bounds(outlines)[:, ::2].ravel() if len(outlines) else np.empty(0)
    if quicklook is not None:
        lon = np.append(lon, grid(quicklook)[..., 0])
    lon = lon[np.isfinite(lon)]
    if not lon.size:
        return -180.0
    past = lon.min() < -180.001 or lon.max() > 180.001
    return 0.0 if past or np.ptp(lon % 360) < 0.9 * np.ptp(lon) else -180.0


def _properties(
    row: Mapping[str, Any], classes: tuple[ProbabilityClass, ...], in_pixels: bool
) -> dict[str, Any]:
    mean = float(row["mean_prob"])
    return {
        "id": int(row["id"]),
        "area": _size(row["pixels"] if in_pixels else row["area_m2"], in_pixels),
        "area_m2": _number(row["area_m2"], 1),
        "mean_prob": _number(mean, 4),
        "max_prob": _number(row["max_prob"], 4),
        "touches_edge": bool(row["touches_edge"]),
        "touches_nodata": bool(row["touches_nodata"]),
        "class": int(np.searchsorted([entry.upper for entry in classes[:-1]], mean)),
    }


def _number(value: Any, decimals: int) -> float | None:
    return round(float(value), decimals) if math.isfinite(value) else None


def _size(size: float, in_pixels: bool) -> str:
    """Write pixels, or an area in square metres, in the unit people would use for it."""
    return f"{size:,.0f} pixels" if in_pixels else _area(size)


def _area(area_m2: float) -> str:
    if not math.isfinite(area_m2):
        return "unknown area"
    for unit, size_m2 in (("km²", 1e6), ("ha", 1e4)):
        if area_m2 >= size_m2:
            size = area_m2 / size_m2
            return f"{size:,.{0 if size >= 1000 else 1 if size >= 100 else 2}f} {unit}"
    return f"{area_m2:,.0f} m²"


def _doubts(facts: Mapping[str, str]) -> list[str]:
    """Return what was warned of, and how much was not looked at."""
    doubts = [str(doubt) for doubt in json.loads(facts.get("warnings", "[]"))]
    share = float(facts.get("analysed_share", "1"))
    if share < 0.9995:
        doubts.append(f"{100 * (1 - share):.1f} % of the scene could not be analysed.")
    return doubts


def _facts(facts: Mapping[str, str]) -> str:
    row = "<div><dt>{}</dt><dd><bdi>{}</bdi></dd></div>"
    return "".join(row.format(_text(key), _text(value)) for key, value in facts.items())


def _folded(facts: Mapping[str, str]) -> str:
    heading = "<summary>More details</summary>"
    return f"<details>{heading}<dl>{_facts(facts)}</dl></details>" if facts else ""


def _summary(found: int, total: str, threshold: float, facts: Mapping[str, str]) -> str:
    if not found:
        return f'<p class="empty">{_text(_nothing(threshold, facts))}</p>'
    number = f"<b>{found:,}</b> {'outline' if found == 1 else 'outlines'}"
    return f'<p class="figures"><span>{number}</span><span><b>{total}</b> total</span></p>'


def _nothing(threshold: float, facts: Mapping[str, str]) -> str:
    """Say that there is no outline, which is not to say that there is no smoke."""
    options = json.loads(facts.get("options", "{}"))
    narrowed = options.get("min_area_m2") or options.get("core")
    text = f"Nothing reached {100 * threshold:g} %"
    text += " in the size or with the core asked for." if narrowed else "."
    absent = facts.get("bands_absent", "0")
    return (
        text
        if absent.startswith("0")
        else f"{text} {absent} bands were missing; smoke may be there."
    )


def _legend(classes: tuple[ProbabilityClass, ...]) -> str:
    # Short, to fit in five columns: 37.5–50 for 37.5–50.0 %; the heading says it is per cent.
    labels = (_text(re.sub(r"\.0+(?!\d)| %", "", entry.label)) for entry in classes)
    swatch = '<li><span class="swatch class-{}"></span>{}</li>'
    return "".join(swatch.format(number, label) for number, label in enumerate(labels))


def _largest(shown: list[dict[str, Any]]) -> str:
    if not shown:
        return ""
    rows = "".join(
        f'<li><button type="button" data-outline="{outline["id"]}">'
        f'<span class="swatch class-{outline["class"]}"></span><span>Outline {outline["id"]}</span>'
        f'<span class="size">{outline["area"]}</span></button></li>'
        for outline in shown[:_LISTED]
    )
    many = f"The {_LISTED} largest outlines" if len(shown) > _LISTED else "Largest outlines"
    heading = f'<h2 id="h-largest">{many}</h2>'
    return f'<section aria-labelledby="h-largest">{heading}<ol>{rows}</ol></section>'


def _text(text: str) -> str:
    """Escape text for HTML; what no page can hold (control characters, half pairs) shows as ?"""
    return html.escape(re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text))


def _json(data: Any) -> str:
    """Write JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    text = resources.files("smokegeo").joinpath("assets", name).read_text("utf-8")
    return text.replace("//# sourceMappingURL=leaflet.js.map", "").strip()


def _fill(*, colours: str, **parts: str) -> str:
    """Put the parts into the template, with a policy that allows our own code and no other."""
    code = {"leaflet_js": _asset("leaflet/leaflet.js"), "map_js": _asset("map.js")}
    look = {"leaflet_css": _asset("leaflet/leaflet.css"), "map_css": _asset("map.css")}
    look["colours"] = colours
    policy = (
        f"default-src 'none'; script-src {_hashes(code)}; style-src {_hashes(look)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    licence = html.escape(_asset("leaflet/LICENSE"))
    parts = {**parts, **code, **look, "policy": policy, "leaflet_licence": licence}
    # One pass: braces in a scene's name are not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("map.html")) + "\n"


def _hashes(texts: Mapping[str, str]) -> str:
    digests = (hashlib.sha256(text.encode("utf-8")).digest() for text in texts.values())
    return " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
