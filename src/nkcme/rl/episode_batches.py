"""Episodes that are played side by side, in the environments of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array

from nkcme.rl.environment import Environment, Step
from nkcme.rl.envs import AnyEnvironment, Hosted, HostedVector
from nkcme.training.replicas import single_precision

#: Environments of Gymnasium that are held at a time.
_MAX_HOSTED = 100

#: Rewards, and whether episodes terminated and were truncated, one value per episode.
Steps = tuple[np.ndarray, np.ndarray, np.ndarray]


class EpisodeBatch(Protocol):
    """Episodes that have begun."""

    #: The observations to act on, (n, observation_size).
    observations: np.ndarray

    def step(self, actions: np.ndarray, running: np.ndarray) -> Steps:
        """Take an action in each episode; those that do not run are ignored."""


def largest_batch(env: AnyEnvironment) -> int:
    """Return the largest number of episodes that `episode_batch` plays side by side."""
    if isinstance(env, HostedVector):
        return env.n_envs
    return _MAX_HOSTED if isinstance(env, Hosted) else 10**9


@contextmanager
def episode_batch(env: AnyEnvironment, n: int, seed: int) -> Iterator[EpisodeBatch]:
    """Begin n episodes; a vectorised environment begins as many as it has copies.

    The seeds of Gymnasium environments are consecutive numbers.
    """
    if isinstance(env, HostedVector):
        yield _VectorBatch(env, seed)
    elif isinstance(env, Hosted):
        copies = [env.another() for _ in range(n - 1)]
        try:
            yield _HostedBatch([env, *copies], seed)
        finally:
            for one in copies:
                one.close()
    else:
        yield _CompiledBatch(env, n, seed)


class _CompiledBatch:
    """Episodes of an environment in JAX; those that ended continue, and their steps are ignored."""

    @single_precision()
    def __init__(self, env: Environment, n: int, seed: int):
        self._env = env
        self._keys = jax.random.split(jax.random.key(seed), n)
        self._t = 0
        self._states, observations = _begin(env, self._keys)
        self.observations = np.asarray(observations)

    @single_precision()
    def step(self, actions: np.ndarray, running: np.ndarray) -> Steps:
        self._t += 1
        self._states, taken = _advance(self._env, self._keys, self._t, self._states, actions)
        self.observations = np.asarray(taken.observation)
        truncated = np.asarray(taken.truncated) | (self._t >= self._env.max_steps)
        return np.asarray(taken.reward, np.float64), np.asarray(taken.terminated), truncated


@partial(jax.jit, static_argnums=0)
def _begin(env: Environment, keys: Array) -> tuple[Any, Array]:
    return jax.vmap(lambda key: env.reset(jax.random.fold_in(key, 0)))(keys)


@partial(jax.jit, static_argnums=0)
def _advance(
    env: Environment, keys: Array, t: Array, states: Any, actions: Array
) -> tuple[Any, Step]:
    one = lambda key, state, action: env.step(jax.random.fold_in(key, t), state, action)  # noqa: E731
    return jax.vmap(one)(keys, states, actions)


class _HostedBatch:
    """Episodes of Gymnasium environments, one each."""

    def __init__(self, envs: list[Hosted], seed: int):
        self._envs, self._t = envs, 0
        self.observations = np.stack([e.reset(seed + i) for i, e in enumerate(envs)])

    def step(self, actions: np.ndarray, running: np.ndarray) -> Steps:
        self._t += 1
        n = len(running)
        rewards, terminated, truncated = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
        self.observations = self.observations.copy()
        for i in np.flatnonzero(running):
            self.observations[i], rewards[i], terminated[i], truncated[i] = self._envs[i].step(
                int(actions[i])
            )
        return rewards, terminated, truncated | (self._t >= self._envs[0].max_steps)


class _VectorBatch:
    """Episodes of a vectorised environment, one in each of its copies."""

    def __init__(self, env: HostedVector, seed: int):
        self._env, self._t = env, 0
        env.begin(seed)
        self.observations = env.current

    def step(self, actions: np.ndarray, running: np.ndarray) -> Steps:
        self._t += 1
        taken = self._env.advance(actions.tolist())
        self.observations = self._env.current
        # An episode that ended may have begun anew; its steps are ignored.
        rewards = np.array([0.0 if one is None else one.reward for one in taken])
        terminated = np.array([one is not None and one.terminated for one in taken])
        ended = np.array([one is not None and one.ended for one in taken])
        return rewards, terminated, (ended & ~terminated) | (self._t >= self._env.max_steps)
