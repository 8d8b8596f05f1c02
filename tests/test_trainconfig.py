"""The settings of a training: what is understood, and what is refused in one line."""

from __future__ import annotations

from dataclasses import fields

import pytest
import yaml

from smokegeo.errors import UsageError
from smokegeo.trainconfig import TrainConfig


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("dataset: fog", "dataset 'fog' is not one of"),
        ("dataset: [hss]", "is not a word"),
        ("dataset: 3", "is not a word"),
        ("model: resnet", "model 'resnet' is not one of"),
        ("model: [mop]", "is not a word"),
        ("root: 5", "root 5 is not a folder"),
        ("options: [a]", "options"),
        ("options: {3: 4}", "options"),
        ("bands: 600nm", "bands '600nm' is not a list of names"),
        ("bands: [600]", "is not a list of names"),
        ("bands: []", "leave it out"),
        ("iterations: 0", "iterations 0 must be 1 or more"),
        ("iterations: many", "iterations 'many' is not a whole number"),
        ("iterations: 2.5", "iterations 2.5 is not a whole number"),
        ("iterations: true", "is not a whole number"),
        ("iterations:", "iterations None is not a whole number"),
        ("batch_size: 0", "must be 1 or more"),
        ("crop_px: -4", "must be 1 or more"),
        ("patch_px: 0", "patch_px 0 must be 1 or more"),
        ("patience: 0", "must be 1 or more"),
        ("val_every: 0", "must be 1 or more"),
        ("warmup: -3", "warmup -3 must be 0 or more"),
        ("seed: -1", "seed -1 must be 0 or more"),
        ("seed: 9223372036854775808", "too large"),
        ("scale: 2", "scale 2 is not two numbers"),
        ("scale: [2.0, 0.5]", "the smaller number first"),
        ("scale: [0, 0]", "above 0"),
        ("scale: [a, b]", "scale 'a' is not a number"),
        ("lr: 0", "lr 0.0 must be above 0"),
        ("lr: -1", "must be above 0"),
        ("lr: .nan", "is not a number"),
        ("lr: .inf", "is not a number"),
        ("lr: [1]", "is not a number"),
        ("weight_decay: -1", "must be 0 or more"),
        ("power: abc", "power 'abc' is not a number"),
        ("prototype_weight: -1", "must be 0 or more"),
        ("band_dropout: 1.0", "band_dropout 1.0"),
        ("by_scene: perhaps", "by_scene 'perhaps' is not true or false"),
        ("speed: 3", "no option speed"),
        ("{3: 4, speed: 1}", "no option 3, speed"),
    ],
)
def test_meaningless_settings_are_refused_in_one_line(text, fact):
    with pytest.raises(UsageError, match=fact) as caught:
        TrainConfig.from_dict(yaml.safe_load(text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("lr: 6e-5", "lr", 6e-5),  # which YAML reads as text
        ("iterations: 4e4", "iterations", 40_000),
        ("iterations: 2.0", "iterations", 2),
        ("weight_decay: 1", "weight_decay", 1.0),
        ("scale: [5e-1, 2]", "scale", (0.5, 2.0)),
        ("bands: [600nm]", "bands", ("600nm",)),
        ("options:", "options", {}),
        ("patch_px:", "patch_px", None),
    ],
)
def test_settings_have_the_type_of_their_field_however_yaml_reads_them(text, name, value):
    found = getattr(TrainConfig.from_dict(yaml.safe_load(text)), name)
    assert found == value
    assert type(found) is type(value)


def test_settings_survive_a_yaml_file():
    config = TrainConfig(bands=("a", "b"), options={"variant": "accuracy"}, patience=3)
    kept = yaml.safe_load(yaml.safe_dump(config.to_dict()))
    assert set(kept) == {item.name for item in fields(TrainConfig)}
    assert TrainConfig.from_dict(kept) == config
