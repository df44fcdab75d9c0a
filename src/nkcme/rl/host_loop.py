"""The loop for environments that Python steps (Gymnasium): the same agents, one step at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl import finite_rewards as known
from nkcme.rl import learner as learning
from nkcme.rl import replay as buffer
from nkcme.rl.agents.base import Agent
from nkcme.rl.envs import Hosted
from nkcme.rl.learner import Learner, Program
from nkcme.rl.result import Curve, Result
from nkcme.rl.settings import Settings
from nkcme.training.interrupts import Interrupts
from nkcme.training.loop import Progress
from nkcme.training.replicas import single_precision


@single_precision()
def train_hosted(
    env: Hosted, agent: Agent, settings: Settings, seeds: list[int], progress: Progress | None
) -> Result:
    """See `nkcme.rl.loop.train`. Seeds are trained one after the other."""
    learners, curves, done, interrupted, warned = [], [], settings.n_steps, False, False
    for k, seed in enumerate(seeds):
        run = _Run(env, agent, settings, seed)
        with Interrupts() as interrupts:
            while run.step < settings.n_steps and not interrupts.requested:
                told = run.until_evaluation()
                learning.refuse_divergence(np.array([told["loss"]]), run.step)
                warned = warned or learning.warn_of_support(
                    run.program.agent, told["outside"], run.step
                )
                if progress is not None:
                    progress.update(
                        (k * settings.n_steps + run.step) // len(seeds),
                        {"return": run.returns[-1], "loss": told["loss"]},
                    )
        agent = run.program.agent
        whole = run.step == settings.n_steps
        if whole or k == 0:  # a later seed that was cut short would cut the curves of the others
            learners.append(run.learner)
            curves.append(run.returns)
            done = run.step
        if interrupts.requested:
            interrupted = not whole or k < len(seeds) - 1
            break
    curve = Curve.empty(len(learners))
    curve.extend(settings.eval_every * np.arange(1, len(curves[0]) + 1), np.stack(curves, axis=1))
    networks = [learning.acting(learner) for learner in learners]
    return Result(
        env_name=env.name,
        agent=agent,
        settings=settings,
        seeds=tuple(seeds[: len(learners)]),
        n_actions=env.n_actions,
        observation_size=env.observation_size,
        networks=jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks),
        curve=curve,
        n_steps=done,
        interrupted=interrupted,
    )


class _Run:
    """One seed's."""

    def __init__(self, env: Hosted, agent: Agent, settings: Settings, seed: int):
        self.env, self.settings = env, settings
        self.program = Program(agent, settings, env.n_actions, env.observation_size, None)
        self.rng = np.random.default_rng(seed)
        self.learner = _start(self.program, jax.random.key(seed))
        self.step, self.returns = 0, [np.nan][:0]
        self.observation = env.reset(seed)
        self._fill()

    def _fill(self) -> None:
        rows = [
            self._advance(int(self.rng.integers(self.env.n_actions)))
            for _ in range(self.settings.prefill)
        ]
        rewards = np.array([row[-3] for row in rows])
        self.rewards = known.distinct(rewards)
        agent = self.program.agent.settled(
            self.settings.reward_scale * rewards, self.settings.gamma
        )
        self._know(agent)
        for first in range(0, len(rows), self.settings.update_every):
            some = jnp.asarray(np.stack(rows[first : first + self.settings.update_every]))
            self.learner = _write(self.learner, some, first)

    def _know(self, agent: Agent) -> None:
        outcomes = known.outcomes(self.settings.reward_scale * self.rewards, self.settings)
        self.program = self.program._replace(agent=agent, outcomes=outcomes)

    def _advance(self, action: int) -> np.ndarray:
        """Step the environment; the transition as a row of the replay."""
        final, reward, terminated, truncated = self.env.step(action)
        ended = terminated or truncated
        row = np.concatenate(
            [self.observation, final, [action, reward, terminated, ended]], dtype=np.float32
        )
        self.observation = self.env.reset() if ended else final
        return row

    def until_evaluation(self) -> dict[str, float]:
        """Mean loss and the like of the steps until then."""
        settings, every = self.settings, []
        for _ in range(settings.eval_every // settings.update_every):
            rows = np.stack([self._advance(self._action(i)) for i in range(settings.update_every)])
            fresh = known.joined(self.rewards, rows[:, -3])
            if self.program.outcomes is not None and len(fresh) > len(self.rewards):
                self.rewards = fresh
                self._know(self.program.agent)
            uniform = self.rng.random(settings.batch_size, np.float32)
            self.learner, told = _learn(
                self.program, self.learner, jnp.asarray(rows), uniform, self.step
            )
            every.append(told)
            self.step += settings.update_every
        self.returns.append(self._episode())
        return {name: float(np.mean([told[name] for told in every])) for name in every[0]}

    def _action(self, i: int) -> int:
        epsilon = float(learning.epsilon_at(self.settings, float(self.step + i)))
        return self._choose(self.learner.network, epsilon)

    def _choose(self, network: Any, epsilon: float) -> int:
        if self.rng.random() < epsilon:
            return int(self.rng.integers(self.env.n_actions))
        return int(_greedy(self.program, network, self.observation))

    def _episode(self) -> float:
        """The return of one evaluation episode; training begins a new one after it."""
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
    """Store a round's transitions, update, and copy the target where it is time."""
    settings = program.settings
    capacity, n = settings.buffer_size, settings.update_every
    position = (settings.prefill + step) % capacity
    learner = learner._replace(replay=buffer.write(learner.replay, rows, position))
    size = jnp.minimum(settings.prefill + step + n, capacity)
    learner, told = learning.learn(program, learner, uniform, size, position + n - 1)
    due = (jnp.asarray(step) + n) % settings.target_every == 0
    return learning.with_target_copied(learner, due), told
