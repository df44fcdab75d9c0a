"""Finite reward support: found on the host and inside a compiled program."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nkcme.rl.finite_rewards import (
    MAX_REWARDS,
    distinct_rewards,
    distinct_rewards_compiled,
    merged_rewards,
    reward_support,
)
from nkcme.rl.settings import Settings


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1.0, 1.0], [1.0]),
        ([0.0, -1.0, 0.0, 3.0], [-1.0, 0.0, 3.0]),
        ([5.0, 4.0, 3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0]),  # one more than the maximum
        ([np.nan, 2.0, np.inf, -np.inf], [2.0]),
        ([0.0, 1e-7, 2e-7], [0.0, 1e-7, 2e-7]),  # in any unit
        ([1e6, 1e6 + 0.125], [1e6, 1e6 + 0.125]),
        ([np.nan], []),
    ],
)
def test_distinct_rewards_on_the_host_and_compiled(rewards, expected):
    expected = np.float32(expected)
    np.testing.assert_array_equal(distinct_rewards(np.float32(rewards)), expected)
    compiled = np.asarray(jax.jit(distinct_rewards_compiled)(np.resize(np.float32(rewards), 12)))
    assert compiled.shape == (MAX_REWARDS + 1,)
    found = np.isfinite(compiled)
    np.testing.assert_array_equal(compiled[: found.sum()], expected[np.isfinite(expected)])
    assert np.isinf(compiled).any() == np.isinf(rewards).any()
    assert not found[len(expected) :].any()


def test_merged_rewards_are_those_of_both_arrays():
    np.testing.assert_array_equal(
        merged_rewards(np.array([1.0, 2.0]), np.array([[np.nan, 0.5], [2.0, np.nan]])),
        [0.5, 1.0, 2.0],
    )


def test_the_support_of_one_step():
    assert reward_support(np.array([-1.0, 2.0]), Settings(gamma=0.5)) == (
        (-1.0, 0.0),
        (-1.0, 0.5),
        (2.0, 0.0),
        (2.0, 0.5),
    )


def test_the_support_of_two_steps_holds_all_sums():
    """Of one reward or two; each may be followed by more rewards or by the end."""
    found = reward_support(np.array([0.0, 1.0]), Settings(gamma=0.5, n_step=2))
    one = {(r, d) for r in (0.0, 1.0) for d in (0.0, 0.5)}
    two = {(r, d) for r in (0.0, 0.5, 1.0, 1.5) for d in (0.0, 0.25)}
    assert set(found) == one | two


def test_too_many_rewards_or_sums_have_no_finite_support():
    assert reward_support(np.arange(MAX_REWARDS + 1.0), Settings()) is None
    assert reward_support(np.arange(4.0), Settings()) is not None
    assert reward_support(np.arange(4.0), Settings(n_step=2)) is None
    # Several steps of one reward: one sum per number of steps.
    assert len(reward_support(np.array([1.0]), Settings(n_step=5))) == 10
