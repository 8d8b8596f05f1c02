"""Write polygons and a small picture of the scene as one HTML file that needs no internet.

All the page uses is inside it, and its Content-Security-Policy forbids the rest: only the scripts
and styles whose hashes it lists are run, and only inlined pictures are shown.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.warp import Resampling, reproject

from smokegeo.errors import UsageError
from smokegeo.files import atomic_file
from smokegeo.writing.qgisstyle import ProbabilityClass, probability_classes

if TYPE_CHECKING:
    import geopandas

log = logging.getLogger(__name__)

#: Beyond this, browsers get slow; the largest polygons are kept.
MAX_POLYGONS = 5_000
_MAX_POINTS = 250_000  # about 5 MB of coordinates
_MAX_PICTURE_PX = 1_600
_MAX_PICTURE_BYTES = 700_000
_LISTED = 25
_RADIUS_M = 6_378_137.0  # of the sphere of Web Mercator
_MAX_LATITUDE = 85.05  # where Web Mercator ends
_TURNS = (-720, -360, 0, 360, 720)  # an outline unwrapped from 180 ends at 540 at most

Outlines = NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Quicklook:
    """A small picture of the scene in its own grid: (height, width, 4) RGBA, alpha 0 = no data."""

    rgba: NDArray[np.uint8]
    transform: Affine
    crs: CRS

    def __post_init__(self) -> None:
        shape = self.rgba.shape
        if len(shape) != 3 or shape[2] != 4 or 0 in shape or self.rgba.dtype != np.uint8:
            raise UsageError(f"a quicklook is (h, w, 4) uint8, not {shape} {self.rgba.dtype}.")


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

    `facts` are shown in their order; all text may hold anything, it is escaped here.
    """
    if polygons.crs is None and len(polygons):
        raise UsageError(f"{path}: polygons without a coordinate system fit on no map. Give --crs.")
    classes = probability_classes(threshold)
    found, total_m2 = len(polygons), float(np.nansum(polygons["area_m2"].to_numpy(float)))
    polygons = polygons.sort_values(["area_m2", "id"], ascending=[False, True])[:MAX_POLYGONS]
    notes = []
    if found > len(polygons):
        notes.append(f"Only the {len(polygons):,} largest of {found:,} plumes are drawn.")
    outlines = _in_degrees(polygons.geometry.to_numpy(), polygons.crs)
    west = _west_edge(outlines, quicklook)
    outlines, simplified = _lighten(_into_window(outlines, west))
    if simplified:
        notes.append("The outlines are simplified for this map.")
    for note in notes:
        log.warning("%s: %s", path, note)
    shown = [_properties(row, classes) for row in polygons.to_dict("records")]
    features = [
        {"type": "Feature", "properties": properties, "geometry": shapely.geometry.mapping(outline)}
        for properties, outline in zip(shown, outlines, strict=True)
    ]
    picture = None if quicklook is None else _picture(quicklook, west)
    if quicklook is not None and picture is None:
        log.warning("%s: the scene lies outside of Web Mercator, so its picture is left out.", path)
    page = _fill(
        title=_text(title),
        summary=_summary(found, total_m2, threshold),
        notes="".join(f'<p class="note">{_text(note)}</p>' for note in notes),
        largest=_largest(shown),
        legend=_legend(classes),
        facts="".join(
            f"<div><dt>{_text(name)}</dt><dd><bdi>{_text(value)}</bdi></dd></div>"
            for name, value in facts.items()
        ),
        colours="".join(f":root{{--class-{n}:{c.colour}}}" for n, c in enumerate(classes)),
        polygons=_json({"type": "FeatureCollection", "features": features}),
        settings=_json({"picture": picture, "colours": [entry.colour for entry in classes]}),
    )
    with atomic_file(path) as part:
        part.write_bytes(page.encode("utf-8"))


def _in_degrees(outlines: Outlines, crs: pyproj.CRS | None) -> Outlines:
    """Return outlines in WGS84 degrees, whole: one that crosses the antimeridian runs past 180."""
    if not len(outlines):
        return outlines
    crs = pyproj.CRS.from_user_input(crs)
    placed: Outlines = shapely.transform(outlines, partial(_degrees, crs))
    west, _, east, _ = shapely.bounds(placed).T
    if not _has_longitudes(crs):  # there, an outline as wide as the world means just that
        for torn in np.flatnonzero(east - west > 180):
            placed[torn] = shapely.union_all([_mend(p) for p in shapely.get_parts(placed[torn])])
    return placed


