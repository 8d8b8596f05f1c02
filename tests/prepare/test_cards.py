"""The data cards and layouts say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from smokegeo.datasets.layout import SCENE_SCENARIOS, SMOKE_SCENARIOS, grid_pitch, grid_transform
from smokegeo.prepare.download import REPO, REVISION
from smokegeo.sensors import sensor

DATASETS = Path(__file__).resolve().parents[2] / "datasets"


def card(kind):
    return (DATASETS / kind / "card.md").read_text("utf-8")


def test_the_band_table_is_the_preset():
    listed = [float(nm) for nm in re.findall(r"\| (\d{3})(?= \|)", card("hss").split("## Scen")[0])]
    assert tuple(listed) == sensor("hss").bands.wavelengths_nm
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \|", card("mss"), re.MULTILINE)
    bands = [(b.name, str(int(b.wavelength_nm)), str(int(b.fwhm_nm))) for b in sensor("mss").bands]
    assert rows == bands


@pytest.mark.parametrize("tags", [SCENE_SCENARIOS, SMOKE_SCENARIOS])
def test_scenario_counts_add_up_to_all_samples(tags):
    counts = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", card("hss"), re.MULTILINE))
    assert sum(int(counts[tag]) for tag in tags) == 1007


def test_the_card_names_the_revision_that_is_fetched():
    assert f"{REPO}>, known by its README at commit `{REVISION}`" in card("hss")


@pytest.mark.parametrize(("side", "pitch"), [(409, 8192), (2048, 8192), (2049, 12288)])
def test_the_grid_is_as_the_layout_says(side, pitch):
    assert grid_pitch([side]) == pitch
    place = grid_transform(70, pitch)
    assert (place.c, place.f) == ((70 % 64 + 1) * pitch, -(70 // 64 + 1) * pitch)
    assert (place.a, place.b, place.d, place.e) == (1, 0, 0, -1)
