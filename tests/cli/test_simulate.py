"""`smokegeo simulate` from options to folders."""

from __future__ import annotations

import json

import pytest

from smokegeo.datasets.layout import load_layout

SMALL = ("--size", "32x24", "--workers", "1")


def test_writes_a_dataset_and_says_what_came_out(run, tmp_path):
    out = tmp_path / "data"
    result = run("simulate", "hss", "--out", out, "--count", 6, *SMALL)
    assert result.exit_code == 0, result.output
    assert "6 frames" in result.stdout
    assert "3/3" in result.stdout
    assert f"Next: smokegeo check {out}" in result.stdout
    assert len(load_layout(out, "hss").frames) == 6


def test_json_is_for_machines(run, tmp_path):
    result = run("simulate", "mss", "--out", tmp_path / "d", "--count", 5, *SMALL, "--json")
    facts = json.loads(result.stdout)
    assert facts["frames"] == 5
    assert set(facts["agreement"]) == {"3", "2", "1"}
    assert sum(facts["scales"].values()) == 5


def test_scenarios_restrict_the_frames(run, tmp_path):
    options = ("--scenario", "low_visibility", "--scenario", "early_stage")
    run("simulate", "mss", "--out", tmp_path / "d", "--count", 5, *SMALL, *options)
    frames = load_layout(tmp_path / "d").frames
    assert {frame.scenarios for frame in frames} == {("low_visibility", "early_stage")}


def test_writes_one_scene_with_its_truth(run, tmp_path):
    out = tmp_path / "scene"
    result = run("simulate", "satellite", "--out", out, "--scene", "96x64", "--seed", 1)
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in out.iterdir()) == ["mask.tif", "scene.tif", "truth.geojson"]
    assert "96x64" in result.stdout
    assert "truth.geojson in QGIS" in result.stdout


FAULTS = [
    (("--count", "0"), 2, "count 0"),
    (("--size", "8x40"), 2, "8x40"),
    (("--size", "large"), 2, "'large' is not a size"),
    (("--scenario", "fog"), 2, "'fog' is not known"),
    (("--workers", "0"), 2, "--workers 0"),
    (("--seed", "-1"), 2, "seed -1"),
    (("--scene", "90x90", "--size", "40x40"), 2, "--scene takes"),
    (("--scene", "90x90", "--count", "20"), 2, "--scene takes"),
    (("--scene", "90x90", "--workers", "2"), 2, "--scene takes"),
    (("--scene", "4x4"), 2, "4x4"),
    (("--backgrounds", "nowhere"), 3, "nowhere is not a folder"),
    (("--count", "999999999999"), 5, "GB needed"),
]


@pytest.mark.parametrize(("options", "code", "words"), FAULTS)
def test_bad_input_is_one_line_and_leaves_nothing(run, tmp_path, options, code, words):
    out = tmp_path / "data"
    result = run("simulate", "hss", "--out", out, *options)
    assert result.exit_code == code, result.output
    assert words in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error")]
    assert len(errors) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_existing_dataset_is_replaced_only_if_asked(run, tmp_path):
    order = ("simulate", "hss", "--out", tmp_path / "data", *SMALL, "--count")
    assert run(*order, 1).exit_code == 0
    refused = run(*order, 3)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert run(*order, 3, "--overwrite").exit_code == 0
    assert len(load_layout(tmp_path / "data").frames) == 3


@pytest.mark.parametrize("options", [("--count", 1, *SMALL), ("--scene", "32x32")])
def test_overwrite_spares_what_was_not_simulated(run, tmp_path, options):
    (tmp_path / "thesis.tex").write_text("years of work")
    result = run("simulate", "hss", "--out", tmp_path, *options, "--overwrite")
    assert result.exit_code == 2
    assert "stays as it is. Choose another folder." in result.stderr
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("where", [".", "images"])
def test_overwrite_spares_the_backgrounds(run, tmp_path, where):
    out = tmp_path / "data"
    order = ("simulate", "hss", "--out", out, "--count", 1, *SMALL)
    run(*order)
    result = run(*order, "--backgrounds", out / where, "--overwrite")
    assert result.exit_code == 2
    assert f"lies in --out {out}" in result.stderr
    assert (out / "images" / "hss-00000.tif").exists()


def test_a_split_without_frames_is_told(run, tmp_path):
    result = run("simulate", "hss", "--out", tmp_path / "d", "--count", 1, *SMALL)
    assert "no frame is in val and test" in result.stderr
