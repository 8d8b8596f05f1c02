"""Splits: disjoint, complete, seeded, in the paper's shares, by whole scenes if asked."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smokegeo.datasets.splits import DEFAULT_RATIO, RATIOS, check_splits, make_splits
from smokegeo.errors import InputError, UsageError

SPLITS = ("train", "val", "test")
modest = settings(deadline=None, max_examples=100)

ids = st.lists(st.text("abcdef0123456789", min_size=1, max_size=6), unique=True, max_size=80)
ratios = st.sampled_from([(6, 2, 2), (8, 1, 1), (1, 1, 1), (7.5, 1.5, 1), (1, 0, 0), (9, 0, 1)])
seeds = st.integers(0, 1000)


def flat(splits):
    return [i for split in SPLITS for i in splits[split]]


def frames(count):
    return [f"f{i:04}" for i in range(count)]


class TestByFrame:
    @modest
    @given(ids, ratios, seeds)
    def test_every_frame_is_in_exactly_one_split(self, ids, ratios, seed):
        splits = make_splits(ids, ratios, seed)
        assert tuple(splits) == SPLITS
        assert sorted(flat(splits)) == sorted(ids)

    @modest
    @given(ids, ratios, seeds)
    def test_shares_are_kept_within_rounding(self, ids, ratios, seed):
        splits = make_splits(ids, ratios, seed)
        owed = 1 if len(ids) >= 8 else 2  # few frames go first to splits that had none
        for split, ratio in zip(SPLITS, ratios, strict=True):
            assert abs(len(splits[split]) - len(ids) * ratio / sum(ratios)) <= owed
            assert ratio or not splits[split]

    @pytest.mark.parametrize("ratios", [(6, 2, 2), (8, 1, 1), (98, 1, 1)])
    @pytest.mark.parametrize("count", range(3, 30))
    def test_no_split_is_empty_from_three_frames_on(self, ratios, count):
        splits = make_splits(frames(count), ratios)
        assert all(splits.values())
        assert len(splits["train"]) == max(map(len, splits.values()))

    @modest
    @given(ids, ratios, seeds, st.randoms(use_true_random=False))
    def test_the_order_of_the_ids_does_not_matter(self, ids, ratios, seed, rng):
        shuffled = list(ids)
        rng.shuffle(shuffled)
        assert make_splits(shuffled, ratios, seed) == make_splits(ids, ratios, seed)

    def test_the_seed_decides(self):
        assert make_splits(frames(50), seed=1) == make_splits(frames(50), seed=1)
        assert make_splits(frames(50), seed=1) != make_splits(frames(50), seed=2)

    def test_a_split_is_not_a_stretch_of_neighbouring_frames(self):
        assert make_splits(frames(100))["train"] != tuple(frames(100)[:60])

    def test_the_global_random_state_is_left_alone(self):
        random.seed(5)
        expected = random.random()
        random.seed(5)
        make_splits(frames(10))
        assert random.random() == expected

    @pytest.mark.parametrize(
        ("kind", "count", "sizes"),
        [("hss", 1000, (600, 200, 200)), ("mss", 1000, (800, 100, 100)), ("hss", 10, (6, 2, 2))],
    )
    def test_the_papers_shares(self, kind, count, sizes):
        splits = make_splits(frames(count), RATIOS[kind])
        assert tuple(len(splits[split]) for split in SPLITS) == sizes

    def test_default_shares_are_those_of_hss(self):
        assert tuple(RATIOS["hss"]) == DEFAULT_RATIO

    @pytest.mark.parametrize("bad", [(), (1, 1), (1, 1, 1, 1), (0, 0, 0), (2, -1, 1)])
    def test_shares_that_make_no_sense_are_refused(self, bad):
        with pytest.raises(UsageError, match="three shares"):
            make_splits(frames(10), bad)

    def test_ids_that_repeat_are_refused(self):
        with pytest.raises(InputError, match=r"not unique.*\. Rename some"):
            make_splits(["a", "b", "a"])


@st.composite
def scenes(draw):
    sizes = draw(st.lists(st.integers(1, 12), min_size=3, max_size=15))
    return {f"s{k}-{n}": f"s{k}" for k, size in enumerate(sizes) for n in range(size)}


class TestByScene:
    @modest
    @given(scenes(), st.sampled_from([(6, 2, 2), (8, 1, 1), (1, 1, 1)]), seeds)
    def test_scenes_never_straddle_and_no_frame_is_lost(self, scene_of, ratios, seed):
        splits = make_splits(list(scene_of), ratios, seed, scene_of)
        assert sorted(flat(splits)) == sorted(scene_of)
        owners = {}
        for split in SPLITS:
            for i in splits[split]:
                owners.setdefault(scene_of[i], set()).add(split)
        assert all(len(owner) == 1 for owner in owners.values())

    @modest
    @given(scenes(), seeds)
    def test_no_split_is_empty(self, scene_of, seed):
        assert all(make_splits(list(scene_of), (8, 1, 1), seed, scene_of).values())

    @modest
    @given(scenes(), seeds, st.randoms(use_true_random=False))
    def test_the_order_of_the_ids_does_not_matter(self, scene_of, seed, rng):
        shuffled = list(scene_of)
        rng.shuffle(shuffled)
        assert make_splits(shuffled, seed=seed, scenes=scene_of) == make_splits(
            list(scene_of), seed=seed, scenes=scene_of
        )

    @pytest.mark.parametrize("ratios", [(6, 2, 2), (8, 1, 1)])
    def test_shares_are_kept_within_the_largest_scene(self, ratios):
        scene_of = {f"s{k}-{n}": f"s{k}" for k in range(40) for n in range(1 + k % 7)}
        splits = make_splits(list(scene_of), ratios, 0, scene_of)
        for split, ratio in zip(SPLITS, ratios, strict=True):
            assert abs(len(splits[split]) - len(scene_of) * ratio / 10) <= 7

    def test_the_seed_decides(self):
        scene_of = {f"s{k}-{n}": f"s{k}" for k in range(20) for n in range(3)}
        one, same, other = (
            make_splits(list(scene_of), seed=seed, scenes=scene_of) for seed in (1, 1, 2)
        )
        assert one == same
        assert one != other

    def test_a_split_with_no_share_stays_empty(self):
        scene_of = {f"s{k}": f"s{k}" for k in range(10)}
        assert make_splits(list(scene_of), (8, 0, 2), 0, scene_of)["val"] == ()

    def test_too_few_scenes_are_refused(self):
        scene_of = {"a": "one", "b": "one", "c": "two"}
        with pytest.raises(InputError, match="2 scenes cannot be dealt into 3 splits"):
            make_splits(list(scene_of), scenes=scene_of)


class TestShippedLists:
    def test_good_lists_pass_even_if_they_leave_frames_out(self):
        check_splits({"train": ["a"], "val": [], "test": ["b"]}, ["a", "b", "c"])

    @modest
    @given(ids, ratios, seeds)
    def test_our_own_splits_pass(self, ids, ratios, seed):
        check_splits(make_splits(ids, ratios, seed), ids)

    def test_a_frame_in_two_lists_is_refused(self):
        with pytest.raises(InputError, match=r"a is in both splits train and test\. List it once"):
            check_splits({"train": ["a"], "test": ["b", "a"]}, ["a", "b"])

    def test_a_frame_nobody_has_is_refused(self):
        with pytest.raises(
            InputError, match=r"splits/val\.txt names unknown frames: z\. Take them"
        ):
            check_splits({"train": ["a"], "val": ["z"]}, ["a"])


def test_an_id_listed_twice_or_without_scene_is_refused():
    with pytest.raises(InputError, match=r"frame a is twice in the split train\. List it once"):
        check_splits({"train": ["a", "a"]}, ["a"])
    with pytest.raises(InputError, match=r"without a scene .* b\. Split by frame"):
        make_splits(["a", "b"], scenes={"a": "one"})


def test_ratios_that_are_no_numbers_are_refused():
    with pytest.raises(UsageError, match="not three shares"):
        make_splits(["a"], (float("nan"), 1, 1))
