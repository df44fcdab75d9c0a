"""The median heuristic."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.estimators.closed_form.median_distance import median_distance


def test_it_is_the_median_over_pairs_of_repeated_rows():
    rng = np.random.default_rng(0)
    points, counts = rng.normal(size=(30, 2)), rng.integers(1, 4, 30)
    rows = points.repeat(counts, axis=0)
    i, j = np.triu_indices(len(rows), 1)
    distances = np.linalg.norm(rows[i] - rows[j], axis=1)
    found = median_distance(points, counts.astype(float), seed=0)
    assert found == pytest.approx(np.median(distances))


def test_for_many_rows_it_is_the_median_of_a_random_thousand():
    y = np.random.default_rng(0).normal(size=(20_000, 1))
    counts = np.ones(20_000)
    found = [median_distance(y, counts, seed) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    # The median of |N(0, 2)| is sqrt(2) 0.6745.
    np.testing.assert_allclose(found, 0.9539, rtol=0.1)
    heavy = np.where(np.abs(y[:, 0]) < 0.1, 100.0, 1.0)
    assert median_distance(y, heavy, 0) < 0.1


def test_it_is_positive_where_most_points_or_all_are_equal():
    y = np.r_[np.zeros(99), 5.0][:, None]
    assert median_distance(y, np.ones(100), 0) == pytest.approx(2 * 5 / 100)  # the mean
    assert median_distance(y[:99], np.ones(99), 0) == 1.0
    assert median_distance(y[:1], np.ones(1), 0) == 1.0
