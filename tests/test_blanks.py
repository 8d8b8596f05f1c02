"""Where a scene holds nothing, the network sees what lies beside it, mirrored."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smokegeo.blanks import fill_blanks


def line(*values: float) -> np.ndarray:
    return np.array([[values]], np.float32)


@pytest.mark.parametrize(
    ("values", "valid", "seen"),
    [
        ([0, 0, 1, 2, 3], [0, 0, 1, 1, 1], [3, 2, 1, 2, 3]),
        ([1, 2, 3, 0, 0], [1, 1, 1, 0, 0], [1, 2, 3, 2, 1]),
        ([0, 0, 0, 0, 7], [0, 0, 0, 0, 1], [7, 7, 7, 7, 7]),  # nothing lies behind it
        ([0, 0, 5, 7], [0, 0, 1, 1], [5, 7, 5, 7]),
        ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [1, 2, 3, 4, 5]),
        ([9, 9, 9, 9, 9], [0, 0, 0, 0, 0], [9, 9, 9, 9, 9]),  # nothing to mirror
    ],
)
def test_the_picture_is_mirrored_at_its_edge(values, valid, seen):
    channels = line(*values)
    fill_blanks(channels, np.array([valid], bool))
    assert channels[0, 0].tolist() == seen


def test_a_margin_is_what_padding_by_reflection_makes():
    inner = np.random.default_rng(0).normal(size=(3, 20, 30)).astype(np.float32)
    channels = np.zeros((3, 28, 42), np.float32)
    valid = np.zeros((28, 42), bool)
    channels[:, 4:24, 6:36], valid[4:24, 6:36] = inner, True
    fill_blanks(channels, valid)
    expected = np.pad(inner, ((0, 0), (4, 4), (6, 6)), mode="reflect")
    np.testing.assert_array_equal(channels, expected)


@given(hnp.arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12))), st.integers(0, 99))
def test_valid_pixels_stay_and_all_others_take_values_of_theirs(valid, seed):
    channels = np.random.default_rng(seed).normal(size=(2, *valid.shape)).astype(np.float32)
    channels[:, ~valid] = np.nan
    before = channels.copy()
    fill_blanks(channels, valid)
    np.testing.assert_array_equal(channels[:, valid], before[:, valid])
    if valid.any():
        whole = {tuple(pixel) for pixel in before[:, valid].T}  # all channels of one pixel
        assert {tuple(pixel) for pixel in channels.reshape(2, -1).T} <= whole
