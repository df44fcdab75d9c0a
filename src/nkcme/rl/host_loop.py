"""The loop for environments that Python steps (Gymnasium): the same agents, one step at a time.

Every agent has an environment to train in and one to evaluate in. The agents take turns: each
trains until the next evaluation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from nkcme.rl import learner as learning
from nkcme.rl.agents.base import Agent
from nkcme.rl.callbacks import Callback, Watching, until_stopped
from nkcme.rl.continuing import AgentsCheckpoint, SavedAtTheEnd, fingerprint
from nkcme.rl.curve import Curve
from nkcme.rl.finite_rewards import MAX_REWARDS
from nkcme.rl.host_agent import HostAgent
from nkcme.rl.hosted import Hosted
from nkcme.rl.hosted_vector import HostedVector
from nkcme.rl.learner import Learner
from nkcme.rl.result import Result
from nkcme.rl.settings import Settings
from nkcme.training.chunks import Checkpoint, Progress, Values, equal_chunks, run_in_chunks
from nkcme.training.replicas import single_precision


@single_precision()
def train_hosted(
    env: Hosted | HostedVector,
    agent: Agent,
    settings: Settings,
    seeds: list[int],
    checkpoint: Checkpoint | None,
    go_on: bool,
    progress: Progress | None,
    callbacks: Sequence[Callback],
) -> Result:
    """Train agents side by side; see `nkcme.rl.loop.train`."""
    # All copies are made before the first step in the environment that they are copies of.
    copies = [env.another() for _ in range(2 * len(seeds) - 1)]
    try:
        run = _Run([env, *copies], agent, settings, seeds, fill=not go_on)
        saved = None
        if checkpoint is not None:
            full = fingerprint(env, agent, settings, seeds)
            file = AgentsCheckpoint(
                checkpoint, env, settings, seeds, agent=lambda: run.agent, go_on=go_on, full=full
            )
            saved = SavedAtTheEnd(run, file, full)
        watching = Watching(run, progress, callbacks)
        done, stop_requested = run_in_chunks(run, checkpoint=saved, progress=watching)
        if saved is not None:
            saved.save_now(done)
    finally:
        for one in copies:
            one.close()
    interrupted = stop_requested and done < settings.n_steps
    return replace(run.result(done), interrupted=interrupted)


class _Run:
    """The run of all seeds, for `nkcme.training.chunks.run_in_chunks`."""

    replica_name = "agent"
    divergence_advice = learning.DIVERGENCE_ADVICE

    def __init__(
        self,
        envs: Sequence[Hosted | HostedVector],
        agent: Agent,
        settings: Settings,
        seeds: list[int],
        fill: bool,
    ):
        self.env, self.settings, self.seeds = envs[0], settings, seeds
        self.scores: dict[str, np.ndarray] = {}
        self.stopped = False
        self.curve = Curve.empty(len(seeds))
        self.agents: list[HostAgent] = []
        self.agent = agent
        self.warned = self.warned_of_length = False
        for k, seed in enumerate(seeds):
            one = HostAgent(envs[k], envs[len(seeds) + k], self.agent, settings, seed, fill)
            self.agent = one.program.agent  # an "auto" support is resolved by the first, for all
            self.agents.append(one)

    def start(self) -> None:
        """Do nothing: the constructor has filled the replay, where Ctrl-C is an ordinary one."""

    def chunk_lengths(self, done: int) -> Iterator[int]:
        lengths = equal_chunks(self.settings.n_steps, self.settings.eval_every, done)
        return until_stopped(self, lengths)

    def run_chunk(self, done: int, length: int) -> Values:
        """Train until the next evaluation; return the mean values and the evaluated returns."""
        values = [one.train(done, length) for one in self.agents]
        means = {name: np.array([v[name] for v in values]) for name in values[0]}
        return means | {"returns": np.array([one.evaluate() for one in self.agents])}

    def record(self, done: int, values: Values) -> dict[str, float]:
        self.curve.extend(np.array([done]), values["returns"][None], values["loss"])
        self.scores = {"return": values["returns"], "loss": values["loss"]}
        self.warned = self.warned or learning.warn_of_support(
            self.agent, float(values["outside"].mean()), done
        )
        if not self.warned_of_length and any(one.cut_off for one in self.agents):
            self.warned_of_length = True
            warnings.warn(
                f"{self.env.name}: an evaluation episode did not end within "
                f"{self.env.max_steps:,} steps and was cut off: set a time limit "
                "(gymnasium.wrappers.TimeLimit)",
                stacklevel=6,  # the caller of nkcme.rl.train
            )
        return {"return": float(values["returns"].mean()), "loss": float(values["loss"].mean())}

    def result(self, done: int) -> Result:
        env, curve = self.env, self.curve
        networks = [learning.acting(one.learner) for one in self.agents]
        return Result(
            env_name=env.name,
            env_by_name=env.by_name,
            agent=self.agent,
            settings=self.settings,
            seeds=tuple(self.seeds),
            n_actions=env.n_actions,
            observation_size=env.observation_size,
            observations=env.observations,
            networks=jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks),
            curve=Curve(curve.step, curve.returns, curve.loss),
            n_steps=done,
        )

    @property
    def states(self) -> list[Learner]:
        """What a checkpoint holds: the learner of each agent, with a leading axis of one."""
        return [jax.tree.map(lambda leaf: leaf[None], one.learner) for one in self.agents]

    @states.setter
    def states(self, states: list[Learner]) -> None:
        for one, state in zip(self.agents, states, strict=True):
            one.learner = jax.tree.map(lambda leaf: leaf[0], state)

    def history_arrays(self) -> dict[str, np.ndarray]:
        rewards = np.full((len(self.agents), MAX_REWARDS + 1), np.nan)
        for row, one in zip(rewards, self.agents, strict=True):
            row[: len(one.rewards)] = one.rewards
        return self.curve.as_arrays() | {"rewards": rewards}

    def restore_history(self, arrays: dict[str, np.ndarray]) -> None:
        self.curve = Curve.from_arrays(arrays)
        for one, rewards in zip(self.agents, arrays["rewards"], strict=True):
            one.go_on(int(self.curve.step[-1]), rewards)
