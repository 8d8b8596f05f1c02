"""The switches of MoP: what they may be, what they refuse, the widths that follow."""

import math

import pytest
import torch

from smokegeo.errors import UsageError
from smokegeo.models.config import ABLATION, MoPConfig


def test_the_defaults_are_the_papers_network():
    config = MoPConfig()
    assert (config.bands, config.prototypes, config.dim, config.classes) == (25, 3, 250, 2)
    assert (config.momentum, config.tau, config.fusion) == (0.999, 0.1, "mean")
    assert config.stage_widths == (1, 2, 5, 8)
    assert (config.groups, config.band_dim, config.feature_dim) == (25, 10, 250)
    assert config.depths == (2, 2, 2, 2)
    assert MoPConfig(variant="accuracy").depths == (3, 4, 16, 3)


@pytest.mark.parametrize(
    ("bands", "widths", "band_dim"),
    [
        (25, (1, 2, 5, 8), 10),
        (13, (2, 4, 10, 15), 19),
        (8, (3, 6, 16, 25), 31),
        (4, (6, 12, 31, 50), 62),
        (3, (8, 17, 42, 67), 83),
        (1, (25, 50, 125, 200), 250),
    ],
)
def test_total_width_stays_near_the_papers_for_any_number_of_bands(bands, widths, band_dim):
    config = MoPConfig(bands=bands)
    assert config.stage_widths == widths
    assert config.band_dim == band_dim
    assert config.feature_dim == bands * band_dim


@pytest.mark.parametrize(
    ("bands", "widths"), [(25, (1, 2, 5, 8)), (13, (1, 3, 7, 11)), (8, (2, 4, 9, 14))]
)
def test_equal_capacity_follows_the_square_root(bands, widths):
    assert MoPConfig(bands=bands, width_rule="equal").stage_widths == widths


@pytest.mark.parametrize("bands", [1, 2, 25, 61, 62, 63, 64, 100, 224, 425])
def test_every_band_is_in_one_group_of_neighbours_with_four_channels_at_least(bands):
    config = MoPConfig(bands=bands)
    members = config.group_members()
    assert [band for group in members for band in group] == list(range(bands))
    sizes = {len(group) for group in members}
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    assert len(members) == config.groups == min(bands, 62)
    assert config.band_dim >= 4
    assert torch.equal(config.membership().sum(dim=1), torch.ones(bands))


def test_band_groups_are_obeyed_even_where_they_leave_few_channels():
    config = MoPConfig(dim=50, band_groups=25)  # the paper's smallest D
    assert (config.groups, config.band_dim) == (25, 2)
    assert MoPConfig(bands=10, band_groups=3).group_members() == (
        (0, 1, 2),
        (3, 4, 5, 6),
        (7, 8, 9),
    )


@pytest.mark.parametrize(
    "switches",
    [
        {"p_router": True, "psr": False},
        {"p_router": True, "f_router": False},
        {"band_split": False},
        {"band_split": False, "p_router": False, "psr": False, "fusion": "common"},
        {"band_split": False, "p_router": False, "f_router": False, "fusion": "common"},
        {"band_split": False, "p_router": False, "f_router": False, "psr": False},
        {**ABLATION["bl"], "fusion": "spectral"},
        {"fusion": "common"},
        {"psr": False, "p_router": False, "prototype_update": "gradient"},
        {"psr": False, "p_router": False, "update_correct_only": True},
        {"prototype_update": "none", "update_correct_only": True},
        {**ABLATION["a"], "rescale": True},
        {**ABLATION["d"], "shared_p_router": False},
    ],
)
def test_a_combination_in_which_a_part_has_no_use_is_refused(switches):
    with pytest.raises(UsageError, match=r"^MoP: .+\.$"):
        MoPConfig(**switches)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bands", 0),
        ("bands", "25"),
        ("bands", 2.5),
        ("bands", True),
        ("prototypes", 0),
        ("dim", -1),
        ("classes", 1),
        ("variant", "fast"),
        ("variant", None),
        ("fusion", "max"),
        ("prototype_update", "sgd"),
        ("width_rule", "wide"),
        ("momentum", 1.5),
        ("momentum", math.nan),
        ("tau", 0.0),
        ("tau", math.nan),
        ("tau", math.inf),
        ("drop_path", math.nan),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("band_split", "yes"),
        ("psr", 1),
        ("band_groups", 0),
        ("band_groups", 26),
        ("band_groups", "4"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_name(name, value):
    with pytest.raises(UsageError) as caught:
        MoPConfig(**{name: value})
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert name in text or "groups" in text


def test_whole_numbers_serve_where_numbers_are_wanted():
    assert MoPConfig(momentum=1, dropout=0).momentum == 1


def test_a_configuration_survives_plain_values_and_refuses_unknown_ones():
    config = MoPConfig(bands=4, variant="accuracy", fusion="concat", band_groups=2)
    assert MoPConfig.from_dict(config.to_dict()) == config
    with pytest.raises(UsageError, match="no option colour, size"):
        MoPConfig.from_dict({"size": 1, "colour": 2, "bands": 4})


@pytest.mark.parametrize("row", ABLATION)
def test_every_row_of_the_ablation_table_is_a_configuration(row):
    assert MoPConfig(**ABLATION[row])