def _degrees(crs: pyproj.CRS, xy: NDArray[np.float64]) -> NDArray[np.float64]:
    to_wgs84 = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    lon, lat = to_wgs84.transform(xy[:, 0], xy[:, 1])
    if _has_longitudes(crs):  # a grid that runs from 170 to 190 degrees stays in one piece
        lon = lon + 360 * np.round((xy[:, 0] - lon) / 360)
    return np.column_stack([lon, lat])


def _has_longitudes(crs: pyproj.CRS) -> bool:
    return bool(crs.is_geographic and not crs.is_derived)  # a rotated pole is derived


def _mend(polygon: shapely.Polygon) -> shapely.Geometry:
    """Join a polygon torn apart where its longitudes jump from 180 to -180."""
    shell, *holes = (_unwrapped(ring) for ring in (polygon.exterior, *polygon.interiors))
    for hole in holes:
        for turn in _TURNS:
            shell = shell.difference(shapely.affinity.translate(hole, turn))
    return shell


def _unwrapped(ring: shapely.LinearRing) -> shapely.Geometry:
    lon, lat = shapely.get_coordinates(ring).T
    lon = np.unwrap(lon, period=360)
    if abs(lon[-1] - lon[0]) > 180:  # it goes round a pole: close it along that
        lon, lat = np.append(lon, lon[[-1, 0]]), np.append(lat, [np.sign(lat.mean()) * 90] * 2)
    return shapely.make_valid(shapely.Polygon(np.column_stack([lon, lat])))


def _west_edge(outlines: Outlines, quicklook: Quicklook | None) -> float:
    """Return where the map begins: at 0 if that keeps a scene over the antimeridian whole."""
    lon = shapely.bounds(outlines)[:, ::2].ravel() if len(outlines) else np.empty(0)
    if quicklook is not None:
        lon = np.append(lon, _grid(quicklook)[..., 0])
    lon = lon[np.isfinite(lon)]
    if not lon.size:
        return -180.0
    past = lon.min() < -180.001 or lon.max() > 180.001
    return 0.0 if past or np.ptp(lon % 360) < 0.9 * np.ptp(lon) else -180.0


def _into_window(outlines: Outlines, west: float) -> Outlines:
    """Shift outlines by whole turns into west..west + 360, cutting only what does not fit."""
    shifted = outlines.copy()
    for number, outline in enumerate(outlines):
        left, _, right, _ = outline.bounds
        if west <= left and right <= west + 360:
            continue
        window = shapely.box(west, -90, west + 360, 90)
        pieces = [
            shapely.affinity.translate(part, turn).intersection(window)
            for part in shapely.get_parts(outline)
            for turn in _TURNS
        ]
        whole = shapely.union_all(pieces)
        shifted[number] = shapely.union_all([p for p in shapely.get_parts(whole) if p.area > 0])
    return shifted


def _lighten(outlines: Outlines) -> tuple[Outlines, bool]:
    """Round coordinates, and simplify outlines that would make the page too heavy."""
    if not len(outlines):
        return outlines, False
    left, bottom, right, top = shapely.total_bounds(outlines)
    extent = max(right - left, top - bottom)
    tolerance, light = extent / 20_000, outlines
    while shapely.get_num_coordinates(light).sum() > _MAX_POINTS and tolerance < extent / 100:
        light = shapely.simplify(outlines, tolerance)
        tolerance *= 2
    # 0.1 m, which would show on a scene of drone size: 1 mm there.
    decimals = 6 if extent > 0.02 else 8
    rounded = shapely.transform(light, lambda xy: np.round(xy, decimals))
    return rounded, light is not outlines


def _grid(quicklook: Quicklook, steps: int = 65) -> NDArray[np.float64]:
    """Return longitude and latitude at `steps` x `steps` points over the picture."""
    height, width, _ = quicklook.rgba.shape
    rows, columns = np.meshgrid(
        np.linspace(0, height, steps), np.linspace(0, width, steps), indexing="ij"
    )
    a, b, c, d, e, f, *_ = quicklook.transform
    xy = [(a * columns + b * rows + c).ravel(), (d * columns + e * rows + f).ravel()]
    crs = pyproj.CRS.from_wkt(quicklook.crs.to_wkt())
    return _degrees(crs, np.column_stack(xy)).reshape(steps, steps, 2)


