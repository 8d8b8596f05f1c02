"""Plain settings become a request, or are refused before any work."""

from __future__ import annotations

import math

import pytest

from smokegeo.engine import Effort
from smokegeo.errors import UsageError
from smokegeo.pipeline import Outline, Request
from smokegeo.scene.options import SceneOptions
from smokegeo.settings import request_from


def test_no_settings_are_the_defaults():
    assert request_from({}) == Request()


def test_every_setting_finds_its_place():
    found = request_from(
        {
            "model": "m.safetensors",
            "scale": 2.0,
            "offset": -3.0,
            "resume": True,
            "yes": True,
            "tile": 256,
            "overlap": 32,
            "bands": "red,nir",
            "sensor": "naip",
            "nodata": "none",
            "raw": True,
            "crs": "EPSG:4326",
            "pixel_coords": True,
            "skip_damaged": True,
            "bbox": "1,2,3,4",
            "window": "0,0,5,5",
            "device": "cpu",
            "backend": "onnx",
            "tta": "flip",
            "fast": True,
            "batch": 3,
            "threads": 2,
            "threshold": 0.4,
            "core": 0.8,
            "edges": "pixel",
            "min_area": 50.0,
            "simplify": 1.5,
        }
    )
    assert found == Request(
        "m.safetensors",
        SceneOptions(
            "red,nir", "naip", "none", True, "EPSG:4326", True, True, "1,2,3,4", "0,0,5,5"
        ),
        2.0,
        -3.0,
        256,
        32,
        Effort("cpu", "onnx", "flip", True, 3, 2),
        Outline(0.4, 0.8, "pixel", 50.0, 1.5),
        True,
        True,
    )


def test_python_callers_may_give_numbers_and_sequences():
    box, window = (14.2, 50, 14.9, 50.4), [0, 0, 9, 9]
    scene = request_from(
        {"nodata": -9999, "bbox": box, "window": window, "bands": ["a", "b"]}
    ).scene
    assert scene.nodata_value == -9999
    assert (scene.bbox, scene.window, scene.bands) == ("14.2,50,14.9,50.4", "0,0,9,9", "a,b")


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"colour": "red"}, "no setting 'colour'; there are backend, bands, batch"),
        ({"min_area_m2": 5}, "no setting 'min_area_m2'"),
        ({"device": "tpu"}, "'tpu' is not one of auto, cpu, cuda, mps"),
        ({"backend": "jax"}, "'jax' is not one of torch, onnx"),
        ({"tta": "some"}, "'some' is not one of none, flip, full"),
        ({"edges": "round"}, "'round' is not one of smooth, pixel"),
        ({"threshold": 0}, "threshold 0 is not"),
        ({"threshold": 1.1}, "threshold 1.1 is not"),
        ({"threshold": math.nan}, "threshold nan is not"),
        ({"core": 2}, "threshold 2 is not"),
        ({"batch": 0}, "batch 0"),
        ({"threads": -1}, "threads -1"),
        ({"tile": 0}, "tile 0"),
        ({"overlap": -1}, "overlap -1"),
        ({"min_area": -5}, "min_area -5"),
        ({"min_area": math.nan}, "min_area nan"),
        ({"simplify": math.inf}, "simplify inf"),
        ({"scale": 0}, "scale 0"),
        ({"scale": math.nan}, "scale nan"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(settings, fact):
    with pytest.raises(UsageError) as caught:
        request_from(settings)
    assert str(caught.value).startswith(fact)
    assert str(caught.value).endswith(".")
