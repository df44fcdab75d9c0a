"""The algebra of conditional mean embeddings against repeated rows, refits and its other form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

from nkcme.estimators.closed_form.ridge import (
    dual_operator,
    leave_one_out,
    primal_operator,
    row_counts,
)

N, D, M = 30, 5, 7


class Problem(NamedTuple):
    features: np.ndarray
    gram: np.ndarray
    shares: csr_array
    counts: np.ndarray
    copies: np.ndarray  # row numbers, each repeated by its count


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    gram = np.exp(-0.5 * np.sum(np.square(x[:, None] - x[None]), axis=-1))
    counts = rng.integers(1, 4, N).astype(float)
    return Problem(
        features=rng.normal(size=(N, D)),
        gram=gram,
        shares=csr_array(rng.dirichlet(np.ones(M), size=N)),
        counts=counts,
        copies=np.repeat(np.arange(N), counts.astype(int)),
    )


def test_weights_are_scaled_to_the_number_of_rows(problem):
    found = row_counts(problem.counts, len(problem.copies))
    np.testing.assert_array_equal(found, problem.counts)
    np.testing.assert_allclose(row_counts(np.array([0.5, 1.0]), 2), [2 / 3, 4 / 3])


def test_the_dual_form_with_counts_is_that_of_the_repeated_rows(problem):
    operator, jitter = dual_operator(problem.gram, problem.counts, 0.3, problem.shares)
    assert jitter == 0
    copies = problem.copies
    gram = problem.gram[np.ix_(copies, copies)]
    beta = np.linalg.solve(gram + 0.3 * np.eye(len(copies)), gram)  # at the copies
    first = np.searchsorted(copies, np.arange(N))
    expected = (beta.T @ problem.shares.toarray()[copies])[first]
    np.testing.assert_allclose(problem.gram @ operator, expected, atol=1e-10)


def test_primal_and_dual_forms_are_one_estimator(problem, monkeypatch):
    psi, new = problem.features, np.random.default_rng(1).normal(size=(4, D))
    monkeypatch.setattr("nkcme.estimators.closed_form.ridge.BLOCK_ROWS", 7)
    primal = primal_operator(lambda rows: rows, psi, problem.counts, 0.1, problem.shares)
    dual, _ = dual_operator(psi @ psi.T, problem.counts, 0.1, problem.shares)
    np.testing.assert_allclose(new @ primal, new @ psi.T @ dual, atol=1e-10)


def test_jitter_is_added_only_when_needed_and_returned(problem):
    singular = np.ones((N, N)) - 1e-10 * np.eye(N)
    operator, jitter = dual_operator(singular, np.ones(N), 1e-12, problem.shares)
    assert 1e-11 < jitter < 1e-8
    assert np.isfinite(operator).all()


@pytest.mark.parametrize("kind", ["ones", "repetitions", "fractions"])
def test_the_leave_one_out_error_is_that_of_refitting_without_each_row(problem, kind):
    """One repetition of a row is left out. A row with a fractional count is left out entirely."""
    rng = np.random.default_rng(2)
    counts = {
        "ones": np.ones(N),
        "repetitions": problem.counts,
        "fractions": rng.uniform(0.2, 3, N),
    }[kind]
    regularizations = np.array([1e-3, 0.1, 2.0])
    targets = rng.normal(size=(N, 3))
    expected = []
    for regularization in regularizations:
        score = 0.0
        for i in range(N):
            rest = counts.copy()
            rest[i] -= counts[i] if kind == "fractions" else 1.0
            kept = rest > 0
            system = problem.gram[np.ix_(kept, kept)] + regularization * np.diag(1 / rest[kept])
            beta = np.linalg.solve(system, problem.gram[kept, i])
            score += counts[i] * np.sum(np.square(targets[i] - beta @ targets[kept]))
        expected.append(score / counts.sum())
    scores = leave_one_out(problem.gram, counts, regularizations, targets)
    np.testing.assert_allclose(scores, expected, rtol=1e-8)
