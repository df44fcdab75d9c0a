"""Finite reward support: the rewards of an environment that gives few different ones.

Where a reward is one of few values, the kernel matrices between Bellman targets and atoms are
constants. The support is what has been seen so far; the loops watch for new rewards.
"""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl.agents.base import RewardSupport
from nkcme.rl.settings import Settings

#: The largest numbers of different rewards, and of pairs that bootstrap, for which constants pay.
MAX_REWARDS = 4
MAX_PAIRS = 6


def distinct_rewards(rewards: np.ndarray) -> np.ndarray:
    """Return the different finite rewards, sorted; at most one more than `MAX_REWARDS`."""
    values = np.unique(np.asarray(rewards, np.float64))
    return values[np.isfinite(values)][: MAX_REWARDS + 1]


def merged_rewards(rewards: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return the different rewards of two arrays."""
    return distinct_rewards(np.concatenate([np.ravel(rewards), np.ravel(more)]))


def distinct_rewards_compiled(rewards: Array) -> Array:
    """Return `distinct_rewards` inside a compiled program, padded with NaN, (MAX_REWARDS + 1,).

    It finds the smallest reward, then the smallest of those above it, and so on. NaN stands for no
    reward. Where a reward is infinite, so is the last value.
    """
    rewards = jnp.ravel(rewards)
    infinite = jnp.any(jnp.isinf(rewards))
    rewards = jnp.where(jnp.isnan(rewards), jnp.inf, rewards)
    found = []
    last = jnp.array(-jnp.inf)
    for _ in range(MAX_REWARDS + 1):
        last = jnp.min(jnp.where(rewards > last, rewards, jnp.inf))
        found.append(last)
    values = jnp.stack(found)
    values = jnp.where(jnp.isinf(values), jnp.nan, values)
    return values.at[-1].set(jnp.where(infinite, jnp.inf, values[-1]))


def reward_support(rewards: np.ndarray, settings: Settings) -> RewardSupport | None:
    """Return the pairs (return over up to ``n_step`` rewards, discount after them) that can occur.

    None where they are too many for constants to pay.
    """
    if len(rewards) > MAX_REWARDS:
        return None
    pairs: set[tuple[float, float]] = set()
    for n in range(1, settings.n_step + 1):
        weights = settings.gamma ** np.arange(n)
        for chosen in product(rewards, repeat=n):
            total = float(weights @ np.asarray(chosen))
            pairs |= {(total, settings.gamma**n), (total, 0.0)}
            if len(pairs) > 2 * MAX_PAIRS:
                return None
    return tuple(sorted(pairs))
