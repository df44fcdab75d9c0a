"""The program of peers: interpolated quantiles, and tables for peers that take numbers only."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments import peer_program


def test_crossing_quantiles_are_sorted_and_interpolated():
    values = np.array([[0.0, 5.0], [2.0, 1.0], [4.0, 9.0]])  # the second row has 5, 1, 9
    found = peer_program._interpolated(values, [0.2, 0.4, 0.8], np.array([0.1, 0.3, 0.5, 0.9]))
    assert pytest.approx(np.array([[0, 1, 2.5, 4], [1, 3, 6, 9]])) == found.values.T
    # 0.2 of the mass at each end, and two uniform pieces of 0.2 and 0.4.
    assert found.mean == pytest.approx(
        [0.2 * 1 + 0.4 * 3 + 0.2 * 4, 0.2 * 1 + 0.2 * 3 + 0.4 * 7 + 0.2 * 9], abs=1e-5
    )


def test_categories_become_columns_and_missing_numbers_medians():
    X = np.array([[1.0, 0.0], [np.nan, 2.0], [3.0, -1.0], [7.0, 0.0]])
    X_test = np.array([[np.nan, 2.0], [4.0, 1.0]])  # the category 1 is unknown
    train, test = peer_program._plain(X, X_test, [1])
    assert train.tolist() == [[1, 0, 1, 0], [3, 0, 0, 1], [3, 1, 0, 0], [7, 0, 1, 0]]
    assert test.tolist() == [[3, 0, 0, 1], [4, 0, 0, 0]]


def test_many_categories_keep_their_codes():
    X = np.arange(peer_program._MAX_ONE_HOT + 1.0)[:, None]
    train, test = peer_program._plain(X, X[:3], [0])
    assert np.array_equal(train, X)
    assert test.tolist() == [[0], [1], [2]]
