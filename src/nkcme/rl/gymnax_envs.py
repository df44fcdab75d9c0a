"""Environments of gymnax, stepped inside the compiled loop. No other module imports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from nkcme.rl.environment import Step
from nkcme.rl.observations import Observations


@dataclass(frozen=True)
class Compiled:
    """A gymnax environment, as `nkcme.rl.environment.Environment` describes it.

    Environments are compared by name: equal ones share compiled programs.

    Parameters
    ----------
    name
        The name that gymnax has for it.
    """

    name: str

    @property
    def backend(self) -> str:
        """The library that the environment comes from: "gymnax"."""
        return "gymnax"

    def _made(self) -> tuple[Any, Any]:
        if self.name not in _GYMNAX:
            import gymnax

            # Some environments create arrays. The cached ones must not belong to a program that
            # is being traced.
            with jax.ensure_compile_time_eval():
                _GYMNAX[self.name] = gymnax.make(self.name)
        return _GYMNAX[self.name]

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        env, params = self._made()
        return int(env.action_space(params).n)

    @property
    def observations(self) -> Observations:
        """What the observations are."""
        env, params = self._made()
        space = env.observation_space(params)
        if hasattr(space, "n"):  # one of n states
            return Observations((), "int32", n_states=int(space.n))
        return Observations(tuple(int(n) for n in space.shape))

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of an observation before it is flattened."""
        return self.observations.shape

    @property
    def observation_size(self) -> int:
        """The length of an observation as a vector."""
        return self.observations.size

    @property
    def max_steps(self) -> int:
        """The length at which an episode is truncated."""
        return int(self._made()[1].max_steps_in_episode)

    def reset(self, key: Array) -> tuple[Any, Array]:
        """Return the state and the first observation of a new episode."""
        env, params = self._made()
        observation, state = env.reset(key, params)
        # Some leaves are Python numbers, which have another type than the arrays of later states.
        return jax.tree.map(jnp.asarray, state), self._vector(observation)

    def step(self, key: Array, state: Any, action: Array) -> tuple[Any, Step]:
        """Take an action; return the next state and the step."""
        env, params = self._made()
        observation, after, reward, terminated, truncated, info = env.step(
            key, state, action, params
        )
        after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, state)
        step = Step(
            self._vector(observation),
            self._vector(info["final_observation"]),
            jnp.asarray(reward, jnp.float32),
            terminated,
            truncated & ~terminated,
        )
        return after, step

    def _vector(self, observation: Array) -> Array:
        n_states = self.observations.n_states
        if n_states is not None:
            return jax.nn.one_hot(observation, n_states)
        return jnp.ravel(observation).astype(jnp.float32)


_GYMNAX: dict[str, tuple[Any, Any]] = {}


def gymnax_has(name: str) -> bool:
    """Whether gymnax has an environment of that name with discrete actions."""
    import gymnax

    if name not in gymnax.registered_envs:
        return False
    env, params = gymnax.make(name)
    return hasattr(env.action_space(params), "n")
