"""Environments of a few states with known returns, each an `nkcme.rl.environment.Environment`."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from nkcme.rl.environment import Step

NO = jnp.array(False)


@dataclass(frozen=True)
class Chain:
    """s0 -> s1 -> the end; a reward is one of two equally likely values.

    ``REWARDS[state][action]`` are the two. In s1 the second action is better: 1.5 against 0 in the
    mean.
    """

    name: str = "chain"
    n_actions: int = 2
    observation_size: int = 2
    max_steps: int = 2

    REWARDS = (((0.0, 0.0), (-1.0, 1.0)), ((-1.0, 1.0), (0.0, 3.0)))

    @staticmethod
    def observe(state):
        return jax.nn.one_hot(state, 2)

    def reset(self, key):
        return jnp.int32(0), self.observe(0)

    def step(self, key, state, action):
        reward = jnp.asarray(self.REWARDS)[state, action, jax.random.bernoulli(key).astype(int)]
        ended = state == 1
        after = jnp.where(ended, 0, state + 1)
        return after, Step(self.observe(after), self.observe(state + 1), reward, ended, NO)


@dataclass(frozen=True)
class Clock:
    """One state; the reward is ``before``, and ``later`` from step ``change`` on.

    Episodes are truncated after ``max_steps``; the clock that counts to ``change`` is not reset.
    """

    name: str = "clock"
    n_actions: int = 2
    observation_size: int = 1
    max_steps: int = 5
    before: float = 1.0
    later: float = 1.0
    change: int = 0

    def reset(self, key):
        return (jnp.int32(0), jnp.int32(0)), jnp.ones(1)

    def step(self, key, state, action):
        t, clock = state
        reward = jnp.where(clock < self.change, self.before, self.later)
        truncated = t + 1 == self.max_steps
        after = (jnp.where(truncated, 0, t + 1), clock + 1)
        return after, Step(jnp.ones(1), jnp.ones(1), jnp.float32(reward), NO, truncated)


@dataclass(frozen=True)
class Stairs(Clock):
    """A clock with rewards that count from -9 to 2, again and again."""

    def step(self, key, state, action):
        after, step = super().step(key, state, action)
        return after, step._replace(reward=state[1] % 12 - 9.0)


@dataclass(frozen=True)
class Corridor:
    """Places 0 to 4; reaching 4 gives a reward of 1, every other step costs 0.1.

    Episodes begin at ``start``, or at a random place below 4, and are truncated after
    ``max_steps``. An action is reversed with probability ``slip``.
    """

    name: str = "corridor"
    n_actions: int = 2
    observation_size: int = 5
    max_steps: int = 12
    start: int | None = None
    slip: float = 0.0

    @staticmethod
    def observe(place):
        return jax.nn.one_hot(place, 5)

    def reset(self, key):
        place = jax.random.randint(key, (), 0, 4) if self.start is None else jnp.int32(self.start)
        return (place, jnp.int32(0)), self.observe(place)

    def step(self, key, state, action):
        place, t = state
        slip_key, reset_key = jax.random.split(key)
        action = jnp.where(jax.random.uniform(slip_key) < self.slip, 1 - action, action)
        place = jnp.clip(place + 2 * action - 1, 0, 4)
        terminated = place == 4
        truncated = (t + 1 == self.max_steps) & ~terminated
        fresh, begin = self.reset(reset_key)
        ended = terminated | truncated
        after = (jnp.where(ended, fresh[0], place), jnp.where(ended, 0, t + 1))
        final = self.observe(place)
        reward = jnp.where(terminated, 1.0, -0.1)
        return after, Step(jnp.where(ended, begin, final), final, reward, terminated, truncated)
