from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import geopandas
import numpy as np
import pyproj
import pytest
import shapely
from affine import Affine
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from rasterio.crs import CRS
from shapely.geometry import shape

import smokegeo
from smokegeo.errors import OutputError, UsageError
from smokegeo.writing import mapoutlines, mappicture, webmap
from smokegeo.writing.mappicture import Quicklook
from smokegeo.writing.qgisstyle import COLOURS
from smokegeo.writing.webmap import write_map

ASSETS = Path(smokegeo.__file__).parent / "assets"
UTM = "EPSG:32633"
BOXES = (
    shapely.box(500_100, 5_000_100, 500_900, 5_000_700),
    shapely.box(501_000, 5e6, 501_100, 5_000_100),
)
FACTS = {"Model": "satellite", "Scene": "scene.tif", "Threshold": "50 %"}


def frame(outlines, crs=UTM, **columns):
    count = len(outlines)
    data = {
        "id": range(1, count + 1),
        "area_m2": np.arange(count, 0, -1) * 25_000.0,
        "perimeter_m": 1000.0,
        "mean_prob": np.linspace(0.55, 0.95, count),
        "max_prob": 0.97,
        "pixels": 100,
        "touches_edge": False,
        "touches_nodata": False,
        "model": "satellite",
        "source": "scene.tif",
        "acquired": None,
    }
    return geopandas.GeoDataFrame(data | columns, geometry=list(outlines), crs=crs)


def quicklook(transform=None, crs=UTM, shape=(80, 100), rgba=(10, 120, 30, 255)):
    pixels = np.empty((*shape, 4), np.uint8)
    pixels[:] = rgba
    transform = transform or Affine(20, 0, 500_000, 0, -20, 5_001_000)
    return Quicklook(pixels, transform, CRS.from_user_input(crs))


