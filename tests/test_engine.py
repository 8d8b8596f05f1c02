"""The network at work: devices, test-time augmentation, backends, and what goes wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_models import save_toy
from toy_scenes import landscape, write_scene

from smokegeo.bands import match_bands
from smokegeo.engine import TTA, Effort, Engine, cores, pick_device
from smokegeo.errors import ModelError, UsageError
from smokegeo.fitting import Fit
from smokegeo.modelfile import load_model, read_card
from smokegeo.stitch import FULL

STEP = FULL // 250


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    path = save_toy(tmp_path_factory.mktemp("model") / "toy.safetensors", whole=True)
    card = read_card(path)
    return Fit(path, card, match_bands(card.bands, card.bands))


@pytest.fixture(scope="module")
def fewer(fit):
    """The same model for a scene that lacks two bands."""
    bands = fit.card.bands.subset(["blue", "red", "nir", "swir2"])
    return replace(fit, matching=match_bands(bands, fit.card.bands))


def engine(fit, network=None, **effort):
    made = Engine(fit, Effort(**{"device": "cpu", **effort}).resolved())
    if network is not None:
        made._network = network
    return made


def tiles(count=2, size=(48, 64)):
    rng = np.random.default_rng(3)
    return rng.standard_normal((count, 6, *size)).astype(np.float32)


def steps_apart(a, b):
    return np.abs(a.astype(int) - b.astype(int)).max() / STEP


# What comes out


def test_smoke_is_the_softmax_of_the_folded_network(fit):
    found = engine(fit)(tiles())
    with torch.no_grad():
        logits = load_model(fit.path).for_inference()(torch.from_numpy(tiles()))
    wanted = logits.softmax(dim=1)[:, 1].numpy()
    assert found.dtype == np.uint16
    assert np.abs(found / FULL - wanted).max() < 1e-4
    assert np.ptp(found) > 10 * STEP


def test_the_smoke_class_is_found_by_its_name(fit):
    swapped = replace(fit, card=replace(fit.card, classes=("smoke", "background")))
    assert steps_apart(engine(fit)(tiles()) + engine(swapped)(tiles()), np.array(FULL)) < 0.1


def test_certainty_fits_into_the_whole_numbers(fit):
    def sure(x, available):
        logits = torch.zeros(len(x), 2, *x.shape[2:])
        logits[:, 1, :, ::2] = 1000
        logits[:, 1, :, 1::2] = -1000
        return logits

    found = engine(fit, sure, tta="full")(tiles(size=(32, 32)))
    assert found.max() <= FULL
    assert engine(fit, sure)(tiles())[0, 0, :4].tolist() == [FULL, 0, FULL, 0]


def test_absent_bands_are_told_to_the_network(fit, fewer):
    seen = []

    def spy(x, available):
        seen.append(available)
        return torch.zeros(len(x), 2, *x.shape[2:])

    engine(fit, spy)(tiles())
    assert seen == [None]
    engine(fewer, spy)(tiles(3))
    assert seen[1].tolist() == [[True, False, True, True, False, True]] * 3


def test_an_absent_band_s_pixels_do_not_matter(fewer):
    changed = tiles()
    changed[:, 1] = 99
    assert (engine(fewer)(changed) == engine(fewer)(tiles())).all()


# Looking again


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("mirrored", [False, True])
def test_full_tta_turns_with_the_scene(fit, turns, mirrored):
    def turn(array):
        return np.rot90(array[..., ::-1] if mirrored else array, turns, (-2, -1)).copy()

    square = tiles(1, (64, 64))
    look = engine(fit, tta="full")
    assert steps_apart(look(turn(square)), turn(look(square))) < 1
    once = engine(fit)
    assert steps_apart(once(turn(square)), turn(once(square))) > 1  # not by itself


def test_flip_tta_is_mirrored_with_the_scene(fit):
    look = engine(fit, tta="flip")
    assert steps_apart(look(tiles()[..., ::-1].copy()), look(tiles())[..., ::-1]) < 1


@pytest.mark.parametrize("tta", TTA)
def test_every_view_is_turned_back_before_it_is_averaged(fit, tta):
    def pixelwise(x, available):
        return torch.stack([torch.zeros_like(x[:, 0]), x[:, 0]], dim=1)

    plain = engine(fit, pixelwise)(tiles())
    assert steps_apart(engine(fit, pixelwise, tta=tta)(tiles()), plain) <= 1 / STEP


def test_the_views_are_all_different():
    corner = torch.arange(9).reshape(1, 1, 3, 3)
    seen = {
        tuple(torch.rot90(corner.flip(3) if mirrored else corner, turns, (2, 3)).flatten().tolist())
        for turns, mirrored in TTA["full"]
    }
    assert len(seen) == len(TTA["full"]) == 8


# Another backend


@pytest.mark.slow
def test_onnx_gives_the_same_within_a_step(fit, fewer):
    pytest.importorskip("onnxruntime")
    for one in (fit, fewer):
        by_onnx = engine(one, backend="onnx")
        assert by_onnx.effort.device == "cpu"
        for size in ((48, 64), (20, 33)):
            assert steps_apart(by_onnx(tiles(size=size)), engine(one)(tiles(size=size))) < 1


# What goes wrong


def test_results_that_are_no_numbers_are_the_model_s_fault(fit):
    def broken(x, available):
        logits = torch.zeros(len(x), 2, *x.shape[2:])
        logits[-1, 0, 3, 3] = torch.nan
        return logits

    with pytest.raises(ModelError, match="model 'toy' gives results that are no numbers"):
        engine(fit, broken)(tiles())


def test_batches_are_halved_until_they_fit(fit):
    sizes = []

    def small(x, available):
        sizes.append(len(x))
        if len(x) > 2:
            raise torch.OutOfMemoryError
        return torch.stack([torch.zeros_like(x[:, 0]), x[:, 0]], dim=1)

    run = engine(fit, small)
    found = run(tiles(7))
    assert sizes == [7, 3, 1, 2, 4, 2, 2]
    one_by_one = [run(tiles(7)[i : i + 1]) for i in range(7)]
    assert (found == np.concatenate(one_by_one)).all()


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you")],
    ids=["card", "CPU"],
)
def test_a_tile_that_does_not_fit_is_refused_with_a_remedy(fit, error):
    def never(x, available):
        raise error

    with pytest.raises(ModelError, match=r"tile of 64 pixels .* smaller --tile"):
        engine(fit, never)(tiles(size=(64, 64)))


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="--device cuda"):
        pick_device("cuda")


def test_auto_takes_the_fastest_device(monkeypatch):
    for cuda, mps, wanted in ((1, 1, "cuda"), (0, 1, "mps"), (0, 0, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=cuda: bool(there))
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda there=mps: bool(there))
        assert pick_device("auto") == wanted
        assert pick_device("cpu") == "cpu"


def test_effort_is_decided_for_the_machine(monkeypatch):
    monkeypatch.setattr("smokegeo.engine.cores", lambda: 6)
    assert Effort(device="cpu").resolved() == Effort("cpu", batch=1, threads=6)
    assert Effort(device="cpu", batch=3, threads=2).resolved() == Effort("cpu", batch=3, threads=2)
    assert Effort(backend="onnx").resolved().device == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert Effort().resolved() == Effort("cuda", batch=8, threads=1)
    monkeypatch.setattr("smokegeo.engine.cores", lambda: 500)
    assert Effort(device="cpu").resolved().threads == 16


def test_cores_are_those_this_process_may_use():
    assert cores() >= 1


# Lean


@pytest.mark.slow
def test_predicting_imports_none_of_the_training_libraries(fit, tmp_path):
    scene = write_scene(tmp_path / "scene.tif", landscape(6, (40, 40)))
    code = f"""
import sys
import smokegeo.pipeline, smokegeo.engine
import smokegeo
frame = smokegeo.predict({str(scene)!r}, {str(tmp_path / "smoke.gpkg")!r}, {str(fit.path)!r},
                         prob={str(tmp_path / "p.tif")!r}, web_map={str(tmp_path / "m.html")!r})
heavy = {{"torchgeo", "lightning", "timm", "torchvision", "kornia", "matplotlib",
         "segmentation_models_pytorch", "sklearn", "distributed"}}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
