"""The budget all methods share: read, refused, and turned into steps."""

from __future__ import annotations

import time

import pytest

from smokegeo.benchmark.budget import Budget, steps_within, with_steps
from smokegeo.datasets.datamodule import EndlessSamples
from smokegeo.errors import UsageError
from smokegeo.train import Machine, TrainConfig

CPU = Machine(accelerator="cpu", devices="1")


@pytest.fixture
def config(make_dataset):
    root = str(make_dataset(10, "mss").root)
    return TrainConfig("mss", root, model="fcn", batch_size=1, crop_px=32)


def test_the_papers_is_the_recipe_train_has_by_default():
    budget, recipe = Budget.parse("paper"), TrainConfig()
    assert budget.is_papers
    assert (budget.iterations, budget.batch) == (recipe.iterations, recipe.batch_size)
    assert (budget.crop, budget.lr, budget.warmup) == (recipe.crop_px, recipe.lr, recipe.warmup)


def test_settings_are_read_and_the_rest_stays_the_papers():
    budget = Budget.parse("iterations=600, crop=96,lr=5e-4")
    assert budget == Budget(iterations=600, crop=96, lr=5e-4)
    assert not budget.is_papers
    assert "600 iterations of 4 crops of 96 pixels" in budget.words()
    assert "as 2.5 minutes hold" in Budget.parse("minutes=2.5").words()


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("fast", "'fast' is not understood"),
        ("speed=3", "iterations, minutes, batch, crop"),
        ("crop=big", "crop 'big' is not a number"),
        ("crop=1.5", "crop '1.5' is not a number"),
        ("iterations=0", "iterations 0 must be 1 or more"),
        ("lr=0", "lr 0.0 must be above 0"),
        ("minutes=inf", "minutes inf must be above 0"),
        ("minutes=nan", "minutes nan must be above 0"),
        ("momentum=2", "momentum 2.0 is not in 0 to 1"),
        ("minutes=3,iterations=4", "iterations or minutes, not both"),
        ("", "is not understood"),
    ],
)
def test_what_makes_no_sense_is_refused(text, fact):
    with pytest.raises(UsageError, match=fact):
        Budget.parse(text)


def test_validation_happens_a_few_times_whatever_the_length():
    assert with_steps(TrainConfig(), 3).val_every == 1
    assert with_steps(TrainConfig(), 600).val_every == 120
    assert with_steps(TrainConfig(), 40_000).val_every == 1000


def test_more_minutes_hold_more_steps(config):
    assert steps_within(1e-9, config, CPU) == 1
    assert steps_within(1.0, config, CPU) > 10


def test_an_interrupt_while_timing_stays_one(config, monkeypatch):
    def stop(self, number):
        raise KeyboardInterrupt

    monkeypatch.setattr(EndlessSamples, "__getitem__", stop)
    with pytest.raises(KeyboardInterrupt):
        steps_within(1.0, config, CPU)


def test_loading_takes_its_share_of_the_minutes(config, monkeypatch):
    real = EndlessSamples.__getitem__

    def slow(self, number):
        time.sleep(0.5)
        return real(self, number)

    monkeypatch.setattr(EndlessSamples, "__getitem__", slow)
    assert steps_within(1.0, config, CPU) <= 120
