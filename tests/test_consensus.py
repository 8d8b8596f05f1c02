"""Majority votes and agreement statistics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from smokegeo.consensus import Agreement, band_average, merge_masks, votes_needed
from smokegeo.cubes import make_cube
from smokegeo.errors import InputError, UsageError
from smokegeo.sensors import sensor


def test_the_papers_rule_by_hand():
    a = np.array([[1, 1, 1, 0]], np.uint8)
    b = np.array([[1, 1, 0, 0]], np.uint8)
    c = np.array([[1, 0, 0, 0]], np.uint8)
    merged = merge_masks([a, b, c])
    assert merged.mask.tolist() == [[1, 1, 0, 0]]
    assert merged.votes.tolist() == [[3, 2, 1, 0]]
    assert merged.agreement.pixels_by_votes == (1, 1, 1)
    assert merged.agreement.shares() == {3: 1 / 3, 2: 1 / 3, 1: 1 / 3}
    assert merged.agreement.mask_shares() == {3: 0.5, 2: 0.5}


def test_the_papers_shares_are_consistent():
    # 52.07 / 14.14 / 33.79 % of marked pixels make 78.63 / 21.37 % of the mask (section 3.3).
    shares = Agreement((3379, 1414, 5207)).mask_shares()
    assert round(100 * shares[3], 1) == 78.6
    assert round(100 * shares[2], 1) == 21.4


@pytest.mark.parametrize(("annotators", "votes"), [(3, 2), (4, 3), (5, 4), (6, 4), (7, 5), (9, 6)])
def test_two_thirds_of_any_number_of_annotators(annotators, votes):
    assert votes_needed(annotators) == votes


@settings(deadline=None, max_examples=50)
@given(st.integers(3, 7).flatmap(lambda n: arrays(np.uint8, (n, 5, 6), elements=st.integers(0, 1))))
def test_mask_is_the_two_thirds_majority(stack):
    merged = merge_masks(list(stack))
    assert np.array_equal(merged.mask == 1, 3 * stack.astype(int).sum(0) >= 2 * len(stack))
    assert sum(merged.agreement.pixels_by_votes) == stack.any(axis=0).sum()
    assert sum(merged.agreement.mask_shares().values()) == pytest.approx(
        1.0 if merged.mask.any() else 0.0
    )


def test_agreements_of_images_add_up():
    assert Agreement((1, 2, 3)) + Agreement((10, 20, 30)) == Agreement((11, 22, 33))
    with pytest.raises(UsageError, match="different numbers"):
        Agreement((1, 2, 3)) + Agreement((1, 2, 3, 4))


def test_two_masks_and_unequal_sizes_are_refused():
    mask = np.zeros((2, 3), np.uint8)
    with pytest.raises(UsageError, match="three annotators or more"):
        merge_masks([mask, mask])
    with pytest.raises(InputError, match="3x2, 3x4"):
        merge_masks([mask, mask, np.zeros((4, 3), np.uint8)])


def test_band_average_is_the_mean_of_all_bands_stretched():
    values = np.zeros((4, 10, 10), np.uint16)
    values[0] = np.arange(100).reshape(10, 10) * 4
    grey = band_average(make_cube(values, sensor("mss").bands))
    assert grey.dtype == np.uint8
    assert grey.min() == 0
    assert grey.max() == 255
    assert (np.diff(grey.ravel().astype(int)) >= 0).all()
    assert band_average(make_cube(np.full((4, 3, 3), 7.0), sensor("mss").bands)).max() == 0