class Page(HTMLParser):
    """What a browser would make of the page: elements with their attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        element = [tag, dict(attrs), ""]
        self.elements.append(element)
        if tag not in {"meta", "link", "input", "br"}:
            self._open.append(element)

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for element in self._open:
            element[2] += data

    def all(self, tag, **attributes):
        wanted = attributes.items()
        return [e for e in self.elements if e[0] == tag and wanted <= e[1].items()]

    def text(self, tag, **attributes):
        (element,) = self.all(tag, **attributes)
        return element[2]

    def json(self, name):
        return json.loads(self.text("script", id=name))

    @property
    def features(self):
        return self.json("polygons")["features"]

    @property
    def policy(self):
        (meta,) = self.all("meta", **{"http-equiv": "Content-Security-Policy"})
        rules = (rule.split() for rule in meta[1]["content"].split(";"))
        return {name: sources for name, *sources in rules}


def make(path, polygons=None, *, picture=None, title="scene.tif", facts=FACTS, threshold=0.5):
    polygons = frame(BOXES) if polygons is None else polygons
    write_map(path, polygons, quicklook=picture, title=title, facts=facts, threshold=threshold)
    return Page(path.read_text("utf-8"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "map.html"


def picture_of(page):
    stored = page.json("settings")["picture"]
    (south, west), (north, east) = stored["bounds"]
    raw = base64.b64decode(stored["url"].removeprefix("data:image/webp;base64,"), validate=True)
    pixels = np.asarray(Image.open(io.BytesIO(raw)).convert("RGBA"))
    return pixels, (west, south, east, north)


def colour_at(page, lon, lat):
    pixels, (west, south, east, north) = picture_of(page)
    y, bottom, top = np.arctanh(np.sin(np.radians([lat, south, north])))
    column = int((lon - west) / (east - west) * pixels.shape[1])
    row = int((top - y) / (top - bottom) * pixels.shape[0])
    return pixels[row, column].astype(int)


def test_polygons_are_in_the_page_as_geojson(path):
    page = make(path)
    first, second = page.features
    lon, lat = pyproj.Transformer.from_crs(UTM, 4326, always_xy=True).transform(500_100, 5_000_100)
    west, south, *_ = shape(first["geometry"]).bounds
    assert (west, south) == pytest.approx((lon, lat), abs=2e-6)
    assert first["properties"] == {
        "id": 1,
        "area": "5.00 ha",
        "area_m2": 50_000.0,
        "mean_prob": 0.55,
        "max_prob": 0.97,
        "touches_edge": False,
        "touches_nodata": False,
        "class": 0,
    }
    assert second["properties"]["class"] == 4
    assert page.json("settings")["colours"] == list(COLOURS)


def test_coordinates_are_short_but_keep_drone_pixels_apart(path):
    def decimals(page):
        return max(len(n.partition(".")[2]) for n in re.findall(r"[\d.]+", coordinates(page)))

    def coordinates(page):
        return json.dumps([feature["geometry"]["coordinates"] for feature in page.features])

    assert decimals(make(path, frame([shapely.box(5e5, 5e6, 51e4, 501e4)]))) == 6
    pixel = make(path, frame([shapely.box(5e5, 5e6, 500_000.03, 5_000_000.03)]))
    assert shape(pixel.features[0]["geometry"]).area > 0
    assert decimals(pixel) == 8


def test_the_panel_tells_number_area_facts_and_legend(path):
    page = make(path, facts={"Model": "satellite", "Acquired": "2024-07-14"}, threshold=0.75)
    assert page.text("p", **{"class": "figures"}) == "2 outlines7.50 ha total"
    assert [e[2] for e in page.all("dt")] == ["Model", "Acquired"]
    assert [e[2] for e in page.all("dd")] == ["satellite", "2024-07-14"]
    assert [e[2] for e in page.all("li")][:5] == ["75–80", "80–85", "85–90", "90–95", "95–100"]
    assert [e[1]["data-outline"] for e in page.all("button")] == ["1", "2"]


def test_legend_labels_are_short_enough_for_their_columns(path):
    page = make(path, threshold=0.375)
    labels = ["37.5–50", "50–62.5", "62.5–75", "75–87.5", "87.5–100"]
    assert [e[2] for e in page.all("li")][:5] == labels


def test_classes_follow_the_threshold_as_in_qgis(path):
    boxes = [shapely.box(500_000 + 100 * n, 5e6, 500_050 + 100 * n, 5e6 + 50) for n in range(6)]
    means = [0.49, 0.6, 0.61, 0.75, 0.9, 1.0]  # a bound belongs to the class below it
    page = make(path, frame(boxes, mean_prob=means))
    assert [f["properties"]["class"] for f in page.features] == [0, 0, 1, 2, 3, 4]
    assert make(path, threshold=1.0).features[0]["properties"]["class"] == 0


def test_outlines_come_largest_first_so_that_small_ones_lie_on_top(path):
    page = make(path, frame(BOXES, area_m2=[10.0, 2e6]))
    assert [f["properties"]["id"] for f in page.features] == [2, 1]
    assert [f["properties"]["area"] for f in page.features] == ["2.00 km²", "10 m²"]


def test_a_scene_that_reaches_over_the_rim_of_the_earth_is_shown(path):
    crs = "+proj=geos +h=35785831 +lon_0=0 +sweep=y"
    look = quicklook(Affine(110_000, 0, -5.5e6, 0, -110_000, 5.5e6), crs, (100, 100))
    pixels, (west, _, east, _) = picture_of(make(path, frame([]), picture=look))
    assert -82 < west < -70
    assert 70 < east < 82
    assert min(pixels.shape[:2]) > 100


def test_a_strip_keeps_its_width_in_the_picture(path):
    look = quicklook(Affine(20, 0, 500_000, 0, -2000, 5_001_000), shape=(1200, 60))
    pixels, _ = picture_of(make(path, frame([]), picture=look))
    assert pixels.shape[0] == 1600
    assert pixels.shape[1] > 50


def test_no_polygons_make_a_friendly_page(path):
    page = make(path, frame([]), picture=quicklook(), threshold=0.35)
    assert page.features == []
    said = page.text("p", **{"class": "empty"})
    assert said == "Nothing reached 35 %."
    assert page.json("settings")["picture"]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"bands_absent": "0 of 6"}, "Nothing reached 50 %."),
        (
            {"bands_absent": "4 of 6"},
            "Nothing reached 50 %. 4 of 6 bands were missing; smoke may be there.",
        ),
        (
            {"options": '{"min_area_m2": 900.0, "core": null}'},
            "Nothing reached 50 % in the size or with the core asked for.",
        ),
    ],
)
def test_an_empty_map_does_not_say_that_there_is_no_smoke(path, facts, said):
    assert make(path, frame([]), facts=facts).text("p", **{"class": "empty"}) == said


def test_what_was_warned_of_is_told_under_the_title(path):
    doubts = ["scene.tif: only 2 bands", HOSTILE]
    page = make(path, facts={"warnings": json.dumps(doubts), "analysed_share": "0.75"})
    told = [e[2] for e in page.all("p", **{"class": "note"})]
    assert told == [*doubts, "25.0 % of the scene could not be analysed."]
    assert "warnings" not in [e[2] for e in page.all("dt")]
    whole = make(path, facts={"warnings": "[]", "analysed_share": "0.9996"})
    assert not whole.all("p", **{"class": "note"})


def test_long_facts_are_folded_away(path):
    facts = {"model": "m", "model_sha256": 64 * "a", "scene": "s", "options": "{}"}
    page = make(path, facts=facts)
    more, _ = page.all("details")
    assert more[2] == "More detailsmodel_sha256" + 64 * "a" + "options{}"
    assert [e[2] for e in page.all("dt")] == ["model", "scene", "model_sha256", "options"]
    assert len(make(path).all("details")) == 1


def test_unknown_areas_do_not_break_the_page(path):
    page = make(path, frame(BOXES, area_m2=[np.nan, 5e4]))
    assert [f["properties"]["area_m2"] for f in page.features] == [5e4, None]
    assert page.features[1]["properties"]["area"] == "unknown area"


HOSTILE = (
    "</script><script>alert(1)</script>\"'<!-- \u2028\n&amp;{{polygons}}<img src=x onerror=y>.tif"
)


def test_hostile_names_are_only_text(path):
    plain = make(path, picture=quicklook(), facts={"Scene": "a"})
    page = make(path, picture=quicklook(), title=HOSTILE, facts={HOSTILE: HOSTILE})
    assert [e[0] for e in page.elements] == [e[0] for e in plain.elements]
    assert page.text("h1") == HOSTILE
    assert [page.text("dt"), page.text("dd")] == [HOSTILE, HOSTILE]
    assert page.text("title").startswith(HOSTILE)
    assert page.policy == plain.policy


@given(text=st.text(st.characters(exclude_categories=[])))
@settings(max_examples=20, deadline=None)
def test_any_title_gives_the_same_elements(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("map") / "map.html"
    page = make(path, title=text)
    assert len(page.all("script")) == 4
    kept = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)
    assert page.text("h1") == kept


def test_json_cannot_end_its_script_element():
    text = webmap._json({"a": "</script><!--\u2028&"})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


def test_the_policy_allows_what_is_in_the_page_and_nothing_else(path):
    page = make(path, picture=quicklook())
    policy = page.policy
    assert policy["default-src"] == ["'none'"]
    assert policy["img-src"] == ["data:"]
    run = [e[2] for e in page.all("script") if "type" not in e[1]]
    for allowed, texts in (("script-src", run), ("style-src", [e[2] for e in page.all("style")])):
        digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts]
        assert set(policy[allowed]) == {f"'sha256-{digest}'" for digest in digests}


def test_nothing_is_loaded_from_elsewhere(path):
    page = make(path, picture=quicklook())
    for tag, attributes, _ in page.elements:
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
    styles = " ".join(e[2] for e in page.all("style"))
    assert "@import" not in styles
    assert not re.search(r"url\(['\"]?(https?:)?//", styles)
    assert "sourceMappingURL" not in path.read_text("utf-8")


@pytest.mark.parametrize(
    "transform",
    [
        Affine(20, 0, 500_000, 0, -20, 5_001_000),
        Affine(20, 0, 500_000, 0, 20, 5_000_000),  # south up
        Affine.translation(500_000, 5_000_000) @ Affine.rotation(35) @ Affine.scale(20, -20),
    ],
    ids=["north-up", "south-up", "rotated"],
)
def test_the_picture_lies_where_the_scene_lies(path, transform):
    look = quicklook(transform)
    look.rgba[:40, :50] = (220, 40, 40, 255)
    page = make(path, picture=look)
    to_mercator = pyproj.Transformer.from_crs(UTM, 3857, always_xy=True)
    to_degrees = pyproj.Transformer.from_crs(3857, 4326, always_xy=True)
    corners = np.array([transform @ corner for corner in ((0, 0), (100, 0), (100, 80), (0, 80))])
    edge = shapely.segmentize(shapely.Polygon(corners), 10)
    x, y = to_mercator.transform(*shapely.get_coordinates(edge).T)
    (west, east), (south, north) = to_degrees.transform([min(x), max(x)], [min(y), max(y)])
    assert picture_of(page)[1] == pytest.approx((west, south, east, north), abs=2e-6)
    to_wgs84 = pyproj.Transformer.from_crs(UTM, 4326, always_xy=True)
    for column, row in ((25, 20), (75, 20), (25, 60), (75, 60)):
        lon, lat = to_wgs84.transform(*(transform @ (column, row)))
        wanted = look.rgba[row, column].astype(int)
        np.testing.assert_allclose(colour_at(page, lon, lat), wanted, atol=12)


def test_pixels_without_data_stay_clear(path):
    look = quicklook()
    look.rgba[:, 50:] = 0
    page = make(path, picture=look)
    pixels, _ = picture_of(page)
    middle = pixels[len(pixels) // 2]
    assert middle[len(middle) // 4, 3] == 255
    assert middle[3 * len(middle) // 4, 3] == 0


def test_pixels_without_data_do_not_darken_the_edge():
    look = quicklook(rgba=(240, 240, 240, 255))
    look.rgba[:, 50:] = 0
    stored = {}
    with pytest.MonkeyPatch.context() as patch:  # before compression, which blurs edges too
        patch.setattr(mappicture, "_data_uri", lambda rgba: stored.setdefault("rgba", rgba))
        mappicture.warped(look, -180.0)
    seen = stored["rgba"][stored["rgba"][..., 3] > 0]
    assert seen[:, :3].min() >= 238


def test_a_scene_over_the_antimeridian_stays_in_one_piece(path):
    transform = Affine(200, 0, 810_000, 0, -200, 8_100_000)  # zone 60 south, Fiji
    look = quicklook(transform, "EPSG:32760", (100, 120))
    plume = shapely.box(812_000, 8_082_000, 832_000, 8_098_000)
    page = make(path, frame([plume], "EPSG:32760"), picture=look)
    outline = shape(page.features[0]["geometry"])
    assert outline.geom_type == "Polygon"
    west, _, east, _ = outline.bounds
    assert 179.5 < west < 180 < east < 180.5
    left, _, right, _ = picture_of(page)[1]
    assert 179.5 < left < west
    assert east < right < 180.5
    np.testing.assert_allclose(colour_at(page, 179.99, outline.centroid.y)[3], 255)
    np.testing.assert_allclose(colour_at(page, 180.01, outline.centroid.y)[3], 255)


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:4272"])  # the second shifts the datum
@pytest.mark.parametrize("start", [179.0, -181.0])
def test_a_geographic_grid_past_the_antimeridian_stays_in_one_piece(path, start, crs):
    look = quicklook(Affine(0.02, 0, start, 0, -0.02, -16), crs, (100, 100))
    look.rgba[:, 60:] = (220, 40, 40, 255)
    plume = shapely.box(start + 0.5, -17.5, start + 1.5, -16.5)
    page = make(path, frame([plume], crs), picture=look)
    near = partial(pytest.approx, abs=1e-6 if crs == "EPSG:4326" else 0.005)
    assert shape(page.features[0]["geometry"]).bounds == near((179.5, -17.5, 180.5, -16.5))
    assert picture_of(page)[1] == near((179, -18, 181, -16))
    np.testing.assert_allclose(colour_at(page, 179.5, -17), look.rgba[50, 25], atol=12)
    np.testing.assert_allclose(colour_at(page, 180.6, -17), look.rgba[50, 80], atol=12)


def test_halves_cut_at_the_antimeridian_are_joined_again(path):
    halves = shapely.union_all([shapely.box(179, 0, 180, 1), shapely.box(-180, 0, -179, 1)])
    page = make(path, frame([halves], "EPSG:4326"))
    outline = shape(page.features[0]["geometry"])
    assert outline.geom_type == "Polygon"
    assert outline.bounds == (179, 0, 181, 1)


def test_a_scene_of_the_whole_world_is_not_shifted(path):
    look = quicklook(Affine(3.6, 0, -180, 0, -1.8, 80), "EPSG:4326", (80, 100))
    plumes = [shapely.box(-180, 0, -170, 10), shapely.box(170, 0, 180, 10)]
    page = make(path, frame(plumes, "EPSG:4326"), picture=look)
    assert [shape(f["geometry"]).bounds[0] for f in page.features] == [-180, 170]
    left, _, right, _ = picture_of(page)[1]
    assert (left, right) == pytest.approx((-180, 180))


def test_smoke_round_a_pole_is_cut_and_keeps_its_hole(path):
    ring = shapely.Point(0, 0).buffer(1e6).difference(shapely.Point(0, 0).buffer(5e5))
    look = quicklook(Affine(30_000, 0, -1.5e6, 0, -30_000, 1.5e6), "EPSG:3995", (100, 100))
    page = make(path, frame([ring], "EPSG:3995"), picture=look)
    outline = shape(page.features[0]["geometry"])
    west, south, east, north = outline.bounds
    assert outline.is_valid
    assert east - west == pytest.approx(360)
    assert south == pytest.approx(81, abs=0.3)
    assert north == pytest.approx(85.5, abs=0.3)
    left, _, right, top = picture_of(page)[1]
    assert (right - left, top) == pytest.approx((360, 85.05))


def test_only_the_largest_are_drawn_and_it_says_so(path, caplog):
    points = shapely.points(np.arange(5001) * 100.0 + 4e5, 5e6)
    with caplog.at_level(logging.WARNING):
        page = make(path, frame(shapely.buffer(points, 20, quad_segs=1)))
    assert len(page.features) == 5000
    assert page.features[-1]["properties"]["id"] == 5000  # the smallest is left out
    note = "Only the 5,000 largest of 5,001 outlines are drawn."
    assert page.text("p", **{"class": "note"}) == note
    assert note in caplog.text
    assert page.text("p", **{"class": "figures"}).startswith("5,001 outlines")
    assert len(page.all("button")) == 25


def test_heavy_outlines_are_simplified_and_it_says_so(path, caplog, monkeypatch):
    monkeypatch.setattr(mapoutlines, "_MAX_POINTS", 100)
    disc = shapely.Point(5e5, 5e6).buffer(5_000, quad_segs=200)
    page = make(path, frame([disc]))
    outline = shape(page.features[0]["geometry"])
    assert shapely.get_num_coordinates(outline) <= 100
    assert outline.is_valid
    assert "simplified" in page.text("p", **{"class": "note"})
    assert "simplified" in caplog.text


def test_the_same_input_gives_the_same_bytes(tmp_path):
    make(tmp_path / "a.html", picture=quicklook())
    make(tmp_path / "b.html", picture=quicklook())
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.slow
def test_even_a_noisy_large_picture_makes_a_small_page(path):
    look = quicklook(shape=(1200, 1200))
    look.rgba[..., :3] = np.random.default_rng(0).integers(0, 255, (1200, 1200, 3))
    make(path, picture=look)
    assert path.stat().st_size < 1_500_000


def photograph():
    """Return polygons on a photograph of 400 x 300 pixels, and its picture at half the size."""
    outlines = (shapely.box(100, -200, 140, -150), shapely.box(390, -300, 400, -290))
    unknown = {"area_m2": np.nan, "perimeter_m": np.nan, "pixels": [2000, 100]}
    look = Quicklook(np.full((150, 200, 4), 200, np.uint8), Affine(2, 0, 0, 0, -2, 0), None)
    return frame(outlines, crs=None, **unknown), look


def test_polygons_without_a_coordinate_system_lie_on_the_pixels_of_a_photograph(path):
    polygons, look = photograph()
    page = make(path, polygons, picture=look)
    settings = page.json("settings")
    assert settings["inPixels"] is True
    assert settings["picture"]["bounds"] == [[-300, 0], [0, 400]]
    assert picture_of(page)[0].shape[:2] == (150, 200)
    for feature, outline in zip(page.features, polygons.geometry, strict=True):
        assert shape(feature["geometry"]).equals(outline)
    assert [feature["properties"]["area"] for feature in page.features] == [
        "2,000 pixels",
        "100 pixels",
    ]
    assert "2,100 pixels" in page.text("p", **{"class": "figures"})
    assert "no place on Earth" in path.read_text("utf-8")


def test_a_photograph_without_smoke_is_shown_all_the_same(path):
    _, look = photograph()
    page = make(path, frame([], crs=None), picture=look)
    assert page.json("settings")["picture"]["bounds"] == [[-300, 0], [0, 400]]
    assert "Nothing reached" in page.text("p", **{"class": "empty"})


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 3), (0, 4, 4)])
def test_a_quicklook_is_rgba(shape):
    with pytest.raises(UsageError, match="quicklook"):
        Quicklook(np.zeros(shape, np.uint8), Affine.identity(), CRS.from_epsg(4326))


def test_a_folder_that_is_not_there_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        make(tmp_path / "absent" / "map.html")
    assert list(tmp_path.iterdir()) == []


def test_leaflet_is_as_its_makers_released_it():
    listed = re.findall(r"`([0-9a-f]{64})` +\| +`?(\S+?)`? *\|", (ASSETS / "README.md").read_text())
    assert len(listed) == 3
    for digest, name in listed:
        assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest, name


def test_the_leaflet_licence_travels_with_the_page(path):
    assert (ASSETS / "leaflet" / "LICENSE").read_text().strip() in make(path).text("pre")


def test_importing_stays_lean():
    heavy = "{'torch', 'matplotlib', 'geopandas'}"
    code = f"import sys, smokegeo.writing.webmap; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# In a browser, where there is one.

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def visit(url, profile, *, width=1200):
    """Load a page; return the resulting document and what the console said."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command += ["--disable-sync", f"--user-data-dir={profile}", f"--window-size={width},800"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Page(done.stdout), console


