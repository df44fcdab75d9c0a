"""DQN (Mnih et al., 2015): the expected return alone."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.sample import Draws
from nkcme.rl.agents.base import Agent, RewardSupport


@dataclass(frozen=True)
class DQN(Agent):
    """One Q-value per action, with the squared error (r + d max_a' Q_target(s', a') - Q(s, a))^2.

    Examples
    --------
    >>> from nkcme.rl import DQN
    >>> DQN().width
    1
    """

    kind = "dqn"

    @property
    def width(self) -> int:
        """One output: the Q-value."""
        return 1

    def value(self, output: Array) -> Array:
        """Return the Q-value, (...,) from (..., 1)."""
        return output[..., 0]

    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        reward_support: RewardSupport | None = None,
    ) -> Array:
        """Return the squared error, (n,)."""
        return jnp.square(reward + discount * target[:, 0] - output[:, 0])

    def distribution(self, output: np.ndarray, scale: float) -> Draws:
        """Return a distribution with all mass on the Q-value."""
        return Draws(scale * output.T)
