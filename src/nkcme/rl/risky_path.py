"""The smallest environment in which an action with the higher mean return is the riskier one.

From a fork the agent follows the valley or climbs to a pass. The valley gives a reward of 1. The
pass gives 2 with probability 0.9 and -5, an avalanche, with probability 0.1; at the foot of the
pass the agent can still turn back. The mean return of the pass is higher, 1.3 against 1, but the
mean of its worst tenth is -5. Q-values do not show the difference; return distributions do.

All return distributions have a closed form (`return_distribution`), so a learned distribution can
be compared with the true one.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl.environment import Step

STATES = ("fork", "foot of the pass", "valley")
FORK, FOOT, VALLEY = range(len(STATES))
ACTIONS = ("valley", "pass")

SAFE, GOOD, AVALANCHE = 1.0, 2.0, -5.0
RISK = 0.1

#: The next state for each state and action. An episode ends at the goal, whatever is written here.
_NEXT = np.array([[VALLEY, FOOT], [VALLEY, FORK], [FORK, FORK]])


@dataclass(frozen=True)
class RiskyPath:
    """The environment, as `nkcme.rl.environment.Environment` describes it.

    It is compiled and does not need gymnax. Observations are the states, one-hot. The actions are
    `ACTIONS`: 0 follows the valley, 1 climbs.

    Examples
    --------
    >>> from nkcme.rl.risky_path import FORK, RiskyPath
    >>> RiskyPath.observe(FORK).tolist()
    [1.0, 0.0, 0.0]
    """

    name: str = "RiskyPath"

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(ACTIONS)

    @property
    def observation_size(self) -> int:
        """The length of an observation: the number of states."""
        return len(STATES)

    @property
    def max_steps(self) -> int:
        """The length of the longest sensible episode: to the foot of the pass, back, and home."""
        return 3

    def reset(self, key: Array) -> tuple[Array, Array]:
        """Begin an episode at the fork."""
        state = jnp.int32(FORK)
        return state, self.observe(state)

    def step(self, key: Array, state: Array, action: Array) -> tuple[Array, Step]:
        """Take an action; return the next state and the step."""
        crosses = (state == FOOT) & (action == ACTIONS.index("pass"))
        home = crosses | (state == VALLEY)
        beyond = jnp.where(jax.random.uniform(key) < RISK, AVALANCHE, GOOD)
        reward = jnp.where(crosses, beyond, jnp.where(home, SAFE, 0.0))
        after = jnp.asarray(_NEXT, jnp.int32)[state, action]
        next_state = jnp.where(home, FORK, after)
        step = Step(
            observation=self.observe(next_state),
            final=self.observe(after),
            reward=reward.astype(jnp.float32),
            terminated=home,
            truncated=jnp.zeros((), bool),
        )
        return next_state, step

    @staticmethod
    def observe(state: Array | int) -> Array:
        """Return the observation of a state."""
        return jax.nn.one_hot(state, len(STATES))


def return_distribution(state: int, action: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the true distribution of an action's return.

    Parameters
    ----------
    state, action
        Indices into `STATES` and `ACTIONS`. Later actions are those of the highest mean return.
    gamma
        The discount.

    Returns
    -------
    values, probabilities
        The possible returns and their probabilities, (k,) each.
    """
    crossing = np.array([AVALANCHE, GOOD]), np.array([RISK, 1.0 - RISK])
    safe = np.array([SAFE]), np.array([1.0])
    climbs = action == ACTIONS.index("pass")
    if state == VALLEY:
        return safe
    if state == FOOT:
        return crossing if climbs else (gamma * safe[0], safe[1])
    # The fork is one step earlier; at the foot of the pass the mean return prefers to cross.
    values, probabilities = crossing if climbs else safe
    return gamma * values, probabilities
