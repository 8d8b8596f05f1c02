from collections import Counter

import pytest

from smokegeo.datasets.layout import SCENE_SCENARIOS, SMOKE_SCENARIOS
from smokegeo.errors import UsageError
from smokegeo.simulate.scenarios import (
    FRAMES_PER_VIDEO,
    SCENE_COUNTS,
    SCENES,
    SMOKE_COUNTS,
    SMOKES,
    cast_frame,
)


def test_each_scenario_of_the_layout_has_a_preset():
    assert tuple(SCENES) == SCENE_SCENARIOS
    assert tuple(SMOKES) == SMOKE_SCENARIOS
    assert sum(SCENE_COUNTS.values()) == sum(SMOKE_COUNTS.values()) == 1007


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [20, 100, 1007])
def test_frames_have_the_papers_shares_even_if_few(seed, count):
    cast = [cast_frame(i, seed) for i in range(count)]
    smokes = Counter(c.smoke for c in cast)
    scenes = Counter(c.scene for c in cast)
    for name, share in SMOKE_COUNTS.items():
        assert abs(smokes[name] - count * share / 1007) <= 2
    for name, share in SCENE_COUNTS.items():
        assert abs(scenes[name] - count * share / 1007) <= 2 * FRAMES_PER_VIDEO


def test_frames_of_a_video_share_scene_but_not_smoke():
    cast = [cast_frame(i, 1) for i in range(40)]
    by_video = {c.video: {d.scene for d in cast if d.video == c.video} for c in cast}
    assert all(len(scenes) == 1 for scenes in by_video.values())
    assert len({c.smoke for c in cast if c.video == 0}) > 1
    assert [c.moment for c in cast[:FRAMES_PER_VIDEO]] == list(range(FRAMES_PER_VIDEO))


def test_another_seed_is_another_cast():
    assert [cast_frame(i, 0).smoke for i in range(30)] != [
        cast_frame(i, 1).smoke for i in range(30)
    ]


def test_scenarios_can_be_restricted_by_group():
    cast = [cast_frame(i, 0, ["low_visibility", "early_stage", "complex_shape"]) for i in range(40)]
    assert {c.scene for c in cast} == {"low_visibility"}
    assert {c.smoke for c in cast} == {"early_stage", "complex_shape"}
    assert {cast_frame(i, 0, ["early_stage"]).scene for i in range(60)} == set(SCENE_SCENARIOS)


def test_an_unknown_scenario_is_refused():
    with pytest.raises(UsageError, match="fog"):
        cast_frame(0, 0, ["fog"])
