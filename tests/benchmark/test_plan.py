"""Which trainings a list of models stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from smokegeo.benchmark.budget import Budget
from smokegeo.benchmark.plan import Entry, Plan, choose
from smokegeo.errors import UsageError
from smokegeo.models.baselines.catalog import METHODS
from smokegeo.models.config import ABLATION

BOTH = ("realtime", "accuracy")


def test_all_is_what_the_papers_tables_have():
    entries = choose(["all"], BOTH)
    main = {(e.model, e.variant) for e in entries if e.row in (None, "e")}
    assert {m for m, v in main if v == "accuracy"} == set(METHODS)
    assert {m for m, v in main if v == "realtime"} == set(METHODS) - {"mask2former", "trans-bvm"}
    assert [e.row for e in entries if e.row not in (None, "e")] == ["bl", "a", "b", "c", "d"]
    assert all(e.variant == "accuracy" for e in entries if e.row not in (None, "e"))


def test_a_method_that_is_named_comes_in_every_variant_wanted():
    assert choose(["mask2former"], ["realtime"]) == (Entry("mask2former", "realtime"),)
    assert [e.variant for e in choose(["fosp"], BOTH)] == ["realtime", "accuracy"]


def test_mop_is_trained_once_though_it_is_a_row_of_two_tables():
    entries = choose(["mop", "ablation"], ["realtime"])
    assert len(entries) == len(ABLATION)
    assert len({e.name for e in entries}) == len(entries)


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(UsageError, match="'vgg' is not one of pspnet"):
        choose(["vgg"], BOTH)
    with pytest.raises(UsageError, match=r"'unet' \(it has no variants\)"):
        choose(["unet"], BOTH)
    with pytest.raises(UsageError, match="'huge' is not one of"):
        choose(["mop"], ["huge"])
    with pytest.raises(UsageError, match="nothing to compare"):
        Plan("hss", Path(), choose([], BOTH))


def test_all_but_the_network_is_the_same_for_all():
    budget = Budget(iterations=70, batch=3, crop=64, lr=1e-3, warmup=7, momentum=0.9)
    plan = Plan("mss", Path("d"), choose(["all"], BOTH), budget)
    configs = [plan.config(entry, 5).to_dict() for entry in plan.entries]
    networks = {(config.pop("model"), str(config.pop("options"))) for config in configs}
    assert len(networks) == len(configs)
    assert all(config == configs[0] for config in configs)
    assert (configs[0]["iterations"], configs[0]["seed"], configs[0]["warmup"]) == (70, 5, 7)


def test_the_momentum_goes_to_those_that_have_prototypes():
    having = {
        (e.model, e.row) for e in choose(["all"], BOTH) if "momentum" in e.options(momentum=0.9)
    }
    assert having == {("protoseg", None), ("mop", "b"), ("mop", "d"), ("mop", "e")}
