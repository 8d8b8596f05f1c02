"""The ONNX file: the folded network's numbers under ONNX Runtime, and what it says of itself."""

import importlib
import json
from functools import partial

import numpy as np
import pytest
import torch
from random_networks import last_absent, random_image, random_network

from smokegeo.bands import Band, BandSet
from smokegeo.datasets.statistics import BandStatistics
from smokegeo.errors import ModelError, UsageError
from smokegeo.modelfile import Card
from smokegeo.models.config import ABLATION
from smokegeo.models.onnx import OnnxNetwork, export_onnx, metadata

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def card() -> Card:
    names = tuple(f"b{i}" for i in range(5))
    return Card(
        name="tiny",
        architecture="mop",
        options={"dim": 40},
        bands=BandSet(tuple(Band(name, 500.0 + i) for i, name in enumerate(names))),
        statistics=BandStatistics(
            names, (1.0, 2.0, 3.0, 4.0, 5.0), (2.0,) * 5, (0.0,) * 5, (9.0,) * 5, 100
        ),
        threshold=0.4,
        resolution_m=(10.0, 40.0),
    )


@pytest.mark.parametrize(
    "switches",
    [
        pytest.param({}, id="e"),
        pytest.param(ABLATION["bl"], id="bl"),
        pytest.param({**ABLATION["a"], "fusion": "spectral"}, id="a spectral"),
        pytest.param({**ABLATION["d"], "fusion": "concat"}, id="d", marks=pytest.mark.slow),
        pytest.param({"band_groups": 2, "rescale": True}, id="grouped", marks=pytest.mark.slow),
    ],
)
@torch.no_grad()
def test_numbers_are_those_of_torch_at_any_batch_and_size(switches, tmp_path):
    folded = (model := random_network(**switches)).fold()
    export_onnx(folded, tmp_path / "smoke.onnx")
    network = OnnxNetwork(tmp_path / "smoke.onnx", threads=1)
    for batch, size in ((1, (64, 64)), (3, (45, 70)), (2, (1, 1)), (2, (33, 128))):
        x, available = random_image(model, size, batch), last_absent(model, batch)
        torch.testing.assert_close(network(x), folded(x), atol=1e-4, rtol=0)
        x[1:, -2:] = float("nan")
        wanted = folded(x, available)
        assert torch.isfinite(wanted).all()
        torch.testing.assert_close(network(x, available), wanted, atol=1e-4, rtol=0)
        got = network(x.numpy(), available.numpy())
        assert got.shape == (batch, 2, *size)
        torch.testing.assert_close(got, wanted, atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "smoke.onnx"
    export_onnx(random_network().fold(), path, card())
    return path


def test_the_file_tells_deepness_all_it_asks(exported):
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(exported), options)
    # Deepness takes one input, and outputs whose sides do not bear different names.
    assert [(i.name, i.shape) for i in session.get_inputs()] == [
        ("image", ["batch", 5, "height", "width"])
    ]
    assert [i.name for i in session.get_overridable_initializers()] == ["available"]
    (output,) = session.get_outputs()
    assert (output.name, output.shape) == ("logits", ["batch", 2, None, None])
    told = {
        key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()
    }
    assert Card.from_dict(told.pop("smokegeo_card")) == card()
    mean, std = np.array(told.pop("standardization_mean")), told.pop("standardization_std")
    np.testing.assert_allclose((7 / 255 - mean) / std, [3, 2.5, 2, 1.5, 1])
    assert told == {
        "model_type": "Segmentor",
        "class_names": {"0": "background", "1": "smoke"},
        "resolution": 2000.0,
        "tiles_size": 512,
        "tile_size": 512,
        "tiles_overlap": 25,
        "seg_thresh": 0.4,
    }


def test_without_a_known_resolution_none_is_told():
    plain = Card(**{**vars(card()), "resolution_m": None})
    assert "resolution" not in metadata(plain)


def test_a_failed_export_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx.checker, "check_model", lambda model: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_onnx(random_network().fold(), tmp_path / "smoke.onnx")
    assert not list(tmp_path.iterdir())


def test_a_wrong_image_or_file_is_refused_in_one_line(exported, tmp_path):
    path = tmp_path / "smoke.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"not a usable ONNX file") as caught:
        OnnxNetwork(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError):
        OnnxNetwork(tmp_path / "missing.onnx")
    with pytest.raises(UsageError, match=r"\(1, 4, 40, 40\) is not \(B, 5, H, W\)"):
        OnnxNetwork(exported)(torch.zeros(1, 4, 40, 40))


def test_a_file_of_another_program_is_refused(tmp_path):
    path = tmp_path / "other.onnx"
    write_plain(path)
    with pytest.raises(ModelError, match="not exported by smokegeo"):
        OnnxNetwork(path)


def write_plain(path):
    """Write the smallest of ONNX files."""
    helper = onnx.helper
    shape = [1, 3, 4, 4]
    value = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in ("x", "y")]
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "plain", value[:1], value[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made.ir_version = 9
    onnx.save(made, path)


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_the_remedy(missing, tmp_path, monkeypatch):
    real = importlib.import_module

    def fake(name, *args):
        if name == missing:
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", fake)
    path, folded = tmp_path / "smoke.onnx", random_network().fold()
    call = partial(export_onnx, folded) if missing == "onnx" else OnnxNetwork
    with pytest.raises(UsageError, match=rf"^{missing} is not installed.*smokegeo\[onnx\]"):
        call(path)
