"""DQN (Mnih et al., 2015): the expected return alone."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.sample import SampleDistribution
from nkcme.rl.agents.base import Agent, Outcomes


@dataclass(frozen=True)
class DQN(Agent):
    """(r + gamma max_a' Q_target(s', a') - Q(s, a))^2."""

    kind = "dqn"

    @property
    def width(self) -> int:
        return 1

    def value(self, output: Array) -> Array:
        return output[..., 0]

    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        outcomes: Outcomes | None = None,
    ) -> Array:
        return jnp.square(reward + discount * target[:, 0] - output[:, 0])

    def distribution(self, output: np.ndarray, scale: float) -> SampleDistribution:
        """All mass on the expected return: it knows no more."""
        return SampleDistribution(scale * output.T)
