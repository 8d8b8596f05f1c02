"""The look of smoke polygons in QGIS: a QML style, coloured by mean probability.

The classes are shared with the HTML map, so that a plume has one colour wherever it is seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from smokegeo.errors import UsageError

#: Light yellow to dark red. Lightness falls in even steps, so the order is seen without hue too.
COLOURS = ("#ffe94a", "#ffb52b", "#f77b1c", "#d6341c", "#960a2c")
_FILL_ALPHA = 96  # of 255: the imagery stays readable underneath
#: Under the outline: dark around light colours, light around dark ones, so that each is seen on
#: cloud and on forest alike.
_CASINGS = (*3 * ("30,10,10,150",), *2 * ("255,236,214,190",))

#: Kept by us, dropped by QGIS when a user saves a style of their own under the same name.
MARK = "smoke polygons, style by smokegeo"

_MAP_TIP = """\
<b>Smoke [% "id" %]</b><br>
[% CASE WHEN "area_m2" IS NULL THEN to_string("pixels") || ' pixels'
 WHEN "area_m2" >= 1e6 THEN format_number("area_m2" / 1e6, 2) || ' km²'
 WHEN "area_m2" >= 1e4 THEN format_number("area_m2" / 1e4, 1) || ' ha'
 ELSE format_number("area_m2", 0) || ' m²' END %]<br>
probability [% round(100 * "mean_prob") %] % (highest [% round(100 * "max_prob") %] %)
[% CASE WHEN "touches_edge" THEN '<br>cut by the edge of the scene' ELSE '' END %]
[% CASE WHEN "touches_nodata" THEN '<br>borders on pixels not analysed' ELSE '' END %]"""


@dataclass(frozen=True, slots=True)
class ProbabilityClass:
    """One class of the legend: mean probabilities from `lower` to `upper`."""

    lower: float
    upper: float
    label: str
    colour: str


def probability_classes(threshold: float) -> tuple[ProbabilityClass, ...]:
    """Split threshold..1 into five equal classes, from light yellow to dark red."""
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold:g} is not above 0 and up to 1.")
    count = len(COLOURS)
    # Rounded: the bounds stand in files, where 0.7000000000000001 is noise.
    bounds = [round(threshold + (1 - threshold) * step / count, 6) for step in range(count + 1)]
    shown = _percents(bounds)
    return tuple(
        ProbabilityClass(bounds[n], bounds[n + 1], f"{shown[n]}–{shown[n + 1]} %", COLOURS[n])
        for n in range(count)
    )


def qml(threshold: float) -> str:
    """Return the QML text for polygons found at this threshold; the same text every time."""
    classes = probability_classes(threshold)
    root = Element("qgis", version="3.22.0", labelsEnabled="0")
    root.set("styleCategories", "Symbology|Labeling|MapTips")
    renderer = SubElement(root, "renderer-v2", type="graduatedSymbol", attr="mean_prob")
    renderer.attrib |= {"graduatedMethod": "GraduatedColor", "symbollevels": "0"}
    renderer.attrib |= {"forceraster": "0", "enableorderby": "0", "referencescale": "-1"}
    ranges = SubElement(renderer, "ranges")
    symbols = SubElement(renderer, "symbols")
    for number, entry in enumerate(classes):
        # QGIS hides what lies in no class: the first one reaches down to zero, so that a
        # rounded mean just below the threshold is still drawn.
        lower = 0.0 if number == 0 else entry.lower
        attributes = {"lower": f"{lower:.6f}", "upper": f"{entry.upper:.6f}"}
        attributes |= {"symbol": str(number), "label": entry.label, "render": "true"}
        SubElement(ranges, "range", attributes)
        symbols.append(_symbol(str(number), entry.colour, _CASINGS[number]))
    method = SubElement(renderer, "classificationMethod", id="Custom")
    SubElement(method, "labelFormat", format="%1 - %2", labelprecision="4", trimtrailingzeroes="1")
    SubElement(root, "blendMode").text = "0"
    SubElement(root, "featureBlendMode").text = "0"
    SubElement(root, "mapTip").text = _MAP_TIP
    SubElement(root, "layerGeometryType").text = "2"
    indent(root)
    head = f"<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n<!-- {MARK} -->\n"
    return head + tostring(root, encoding="unicode") + "\n"


def _symbol(name: str, colour: str, casing_colour: str) -> Element:
    """A translucent fill and a solid outline, on a casing that parts it from the ground."""
    symbol = Element("symbol", type="fill", name=name, alpha="1", clip_to_extent="1", force_rhr="0")
    casing = {"line_color": casing_colour, "line_style": "solid"}
    casing |= {"line_width": "0.7", "line_width_unit": "MM", "joinstyle": "round"}
    symbol.append(_layer("SimpleLine", casing | {"capstyle": "round"}))
    rgb = ",".join(str(int(colour[start : start + 2], 16)) for start in (1, 3, 5))
    fill = {"color": f"{rgb},{_FILL_ALPHA}", "style": "solid", "joinstyle": "round"}
    fill |= {"outline_color": f"{rgb},255", "outline_style": "solid"}
    symbol.append(_layer("SimpleFill", fill | {"outline_width": "0.4", "outline_width_unit": "MM"}))
    return symbol


def _layer(kind: str, options: Mapping[str, str]) -> Element:
    # `class` and `pass` are Python words, hence the dictionary.
    layer = Element("layer", {"class": kind, "enabled": "1", "locked": "0", "pass": "0"})
    new = SubElement(layer, "Option", type="Map")
    for key, value in options.items():
        SubElement(new, "Option", name=key, value=value, type="QString")
    for key, value in options.items():  # how QGIS before 3.20 reads them
        SubElement(layer, "prop", k=key, v=value)
    return layer


def _percents(bounds: list[float]) -> list[str]:
    """Write bounds as percentages with as few decimals as tell them apart and keep them true."""
    for decimals in range(4):
        shown = [f"{100 * bound:.{decimals}f}" for bound in bounds]
        true = all(
            math.isclose(float(text) / 100, bound, abs_tol=10**-decimals / 1000)
            for text, bound in zip(shown, bounds, strict=True)
        )
        if true or (len(set(shown)) == len(shown) and decimals >= 1):
            return shown
    return shown
