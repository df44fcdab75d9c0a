"""Stacks: weights and errors known in closed form."""

import numpy as np
import pytest

from nkcme.estimators.nkcme.stacking import Stack

RNG = np.random.default_rng(0)
N = 100_000
ONES = np.ones(N)


def test_least_squares_knows_the_answer():
    """y = first + 2 second, and both are bases; the third is of no use, the fourth a copy."""
    first, second, noise = RNG.normal(size=(3, 1, N))
    stack = Stack.fit(np.stack([first, second, noise]), first[0] + 2 * second[0], ONES, 5)
    np.testing.assert_allclose(stack.weights, [1, 2, 0], atol=1e-6)
    assert stack.error(1) < 1e-3
    twice = Stack.fit(np.stack([first, first]), first[0], ONES, 5)
    assert twice.weights.sum() == pytest.approx(1.0, abs=1e-4)


def test_weights_are_not_negative():
    first = RNG.normal(size=(1, N))
    assert Stack.fit(first[None], -first[0], ONES, 5).weights == 0.0


def members(truth, bias, deviation, n_deals):
    """Members that see the truth with an error of their base and one of their own."""
    return truth + bias * RNG.normal(size=N) + deviation * RNG.normal(size=(n_deals, N))


@pytest.mark.parametrize("n_members", [2, 10])
def test_weights_and_error_are_those_of_the_mean_of_all_members(n_members):
    """Two bases, one sure and off, one that varies: for the mean of k members the best weights
    solve (S + B + V / k) w = S 1, with S, B, V the variances of truth, bias and members."""
    truth = RNG.normal(size=N)
    said = np.stack([members(truth, 0.5, 0.0, 2), members(truth, 0.1, 1.0, 2)])
    stack = Stack.fit(said, truth, ONES, n_members)
    moments = np.ones((2, 2)) + np.diag([0.25, 0.01 + 1.0 / n_members])
    expected = np.linalg.solve(moments, np.ones(2))
    np.testing.assert_allclose(stack.weights, expected, atol=0.02)
    w = stack.weights
    for k in (1, 2, n_members, 100):
        own = (1 - w.sum()) ** 2 + 0.25 * w[0] ** 2 + (0.01 + 1.0 / k) * w[1] ** 2
        if k <= n_members:  # beyond, the error that is left has a floor
            assert stack.error(k) == pytest.approx(np.sqrt(own), rel=0.02)


def test_members_that_err_together_are_not_thought_independent():
    """The error of a deal is common to its two bases: averaging bases does not lessen it."""
    truth, common = RNG.normal(size=N), RNG.normal(size=(2, N))
    said = np.stack([truth + common, truth + common + 0.01 * RNG.normal(size=(2, N))])
    stack = Stack.fit(said, truth + 0.5 * RNG.normal(size=N), ONES, 10)
    w = stack.weights.sum()
    assert stack.error(10) == pytest.approx(np.sqrt(0.25 + (1 - w) ** 2 + w**2 / 10), rel=0.02)


def test_one_deal_tells_nothing_of_variance():
    truth = RNG.normal(size=N)
    stack = Stack.fit(members(truth, 0.0, 1.0, 1)[None], truth, ONES, 5)
    assert stack.error(1) == stack.error(5)


def test_rows_of_weight_zero_do_not_count():
    truth = RNG.normal(size=N)
    said = members(truth, 0.3, 0.5, 3)[None]
    spoiled = np.concatenate([said, 1e3 * RNG.normal(size=(1, 3, 5))], axis=2)
    weight = np.concatenate([ONES, np.zeros(5)])
    ours = Stack.fit(spoiled, np.concatenate([truth, np.zeros(5)]), weight, 15)
    theirs = Stack.fit(said, truth, ONES, 15)
    np.testing.assert_allclose(ours.weights, theirs.weights)
    assert ours.error(15) == pytest.approx(theirs.error(15))
