"""What an agent is: the width of a network's output for an action, its value, and a loss.

An agent is a frozen dataclass of plain numbers: hashable, so that equal agents share a compiled
program, and easily written to a file. It knows no environment, network or replay.

An *output* is what the network gives for one action, an array (..., width); losses take a batch of
them. A Bellman target is the return r + d Z', with Z' the return that the target network predicts
for the next state, r the reward and d the discount: gamma, or 0 where the episode terminated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.parameter_checks import need_number, need_whole

#: Pairs (reward, discount).
Outcomes = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Agent(ABC):
    """See the module."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers the network gives for each action."""

    @abstractmethod
    def value(self, output: Array) -> Array:
        """The expected return, (...,) from (..., width)."""

    @abstractmethod
    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        outcomes: Outcomes | None = None,
    ) -> Array:
        """One loss a transition (n,), from outputs (n, width), those of the target network for
        the next state's best action (n, width), rewards (n,) and discounts (n,).

        Where ``outcomes`` are given, no other pairs of reward and discount occur: an agent may
        compute constants from them.
        """

    @abstractmethod
    def distribution(self, output: np.ndarray, scale: float) -> Distribution:
        """The returns predicted by outputs (n, width), times ``scale``, as n distributions."""

    def settled(self, rewards: np.ndarray, gamma: float) -> Self:
        """This agent with what it leaves to the data chosen from rewards that were seen."""
        return self

    def outside(self, target: Array, reward: Array, discount: Array) -> Array:
        """The share of each Bellman target that lies beyond what the agent can represent, (n,)."""
        return jnp.zeros(reward.shape)

    def to_config(self) -> dict[str, Any]:
        """What makes this agent, as JSON can say it."""
        return {"kind": self.kind} | {f.name: getattr(self, f.name) for f in fields(self)}


def checked_bandwidths(bandwidths: Sequence[float]) -> tuple[float, ...]:
    """Of kernels: one or more, each above 0."""
    if not len(bandwidths):
        raise NkcmeError("bandwidths must be at least one; got none")
    for bandwidth in bandwidths:
        need_number("each of bandwidths", bandwidth, above=0.0)
    return tuple(float(b) for b in bandwidths)


@dataclass(frozen=True)
class AtomAgent(Agent):
    """An agent that puts weights on fixed atoms, evenly spaced over ``support``.

    ``support`` is (lowest, highest) return, or "auto": what rewards like those of the random steps
    at the start could ever add up to.
    """

    n_atoms: int = 51
    support: tuple[float, float] | str = (-100.0, 100.0)

    def __post_init__(self) -> None:
        need_whole("n_atoms", self.n_atoms, least=2)
        if self.support == "auto":
            return
        if isinstance(self.support, str) or len(self.support) != 2:
            raise NkcmeError(
                f'support must be (lowest, highest) return or "auto"; got {self.support!r}'
            )
        low, high = self.support
        need_number("the lowest return of support", low)
        need_number("the highest return of support", high, above=low)
        object.__setattr__(self, "support", (float(low), float(high)))

    @property
    def width(self) -> int:
        return self.n_atoms

    @property
    def atoms(self) -> np.ndarray:
        """The returns eta_a, (n_atoms,)."""
        if isinstance(self.support, str):
            raise NkcmeError('support="auto" is settled when training starts: no atoms yet')
        return np.linspace(*self.support, self.n_atoms)

    @property
    def spacing(self) -> float:
        return float(self.atoms[1] - self.atoms[0])

    def settled(self, rewards: np.ndarray, gamma: float) -> Self:
        """With "auto", as far to either side of zero as the largest reward at every step would add
        up to: closed under r + gamma z. An untrained network then expects about nothing, which is
        too much where rewards are costs, so that such an agent looks around (MountainCar is not
        solved from the lower half alone)."""
        if self.support != "auto":
            return self
        horizon = 1.0 / (1.0 - gamma)
        most = float(np.abs(rewards).max()) * horizon
        if most == 0.0:
            raise NkcmeError(
                "no reward but 0 was seen in the random steps at the start: give the support as "
                "(lowest, highest) return"
            )
        return replace(self, support=(-most, most))

    def weights(self, output: Array) -> Array:
        """Softmax, as the paper's agents have it."""
        return jax.nn.softmax(output, axis=-1)

    def value(self, output: Array) -> Array:
        return self.weights(output) @ jnp.asarray(self.atoms, output.dtype)

    def bellman_atoms(self, reward: Array, discount: Array) -> Array:
        """tau_a = r + d eta_a, (n, m)."""
        return reward[:, None] + discount[:, None] * jnp.asarray(self.atoms, reward.dtype)[None]

    def outside(self, target: Array, reward: Array, discount: Array) -> Array:
        low, high = self.atoms[0], self.atoms[-1]
        tau = self.bellman_atoms(reward, discount)
        # Beyond by more than a spacing: an atom at the edge may move by a little.
        out = (tau < low - self.spacing) | (tau > high + self.spacing)
        return jnp.sum(jnp.where(out, self.weights(target), 0.0), axis=-1)
