"""The loop for environments that Python steps (Gymnasium): the same agents, one step at a time."""

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
from nkcme.rl.curve import Curve
from nkcme.rl.envs import Hosted
from nkcme.rl.learner import Learner, Program
from nkcme.rl.result import Result
from nkcme.rl.settings import Settings
from nkcme.training.chunks import Progress, Values, equal_chunks, run_in_chunks
from nkcme.training.replicas import single_precision


@single_precision()
def train_hosted(
    env: Hosted, agent: Agent, settings: Settings, seeds: list[int], progress: Progress | None
) -> Result:
    """Train agents one after the other; see `nkcme.rl.loop.train`."""
    runs: list[_Run] = []
    done, interrupted, warned = settings.n_steps, False, False
    for k, seed in enumerate(seeds):
        run = _Run(env, agent, settings, seed, warned)
        share = None if progress is None else _Share(progress, k, len(seeds), settings.n_steps)
        steps, stop_requested = run_in_chunks(run, progress=share)
        # An "auto" support is resolved by the first seed, for all.
        agent, warned = run.program.agent, run.warned
        finished = steps == settings.n_steps
        if finished or k == 0:  # an unfinished later seed would shorten the curves of the others
            runs.append(run)
            done = steps
        if stop_requested:
            interrupted = not finished or k < len(seeds) - 1
            break
    returns = np.stack([run.returns for run in runs], axis=1)
    curve = Curve.empty(len(runs))
    curve.extend(settings.eval_every * np.arange(1, len(returns) + 1), returns)
    networks = [learning.acting(run.learner) for run in runs]
    return Result(
        env_name=env.name,
        agent=agent,
        settings=settings,
        seeds=tuple(seeds[: len(runs)]),
        n_actions=env.n_actions,
        observation_size=env.observation_size,
        networks=jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks),
        curve=curve,
        n_steps=done,
        interrupted=interrupted,
    )


class _Share:
    """The progress of one seed as a share of the progress of all."""

    def __init__(self, progress: Progress, number: int, n_seeds: int, n_steps: int):
        self._progress, self._n_seeds = progress, n_seeds
        self._before = number * n_steps

    def update(self, step: int, values: dict[str, float]) -> None:
        self._progress.update((self._before + step) // self._n_seeds, values)


class _Run:
    """The run of one seed, for `nkcme.training.chunks.run_in_chunks`."""

    replica_name = "agent"
    divergence_advice = learning.DIVERGENCE_ADVICE

    def __init__(self, env: Hosted, agent: Agent, settings: Settings, seed: int, warned: bool):
        self.env, self.settings, self.warned = env, settings, warned
        self.program = Program(agent, settings, env.n_actions, env.observation_size, None)
        self.rng = np.random.default_rng(seed)
        self.learner = _start(self.program, jax.random.key(seed))
        self.returns: list[float] = []
        self.observation = env.reset(seed)
        self._fill()

    def _fill(self) -> None:
        """Take the random steps at the start and write them to the replay."""
        rows = [
            self._advance(int(self.rng.integers(self.env.n_actions)))
            for _ in range(self.settings.prefill)
        ]
        rewards = np.array([row[-3] for row in rows])
        agent = self.program.agent.resolved(
            self.settings.reward_scale * rewards, self.settings.gamma
        )
        self.program = self.program._replace(agent=agent)
        self._set_rewards(finite_rewards.distinct_rewards(rewards))
        for first in range(0, len(rows), self.settings.update_every):
            some = jnp.asarray(np.stack(rows[first : first + self.settings.update_every]))
            self.learner = _write(self.learner, some, first)

    def _set_rewards(self, rewards: np.ndarray) -> None:
        self.rewards = rewards
        support = finite_rewards.reward_support(self.settings.reward_scale * rewards, self.settings)
        self.program = self.program._replace(reward_support=support)

    def _advance(self, action: int) -> np.ndarray:
        """Step the environment; return the transition as a row of the replay."""
        final, reward, terminated, truncated = self.env.step(action)
        ended = terminated or truncated
        row = np.concatenate(
            [self.observation, final, [action, reward, terminated, ended]], dtype=np.float32
        )
        self.observation = self.env.reset() if ended else final
        return row

    def start(self) -> None:
        """Do nothing: the constructor has filled the replay, where Ctrl-C is an ordinary one."""

    def chunk_lengths(self, done: int) -> Sequence[int]:
        return equal_chunks(self.settings.n_steps, self.settings.eval_every, done)

    def run_chunk(self, done: int, length: int) -> Values:
        """Train until the next evaluation; return the mean values and the evaluated return."""
        settings, updates = self.settings, []
        for step in range(done, done + length, settings.update_every):
            actions = range(settings.update_every)
            rows = np.stack([self._advance(self._action(step + i)) for i in actions])
            rewards = finite_rewards.merged_rewards(self.rewards, rows[:, -3])
            if self.program.reward_support is not None and len(rewards) > len(self.rewards):
                self._set_rewards(rewards)
            uniform = self.rng.random(settings.batch_size, np.float32)
            self.learner, values = _learn(
                self.program, self.learner, jnp.asarray(rows), uniform, step
            )
            updates.append(values)
        returns = np.array([self._episode()])
        means = {name: np.array([np.mean([v[name] for v in updates])]) for name in updates[0]}
        return means | {"returns": returns}

    def record(self, done: int, values: Values) -> dict[str, float]:
        self.returns.append(float(values["returns"][0]))
        self.warned = self.warned or learning.warn_of_support(
            self.program.agent, float(values["outside"][0]), done
        )
        return {"return": self.returns[-1], "loss": float(values["loss"][0])}

    def _action(self, step: int) -> int:
        epsilon = float(learning.epsilon_at(self.settings, float(step)))
        return self._choose(self.learner.network, epsilon)

    def _choose(self, network: Any, epsilon: float) -> int:
        if self.rng.random() < epsilon:
            return int(self.rng.integers(self.env.n_actions))
        return int(_greedy(self.program, network, self.observation))

    def _episode(self) -> float:
        """Return the return of one evaluation episode; training begins a new episode after it."""
        network = learning.acting(self.learner)
        self.observation = self.env.reset()
        total, ended = 0.0, False
        while not ended:
            row = self._advance(self._choose(network, self.settings.eval_epsilon))
            total, ended = total + float(row[-3]), bool(row[-1])
        return total


@partial(jax.jit, static_argnums=0)
def _start(program: Program, key: Array) -> Learner:
    return learning.start(program, key)


@partial(jax.jit, static_argnums=0)
def _greedy(program: Program, network: Any, observation: Array) -> Array:
    return learning.greedy(program, network, observation)


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
