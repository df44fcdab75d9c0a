"""What an agent is: the outputs of its network, their value, a loss and a distribution.

An agent is a frozen dataclass of plain values. It is hashable, so that equal agents share a
compiled program, and it is written to files by its fields. It knows no environment, network or
replay.

An *output* is what the network returns for one action, an array (..., width); losses take a batch
of outputs. A Bellman target is the return r + d Z', where Z' is the return that the target network
predicts for the next state, r the reward and d the discount: gamma, or 0 where the episode
terminated.
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
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.parameter_checks import need_number, need_whole

#: A finite reward support: the pairs (reward, discount) that can occur.
RewardSupport = tuple[tuple[float, float], ...]

#: The classes of agents by their ``kind``, which files name. `Agent` adds each subclass.
KINDS: dict[str, type[Agent]] = {}


@dataclass(frozen=True)
class Agent(ABC):
    """Base class of all agents.

    A subclass is a frozen dataclass that sets ``kind`` and defines `width`, `value`, `losses` and
    `distribution`. It can then be trained, saved and loaded; see docs/add-an-agent.md. To load a
    saved agent, the module that defines its class must have been imported.

    Attributes
    ----------
    kind : str
        The name of the class in files. No other class may have it.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if (kind := cls.__dict__.get("kind")) is None:  # an abstract base, as `AtomAgent`
            return
        known = KINDS.get(kind, cls)
        # A class that is defined again, as in a notebook, replaces its former definition.
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise NkcmeError(
                f"the kind {kind!r} belongs to the agent {known.__qualname__}; give "
                f"{cls.__qualname__} another one"
            )
        KINDS[kind] = cls

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of network outputs for each action."""

    @abstractmethod
    def value(self, output: Array) -> Array:
        """Return the expected return.

        Parameters
        ----------
        output
            Network outputs, (..., width).

        Returns
        -------
        Array
            The mean of each predicted return, (...,).
        """

    @abstractmethod
    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        reward_support: RewardSupport | None = None,
    ) -> Array:
        """Return one loss per transition.

        Parameters
        ----------
        output
            The network's outputs for the actions that were taken, (n, width).
        target
            The target network's outputs for the best actions in the next states, (n, width). No
            gradient flows through them.
        reward, discount
            r and d of the Bellman targets r + d Z', (n,) each.
        reward_support
            The pairs (reward, discount) that can occur, where they are few; an agent may compute
            constants from them. None where any pair can occur.

        Returns
        -------
        Array
            The losses, (n,).
        """

    @abstractmethod
    def distribution(self, output: np.ndarray, scale: float) -> Distribution:
        """Return the predicted returns as a distribution.

        Parameters
        ----------
        output
            Network outputs, (n, width).
        scale
            A factor for the returns, which undoes the scaling of rewards.

        Returns
        -------
        Distribution
            A distribution of n rows and one output. Its mean is ``scale`` times `value`.
        """

    def resolved(self, rewards: np.ndarray, gamma: float) -> Self:
        """Return this agent with all "auto" parameters replaced by values.

        Parameters
        ----------
        rewards
            Rewards that random actions gave.
        gamma
            The discount.
        """
        return self

    def mass_outside(self, target: Array, reward: Array, discount: Array) -> Array:
        """Return the share of each Bellman target that the agent cannot represent, (n,)."""
        return jnp.zeros(reward.shape)

    def to_config(self) -> dict[str, Any]:
        """Return ``kind`` and the fields, as JSON can hold them."""
        if "kind" not in type(self).__dict__:  # an inherited one is another class's
            raise NkcmeError(f"the class {type(self).__name__} must set a kind, its name in files")
        return {"kind": self.kind} | {f.name: getattr(self, f.name) for f in fields(self)}


def agent_from_config(config: dict[str, Any]) -> Agent:
    """Return the agent of an `Agent.to_config`."""
    if config["kind"] not in KINDS:
        raise ModelFileError(
            f"expected an agent of the kinds {', '.join(KINDS)}; found {config['kind']!r}: import "
            "the module that defines it"
        )
    kind = KINDS[config["kind"]]
    known = {f.name for f in fields(kind)}
    return kind(**{k: _tupled(v) for k, v in config.items() if k in known})


def _tupled(value: Any) -> Any:
    return tuple(_tupled(v) for v in value) if isinstance(value, list) else value


def checked_bandwidths(bandwidths: Sequence[float]) -> tuple[float, ...]:
    """Return the bandwidths of kernels; raise unless there is one and each is above 0."""
    if not len(bandwidths):
        raise NkcmeError("bandwidths must be at least one; got none")
    for bandwidth in bandwidths:
        need_number("each of bandwidths", bandwidth, above=0.0)
    return tuple(float(b) for b in bandwidths)


@dataclass(frozen=True)
class AtomAgent(Agent):
    """Base class of agents that put weights on fixed atoms, evenly spaced over a support.

    Parameters
    ----------
    n_atoms
        The number of atoms.
    support
        The lowest and the highest return; or "auto" to derive both from the rewards of the random
        steps at the start, as the largest return that such rewards can add up to.
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
        """The number of atoms: one weight each."""
        return self.n_atoms

    @property
    def atoms(self) -> np.ndarray:
        """The returns eta_a, (n_atoms,)."""
        if isinstance(self.support, str):
            raise NkcmeError(
                'support="auto" is resolved when training starts, so there are no atoms yet; give '
                "(lowest, highest)"
            )
        return np.linspace(*self.support, self.n_atoms)

    @property
    def spacing(self) -> float:
        """The distance between neighbouring atoms."""
        return float(self.atoms[1] - self.atoms[0])

    def resolved(self, rewards: np.ndarray, gamma: float) -> Self:
        """Return this agent with a support in place of "auto".

        The support reaches as far to both sides of zero as the largest reward in every step adds
        up to, so it is closed under r + gamma z. An untrained network then predicts returns near
        zero. Where rewards are costs that is optimistic, so the agent explores: with the lower
        half of the support alone MountainCar is not solved.
        """
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
        """Return the weights of the atoms: a softmax, as in the paper."""
        return jax.nn.softmax(output, axis=-1)

    def value(self, output: Array) -> Array:
        """Return the weighted mean of the atoms, (...,) from (..., width)."""
        return self.weights(output) @ jnp.asarray(self.atoms, output.dtype)

    def bellman_atoms(self, reward: Array, discount: Array) -> Array:
        """Return tau_a = r + d eta_a, (n, m)."""
        return reward[:, None] + discount[:, None] * jnp.asarray(self.atoms, reward.dtype)[None]

    def mass_outside(self, target: Array, reward: Array, discount: Array) -> Array:
        """Return the mass of each Bellman target outside the support, (n,)."""
        low, high = self.atoms[0], self.atoms[-1]
        tau = self.bellman_atoms(reward, discount)
        # Mass within one spacing of the support does not count: it moves to the outermost atom.
        out = (tau < low - self.spacing) | (tau > high + self.spacing)
        return jnp.sum(jnp.where(out, self.weights(target), 0.0), axis=-1)
