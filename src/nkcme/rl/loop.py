"""Training of agents: `train`, and the compiled loop over chunks of steps.

`nkcme.rl.compiled_steps` is what runs inside a chunk. Between chunks the snapshots of the networks
are evaluated and `nkcme.training.chunks` handles progress, checkpoints and Ctrl-C. Gymnasium
environments have a loop in Python, `nkcme.rl.host_loop`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from nkcme.errors import NkcmeError
from nkcme.rl import finite_rewards
from nkcme.rl import learner as learning
from nkcme.rl.agents import Agent, agent_named
from nkcme.rl.callbacks import Callback, Watching, until_stopped
from nkcme.rl.compiled_steps import AgentState, Chunk, prefill_rewards, run_chunk, start
from nkcme.rl.continuing import AgentsCheckpoint, fingerprint
from nkcme.rl.curve import Curve
from nkcme.rl.environment import Environment, check_compiled, observations_of
from nkcme.rl.envs import Hosted, HostedVector, make
from nkcme.rl.evaluation import evaluate_snapshots
from nkcme.rl.host_loop import train_hosted
from nkcme.rl.learner import Program
from nkcme.rl.result import Result
from nkcme.rl.settings import Settings
from nkcme.training.chunks import (
    Checkpoint,
    Progress,
    RunCheckpoint,
    Values,
    equal_chunks,
    run_in_chunks,
)
from nkcme.training.compilation import use_compilation_cache
from nkcme.training.replicas import concatenated, groups, single_precision, workers

#: The number of evaluations in a chunk. Their networks are kept in memory until it ends.
_CHUNK_EVALUATIONS = 100


def train(
    env: Any,
    agent: str | Agent = "fuse",
    settings: Settings | None = None,
    *,
    seeds: int | Sequence[int] = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    go_on: bool = False,
) -> Result:
    """Train agents, one per seed.

    Parameters
    ----------
    env
        An environment: a name, "module:name", a Gymnasium environment (wrapped or vectorised too),
        a class or function that makes one, or one that JAX compiles; see `make`. Through Gymnasium
        each agent has an environment of its own to train in and one to evaluate in. They are made
        by name or by calling the class or function; an object is copied (`copy.deepcopy`) before
        its first step.
    agent
        An `Agent`, or one of the names "fuse", "single", "c51", "mmdqn" and "dqn".
    settings
        How to train; ``Settings()`` by default.
    seeds
        The seed of each agent, or their number n for the seeds 0 to n - 1.
    checkpoint
        Keeps the state of the run after each chunk, as `nkcme.model_files.CheckpointFile`
        does. A checkpoint of the same run is resumed and gives the same bits as an uninterrupted
        run. Gymnasium environments cannot be saved: their checkpoint is written when the run ends,
        and a run that goes on from it begins new episodes.
    progress
        A listener with ``update(step, values)``, called after each chunk.
    callbacks
        Functions that are called after each chunk (100 evaluations in the compiled loop, one
        through Gymnasium) with the steps done, a dict of the chunk's mean "return" and "loss" (one
        value per agent), and the agents as they are, a `Result`. If one returns True, training
        ends.
    go_on
        Continue the run of the checkpoint to ``settings.n_steps`` steps in all, where it had fewer.

    Returns
    -------
    Result
        The trained agents and their curves. Ctrl-C ends the run after the current chunk; the
        result then has ``interrupted`` set.

    Raises
    ------
    NkcmeError
        If an argument is not as described.
    TrainingError
        If the loss diverges, or the checkpoint is of another run.

    Examples
    --------
    >>> from nkcme import rl
    >>> from nkcme.rl.risky_path import RiskyPath
    >>> settings = rl.Settings(n_steps=200, prefill=100, buffer_size=100)
    >>> result = rl.train(RiskyPath(), rl.NKDQN(support=(-6, 3)), settings, seeds=2)
    >>> result.curve.returns.shape
    (2, 2)
    """
    env = make(env)
    if not isinstance(env, Hosted | HostedVector):
        check_compiled(env)
    agent = agent_named(agent) if isinstance(agent, str) else agent
    settings = settings or Settings()
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(s) for s in seeds]
    if not numbers:
        raise NkcmeError("seeds must be at least one; got none")
    if not all(0 <= number < 2**32 for number in numbers):
        raise NkcmeError(f"each of seeds must be from 0 to 2^32 - 1; got {numbers}")
    if go_on and (checkpoint is None or checkpoint.load() is None):
        raise NkcmeError("there is no checkpoint to go on from: give that of a run, or omit go_on")
    watchers = (progress, tuple(callbacks))
    if isinstance(env, Hosted | HostedVector):
        if checkpoint is not None and not go_on and checkpoint.load() is not None:
            raise NkcmeError(
                f"the checkpoint {checkpoint} is of a run through Gymnasium, which cannot be "
                "resumed to the same bits: go on from it with new episodes (go_on=True), or delete "
                "it to start afresh"
            )
        return train_hosted(env, agent, settings, numbers, checkpoint, go_on, *watchers)
    return _train_compiled(env, agent, settings, numbers, checkpoint, go_on, *watchers)


@single_precision()
def _train_compiled(
    env: Environment,
    agent: Agent,
    settings: Settings,
    seeds: list[int],
    checkpoint: Checkpoint | None,
    go_on: bool,
    progress: Progress | None,
    callbacks: Sequence[Callback],
) -> Result:
    use_compilation_cache()
    with workers(len(groups(len(seeds)))) as pool:
        run = _Run(env, agent, settings, seeds, pool)
        saved = None
        if checkpoint is not None:
            full = fingerprint(env, agent, settings, seeds)
            file = AgentsCheckpoint(
                checkpoint, env, settings, seeds, agent=run.agent, go_on=go_on, full=full
            )
            saved = RunCheckpoint(run, file, full)
        watching = Watching(run, progress, callbacks)
        done, stop_requested = run_in_chunks(run, checkpoint=saved, progress=watching)
    interrupted = stop_requested and done < settings.n_steps
    return replace(run.result(done), interrupted=interrupted)


class _Run:
    """The compiled run, for `nkcme.training.chunks.run_in_chunks`."""

    replica_name = "agent"
    divergence_advice = learning.DIVERGENCE_ADVICE
    states: list[AgentState]

    def __init__(
        self, env: Environment, agent: Agent, settings: Settings, seeds: list[int], pool: Executor
    ):
        self.env, self.settings, self.seeds, self.pool = env, settings, seeds, pool
        image = observations_of(env).image
        self.program = Program(
            agent, settings, env.n_actions, env.observation_size, None, image=image
        )
        self.curve = Curve.empty(len(seeds))
        self.scores: dict[str, np.ndarray] = {}
        self.warned = self.stopped = False

    def agent(self) -> Agent:
        """Return the agent, with every "auto" resolved once the run has begun."""
        return self.program.agent

    def result(self, done: int) -> Result:
        curve = self.curve
        return Result(
            env_name=self.env.name,
            agent=self.program.agent,
            settings=self.settings,
            seeds=tuple(self.seeds),
            n_actions=self.env.n_actions,
            observation_size=self.env.observation_size,
            networks=concatenated([learning.acting(state.learner) for state in self.states]),
            curve=Curve(curve.step, curve.returns, curve.loss),
            n_steps=done,
            observations=observations_of(self.env),
        )

    def start(self) -> None:
        seeds = jnp.asarray(self.seeds, jnp.uint32)
        # The networks do not depend on what "auto" is resolved to, so it may still be open here.
        begin = lambda group: start(self.env, self.program, seeds[group])  # noqa: E731
        self.states = list(self.pool.map(begin, groups(len(self.seeds))))
        rewards = prefill_rewards(self.states, self.env, self.settings.prefill)
        self._refuse_infinite(np.isfinite(rewards), "in the random steps at the start")
        self.rewards = finite_rewards.distinct_rewards(rewards)
        agent = self.program.agent.resolved(
            self.settings.reward_scale * rewards, self.settings.gamma
        )
        self.program = self.program._replace(agent=agent)

    def chunk_lengths(self, done: int) -> Iterator[int]:
        settings = self.settings
        length = min(_CHUNK_EVALUATIONS * settings.eval_every, settings.n_steps)
        return until_stopped(self, equal_chunks(settings.n_steps, length, done))

    def run_chunk(self, done: int, length: int) -> Values:
        chunks = self._chunks(done, length)
        self.states = [chunk.state for chunk in chunks]
        evaluate = partial(evaluate_snapshots, self.env, self.program, done)
        returns = np.concatenate(list(self.pool.map(evaluate, chunks)), axis=1)
        names = chunks[0].values
        values = {name: np.concatenate([c.values[name] for c in chunks]) for name in names}
        return values | {"returns": returns}

    def _chunks(self, done: int, length: int) -> list[Chunk]:
        """Run a chunk of every group, again if rewards occur that the constants do not cover."""
        while True:
            support = finite_rewards.reward_support(
                self.settings.reward_scale * self.rewards, self.settings
            )
            self.program = self.program._replace(reward_support=support)
            run = partial(run_chunk, self.env, self.program, length, done)
            chunks = list(self.pool.map(run, self.states))
            n_known = len(self.rewards)
            seen = np.concatenate([np.ravel(chunk.rewards) for chunk in chunks])
            self._refuse_infinite(~np.isinf(seen), f"between step {done} and {done + length}")
            self.rewards = finite_rewards.merged_rewards(self.rewards, seen)
            if support is None or len(self.rewards) == n_known:
                return chunks

    def _refuse_infinite(self, finite: np.ndarray, when: str) -> None:
        if not finite.all():
            raise NkcmeError(
                f"{self.env.name}: expected finite numbers as rewards, got one that is NaN or "
                f"infinite {when}: correct the environment's step"
            )

    def record(self, done: int, values: Values) -> dict[str, float]:
        returns, every = values["returns"], self.settings.eval_every
        first = done - every * (len(returns) - 1)
        self.curve.extend(np.arange(first, done + 1, every), returns, values["loss"])
        self.scores = {"return": returns.mean(axis=0), "loss": values["loss"]}
        self.warned = self.warned or learning.warn_of_support(
            self.program.agent, values["outside"].mean(), done
        )
        return {"return": float(returns.mean()), "loss": float(values["loss"].mean())}

    def history_arrays(self) -> dict[str, np.ndarray]:
        return self.curve.as_arrays() | {"rewards": self.rewards}

    def restore_history(self, arrays: dict[str, np.ndarray]) -> None:
        self.curve = Curve.from_arrays(arrays)
        self.rewards = arrays["rewards"]
