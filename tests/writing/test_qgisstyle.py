"""The style QGIS applies: five classes of mean probability, the same text every time."""

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

from smokegeo.errors import UsageError
from smokegeo.writing.qgisstyle import COLOURS, probability_classes, qml


def labels(threshold):
    return [entry.label for entry in probability_classes(threshold)]


def ranges(threshold):
    return ElementTree.fromstring(qml(threshold)).findall(".//ranges/range")


class TestClasses:
    def test_split_the_range_above_the_threshold_evenly(self):
        assert labels(0.5) == ["50–60 %", "60–70 %", "70–80 %", "80–90 %", "90–100 %"]
        assert labels(0.35)[0] == "35–48 %"

    def test_join_without_gaps_from_the_threshold_to_one(self):
        classes = probability_classes(0.3)
        assert classes[0].lower == 0.3
        assert classes[-1].upper == 1
        assert all(a.upper == b.lower for a, b in itertools.pairwise(classes))

    @pytest.mark.parametrize("threshold", [0.004, 0.473, 0.97, 0.996])
    def test_have_labels_that_differ_however_narrow_they_are(self, threshold):
        assert len(set(labels(threshold))) == len(COLOURS)

    @pytest.mark.parametrize("threshold", [0, -1, 1.01, float("nan")])
    def test_need_a_threshold_that_is_a_probability(self, threshold):
        with pytest.raises(UsageError, match="threshold"):
            probability_classes(threshold)

    def test_get_darker_with_probability_for_eyes_that_see_no_hue(self):
        def lightness(colour):
            value = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
            linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
            return 116 * (linear @ [0.2126, 0.7152, 0.0722]) ** (1 / 3) - 16

        steps = -np.diff([lightness(colour) for colour in COLOURS])
        assert (steps > 8).all()


class TestQml:
    def test_is_the_same_text_every_time(self):
        assert qml(0.5) == qml(0.5)

    def test_colours_by_mean_probability(self):
        renderer = ElementTree.fromstring(qml(0.5)).find("renderer-v2")
        assert renderer.get("type") == "graduatedSymbol"
        assert renderer.get("attr") == "mean_prob"
        assert len(renderer.findall("symbols/symbol")) == 5

    @pytest.mark.parametrize("threshold", [0.004, 0.5, 0.333, 1.0])
    def test_hides_no_probability(self, threshold):
        lower = [float(entry.get("lower")) for entry in ranges(threshold)]
        upper = [float(entry.get("upper")) for entry in ranges(threshold)]
        assert lower[0] == 0
        assert upper[-1] == 1
        assert upper[:-1] == lower[1:]

    def test_leaves_the_imagery_visible_and_the_outline_solid(self):
        root = ElementTree.fromstring(qml(0.5))
        for fill in root.findall(".//layer[@class='SimpleFill']"):
            options = {entry.get("k"): entry.get("v") for entry in fill.findall("prop")}
            assert 50 < int(options["color"].split(",")[3]) < 150
            assert options["outline_color"].endswith(",255")

    def test_shows_no_labels_but_a_map_tip(self):
        root = ElementTree.fromstring(qml(0.5))
        assert root.get("labelsEnabled") == "0"
        assert '"area_m2"' in root.findtext("mapTip")
