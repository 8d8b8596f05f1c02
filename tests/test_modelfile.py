"""The model file: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pickle
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from random_networks import last_absent, random_image, random_network
from safetensors.torch import load_file, save_file
from toy_models import save_toy

from smokegeo.bands import Band, BandSet
from smokegeo.datasets.statistics import BandStatistics
from smokegeo.errors import ModelError, SmokegeoError, UsageError
from smokegeo.modelfile import Card, bundled_models, find_model, load_model, read_card, save_model
from smokegeo.models.build import build_network
from smokegeo.models.config import ABLATION
from smokegeo.models.folded import FoldedMoP


def make_card(bands: int = 5, **changes) -> Card:
    names = tuple(f"b{i}" for i in range(bands))
    card = Card(
        name="tiny",
        architecture="mop",
        options={"dim": 40, "width_rule": "equal"},
        bands=BandSet(tuple(Band(n, 500.0 + 10 * i, 5.0) for i, n in enumerate(names)), "hss"),
        statistics=BandStatistics(
            names, (0.1,) * bands, (2.0,) * bands, (0.0,) * bands, (9.0,) * bands, 100
        ),
        threshold=0.35,
        resolution_m=(0.5, 30.0),
        input={"dtype": "uint16", "minimum": 0, "maximum": 1023},
        training={"dataset": "hss", "iterations": 40000},
        metrics={"total": {"f1_image": 0.7}},
        licence="CC-BY-4.0",
        summary="für Tests",
    )
    return dataclasses.replace(card, **changes)


@pytest.fixture(scope="module")
def model():
    return random_network()


@pytest.fixture(scope="module")
def original(model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    save_model(path, make_card(), model.state_dict())
    return path


@pytest.fixture
def path(original, tmp_path) -> Path:
    """A model file to damage."""
    return Path(shutil.copy(original, tmp_path / "tiny.safetensors"))


def refusal(call, *args) -> str:
    """Return the one line a call is refused with."""
    with pytest.raises((ModelError, UsageError)) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith((".", "`"))
    assert "weights_only" not in text  # torch's advice to disarm
    return text


def load_all(path) -> None:
    """Take every way into a model file to its end."""
    loaded = load_model(path)
    for_inference = loaded.for_inference
    refused = []
    for way in (loaded.network, for_inference):
        try:
            way()
        except SmokegeoError as error:
            refused.append(error)
    if refused:
        assert len(refused) == 2, "one way is laxer than the other"
        raise refused[0]


# What goes in comes out


@torch.no_grad()
def test_a_round_trip_is_exact(model, path):
    loaded = load_model(path)
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state[name], value), name
        assert loaded.state[name].dtype == value.dtype
    assert len(loaded.state) == len(model.state_dict())
    x, available = random_image(model), last_absent(model)
    assert torch.equal(loaded.network()(x, available), model(x, available))
    assert torch.equal(loaded.for_inference()(x, available), model.fold()(x, available))


def test_the_card_comes_back_whole(original):
    card = read_card(original)
    assert card.sha256
    assert dataclasses.replace(card, sha256="") == make_card()


@torch.no_grad()
def test_half_storage_halves_the_file_and_hardly_changes_the_output(model, path):
    half = path.with_name("half.safetensors")
    save_model(half, make_card(), model.state_dict(), half=True)
    assert half.stat().st_size < 0.6 * path.stat().st_size
    loaded = load_model(half)
    assert {v.dtype for v in loaded.state.values()} <= {torch.float32, torch.int64}
    x = random_image(model)
    wanted = model(x).softmax(dim=1)
    torch.testing.assert_close(loaded.network()(x).softmax(dim=1), wanted, atol=1e-3, rtol=0)
    torch.testing.assert_close(loaded.for_inference()(x).softmax(dim=1), wanted, atol=1e-3, rtol=0)


def test_half_storage_keeps_what_does_not_fit_into_half(path):
    state = {"large": torch.full((70, 70), 1e6), "small": torch.full((70, 70), 0.5)}
    save_model(path, make_card(), state, half=True)
    assert load_file(path)["small"].dtype == torch.float16
    assert torch.equal(load_model(path).state["large"], state["large"])


def test_half_storage_keeps_few_numbers_whole(path):
    norm, kernel = torch.linspace(0, 1, 100), torch.rand(70, 70)
    save_model(path, make_card(), {"norm": norm, "kernel": kernel}, half=True)
    kept = load_file(path)
    torch.testing.assert_close(kept["norm"], norm, atol=0, rtol=0)
    assert kept["kernel"].dtype == torch.float16


def test_any_kind_of_number_can_be_stored(path):
    state = {"b": torch.ones(3, dtype=torch.bfloat16), "n": torch.tensor(7), "e": torch.ones(0, 2)}
    save_model(path, make_card(), state)
    loaded = load_model(path).state
    assert loaded["b"].tolist() == [1, 1, 1]
    assert loaded["n"] == 7
    assert loaded["e"].shape == (0, 2)


@pytest.mark.parametrize("row", ABLATION)
def test_every_row_of_the_ablation_table_can_be_kept(row, path):
    network = random_network(**ABLATION[row])
    save_model(path, make_card(options=network.config.to_dict()), network.state_dict())
    load_all(path)


def test_a_baseline_can_be_kept(path):
    network = build_network("unet", 5).eval()
    save_model(path, make_card(architecture="unet", options={}), network.state_dict())
    x = torch.randn(1, 5, 40, 40)
    with torch.no_grad():
        assert torch.equal(load_model(path).for_inference()(x), network(x))


def test_options_need_not_repeat_the_number_of_bands(path):
    network = random_network(bands=3)
    save_model(path, make_card(3, options={"dim": 40, "width_rule": "equal"}), network.state_dict())
    assert load_model(path).for_inference().config.bands == 3


def test_a_failed_save_leaves_the_old_file(path, model):
    before = path.read_bytes()
    with pytest.raises(AttributeError):
        save_model(path, make_card(), {"head": "not a tensor"})
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_card_is_read_without_torch(path):
    code = f"""
