"""Training of agents: `train`, and the compiled loop over chunks of steps.

`nkcme.rl.compiled_steps` is what runs inside a chunk. Between chunks the snapshots of the networks
are evaluated and `nkcme.training.chunks` handles progress, checkpoints and Ctrl-C. Gymnasium
environments have a loop in Python, `nkcme.rl.host_loop`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from nkcme.errors import NkcmeError
from nkcme.model_files import strict_json
from nkcme.rl import finite_rewards
from nkcme.rl import learner as learning
from nkcme.rl.agents import Agent, agent_named
from nkcme.rl.compiled_steps import AgentState, Chunk, prefill_rewards, run_chunk, start
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
        run. Gymnasium environments cannot be saved and take no checkpoint.
    progress
        A listener with ``update(step, values)``, called after each chunk.

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
    if isinstance(env, Hosted | HostedVector):
        if checkpoint is not None:
            raise NkcmeError(
                "a run through Gymnasium cannot be resumed, because its environments cannot be "
                "saved: omit the checkpoint, or use a gymnax environment"
            )
        return train_hosted(env, agent, settings, numbers, progress)
    return _train_compiled(env, agent, settings, numbers, checkpoint, progress)


@single_precision()
def _train_compiled(
    env: Environment,
    agent: Agent,
    settings: Settings,
    seeds: list[int],
    checkpoint: Checkpoint | None,
    progress: Progress | None,
) -> Result:
    use_compilation_cache()
    with workers(len(groups(len(seeds)))) as pool:
        run = _Run(env, agent, settings, seeds, pool)
        saved = None
        if checkpoint is not None:
            fingerprint = _fingerprint(env, agent, settings, seeds)
            saved = RunCheckpoint(run, checkpoint, fingerprint)
        done, stop_requested = run_in_chunks(run, checkpoint=saved, progress=progress)
    state = concatenated(run.states)
    return Result(
        env_name=env.name,
        agent=run.program.agent,
        settings=settings,
        seeds=tuple(seeds),
        n_actions=env.n_actions,
        observation_size=env.observation_size,
        networks=learning.acting(state.learner),
        curve=run.curve,
        n_steps=done,
        interrupted=stop_requested and done < settings.n_steps,
        observations=observations_of(env),
    )


def _fingerprint(env: Environment, agent: Agent, settings: Settings, seeds: list[int]) -> str:
    run = [env.name, agent.to_config(), settings.to_config(), seeds]
    return hashlib.sha256(strict_json.dumps(run)).hexdigest()


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
        self.warned = False

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

    def chunk_lengths(self, done: int) -> list[int]:
        settings = self.settings
        length = min(_CHUNK_EVALUATIONS * settings.eval_every, settings.n_steps)
        return equal_chunks(settings.n_steps, length, done)

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
        self.curve.extend(np.arange(first, done + 1, every), returns)
        self.warned = self.warned or learning.warn_of_support(
            self.program.agent, values["outside"].mean(), done
        )
        return {"return": float(returns.mean()), "loss": float(values["loss"].mean())}

    def history_arrays(self) -> dict[str, np.ndarray]:
        return self.curve.as_arrays() | {"rewards": self.rewards}

    def restore_history(self, arrays: dict[str, np.ndarray]) -> None:
        self.curve = Curve.from_arrays(arrays)
        self.rewards = arrays["rewards"]
