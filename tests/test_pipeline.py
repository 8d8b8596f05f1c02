"""The stages of `predict` together: a part of a scene is what it is in the whole."""

from __future__ import annotations

import json

import numpy as np
import pytest
import rasterio
from toy_models import save_toy
from toy_scenes import landscape, write_scene

import smokegeo
from smokegeo.pipeline import Outline, prepare
from smokegeo.redraw import redraw
from smokegeo.scene.opening import open_scene
from smokegeo.scene.options import SceneOptions
from smokegeo.settings import request_from


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_toy(tmp_path_factory.mktemp("model") / "toy.safetensors", threshold=0.52)


@pytest.fixture
def scene(tmp_path):
    return write_scene(tmp_path / "scene.tif", landscape(6, (100, 120)))


def probabilities(scene, model, path, **options):
    smokegeo.predict(scene, model=model, prob=path, overwrite=True, **options)
    with rasterio.open(path) as src:
        return src.read(1), src.transform


def test_a_part_of_a_scene_is_seen_with_what_lies_around_it(scene, model, tmp_path):
    whole, place = probabilities(scene, model, tmp_path / "whole.tif", tile=512)
    # As much around it as there is: the same tile, so the same numbers.
    part, there = probabilities(
        scene, model, tmp_path / "part.tif", tile=512, overlap=120, window="30,20,40,50"
    )
    np.testing.assert_array_equal(part, whole[20:70, 30:70])
    assert there @ (0, 0) == place @ (30, 20)


def test_a_part_s_polygons_end_at_its_edges(scene, model):
    frame = smokegeo.predict(scene, model=model, window="30,20,40,50", threshold=0.01)
    left, bottom, right, top = frame.total_bounds
    with rasterio.open(scene) as src:
        assert (left, top) == pytest.approx(src.transform @ (30, 20))
        assert (right, bottom) == pytest.approx(src.transform @ (70, 70))


def test_the_units_of_a_part_are_those_of_the_whole(tmp_path, model):
    values = landscape(6, (100, 120)).astype(np.float32)
    values[:, :40, :40] = np.linspace(0, 2, 40)  # alone it would pass for reflectances 0 to 1
    path = write_scene(tmp_path / "scene.tif", values)
    for window in (None, "0,0,40,40"):
        request = request_from({"model": model, "window": window})
        ready = prepare(open_scene(path, SceneOptions(window=window)), request)
        assert "read as reflectance x 10000" in ready.plan.units


def test_a_part_knows_what_is_blank_in_the_whole(tmp_path, model, caplog):
    values = landscape(6, (100, 120))
    values[:, :50, :60] = 0
    path = write_scene(tmp_path / "scene.tif", values)
    scene = open_scene(path, SceneOptions(window="50,40,30,30"))
    ready = prepare(scene, request_from({"model": model}))
    assert ready.plan.part.blanks == (0,)


def facts_of(path):
    return json.loads(path.read_text("utf-8"))["provenance"]


def test_a_file_tells_units_what_was_left_out_and_the_doubts(tmp_path, model, caplog):
    values = landscape(6, (100, 120))
    values[:, :50, :60] = 0
    path = write_scene(tmp_path / "scene.tif", values)
    for name in ("a.geojson", "b.geojson"):
        smokegeo.predict(path, tmp_path / name, model)
    facts = facts_of(tmp_path / "a.geojson")
    assert facts == facts_of(tmp_path / "b.geojson")
    ready = prepare(open_scene(path, SceneOptions()), request_from({"model": model}))
    assert facts["units"] == ready.plan.units != ""
    assert (facts["analysed_share"], facts["bands_absent"]) == ("0.75", "0 of 6")
    doubts = json.loads(facts["warnings"])
    assert any("25.0 % of the pixels are 0 in every band" in doubt for doubt in doubts)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert doubts == list(dict.fromkeys(said))
    with rasterio.open(path, "r+") as src:
        src.nodata = 0
    smokegeo.predict(path, tmp_path / "c.geojson", model)
    assert not any(
        "every band" in doubt for doubt in json.loads(facts_of(tmp_path / "c.geojson")["warnings"])
    )


def test_bands_that_a_scene_lacks_are_counted_in_its_files(tmp_path, model):
    names = ("blue", "green", "red", "nir")
    path = write_scene(tmp_path / "scene.tif", landscape(4, (40, 40)), names)
    smokegeo.predict(path, tmp_path / "s.geojson", model)
    assert facts_of(tmp_path / "s.geojson")["bands_absent"] == "2 of 6"


def test_polygons_drawn_again_keep_the_doubts(tmp_path, model):
    values = landscape(6, (100, 120))
    values[:, :50, :60] = 0
    path = write_scene(tmp_path / "scene.tif", values)
    smokegeo.predict(path, tmp_path / "a.geojson", model, prob=tmp_path / "p.tif")
    redraw(tmp_path / "p.tif", tmp_path / "b.geojson", Outline())
    first, again = (facts_of(tmp_path / name) for name in ("a.geojson", "b.geojson"))
    for key in ("warnings", "units", "seen_at", "analysed_share", "bands_absent"):
        assert again[key] == first[key]
