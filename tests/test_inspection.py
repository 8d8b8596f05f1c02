"""`smokegeo info` says what predict would see, once and in plain words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from toy_models import save_toy
from toy_scenes import PLACE, landscape, write_scene

from smokegeo.inspection import inspect
from smokegeo.pipeline import Request
from smokegeo.scene.opening import open_scene


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "toy.safetensors"
    return save_toy(path, threshold=0.35, resolution_m=(8.0, 30.0))


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    values = landscape(4, (90, 130))
    values[:, :9] = 0
    return write_scene(
        tmp_path_factory.mktemp("scene") / "scene.tif",
        values,
        ("blue", "green", "red", "thermal"),
        tags={"ACQUISITIONDATETIME": "2024-08-30T12:05:59+02:00"},
    )


def test_the_text_tells_all_a_user_needs_to_know(run, scene, model):
    result = run("info", scene, "--model", model)
    assert result.exit_code == 0
    text = result.stdout
    assert "scene.tif: 130 x 90 pixels, uint16" in text
    assert "EPSG:32633, pixels of 10 x 10 m" in text
    assert "2024-08-30T10:05:59+00:00" in text
    assert "90.0 % of the pixels sampled" in text
    assert "4, known from band descriptions" in text
    assert "model      toy, threshold 0.35" in text
    assert "nir (845 nm): absent" in text
    assert "read as reflectance x 10000" in text
    assert "6 tiles, about " in text
    assert "doubt" not in text
    last = text.rstrip().splitlines()[-1].strip()
    assert last == f"smokegeo predict {scene} --out smoke.gpkg --model {model}"


def test_every_doubt_is_said_once(run, scene, model):
    stderr = run("info", scene, "--model", model, "--quiet").stderr
    assert stderr.count("are 0 in every band") == 1
    assert stderr.count("Warning") == 1


def test_json_is_whole_and_strict(run, scene, model):
    result = run("info", scene, "--model", model, "--json", "--quiet")
    found = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    assert (found["width"], found["height"], found["dtype"]) == (130, 90, "uint16")
    assert found["crs"] == "EPSG:32633"
    assert found["transform"] == list(PLACE)[:6]
    assert found["pixel_m"] == pytest.approx([10, 10], rel=1e-3)
    assert [band["name"] for band in found["bands"]] == ["blue", "green", "red", "thermal"]
    assert all(0 < band["low"] < band["high"] for band in found["bands"])
    assert found["valid_share"] == pytest.approx(0.9)
    assert found["model"] == "toy"
    assert found["threshold"] == 0.35
    assert len(found["matching"]) == 6
    assert found["estimate"]["tiles"] == 6
    assert found["doubts"] == []


def test_an_empty_scene_can_be_inspected(run, model, tmp_path):
    path = write_scene(tmp_path / "e.tif", np.zeros((6, 20, 20), np.uint16), nodata=0)
    found = json.loads(run("info", path, "--model", model, "--json", "-q").stdout)
    assert found["valid_share"] == 0
    assert found["bands"][0]["low"] is None
    result = run("info", path, "--model", model, "-q")
    assert result.exit_code == 0
    assert "blue            480 nm   no valid pixels" in result.stdout
    assert "nan" not in result.stdout


def test_without_any_model_the_scene_is_still_described(scene, monkeypatch):
    monkeypatch.setattr("smokegeo.inspection.bundled_models", dict)
    found = inspect(open_scene(scene), Request())
    assert (found.model, found.cost) == (None, None)
    assert found.found.valid_share == pytest.approx(0.9)
    text = "\n".join(found.lines())
    assert "none of the bundled ones fits; name one with --model" in text
    assert "Next" not in text
    assert json.dumps(found.to_dict())


def test_a_scene_finer_or_coarser_than_the_training_is_doubted(scene, model, tmp_path):
    for pixel, doubted in ((3.0, True), (5.0, False), (59.0, False), (70.0, True)):
        place = PLACE @ type(PLACE).scale(pixel / 10)
        path = write_scene(tmp_path / f"{pixel}.tif", landscape(6, (20, 20)), transform=place)
        found = inspect(open_scene(path), Request(model=model))
        assert bool(found.doubts) is doubted, pixel
        assert ("trained on pixels of 8 to 30 m" in "\n".join(found.lines())) is doubted


def test_info_refuses_what_predict_refuses_with_the_same_code(run, model, tmp_path):
    broken = tmp_path / "x.tif"
    broken.write_bytes(b"<html>")
    for args, code in (
        ((broken,), 3),
        ((tmp_path / "none.tif",), 2),
        ((broken, "--nodata", "many"), 2),
    ):
        codes = [
            run("info", *args, "--model", model).exit_code,
            run("predict", *args, "--model", model, "--out", tmp_path / "s.gpkg").exit_code,
        ]
        assert codes == [code, code]
