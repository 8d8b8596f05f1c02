"""The tables in docs/benchmark.md are those of the trainings that are kept beside it."""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(ROOT / "scripts"))
    import benchmark_docs

    yield benchmark_docs
    sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture
def kept():
    return json.loads((ROOT / "docs" / "benchmark" / "hss-600.json").read_text("utf-8"))


def test_the_document_holds_the_tables_of_the_kept_trainings(script):
    text = script.DOCUMENT.read_text("utf-8")
    assert script.filled(text) == text


def test_trainings_are_added_once_and_costs_are_renewed(script, kept):
    some, rest = deepcopy(kept), deepcopy(kept)
    some["runs"], rest["runs"] = kept["runs"][2:], kept["runs"][:4]
    for run in rest["runs"]:
        run["cost"] = {"size_px": 512, "cpu_ms": 1.0}
    both = script.joined(some, rest)
    assert {run["key"] for run in both["runs"]} == {run["key"] for run in kept["runs"]}
    assert len(both["runs"]) == len(kept["runs"])
    assert sum(run["cost"].get("cpu_ms") == 1.0 for run in both["runs"]) == 4
    for run in kept["runs"]:
        run["cost"] = {}
    assert script.joined(both, kept)["runs"] == both["runs"]  # no cost replaces none


def test_a_training_of_mended_code_replaces_the_one_before(script, kept):
    mended = deepcopy(kept)
    mended["runs"] = mended["runs"][:1]
    mended["runs"][0] |= {"key": "another", "minutes": 99.0, "cost": {}}
    both = script.joined(kept, mended)
    assert len(both["runs"]) == len(kept["runs"])
    (found,) = (run for run in both["runs"] if run["key"] == "another")
    assert (found["minutes"], found["cost"]) == (99.0, {})


def test_trainings_under_another_budget_are_refused(script, kept):
    other = deepcopy(kept)
    other["budget"]["iterations"] += 1
    with pytest.raises(SystemExit, match="budget is not the same"):
        script.joined(kept, other)