def with_script(source, target, script):
    """Copy a page with a script of the test added, and allowed by its policy."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = source.read_text("utf-8")
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    target.write_text(text.replace("</body>", f"<script>{script}</script></body>"), "utf-8")


@browser
def test_the_browser_draws_polygons_and_picture_without_complaint(path, tmp_path):
    make(path, picture=quicklook(), title=HOSTILE)
    page, console = visit(path.as_uri(), tmp_path / "profile")
    assert console == []
    drawn = [e[1] for e in page.all("path") if "leaflet-interactive" in e[1].get("class", "")]
    assert {e["stroke"] for e in drawn} == {COLOURS[0], COLOURS[4]}
    assert all(len(e["d"]) > 10 for e in drawn)
    assert len(drawn) == 2
    assert len(page.all("img", alt="Picture of the scene")) == 1
    assert len([e for e in page.all("span") if "swatch" in e[1].get("class", "")]) == 5 + 2
    assert "hidden" not in page.all("div", id="picture-controls")[0][1]
    assert "300 m" in "".join(e[2] for e in page.all("div") if "scale" in e[1].get("class", ""))


@browser
def test_the_browser_draws_smoke_on_a_photograph(path, tmp_path):
    polygons, look = photograph()
    make(path, polygons, picture=look)
    moved = tmp_path / "moved.html"
    # The first outline's corner on the screen, told to the map as the mouse's position.
    script = """
        const box = document.querySelector('path.leaflet-interactive').getBoundingClientRect();
        const mouse = {clientX: box.left + 1.5, clientY: box.top + 1.5, bubbles: true};
        document.getElementById('map').dispatchEvent(new MouseEvent('mousemove', mouse));
    """
    with_script(path, moved, script)
    page, console = visit(moved.as_uri(), tmp_path / "profile")
    assert console == []
    assert len([e for e in page.all("path") if "leaflet-interactive" in e[1].get("class", "")]) == 2
    assert not [e for e in page.all("div") if "scale" in e[1].get("class", "")]
    (position,) = [e for e in page.all("div") if "position" in e[1].get("class", "").split()]
    column, row = (int(n) for n in re.findall(r"-?\d+", position[2]))
    assert abs(column - 100) <= 2
    assert abs(row - 150) <= 2


@browser
def test_a_click_in_the_list_opens_the_outline(path, tmp_path):
    make(path, frame(BOXES, touches_edge=[True, False], touches_nodata=[True, False]))
    clicked = tmp_path / "clicked.html"
    with_script(path, clicked, "document.querySelector('[data-outline=\"1\"]').click()")
    page, console = visit(clicked.as_uri(), tmp_path / "profile")
    assert console == []
    (popup,) = [e for e in page.all("div") if e[1].get("class") == "leaflet-popup-content"]
    for said in ("Outline 1", "5.00 ha", "55 %", "97 %", "edge of the scene", "without data"):
        assert said in popup[2]
    assert page.all("button", **{"data-outline": "1", "aria-current": "true"})
    assert "Mean probability 55 %" in page.text("p", id="status")


@browser
def test_the_picture_can_be_faded_and_the_smoke_switched_off(path, tmp_path):
    make(path, picture=quicklook())
    changed = tmp_path / "changed.html"
    slide = "const o = document.getElementById('opacity'); o.value = 40;"
    slide += "o.dispatchEvent(new Event('input')); document.getElementById('show-smoke').click()"
    with_script(path, changed, slide)
    page, console = visit(changed.as_uri(), tmp_path / "profile")
    assert console == []
    assert "opacity: 0.4" in page.all("img", alt="Picture of the scene")[0][1]["style"]
    assert page.text("output") == "40 %"
    assert not [e for e in page.all("path") if "leaflet-interactive" in e[1].get("class", "")]


@browser
def test_an_empty_map_opens_without_complaint_and_its_picture_can_be_hidden(path, tmp_path):
    make(path, frame([]), picture=quicklook())
    bare = tmp_path / "bare.html"
    with_script(path, bare, "document.getElementById('show-picture').click()")
    page, console = visit(bare.as_uri(), tmp_path / "profile")
    assert console == []
    assert "Nothing reached" in page.text("p", **{"class": "empty"})
    assert not page.all("img", alt="Picture of the scene")


@browser
def test_the_page_asks_for_nothing_but_itself(path, tmp_path):
    make(path, picture=quicklook())
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if self.path == "/map.html" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            if self.path == "/map.html":
                self.wfile.write(path.read_bytes())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.05))
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/map.html"
            page, console = visit(url, tmp_path / "profile")
        finally:
            server.shutdown()
            thread.join()
    assert console == []
    assert page.all("path")
    assert asked == ["/map.html"]