import sys
from pathlib import Path
from smokegeo.modelfile import read_card
print(read_card(Path({str(path)!r})).name)
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "tiny\n"


def test_a_mop_runs_without_timm_torchgeo_and_lightning(path):
    code = f"""
import sys
import torch
from smokegeo.modelfile import load_model
network = load_model({str(path)!r}).for_inference()
assert network(torch.zeros(1, 5, 40, 40)).shape == (1, 2, 40, 40)
heavy = {{"timm", "torchgeo", "lightning", "torchvision", "segmentation_models_pytorch"}}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# What is refused


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def test_a_malicious_pickle_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    trace = tmp_path / "trace"
    for number, protocol in enumerate((0, 2, 4, 5)):
        path = tmp_path / f"{number}.safetensors"
        path.write_bytes(pickle.dumps({"weights": Bomb(trace)}, protocol=protocol))
        refusal(load_model, path)
    zipped = tmp_path / "zip.ckpt"
    torch.save({"state_dict": {}, "hyper_parameters": Bomb(trace)}, zipped)
    assert "checkpoint" in refusal(load_model, zipped)
    old = tmp_path / "old.pt"
    torch.save({"w": Bomb(trace)}, old, _use_new_zipfile_serialization=False)
    assert "checkpoint" in refusal(load_model, old)
    assert not trace.exists()


def test_a_plain_checkpoint_is_named_as_one(tmp_path):
    path = tmp_path / "best.ckpt"
    torch.save({"state_dict": {"w": torch.ones(2)}}, path)
    text = refusal(load_model, path)
    assert "is a PyTorch checkpoint" in text
    assert "smokegeo train" in text


@pytest.mark.parametrize(
    "url", ["https://example.org/m.safetensors", "s3://bucket/m.safetensors", "file:///m"]
)
def test_a_url_is_refused_as_wrong_usage(url):
    with pytest.raises(UsageError, match="local files only"):
        load_model(url)


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "git lfs pull"),
        (b"<!doctype html><html>404</html>", "failed download"),
        (b"\n\n  <html>", "failed download"),
        (b'{"error": "not found"}', "failed download"),
        (b"", "failed download"),
        (b"\x08\0\0", "failed download"),
        (struct.pack("<Q", 2**63) + b"{}", "damaged"),
        (struct.pack("<Q", 99_999_999) + b'{"a": 1}', "damaged"),
        (struct.pack("<Q", 5) + b"hello", "damaged"),
        (struct.pack("<Q", 2) + b"[]", "damaged"),
        (struct.pack("<Q", 2) + b"{}", "no smokegeo card"),
        (struct.pack("<Q", 200_000) + b"[" * 200_000, "damaged"),
        (struct.pack("<Q", 6) + b"\xff\xfe\xff\xfe{}", "damaged"),
    ],
)
def test_what_is_no_model_file_is_told_apart(content, fact, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    assert fact in refusal(load_model, path)
    assert fact in refusal(read_card, path)


def test_a_file_cut_off_anywhere_is_refused(path):
    content = path.read_bytes()
    (header,) = struct.unpack("<Q", content[:8])
    places = {0, 1, 7, 8, 9, 100, 8 + header // 2, 8 + header - 1, 8 + header, 8 + header + 1}
    places |= {len(content) * i // 10 for i in range(1, 10)} | {len(content) - 1}
    for place in sorted(places):
        path.write_bytes(content[:place])
        refusal(load_model, path)
    path.write_bytes(content + b"\0")
    refusal(load_model, path)


def test_a_flipped_weight_is_refused(path):
    content = bytearray(path.read_bytes())
    (header,) = struct.unpack("<Q", content[:8])
    for place in (8 + header, (8 + header + len(content)) // 2, len(content) - 1):
        content[place] ^= 0x10
        path.write_bytes(content)
        assert "checksum" in refusal(load_model, path)
        content[place] ^= 0x10


def rewrite(path: Path, change) -> None:
    """Write the file again with a changed card; the weights stay as they are."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    card = json.loads(header["__metadata__"]["smokegeo_card"])
    change(card)
    header["__metadata__"]["smokegeo_card"] = json.dumps(card)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


