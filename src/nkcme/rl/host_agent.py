"""One agent that learns in an environment which Python steps (Gymnasium)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl import finite_rewards
from nkcme.rl import learner as learning
from nkcme.rl import replay as buffer
from nkcme.rl.agents.base import Agent
from nkcme.rl.hosted import Hosted
from nkcme.rl.hosted_vector import HostedVector
from nkcme.rl.learner import Learner, Program
from nkcme.rl.settings import Settings
from nkcme.rl.transitions import Transitions


class HostAgent:
    """The agent of one seed, with an environment to train in and one to evaluate in.

    An evaluation therefore does not end the training episode. With ``fill`` the constructor fills
    the replay with random steps; otherwise `go_on` follows.
    """

    def __init__(
        self,
        env: Hosted | HostedVector,
        evaluation_env: Hosted | HostedVector,
        agent: Agent,
        settings: Settings,
        seed: int,
        fill: bool,
    ):
        self.settings, self.seed = settings, seed
        self.program = Program(
            agent,
            settings,
            env.n_actions,
            env.observation_size,
            None,
            env.n_envs,
            env.observations.image,
        )
        self.rng = np.random.default_rng(seed)
        self.learner = _start(self.program, jax.random.key(seed))
        self.cut_off = False  # whether an evaluation episode did not end
        self._evaluation_env = evaluation_env
        evaluation_env.begin(int(np.random.SeedSequence([seed, 1]).generate_state(1)[0]))
        self._env = env
        self._transitions = Transitions(env, seed)
        # The rewards of the random steps also resolve an "auto" support.
        if fill or getattr(agent, "support", None) == "auto":
            self._fill()

    def _fill(self) -> None:
        """Take the random steps at the start and write them to the replay."""
        settings = self.settings
        rows = [self._transitions.take(self._random_actions) for _ in range(settings.prefill)]
        rewards = np.array([row[-3] for row in rows])
        agent = self.program.agent.resolved(settings.reward_scale * rewards, settings.gamma)
        self.program = self.program._replace(agent=agent)
        self._set_rewards(finite_rewards.distinct_rewards(rewards))
        for first in range(0, len(rows), settings.update_every):
            some = jnp.asarray(np.stack(rows[first : first + settings.update_every]))
            self.learner = _write(self.learner, some, first)

    def _set_rewards(self, rewards: np.ndarray) -> None:
        self.rewards = rewards
        support = finite_rewards.reward_support(self.settings.reward_scale * rewards, self.settings)
        self.program = self.program._replace(reward_support=support)

    def go_on(self, done: int, rewards: np.ndarray) -> None:
        """Begin a new episode after ``done`` steps, with the learner of a checkpoint."""
        self.rng = np.random.default_rng([self.seed, done])
        self._set_rewards(finite_rewards.distinct_rewards(rewards))
        self._transitions = Transitions(self._env, int(self.rng.integers(2**31)))
        # The episodes of the former environments end here; no return reaches into a new one.
        last = self.settings.prefill + done - 1 - np.arange(self.program.n_envs)
        rows = self.learner.replay.rows.at[last % self.settings.buffer_size, -1].set(1.0)
        self.learner = self.learner._replace(replay=self.learner.replay._replace(rows=rows))

    def train(self, done: int, length: int) -> dict[str, float]:
        """Train for ``length`` steps after ``done``; return the means of loss and "outside"."""
        settings, updates = self.settings, []
        steps = jnp.arange(done, done + length, dtype=jnp.float32)
        epsilons = np.asarray(learning.epsilon_at(settings, steps))
        for first in range(0, length, settings.update_every):
            rows = np.stack(
                [
                    self._transitions.take(partial(self._actions, self.learner.network, epsilon))
                    for epsilon in epsilons[first : first + settings.update_every]
                ]
            )
            rewards = finite_rewards.merged_rewards(self.rewards, rows[:, -3])
            if self.program.reward_support is not None and len(rewards) > len(self.rewards):
                self._set_rewards(rewards)
            uniform = self.rng.random(settings.batch_size, np.float32)
            self.learner, values = _learn(
                self.program, self.learner, jnp.asarray(rows), uniform, done + first
            )
            updates.append(values)
        return {name: float(np.mean([v[name] for v in updates])) for name in updates[0]}

    def evaluate(self) -> float:
        """Return the return of one evaluation episode; of several environments, their mean."""
        env, network = self._evaluation_env, learning.acting(self.learner)
        env.begin()
        totals, running = np.zeros(env.n_envs), np.ones(env.n_envs, bool)
        for _ in range(env.max_steps):
            actions = self._actions(network, self.settings.eval_epsilon, env.current)
            for i, taken in enumerate(env.advance(actions)):
                if taken is not None and running[i]:
                    totals[i] += taken.reward
                    running[i] = not taken.ended
            if not running.any():
                break
        else:
            self.cut_off = True
        return float(totals.mean())

    def _random_actions(self, observations: np.ndarray) -> Sequence[int]:
        return [int(self.rng.integers(self.program.n_actions)) for _ in observations]

    def _actions(self, network: Any, epsilon: float, observations: np.ndarray) -> Sequence[int]:
        """Return the best action for each observation, or a random one with probability epsilon."""
        if len(observations) > 1:
            greedy = np.asarray(_greedy_each(self.program, network, observations))
            explore = self.rng.random(len(observations)) < epsilon
            return np.where(explore, self._random_actions(observations), greedy).tolist()
        if self.rng.random() < epsilon:
            return self._random_actions(observations)
        return [int(_greedy(self.program, network, observations[0]))]


@partial(jax.jit, static_argnums=0)
def _start(program: Program, key: Array) -> Learner:
    return learning.start(program, key)


@partial(jax.jit, static_argnums=0)
def _greedy(program: Program, network: Any, observation: Array) -> Array:
    return learning.greedy(program, network, observation)


@partial(jax.jit, static_argnums=0)
def _greedy_each(program: Program, network: Any, observations: Array) -> Array:
    return jax.vmap(lambda o: learning.greedy(program, network, o))(observations)


@partial(jax.jit, donate_argnums=0)
def _write(learner: Learner, rows: Array, position: int) -> Learner:
    return learner._replace(replay=buffer.write(learner.replay, rows, position))


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _learn(
    program: Program, learner: Learner, rows: Array, uniform: Array, step: int
) -> tuple[Learner, dict[str, Array]]:
    """Store the transitions of a cycle, update, and copy the target where it is due."""
    settings = program.settings
    capacity, n = settings.buffer_size, settings.update_every
    position = (settings.prefill + step) % capacity
    learner = learner._replace(replay=buffer.write(learner.replay, rows, position))
    size = jnp.minimum(settings.prefill + step + n, capacity)
    learner, values = learning.learn(program, learner, uniform, size, position + n - 1)
    return learning.with_target_copied(settings, learner, jnp.asarray(step) + n), values
