"""A template for an agent. docs/add-an-agent.md explains it.

Copy this file, rename the class, and replace every ``raise NotImplementedError``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jax import Array

from nkcme.distributions.base import Distribution
from nkcme.parameter_checks import need_number
from nkcme.rl.agents.base import Agent, RewardSupport


@dataclass(frozen=True)
class MyAgent(Agent):
    """What the network returns for an action, and the loss, in one line.

    Parameters
    ----------
    my_parameter
        What it means. The fields are numbers, text or tuples of them: they are saved in files.
    """

    kind = "my-agent"  # the name of the class in files; do not change it once agents are saved
    my_parameter: float = 1.0

    def __post_init__(self) -> None:
        need_number("my_parameter", self.my_parameter, above=0.0)

    @property
    def width(self) -> int:
        """The number of network outputs for each action."""
        raise NotImplementedError("width")

    def value(self, output: Array) -> Array:
        """Return the expected return, (...,) from outputs (..., width)."""
        raise NotImplementedError("value")

    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        reward_support: RewardSupport | None = None,
    ) -> Array:
        """Return one loss per transition, (n,).

        ``output`` and ``target`` are (n, width): of the network for the actions taken, and of the
        target network for the best next actions. The Bellman target is reward + discount * Z',
        where Z' is the return that ``target`` predicts. ``reward_support`` may be ignored.
        """
        raise NotImplementedError("losses")

    def distribution(self, output: np.ndarray, scale: float) -> Distribution:
        """Return the predicted returns times ``scale`` as a distribution of n rows.

        `Embedding` puts weights on atoms; `Draws` holds equally weighted particles (k, n).
        """
        raise NotImplementedError("distribution")