def test_a_header_that_claims_more_than_there_is_is_refused(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header["head.weight"] = {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])
    assert "damaged" in refusal(load_model, path)


def test_weights_without_a_card_are_refused(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file({"w": torch.ones(2)}, path)
    assert "no smokegeo card" in refusal(load_model, path)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda card: card.update(format=99), "has format 99"),
        (lambda card: card.pop("format"), "damaged"),
        (lambda card: card.pop("bands"), "damaged"),
        (lambda card: card.pop("name"), "damaged"),
        (lambda card: card["bands"]["bands"][0].update(name=""), "damaged"),
        (lambda card: card["bands"]["bands"][0].update(name="b1"), "listed twice"),
        (lambda card: card["bands"]["bands"].pop(), "other bands"),
        (lambda card: card["statistics"]["mean"].pop(), "a mean and a spread"),
        (lambda card: card["statistics"].update(std=[math.nan] * 5), "a mean and a spread"),
        (lambda card: card.update(threshold=math.nan), "threshold"),
        (lambda card: card.update(threshold="high"), "damaged"),
        (lambda card: card.update(overlap_px=512), "overlap"),
        (lambda card: card.update(resolution_m=[1]), "damaged"),
        (lambda card: card.update(resolution_m=[-1, 0]), "resolution_m"),
        (lambda card: card.update(sha256="0" * 64), "checksum"),
        (lambda card: card.update(classes=["smoke"]), "are not 2 different ones"),
        (lambda card: card.update(classes=["smoke", "smoke"]), "are not 2 different ones"),
        (lambda card: card.update(classes=["background", "cloud"]), "without smoke"),
        (lambda card: card.update(classes=5), "damaged"),
        (lambda card: card.update(name=[1]), "name is no text"),
        (lambda card: card.update(architecture=["mop"]), "architecture is no text"),
        (lambda card: card.update(summary=None), "summary is no text"),
        (lambda card: card.update(options=[]), "options holds no names"),
        (lambda card: card.update(options=None), "options holds no names"),
        (lambda card: card.update(input=[1]), "input holds no names"),
        (lambda card: card.update(training=[]), "training holds no names"),
        (lambda card: card.update(metrics="x"), "metrics holds no names"),
        (lambda card: card.update(metrics={"validation": "x"}), "validation"),
        (lambda card: card["training"].update(config=None), "config of its training"),
        (
            lambda card: card["metrics"].update(validation={"total": {"f1_image": "x"}}),
            "f1_image 'x' is no number from 0 to 1",
        ),
        (lambda card: card["statistics"].update(pixels=math.inf), "damaged"),
        (lambda card: card["input"].update(views=["measured"] * 2), "each once"),
        (lambda card: card["input"].update(sizes=[2, 2]), "each once"),
        (lambda card: card["input"].update(sizes=[]), "sizes () are not some of"),
        (lambda card: card["input"].update(sizes=[True]), "sizes (True,) are not some of"),
        (lambda card: card["input"].update(sizes=[0]), "sizes (0,) are not some of"),
        (lambda card: card["input"].update(closer=[1.5]), "closer (1.5,) are not some of"),
        (lambda card: card["input"].update(closer=["2"]), "closer ('2',) are not some of"),
        (lambda card: card["input"].update(side_px="x"), "side_px 'x' is no whole number"),
        (lambda card: card["input"].update(side_px=0), "side_px 0 is no whole number above 0"),
        (lambda card: card["input"].update(side_px=-640), "side_px -640 is no whole number"),
        (lambda card: card["input"].update(min_bands=0), "min_bands 0 is no whole number above 0"),
        (
            lambda card: card["input"].update(closer_margin=-1),
            "closer_margin -1 is no number from 0",
        ),
        (lambda card: card["input"].update(closer_margin="x"), "closer_margin 'x' is no number"),
        (lambda card: card["input"].update(closer_margin=10**400), "closer_margin 1000"),
        (
            lambda card: card["input"].update(closer_margin=math.nan),
            "closer_margin nan is no number",
        ),
        (lambda card: card["input"].update(full=10**400), "full 1000"),
        (lambda card: card["input"].update(min_bands="x"), "min_bands 'x' is no whole number"),
        (lambda card: card["input"].update(limit=math.nan), "limit nan is no number above 0"),
        (lambda card: card["input"].update(full="x"), "full 'x' is no number above 0"),
        (lambda card: card["input"].update(heat="warm"), "heat 'warm' is not one of"),
        (lambda card: card.update(tile_px=512.5), "tile_px 512.5"),
        (lambda card: card.update(overlap_px=1.5), "overlap_px 1.5"),
        (lambda card: card["statistics"].update(std=[-1] * 5), "below 0"),
        (lambda card: card["statistics"]["maximum"].pop(), "a minimum and a maximum"),
    ],
)
def test_a_card_that_makes_no_sense_is_refused(change, fact, path):
    rewrite(path, change)
    assert fact in refusal(load_model, path)
    if fact != "checksum":
        assert fact in refusal(read_card, path)