def _picture(quicklook: Quicklook, west: float) -> dict[str, Any] | None:
    """Warp a quicklook to Web Mercator; return it as a data URI with its corners."""
    lon, lat = np.moveaxis(_grid(quicklook), -1, 0)
    turns = np.where(lon < west, 360, 0) - np.where(lon > west + 360, 360, 0)
    x = _RADIUS_M * np.radians(lon + turns)
    lat = np.clip(lat, -_MAX_LATITUDE, _MAX_LATITUDE)
    y = _RADIUS_M * np.arctanh(np.sin(np.radians(lat)))
    good = np.isfinite(x) & np.isfinite(y)
    if not good.any() or np.ptp(x[good]) == 0 or np.ptp(y[good]) == 0:
        return None
    left, right, bottom, top = x[good].min(), x[good].max(), y[good].min(), y[good].max()
    if right - left > 0.95 * 2 * math.pi * _RADIUS_M:  # all round a pole, the points leave a gap
        left, right = (_RADIUS_M * math.radians(lon) for lon in (west, west + 360))
    height_px, width_px, _ = quicklook.rgba.shape
    across = np.nanmedian(np.hypot(np.diff(x, axis=1), np.diff(y, axis=1))) * 64 / width_px
    down = np.nanmedian(np.hypot(np.diff(x, axis=0), np.diff(y, axis=0))) * 64 / height_px
    finer = 2 if max(height_px, width_px) <= 600 else 1  # smoother, where it costs little
    size_m = max(min(across, down) / finer, max(right - left, top - bottom) / _MAX_PICTURE_PX)
    width, height = (max(1, math.ceil(side / size_m)) for side in (right - left, top - bottom))
    warped = np.zeros((4, height, width), np.uint8)
    reproject(
        np.ascontiguousarray(np.moveaxis(quicklook.rgba, -1, 0)),
        warped,
        src_transform=quicklook.transform,
        src_crs=quicklook.crs,
        dst_transform=Affine((right - left) / width, 0, left, 0, (bottom - top) / height, top),
        # GDAL takes x past the edge of Web Mercator for what it is, another turn.
        dst_crs=CRS.from_epsg(3857),
        src_alpha=4,
        dst_alpha=4,
        resampling=Resampling.bilinear,
    )
    south, north = (math.degrees(math.asin(math.tanh(y / _RADIUS_M))) for y in (bottom, top))
    east_west = [round(math.degrees(x / _RADIUS_M), 8) for x in (left, right)]
    corners = [[round(south, 8), east_west[0]], [round(north, 8), east_west[1]]]
    return {"url": _data_uri(np.moveaxis(warped, 0, -1)), "bounds": corners}


def _data_uri(rgba: NDArray[np.uint8]) -> str:
    from PIL import Image

    for quality in (85, 70, 50, 30):
        buffer = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(rgba)).save(buffer, "WEBP", quality=quality, method=4)
        if buffer.tell() <= _MAX_PICTURE_BYTES:
            break
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _properties(row: Mapping[str, Any], classes: tuple[ProbabilityClass, ...]) -> dict[str, Any]:
    mean = float(row["mean_prob"])
    return {
        "id": int(row["id"]),
        "area": _area(float(row["area_m2"])),
        "area_m2": _number(row["area_m2"], 1),
        "mean_prob": _number(mean, 4),
        "max_prob": _number(row["max_prob"], 4),
        "touches_edge": bool(row["touches_edge"]),
        "touches_nodata": bool(row["touches_nodata"]),
        "class": int(np.searchsorted([entry.upper for entry in classes[:-1]], mean)),
    }


def _number(value: Any, decimals: int) -> float | None:
    return round(float(value), decimals) if math.isfinite(value) else None


def _area(area_m2: float) -> str:
    """Write an area in the unit people would use for it."""
    if not math.isfinite(area_m2):
        return "unknown area"
    for unit, size_m2 in (("km²", 1e6), ("ha", 1e4)):
        if area_m2 >= size_m2:
            size = area_m2 / size_m2
            return f"{size:,.{0 if size >= 1000 else 1 if size >= 100 else 2}f} {unit}"
    return f"{area_m2:,.0f} m²"


def _summary(found: int, total_m2: float, threshold: float) -> str:
    if not found:
        return (
            '<p class="empty">No smoke was found in this scene at a threshold of '
            f"{100 * threshold:g} %.</p>"
        )
    number = f"<b>{found:,}</b> {'plume' if found == 1 else 'plumes'}"
    return (
        f'<p class="figures"><span>{number}</span><span><b>{_area(total_m2)}</b> total</span></p>'
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
        f'<li><button type="button" data-plume="{plume["id"]}">'
        f'<span class="swatch class-{plume["class"]}"></span><span>Plume {plume["id"]}</span>'
        f'<span class="size">{plume["area"]}</span></button></li>'
        for plume in shown[:_LISTED]
    )
    many = f"The {_LISTED} largest plumes" if len(shown) > _LISTED else "Largest plumes"
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
