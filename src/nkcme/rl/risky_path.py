"""Two roads home: the smallest environment in which the mean return misleads.

At the fork one road follows the valley and the other climbs to a pass. The valley brings 1, always.
The pass brings 2 in nine cases of ten, and in the tenth an avalanche, -5. At its foot one can still
turn back. By the mean the pass is better, 1.3 against 1; by the worst tenth of its returns it is
ruin. A Q-value cannot tell these apart; a return distribution can.

Every return distribution is known in closed form (`returns`), so what an agent learned can be held
against the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl.envs import Step

STATES = ("fork", "foot of the pass", "valley")
FORK, FOOT, VALLEY = range(len(STATES))
ACTIONS = ("valley", "pass")

SAFE, GOOD, AVALANCHE = 1.0, 2.0, -5.0
RISK = 0.1

#: Where each action leads from each state; an episode ends with the last step anyway.
_NEXT = np.array([[VALLEY, FOOT], [VALLEY, FORK], [FORK, FORK]])


@dataclass(frozen=True)
class TwoRoads:
    """Compiled, and without gymnax; see `nkcme.rl.loop.Environment`.

    Observations are the states one-hot.
    """

    name: str = "TwoRoads"

    @property
    def n_actions(self) -> int:
        return len(ACTIONS)

    @property
    def observation_size(self) -> int:
        return len(STATES)

    @property
    def max_steps(self) -> int:
        return 3  # to the foot of the pass, back, home

    def reset(self, key: Array) -> tuple[Array, Array]:
        state = jnp.int32(FORK)
        return state, self.observe(state)

    def step(self, key: Array, state: Array, action: Array) -> tuple[Array, Step]:
        over = (state == FOOT) & (action == ACTIONS.index("pass"))
        home = over | (state == VALLEY)
        luck = jnp.where(jax.random.uniform(key) < RISK, AVALANCHE, GOOD)
        reward = jnp.where(over, luck, jnp.where(home, SAFE, 0.0))
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
        return jax.nn.one_hot(state, len(STATES))


def returns(state: int, action: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """What an action may come to, and how likely, if the best mean is followed after it."""
    over = np.array([AVALANCHE, GOOD]), np.array([RISK, 1.0 - RISK])
    safe = np.array([SAFE]), np.array([1.0])
    climbs = action == ACTIONS.index("pass")
    if state == VALLEY:
        return safe
    if state == FOOT:
        return over if climbs else (gamma * safe[0], safe[1])
    # From the fork, one step earlier; at the foot of the pass the mean says to go over.
    values, chances = over if climbs else safe
    return gamma * values, chances
