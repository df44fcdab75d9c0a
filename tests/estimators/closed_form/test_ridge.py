"""The algebra of classical embeddings against its definition: repeated rows, refits, both forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from nkcme.estimators.closed_form.median_distance import median_distance
from nkcme.estimators.closed_form.ridge import (
    dual_operator,
    leave_one_out,
    primal_operator,
    row_counts,
)

RNG = np.random.default_rng(0)
N, D, M = 30, 5, 7
PSI = RNG.normal(size=(N, D))
X = RNG.normal(size=(N, 2))
GRAM = np.exp(-0.5 * np.sum(np.square(X[:, None] - X[None]), axis=-1))
SHARES = csr_array(RNG.dirichlet(np.ones(M), size=N))
COUNTS = RNG.integers(1, 4, N).astype(float)
TWICE = np.repeat(np.arange(N), COUNTS.astype(int))  # the rows as they stand in a table


def test_weights_that_compare_rows_are_made_to_count_them():
    np.testing.assert_array_equal(row_counts(COUNTS, len(TWICE)), COUNTS)
    np.testing.assert_allclose(row_counts(np.array([0.5, 1.0]), 2), [2 / 3, 4 / 3])


def test_the_dual_form_counts_a_row_as_its_copies():
    operator, jitter = dual_operator(GRAM, COUNTS, 0.3, SHARES)
    assert jitter == 0
    gram = GRAM[np.ix_(TWICE, TWICE)]
    beta = np.linalg.solve(gram + 0.3 * np.eye(len(TWICE)), gram)  # at the copies themselves
    expected = (beta.T @ SHARES.toarray()[TWICE])[np.searchsorted(TWICE, np.arange(N))]
    np.testing.assert_allclose(GRAM @ operator, expected, atol=1e-10)


def test_primal_and_dual_are_one_estimator(monkeypatch):
    new = RNG.normal(size=(4, D))
    monkeypatch.setattr("nkcme.estimators.closed_form.ridge.BLOCK_ROWS", 7)
    primal = primal_operator(lambda rows: rows, PSI, COUNTS, 0.1, SHARES)
    dual, _ = dual_operator(PSI @ PSI.T, COUNTS, 0.1, SHARES)
    np.testing.assert_allclose(new @ primal, new @ PSI.T @ dual, atol=1e-10)


def test_jitter_comes_only_when_needed_and_is_told():
    singular = np.ones((N, N)) - 1e-10 * np.eye(N)
    operator, jitter = dual_operator(singular, np.ones(N), 1e-12, SHARES)
    assert 1e-11 < jitter < 1e-8
    assert np.isfinite(operator).all()


@pytest.mark.parametrize("counts", [np.ones(N), COUNTS, RNG.uniform(0.2, 3, N)])
def test_leave_one_out_is_that_of_refitting_without_each_row(counts):
    """Of rows that count several times one is left out; rows of fractional weight go whole."""
    regularizations = np.array([1e-3, 0.1, 2.0])
    targets = RNG.normal(size=(N, 3))
    repetitions = bool(np.all(counts == np.rint(counts)))
    expected = []
    for regularization in regularizations:
        score = 0.0
        for i in range(N):
            left = counts.copy()
            left[i] -= 1.0 if repetitions else counts[i]
            there = left > 0
            system = GRAM[np.ix_(there, there)] + regularization * np.diag(1 / left[there])
            beta = np.linalg.solve(system, GRAM[there, i])
            score += counts[i] * np.sum(np.square(targets[i] - beta @ targets[there]))
        expected.append(score / counts.sum())
    scores = leave_one_out(GRAM, counts, regularizations, targets)
    np.testing.assert_allclose(scores, expected, rtol=1e-8)


def test_the_median_distance_counts_pairs_of_rows():
    points = RNG.normal(size=(N, 2))
    rows = points[TWICE]
    pairs = np.triu_indices(len(rows), 1)
    distances = np.linalg.norm(rows[pairs[0]] - rows[pairs[1]], axis=1)
    assert median_distance(points, COUNTS, seed=0) == pytest.approx(np.median(distances))


def test_the_median_distance_of_many_rows_is_that_of_a_thousand():
    y = RNG.normal(size=(20_000, 1))
    counts = np.ones(20_000)
    drawn = [median_distance(y, counts, seed) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    # |N(0, 2)| has its median at sqrt(2) 0.6745.
    np.testing.assert_allclose(drawn, 0.9539, rtol=0.1)
    heavy = np.where(np.abs(y[:, 0]) < 0.1, 100.0, 1.0)
    assert median_distance(y, heavy, 0) < 0.1


def test_where_distances_vanish_the_bandwidth_does_not():
    y = np.r_[np.zeros(99), 5.0][:, None]
    assert median_distance(y, np.ones(100), 0) == pytest.approx(2 * 5 / 100)  # the mean
    assert median_distance(y[:99], np.ones(99), 0) == 1.0
    assert median_distance(y[:1], np.ones(1), 0) == 1.0