@pytest.mark.parametrize("backbone", ["tu-hf_hub:someone/some-repo", "tu-local-dir:/etc", "resnet"])
@pytest.mark.parametrize("architecture", ["unet", "upernet", "deeplabv3+"])
def test_a_card_cannot_name_a_place_to_load_a_network_from(
    architecture, backbone, path, monkeypatch
):
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: pytest.fail("the network is asked"))
    card = make_card(architecture=architecture, options={"backbone": backbone})
    save_model(path, card, {"weights": torch.zeros(1)})
    assert "is not one of resnet18" in refusal(load_all, path)


def test_smoke_is_found_in_its_own_place_among_the_classes():
    card = make_card(classes=("smoke", "background"))
    assert (make_card().smoke, card.smoke) == (1, 0)


def fewer_bands(card) -> None:
    card["bands"]["bands"].pop()
    for numbers in card["statistics"].values():
        if isinstance(numbers, list):
            numbers.pop()


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (fewer_bands, "do not belong together"),
        (lambda card: card.update(architecture="gpt"), "'gpt' is not one of"),
        (lambda card: card["options"].update(colour="red"), "no option colour"),
        (lambda card: card["options"].update(tau=math.nan), "tau"),
        (lambda card: card["options"].update(momentum=math.nan), "momentum"),
        (lambda card: card["options"].update(prototypes="three"), "prototypes"),
        (lambda card: card["options"].update(prototypes=4), "do not belong together"),
        (lambda card: card["options"].update(prototypes=10**6), "at most 100"),
        (lambda card: card["options"].update(dim=10**7), "do not belong together"),
        (lambda card: card["options"].update(variant="accuracy"), "do not belong together"),
        (lambda card: card["options"].update(fusion="concat"), "do not belong together"),
        (lambda card: card["options"].update(psr=False, p_router=False), "do not belong together"),
    ],
)
def test_a_card_for_other_weights_is_refused_both_ways(change, fact, path):
    rewrite(path, change)
    assert fact in refusal(load_all, path)


