"""Stacks: weights and errors known in closed form."""

import numpy as np
import pytest

from nkcme.estimators.nkcme.stacking import Stack

N = 100_000
ONES = np.ones(N)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def fit(predicted, y, n_members, weight=ONES):
    return Stack.fit(predicted, y, weight, n_members, least_bias_share=0.05)


def test_least_squares_weights_are_found(rng):
    """y = 0.3 first + 0.6 second; a third base is noise, and a copy shares the weight of its
    original."""
    first, second, noise = rng.normal(size=(3, 1, N))
    stack = fit(np.stack([first, second, noise]), 0.3 * first[0] + 0.6 * second[0], 5)
    np.testing.assert_allclose(stack.weights, [0.3, 0.6, 0], atol=1e-6)
    assert stack.error(1) < 1e-3
    copies = fit(np.stack([first, first]), first[0], 5)
    assert copies.weights.sum() == pytest.approx(1.0, abs=1e-4)


def test_weights_sum_to_at_most_one(rng):
    """y = 2 first + 2 second: by symmetry half of each is the best average."""
    first, second = rng.normal(size=(2, 1, N))
    stack = fit(np.stack([first, second]), 2 * first[0] + 2 * second[0], 5)
    assert stack.weights.sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(stack.weights, 0.5, atol=0.05)


def test_weights_are_not_negative(rng):
    first = rng.normal(size=(1, N))
    assert fit(first[None], -first[0], 5).weights == 0.0


def members(rng, truth, bias, deviation, n_repeats):
    """Members that predict the truth with an error of their base and one of each member."""
    return truth + bias * rng.normal(size=N) + deviation * rng.normal(size=(n_repeats, N))


@pytest.mark.parametrize("n_members", [2, 10])
def test_weights_and_error_are_those_of_the_mean_of_all_members(n_members, rng):
    """One base is steady and biased, one varies. For the mean of k members the best weights solve
    (S + B + V / k) w = S 1, with S, B, V the variances of truth, bias and members."""
    truth = rng.normal(size=N)
    predicted = np.stack([members(rng, truth, 0.5, 0.0, 2), members(rng, truth, 0.1, 1.0, 2)])
    stack = fit(predicted, truth, n_members)
    moments = np.ones((2, 2)) + np.diag([0.25, 0.01 + 1.0 / n_members])
    expected = np.linalg.solve(moments, np.ones(2))
    np.testing.assert_allclose(stack.weights, expected, atol=0.02)
    w = stack.weights
    for k in (1, 2, n_members, 100):
        squared = (1 - w.sum()) ** 2 + 0.25 * w[0] ** 2 + (0.01 + 1.0 / k) * w[1] ** 2
        if k <= n_members:  # beyond, the error has a floor
            assert stack.error(k) == pytest.approx(np.sqrt(squared), rel=0.02)


def test_errors_that_bases_share_are_not_averaged_away(rng):
    """The error of a repeat is common to its two bases."""
    truth, common = rng.normal(size=N), rng.normal(size=(2, N))
    predicted = np.stack([truth + common, truth + common + 0.01 * rng.normal(size=(2, N))])
    stack = fit(predicted, truth + 0.5 * rng.normal(size=N), 10)
    w = stack.weights.sum()
    assert stack.error(10) == pytest.approx(np.sqrt(0.25 + (1 - w) ** 2 + w**2 / 10), rel=0.02)


def test_one_repeat_gives_no_estimate_of_variance(rng):
    truth = rng.normal(size=N)
    stack = fit(members(rng, truth, 0.0, 1.0, 1)[None], truth, 5)
    assert stack.error(1) == stack.error(5)


def test_rows_of_weight_zero_do_not_count(rng):
    truth = rng.normal(size=N)
    predicted = members(rng, truth, 0.3, 0.5, 3)[None]
    spoiled = np.concatenate([predicted, 1e3 * rng.normal(size=(1, 3, 5))], axis=2)
    weight = np.concatenate([ONES, np.zeros(5)])
    ours = fit(spoiled, np.concatenate([truth, np.zeros(5)]), 15, weight)
    theirs = fit(predicted, truth, 15)
    np.testing.assert_allclose(ours.weights, theirs.weights)
    assert ours.error(15) == pytest.approx(theirs.error(15))
