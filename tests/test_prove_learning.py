"""The proof by learning: its rules, its table, and that it goes on where it stopped."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from smokegeo.metrics import count

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "prove_learning.py"


@pytest.fixture
def proof(monkeypatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("prove_learning", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks itself up there.
    monkeypatch.setitem(sys.modules, "prove_learning", module)
    spec.loader.exec_module(module)
    logger = logging.getLogger("smokegeo")
    kept, level = logger.handlers[:], logger.level
    yield module
    logger.handlers[:] = kept
    logger.setLevel(level)


def test_rule_scores_agree_with_the_metrics(proof):
    rng = np.random.default_rng(0)
    values, levels = rng.random((20, 30)), np.array([0.1, 0.5, 0.9])
    labels = rng.choice([0, 1, 255], (20, 30))
    found = proof.rule_scores(values, labels, levels)
    for position, level in enumerate(levels):
        assert found[0, position] == pytest.approx(count(values >= level, labels).f1)
        assert found[1, position] == pytest.approx(count(values < level, labels).f1)


def test_an_image_without_smoke_has_no_score_where_nothing_is_called_smoke(proof):
    scores = proof.rule_scores(np.full((2, 2), 0.5), np.zeros((2, 2)), np.array([0.2, 0.8]))
    np.testing.assert_equal(scores, [[0, np.nan], [np.nan, 0]])


@pytest.mark.parametrize("above", [True, False])
def test_the_best_rule_finds_the_band_that_shows_the_smoke(proof, above):
    rng = np.random.default_rng(0)
    samples = []
    for number in range(3):
        labels = (rng.random((16, 16)) < 0.3).astype(np.uint8)
        image = rng.random((4, 16, 16))
        image[2] = 0.4 * image[2] + 0.6 * (labels == above)
        samples.append((str(number), image, labels))
    rule = proof.best_rule(samples, np.tile(np.linspace(0, 1, 11)[1:-1], (4, 1)))
    assert (rule.band, rule.above) == (2, above)
    assert rule.level == pytest.approx(0.5, abs=0.11)
    found = proof.score(samples, {"rule": rule, "none": proof.nothing, "all": proof.everything})
    assert found["rule"]["total"]["f1_image"] == 1
    assert found["none"]["total"]["f1_image"] == 0
    assert 0.3 < found["all"]["total"]["f1_image"] < 0.6


def test_a_cell_has_the_mean_and_the_range_of_several_seeds(proof):
    assert proof.cell([0.5]) == "50.0"
    assert proof.cell([0.5, 0.6, None]) == "55.0 (50.0 to 60.0)"
    assert proof.cell([None]) == "-"


def test_results_replace_what_is_between_the_markers(proof):
    text = f"before\n{proof.START}\nold\n{proof.END}\nafter\n"
    once = proof.filled(text, "new\n")
    assert once == f"before\n{proof.START}\n\nnew\n\n{proof.END}\nafter\n"
    assert proof.filled(once, "new") == once
    with pytest.raises(ValueError, match="markers"):
        proof.filled("no markers", "new")


def test_the_document_has_the_markers(proof):
    assert "RESULTS" in proof.filled(proof.DOCUMENT.read_text("utf-8"), "RESULTS")


def test_quick_changes_defaults_but_not_what_is_given(proof):
    assert proof.parse(["--quick"]).iterations == proof.QUICK["iterations"]
    assert proof.parse(["--quick", "--iterations", "7"]).iterations == 7


def test_rows_differ_in_their_parts_alone(proof, tmp_path):
    options = proof.parse(["--rescale"])
    plain = [proof.budget(row, 3, tmp_path, options).to_dict() for row in proof.ABLATION]
    switches = [config.pop("options") for config in plain]
    assert all(config == plain[0] for config in plain)
    assert [bool(s.get("rescale")) for s in switches] == [False, False, False, True, True, True]
    assert "momentum" in switches[-1]
    assert "momentum" not in switches[0]


def test_another_budget_never_takes_the_results_of_this_one(proof, make_dataset):
    root = make_dataset(count=5).root
    names = {
        proof.fingerprint(proof.budget("e", 0, root, proof.parse(words)), root)
        for words in ([], ["--iterations", "9"], ["--lr", "1"], ["--momentum", "0.5"])
    }
    assert len(names) == 4


def test_an_interrupted_training_is_resumed_and_its_time_kept(
    proof, make_dataset, tmp_path, monkeypatch, capsys
):
    resumed = []

    def interrupted(config, out, machine, *, resume):
        resumed.append(resume)
        (out / "checkpoints").mkdir(parents=True, exist_ok=True)
        (out / "checkpoints" / "last.ckpt").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(proof, "train", interrupted)
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(proof.time, "monotonic", lambda: float(next(clock)))
    words = ["--data", make_dataset().root, "--work", tmp_path / "work", "--rows", "e"]
    assert [proof.main([str(word) for word in words]) for _ in range(2)] == [130, 130]
    assert resumed == [False, True]
    (kept,) = (tmp_path / "work").glob("e-0-*/seconds.txt")
    assert float(kept.read_text()) == 20
    assert "goes on" in capsys.readouterr().err


def test_unusable_data_are_one_line(proof, tmp_path, capsys):
    (tmp_path / "checksums.sha256").touch()
    words = ["--data", str(tmp_path), "--work", str(tmp_path / "work")]
    assert proof.main(words) == 3
    assert capsys.readouterr().err.count("Error: ") == 1


@pytest.mark.slow
def test_a_tiny_budget_gives_a_table_and_is_not_repeated(proof, tmp_path, monkeypatch, capsys):
    document = tmp_path / "learning.md"
    document.write_text(f"# Page\n{proof.START}\n{proof.END}\n")
    monkeypatch.setattr(proof, "DOCUMENT", document)
    monkeypatch.setattr(proof, "ROOT", tmp_path)
    words = (
        f"--work {tmp_path / 'work'} --count 12 --size 64x48 --iterations 2 --crop 32 "
        "--batch-size 2 --rows bl e --seeds 0 --write-docs"
    ).split()
    assert proof.main(words) == 0
    table = capsys.readouterr().out
    assert "| bl | common branch only |" in table
    assert "| e | all" in table
    assert "| no learning | all background | " in table
    assert table.strip() in document.read_text()
    facts = json.loads((tmp_path / "work" / "results.json").read_text())
    assert [run["row"] for run in facts["runs"]] == ["bl", "e"]
    assert facts["runs"][0]["parameters"] < facts["runs"][1]["parameters"]
    assert sum(facts["frames"].values()) == 12

    def never(*args, **kwargs):
        raise AssertionError("trained again")

    monkeypatch.setattr(proof, "train", never)
    assert proof.main(words) == 0
    assert capsys.readouterr().out == table
