"""t-SNE and the silhouette on clouds whose shape is known."""

from __future__ import annotations

import numpy as np
import pytest

from smokegeo.errors import InputError, UsageError
from smokegeo.explain.measures import (
    balanced,
    contrast,
    correlations,
    pairs,
    silhouette,
    spread,
)
from smokegeo.explain.tsne import MAX_POINTS, neighbour_shares, squared_distances, tsne


def clouds(distance: float, each: int = 30, dim: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((2 * each, dim))
    points[each:, 0] += distance
    return points, np.repeat([0, 1], each)


def test_each_point_gets_the_perplexity_asked_for():
    points, _ = clouds(3.0)
    shares = neighbour_shares(squared_distances(points), 7.0)
    entropy = -(shares * np.log(shares + 1e-300)).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropy), 7.0, rtol=1e-6)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (np.diag(shares) == 0).all()


def test_far_clouds_stay_apart_on_the_map():
    points, labels = clouds(15.0)
    assert silhouette(tsne(points, perplexity=10), labels) > 0.6


def test_one_cloud_is_not_torn_into_the_labels():
    points, labels = clouds(0.0)
    assert abs(silhouette(tsne(points, perplexity=10), labels)) < 0.1


def test_neighbours_in_space_are_neighbours_on_the_map():
    points, _ = clouds(4.0)
    place = tsne(points, perplexity=10)

    def nearest(where):
        distances = squared_distances(where)
        np.fill_diagonal(distances, np.inf)
        return np.argsort(distances, axis=1)[:, :5]

    kept = [len(set(a) & set(b)) for a, b in zip(nearest(points), nearest(place), strict=True)]
    assert np.mean(kept) > 2.0  # of 5; chance is 0.4


def test_the_same_seed_gives_the_same_map_and_another_seed_another():
    points, _ = clouds(2.0, each=10)
    first = tsne(points, perplexity=5, seed=3)
    assert np.array_equal(first, tsne(points, perplexity=5, seed=3))
    assert not np.array_equal(first, tsne(points, perplexity=5, seed=4))


def test_equal_points_give_finite_positions():
    assert np.isfinite(tsne(np.ones((12, 3)))).all()
    assert np.isfinite(tsne(np.arange(12.0)[:, None])).all()


@pytest.mark.parametrize("count", [3, MAX_POINTS + 1])
def test_too_few_or_too_many_points_are_refused(count):
    with pytest.raises(UsageError, match=str(count)):
        tsne(np.zeros((count, 2)))


def test_silhouette_of_four_points_by_hand():
    points = np.array([[0.0], [1.0], [4.0], [6.0]])
    # a, b of each: (1, 5), (1, 4), (2, 3.5), (2, 5.5)
    by_hand = np.mean([4 / 5, 3 / 4, 1.5 / 3.5, 3.5 / 5.5])
    assert silhouette(points, np.array([0, 0, 1, 1])) == pytest.approx(by_hand)


def test_silhouette_is_negative_for_swapped_labels_and_zero_for_a_point_alone():
    points = np.array([[0.0], [10.0], [0.1], [10.1]])
    assert silhouette(points, np.array([0, 0, 1, 1])) < 0
    alone = silhouette(np.array([[0.0], [5.0]]), np.array([0, 1]))
    assert alone == 0


def test_silhouette_needs_two_labels():
    with pytest.raises(UsageError, match="two labels"):
        silhouette(np.zeros((4, 2)), np.zeros(4, int))


def test_correlations_know_equal_opposite_and_constant_columns():
    column = np.random.default_rng(0).standard_normal(500)
    other = np.random.default_rng(1).standard_normal(500)
    matrix = correlations(np.stack([column, 3 * column + 1, -column, other, 0 * column + 7], 1))
    np.testing.assert_allclose(matrix[0, :3], [1, 1, -1])
    assert abs(matrix[0, 3]) < 0.15
    assert np.isnan(matrix[4]).all()
    assert np.isnan(matrix[:, 4]).all()


def test_pairs_are_told_apart_by_band():
    matrix = np.array([[1, 0.9, -0.1], [0.9, 1, np.nan], [-0.1, np.nan, 1]])
    between, within = pairs(matrix, band_dim=2)
    assert between.tolist() == [0.1]
    assert within.tolist() == [0.9]


def test_a_balanced_sample_has_as_many_of_each_class():
    labels = np.array([0] * 90 + [1] * 8 + [255] * 5)
    assert np.bincount(labels[balanced(labels, 50)]).tolist() == [8, 8]
    assert np.bincount(labels[balanced(labels, 6)]).tolist() == [6, 6]
    with pytest.raises(InputError, match="only 3 pixels"):
        balanced(labels[:93], 50)


def test_contrast_is_the_distance_in_standard_deviations():
    values, mask = np.array([1.0, 3.0, 5.0, 7.0, 99.0]), np.array([0, 0, 1, 1, 255])
    assert contrast(values, mask) == pytest.approx(4.0)
    assert contrast(values, np.zeros(5)) is None


def test_spread_keeps_the_first_and_the_last():
    assert spread(range(11), 3) == [0, 5, 10]
    assert spread("ab", 3) == ["a", "b"]
