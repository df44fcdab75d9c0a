"""Rewards of few values, found on the host and inside a compiled program."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nkcme.rl import finite_rewards as known
from nkcme.rl.settings import Settings


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1.0, 1.0], [1.0]),
        ([0.0, -1.0, 0.0, 3.0], [-1.0, 0.0, 3.0]),
        ([5.0, 4.0, 3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0]),  # one too many is enough
        ([np.nan, 2.0, np.inf, -np.inf], [2.0]),
        ([0.0, 1e-7, 2e-7], [0.0, 1e-7, 2e-7]),  # however small the unit
        ([1e6, 1e6 + 0.125], [1e6, 1e6 + 0.125]),
        ([np.nan], []),
    ],
)
def test_distinct_and_its_compiled_twin(rewards, expected):
    expected = np.float32(expected)
    np.testing.assert_array_equal(known.distinct(np.float32(rewards)), expected)
    compiled = np.asarray(jax.jit(known.a_few)(np.float32(rewards).reshape(1, -1)))
    assert compiled.shape == (known.MAX_REWARDS + 1,)
    seen = ~np.isnan(compiled)
    np.testing.assert_array_equal(compiled[: seen.sum()], expected[np.isfinite(expected)])
    assert not seen[len(expected) :].any()


def test_joined_is_all_that_was_seen():
    np.testing.assert_array_equal(
        known.joined(np.array([1.0, 2.0]), np.array([[np.nan, 0.5], [2.0, np.nan]])),
        [0.5, 1.0, 2.0],
    )


def test_outcomes_of_one_step():
    assert known.outcomes(np.array([-1.0, 2.0]), Settings(gamma=0.5)) == (
        (-1.0, 0.0),
        (-1.0, 0.5),
        (2.0, 0.0),
        (2.0, 0.5),
    )


def test_outcomes_of_two_steps_are_all_sums():
    """One reward or two; each may be followed by more, or by nothing."""
    found = known.outcomes(np.array([0.0, 1.0]), Settings(gamma=0.5, n_step=2))
    one = {(r, d) for r in (0.0, 1.0) for d in (0.0, 0.5)}
    two = {(r, d) for r in (0.0, 0.5, 1.0, 1.5) for d in (0.0, 0.25)}
    assert set(found) == one | two


def test_too_many_rewards_or_sums_are_not_worth_constants():
    assert known.outcomes(np.arange(known.MAX_REWARDS + 1.0), Settings()) is None
    assert known.outcomes(np.arange(4.0), Settings()) is not None
    assert known.outcomes(np.arange(4.0), Settings(n_step=2)) is None
    # Many steps of one reward: one sum a step.
    assert len(known.outcomes(np.array([1.0]), Settings(n_step=5))) == 10
