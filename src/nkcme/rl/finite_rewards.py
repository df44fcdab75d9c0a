"""Rewards that take few values: which, and what pairs of reward and discount they make.

Where a reward is one of few, the kernel matrices between Bellman targets and atoms are constants.
The values are those seen so far; the loop looks out for others.
"""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl.agents.base import Outcomes
from nkcme.rl.settings import Settings

#: Up to so many different rewards, and pairs that bootstrap, are worth constants.
MAX_REWARDS = 4
MAX_PAIRS = 6


def distinct(rewards: np.ndarray) -> np.ndarray:
    """The different ones among rewards, sorted; at most one more than `MAX_REWARDS`."""
    values = np.unique(np.asarray(rewards, np.float64))
    return values[np.isfinite(values)][: MAX_REWARDS + 1]


def joined(rewards: np.ndarray, more: np.ndarray) -> np.ndarray:
    return distinct(np.concatenate([np.ravel(rewards), np.ravel(more)]))


def a_few(rewards: Array) -> Array:
    """Inside a compiled program: `distinct` of a whole array, padded with NaN, (MAX_REWARDS + 1,).

    The smallest, then the smallest of those above it, and so on.
    """
    rewards = jnp.ravel(rewards)
    rewards = jnp.where(jnp.isnan(rewards), jnp.inf, rewards)
    found = []
    last = jnp.array(-jnp.inf)
    for _ in range(MAX_REWARDS + 1):
        last = jnp.min(jnp.where(rewards > last, rewards, jnp.inf))
        found.append(last)
    values = jnp.stack(found)
    return jnp.where(jnp.isinf(values), jnp.nan, values)


def outcomes(rewards: np.ndarray, settings: Settings) -> Outcomes | None:
    """The pairs (return over up to ``n_step`` rewards, discount of what follows) that can occur;
    None where they are too many."""
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
