"""`smokegeo explain` from options to pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from matplotlib.axes import Axes

from smokegeo.datasets.layout import Layout
from smokegeo.datasets.smoke import split_ids
from smokegeo.datasets.statistics import band_statistics
from smokegeo.modelfile import Card, save_model
from smokegeo.models.config import ABLATION
from smokegeo.models.mop import MoP


@pytest.fixture
def layout(make_dataset) -> Layout:
    return make_dataset(count=10)


@pytest.fixture
def model(layout) -> Path:
    return save(layout, "full")


def save(layout: Layout, name: str, **options) -> Path:
    """Write an untrained MoP."""
    torch.manual_seed(0)
    network = MoP(dim=100, **options)
    statistics = band_statistics(layout, split_ids(layout, "train"), layout.bands)
    path = layout.root.parent / f"{name}.safetensors"
    card = Card(name, "mop", network.config.to_dict(), layout.bands, statistics)
    save_model(path, card, network.state_dict())
    return path


def test_draws_the_figures_and_says_the_main_numbers(run, layout, model, tmp_path):
    out = tmp_path / "figures"
    result = run("explain", model, "--root", layout.root, "--out", out, "--frames", 1)
    assert result.exit_code == 0, result.output
    assert len(list(out.glob("*.png"))) == 4
    assert "wrote 4 figures" in result.stdout
    assert "between bands, individual" in result.stdout
    assert "silhouette" in result.stdout
    again = run("explain", model, "--root", layout.root, "--out", out, "--frames", 1)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr


def test_overwrite_replaces_figures_and_spares_everything_else(run, layout, model, tmp_path):
    out = tmp_path / "mystuff"
    (out / "thesis").mkdir(parents=True)
    chapter = out / "thesis" / "chapter1.txt"
    chapter.write_text("all my work")
    order = ("explain", model, "--root", layout.root, "--out", out, "--frames", 1, "--overwrite")
    refused = run(*order)
    assert refused.exit_code == 2
    assert "thesis" in refused.stderr
    assert chapter.read_text() == "all my work"
    chapter.unlink()
    chapter.parent.rmdir()
    (out / "band_weights_gone.png").write_bytes(b"an older figure")
    done = run(*order)
    assert done.exit_code == 0, done.output
    assert len(list(out.iterdir())) == 4


def test_json_holds_all_numbers_and_nothing_else_is_on_stdout(run, layout, model, tmp_path):
    rival = save(layout, "without", **ABLATION["a"])
    frames = layout.split_ids("val")
    result = run(
        *("explain", model, "--root", layout.root, "--out", tmp_path / "figures", "--json"),
        *("--split", "val", "--frames", frames[0], "--without-psr", rival),
    )
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["split"] == "val"
    assert list(facts["activation"]) == [frames[0]]
    assert set(facts["separation"]) == {"with PSR", "without PSR"}
    assert len(facts["band_weights"]["bands"]) == 25
    assert set(facts["correlation"]["individual"]) == {"between_bands", "within_bands"}


def test_numbers_are_taken_as_the_user_says(run, layout, model, tmp_path):
    def weights(name, *options):
        out = tmp_path / name
        result = run(
            *("explain", model, "--root", layout.root, "--out", out, "--frames", 1, "--json"),
            *options,
        )
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["band_weights"]["background"]

    as_stored = weights("stored")
    assert weights("one", "--scale", 1) == pytest.approx(as_stored, abs=1e-6)
    assert weights("ten", "--scale", 10) != pytest.approx(as_stored, abs=1e-6)


FAULTS = [
    (("--scale", "0"), 2, "not a factor above 0"),
    (("--dataset", "fog"), 2, "'fog' is not one of"),
    (("--frames", "0"), 2, "--frames 0"),
    (("--frames", "nobody"), 2, "no frame nobody"),
    (("--root", "nowhere"), 3, "nowhere"),
    (("--without-psr", "nothing.safetensors"), 4, "no such model"),
]


@pytest.mark.parametrize(("options", "code", "words"), FAULTS)
def test_bad_input_is_one_line_and_leaves_nothing(
    run, layout, model, tmp_path, options, code, words
):
    out = tmp_path / "figures"
    result = run("explain", model, "--root", layout.root, "--out", out, *options)
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error")]) == 1
    assert not out.exists()


def test_a_model_without_routers_is_refused_in_one_line(run, layout, tmp_path):
    plain = save(layout, "plain", **ABLATION["bl"])
    result = run("explain", plain, "--root", layout.root, "--out", tmp_path / "figures")
    assert result.exit_code == 4
    assert "no F-Router" in result.stderr


def test_what_is_told_cannot_steer_the_terminal(run, layout, model, tmp_path):
    out = tmp_path / "figures\x1bc"
    result = run("explain", model, "--root", layout.root, "--out", out, "--frames", 1, "--quiet")
    assert result.exit_code == 0, result.output
    assert "wrote 4 figures" in result.output
    assert "\x1b" not in result.output


def test_legends_have_a_place_of_their_own(run, layout, model, tmp_path, monkeypatch):
    # Looking for the best one takes seconds where a figure holds many pairs, and then it warns.
    places = []
    monkeypatch.setattr(Axes, "legend", lambda self, **options: places.append(options.get("loc")))
    out = tmp_path / "figures"
    run("explain", model, "--root", layout.root, "--out", out, "--frames", 1, "--quiet")
    assert len(places) > 2
    assert all(places)