def test_weights_of_a_deeper_network_are_not_cut_short(path):
    deeper = random_network(variant="accuracy")
    save_model(path, make_card(), deeper.state_dict())
    assert "do not belong together" in refusal(load_all, path)


def test_the_common_branch_alone_is_checked_for_its_bands_too(path):
    network = random_network(**ABLATION["bl"])
    options = {"dim": 40, **ABLATION["bl"]}
    save_model(path, make_card(options=options), network.state_dict())
    rewrite(path, fewer_bands)
    assert "has shape (25, 5, 7, 7), not (25, 4, 7, 7)" in refusal(
        lambda: load_model(path).for_inference()
    )
    refusal(load_all, path)


def broadcast(state):
    return {**state, "head.bias": state["head.bias"][:1], "p_router.bias": torch.zeros(1, 1)}


def test_weights_that_would_be_stretched_to_fit_are_refused_both_ways(path, model):
    save_model(path, make_card(), broadcast(model.state_dict()))
    assert "has shape" in refusal(load_all, path)


def test_a_card_cannot_ask_for_thousands_of_channels():
    with pytest.raises(UsageError, match="1001 channels are more than 1000"):
        make_card(1001)
    with pytest.raises(UsageError, match="1002 channels are more than 1000"):
        make_card(501, input={"views": ["measured", "relative"]})
    assert make_card(500, input={"views": ["measured", "relative"]}).channels == 1000


def test_keys_of_a_later_version_are_passed_over(path):
    rewrite(path, lambda card: card.update(colour="red"))
    assert load_model(path).card.name == "tiny"


@pytest.mark.parametrize(
    "changes",
    [
        {"threshold": 1.5},
        {"threshold": math.nan},
        {"tile_px": 64, "overlap_px": 64},
        {"statistics": BandStatistics(("x",), (0.0,), (1.0,), (0.0,), (1.0,), 1)},
    ],
)
def test_a_card_is_checked_when_it_is_made(changes):
    with pytest.raises(UsageError, match=r"^card tiny: .+\.$"):
        make_card(**changes)


# Which file


def test_a_missing_file_is_told_with_what_there_is(tmp_path):
    assert "no such model file" in refusal(load_model, tmp_path / "none.safetensors")
    assert "no such model file" in refusal(load_model, tmp_path)
    assert "cannot be read" in refusal(read_card, tmp_path / "none.safetensors")
    assert "cannot be read" in refusal(read_card, tmp_path)


def test_bundled_models_are_found_by_name(path, monkeypatch):
    monkeypatch.setattr("smokegeo.modelfile.bundled_models", lambda: {"hss": path})
    assert find_model("hss") == path
    assert load_model("hss").card.name == "tiny"
    assert "Bundled models: hss" in refusal(find_model, "mss")


def test_bundled_models_are_all_usable():
    for name, path in bundled_models().items():
        assert read_card(path).name == name
        assert isinstance(load_model(name).for_inference(), FoldedMoP)


@pytest.mark.skipif(os.name != "posix", reason="rights of files are POSIX's")
def test_a_model_file_can_be_read_by_whom_other_files_can(model, tmp_path):
    (tmp_path / "other").write_text("")
    save_model(tmp_path / "m.safetensors", make_card(), model.state_dict())
    assert (tmp_path / "m.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_card_must_say_below_how_many_bands_its_doubt_holds(tmp_path):
    with pytest.raises(UsageError, match="few says not below how many bands"):
        save_toy(tmp_path / "toy.safetensors", training={"few": {"doubt": "less is found"}})
