"""The compiled loop: acting, replay, updates, target copies and snapshots of many agents at once.

A *round* is ``update_every`` steps and one update, a *stretch* so many rounds that targets are
copied and snapshots taken between stretches only: no step asks whether it is time for something.
Each *chunk* of stretches is one compiled program, and the agents (seeds) in it are replicas.
Between chunks the host has its turn: snapshots are evaluated, all of a chunk in one batch, and
progress, checkpoints and Ctrl-C are seen to.

Everything random in a stretch derives from (the agent's key, the stretch's number), so a run that
was stopped and resumed goes the way of one that was not, bit for bit.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.model_files import strict_json
from nkcme.rl import finite_rewards as known
from nkcme.rl import learner as learning
from nkcme.rl import replay as buffer
from nkcme.rl.agents import Agent, agent_named
from nkcme.rl.envs import Hosted, Step, make
from nkcme.rl.host_loop import train_hosted
from nkcme.rl.learner import Learner, Program
from nkcme.rl.replay import Transition
from nkcme.rl.result import Curve, Result
from nkcme.rl.settings import Settings
from nkcme.training.compilation import use_compilation_cache
from nkcme.training.interrupts import Interrupts
from nkcme.training.loop import Checkpoint, Progress
from nkcme.training.replicas import (
    concatenated,
    groups,
    named_arrays,
    refilled,
    refuse_foreign,
    single_precision,
    workers,
)

PyTree = Any

#: Evaluations in a chunk, about; their parameters are kept until it ends.
_CHUNK_EVALUATIONS = 100


class Environment(Protocol):
    """What the compiled loop needs; see `nkcme.rl.envs.Compiled`. It must be hashable."""

    @property
    def name(self) -> str: ...
    @property
    def n_actions(self) -> int: ...
    @property
    def observation_size(self) -> int: ...
    @property
    def max_steps(self) -> int: ...

    def reset(self, key: Array) -> tuple[Any, Array]: ...

    def step(self, key: Array, state: Any, action: Array) -> tuple[Any, Step]: ...


class _State(NamedTuple):
    """What a checkpoint holds of an agent; each leaf has a leading axis of agents."""

    learner: Learner
    env: PyTree
    observation: Array
    key: Array  # raw data of two keys: training's and evaluation's


def train(
    env: str | Environment | Hosted,
    agent: str | Agent = "fuse",
    settings: Settings | None = None,
    *,
    seeds: int | Sequence[int] = 1,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Result:
    """Train agents, one a seed, and give back their curves and networks.

    ``env`` is a name (gymnax's environment, or else Gymnasium's) or an environment. ``agent`` is
    "fuse", "single", "c51", "mmdqn", "dqn" or an `Agent`. ``seeds`` are numbers, or how many.
    A ``checkpoint`` of the same run is resumed. Ctrl-C ends the run after the current chunk; what
    was learned so far comes back, with ``interrupted`` set.
    """
    env = make(env) if isinstance(env, str) else env
    agent = agent_named(agent) if isinstance(agent, str) else agent
    settings = settings or Settings()
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(s) for s in seeds]
    if not numbers:
        raise NkcmeError("seeds must be at least one; got none")
    if not all(0 <= number < 2**32 for number in numbers):
        raise NkcmeError(f"each of seeds must be from 0 to 2^32 - 1; got {numbers}")
    if isinstance(env, Hosted):
        if checkpoint is not None:
            raise NkcmeError(
                "a run through Gymnasium cannot be resumed, for its environments cannot be saved: "
                "leave the checkpoint away, or use a gymnax environment"
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
    parts = groups(len(seeds))
    fingerprint = _fingerprint(env, agent, settings, seeds)
    # Nothing is learned yet, so what the agent leaves to the data may still be open.
    shape = Program(agent, settings, env.n_actions, env.observation_size, None)
    with workers(len(parts)) as pool, Interrupts() as interrupts:
        numbers = jnp.asarray(seeds, jnp.uint32)
        states = list(pool.map(lambda p: _start(env, shape, numbers[p]), parts))
        seen = _rewards(states, env, settings.prefill)
        rewards = known.distinct(seen)
        agent = agent.settled(settings.reward_scale * seen, settings.gamma)
        curve, done = Curve.empty(len(seeds)), 0
        if checkpoint is not None and (found := checkpoint.load()) is not None:
            config, arrays = found
            refuse_foreign(config, fingerprint, str(checkpoint))
            states = refilled(states, arrays, [len(s.key) for s in states], str(checkpoint))
            curve, done = Curve.from_arrays(arrays), int(config["step"])
            rewards = arrays["rewards"]

        warned = False
        for length in _chunks(settings, done):
            while True:
                outcomes = known.outcomes(settings.reward_scale * rewards, settings)
                program = shape._replace(agent=agent, outcomes=outcomes)
                run = partial(_run_chunk, env, program, length, done)
                results = list(pool.map(run, states))
                # A reward nobody has seen before makes constants wrong: the chunk is run again.
                seen = np.concatenate([np.ravel(r.rewards) for r in results])
                fresh = known.joined(rewards, seen)
                if outcomes is None or len(fresh) == len(rewards):
                    break
                rewards = fresh
            rewards = fresh
            states = [r.state for r in results]
            values = {k: np.concatenate([r.told[k] for r in results]) for k in results[0].told}
            play = partial(_evaluate, env, program, done)
            returns = np.concatenate(list(pool.map(play, results)), axis=1)
            first = done + settings.eval_every
            done += length
            learning.refuse_divergence(values["loss"], done)
            curve.extend(np.arange(first, done + 1, settings.eval_every), returns)
            warned = warned or learning.warn_of_support(agent, values["outside"].mean(), done)
            if checkpoint is not None:
                arrays = named_arrays(concatenated(states)) | curve.as_arrays()
                arrays["rewards"] = rewards
                checkpoint.save({"fingerprint": fingerprint, "step": done}, arrays)
            if progress is not None:
                told = {"return": float(returns.mean()), "loss": float(values["loss"].mean())}
                progress.update(done, told)
            if interrupts.requested:
                break
        interrupted = interrupts.requested and done < settings.n_steps
    state = concatenated(states)
    return Result(
        env_name=env.name,
        agent=agent,
        settings=settings,
        seeds=tuple(seeds),
        n_actions=env.n_actions,
        observation_size=env.observation_size,
        networks=learning.acting(state.learner),
        curve=curve,
        n_steps=done,
        interrupted=interrupted,
    )


def _fingerprint(env: Environment, agent: Agent, settings: Settings, seeds: list[int]) -> str:
    run = [env.name, agent.to_config(), settings.to_config(), seeds]
    return hashlib.sha256(strict_json.dumps(run)).hexdigest()


def _chunks(settings: Settings, done: int) -> list[int]:
    """The lengths, in steps, of the chunks after ``done`` steps."""
    length = min(_CHUNK_EVALUATIONS * settings.eval_every, settings.n_steps)
    whole, rest = divmod(settings.n_steps - done, length)
    return [length] * whole + ([rest] if rest else [])


@partial(jax.jit, static_argnums=(0, 1))
def _start(env: Environment, program: Program, seeds: Array) -> _State:
    """Fresh agents, whose replay random actions have filled."""
    settings = program.settings

    def one(seed: Array) -> _State:
        network_key, env_key, fill_key, run_key = jax.random.split(jax.random.key(seed), 4)
        state, observation = env.reset(env_key)

        def step(carry: PyTree, key: Array) -> tuple[PyTree, Array]:
            state, observation = carry
            action_key, step_key = jax.random.split(key)
            action = jax.random.randint(action_key, (), 0, program.n_actions)
            state, came = env.step(step_key, state, action)
            return (state, came.observation), _row(observation, action, came)

        (state, observation), rows = jax.lax.scan(
            step, (state, observation), jax.random.split(fill_key, settings.prefill)
        )
        learner = learning.start(program, network_key)
        replay = learner.replay._replace(rows=learner.replay.rows.at[: settings.prefill].set(rows))
        return _State(
            learner._replace(replay=replay),
            state,
            observation,
            jax.random.key_data(jax.random.split(run_key)),
        )

    return jax.vmap(one)(seeds)


def _row(observation: Array, action: Array, came: Step) -> Array:
    ended = came.terminated | came.truncated
    return buffer.pack(
        Transition(observation, came.final, action, came.reward, came.terminated, ended)
    )


def _rewards(states: list[_State], env: Environment, n_rows: int) -> np.ndarray:
    rows = jnp.concatenate([s.learner.replay.rows[:, :n_rows] for s in states])
    return np.ravel(buffer.unpack(rows, env.observation_size).reward)


class _Chunk(NamedTuple):
    state: _State
    snapshots: PyTree  # networks, with axes (evaluations, agents)
    told: dict[str, np.ndarray]
    rewards: np.ndarray  # (agents, a few): distinct rewards of the chunk, see `known.a_few`


def _run_chunk(
    env: Environment, program: Program, n_steps: int, start: int, state: _State
) -> _Chunk:
    state, snapshots, told, rewards = _compiled_chunk(env, program, n_steps, state, start)
    return _Chunk(state, snapshots, jax.device_get(told), np.asarray(rewards))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled_chunk(
    env: Environment, program: Program, n_steps: int, state: _State, start: int
) -> tuple[_State, PyTree, dict[str, Array], Array]:
    """``n_steps`` of every agent; snapshots of the networks, mean losses, the rewards seen."""
    settings = program.settings
    per_round = settings.update_every
    stretch = math.gcd(settings.target_every, settings.eval_every)
    n_rounds = stretch // per_round
    capacity = settings.buffer_size

    def one_round(carry: PyTree, now: PyTree) -> tuple[PyTree, dict[str, Array]]:
        learner, env_state, observation = carry
        step, env_keys, chances, others, uniform = now
        rows, rewards = [], []
        for i in range(per_round):
            epsilon = learning.epsilon_at(settings, step + i)
            action = learning.act(
                program, learner.network, observation, epsilon, chances[i], others[i]
            )
            env_state, came = env.step(env_keys[i], env_state, action)
            rows.append(_row(observation, action, came))
            rewards.append(came.reward)
            observation = came.observation
        position = (settings.prefill + step) % capacity
        replay = buffer.write(learner.replay, jnp.stack(rows), position)
        size = jnp.minimum(settings.prefill + step + per_round, capacity)
        learner, told = learning.learn(
            program,
            learner._replace(replay=replay),
            uniform,
            size,
            position + per_round - 1,
        )
        return (learner, env_state, observation), told | {"rewards": jnp.stack(rewards)}

    def one_stretch(state: _State, number: Array) -> tuple[_State, PyTree]:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key[0]), number)
        env_key, chance_key, other_key, batch_key = jax.random.split(key, 4)
        shape = (n_rounds, per_round)
        first = number * stretch
        now = (
            first + per_round * jnp.arange(n_rounds),
            jax.random.split(env_key, shape),
            jax.random.uniform(chance_key, shape),
            jax.random.randint(other_key, shape, 0, program.n_actions),
            jax.random.uniform(batch_key, (n_rounds, settings.batch_size)),
        )
        (learner, env_state, observation), told = jax.lax.scan(
            one_round, (state.learner, state.env, state.observation), now
        )
        due = (first + stretch) % settings.target_every == 0
        learner = learning.with_target_copied(learner, due)
        rewards = known.a_few(told.pop("rewards"))
        return (
            _State(learner, env_state, observation, state.key),
            ({name: jnp.mean(value) for name, value in told.items()}, rewards),
        )

    def until_evaluation(state: _State, numbers: Array) -> tuple[_State, PyTree]:
        state, told = jax.lax.scan(one_stretch, state, numbers)
        return state, (learning.acting(state.learner), told)

    def one(state: _State) -> tuple[_State, PyTree, dict[str, Array], Array]:
        numbers = (start + stretch * jnp.arange(n_steps // stretch)) // stretch
        numbers = numbers.reshape(n_steps // settings.eval_every, -1)
        state, (snapshots, (told, rewards)) = jax.lax.scan(until_evaluation, state, numbers)
        told = {name: jnp.mean(value) for name, value in told.items()}
        return state, snapshots, told, known.a_few(rewards)

    # The step is common to all agents, and stays outside the map: writes to a replay are slices.
    return jax.vmap(one, out_axes=(0, 1, 0, 0))(state)


def _evaluate(env: Environment, program: Program, start: int, chunk: _Chunk) -> np.ndarray:
    """The return of one episode of every snapshot, (evaluations, agents)."""
    keys = chunk.state.key
    return np.asarray(_compiled_episodes(env, program, chunk.snapshots, keys, start))


@partial(jax.jit, static_argnums=(0, 1))
def _compiled_episodes(
    env: Environment, program: Program, networks: PyTree, keys: Array, start: int
) -> Array:
    n = jax.tree.leaves(networks)[0].shape[0]

    def agent_keys(key_data: Array) -> Array:
        key = jax.random.wrap_key_data(key_data[1])
        fold = lambda i: jax.random.fold_in(key, start + i)  # noqa: E731
        return jax.vmap(fold)(jnp.arange(n))

    return episodes(env, program, networks, jax.vmap(agent_keys, out_axes=1)(keys))


def episodes(env: Environment, program: Program, networks: PyTree, keys: Array) -> Array:
    """Returns of one episode each, played side by side until the last has ended."""
    epsilon = program.settings.eval_epsilon
    shape = keys.shape
    networks = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(shape) :]), networks)
    keys = keys.reshape(-1)

    def begin(key: Array) -> tuple[PyTree, Array]:
        return env.reset(jax.random.fold_in(key, 0))

    def step(carry: PyTree) -> PyTree:
        t, states, observations, total, going = carry

        def one(network: PyTree, key: Array, state: PyTree, observation: Array) -> PyTree:
            step_key, chance_key, other_key = jax.random.split(jax.random.fold_in(key, t), 3)
            action = learning.act(
                program,
                network,
                observation,
                epsilon,
                jax.random.uniform(chance_key),
                jax.random.randint(other_key, (), 0, program.n_actions),
            )
            state, came = env.step(step_key, state, action)
            return state, came.observation, came.reward, came.terminated | came.truncated

        states, observations, rewards, ended = jax.vmap(one)(networks, keys, states, observations)
        return t + 1, states, observations, total + jnp.where(going, rewards, 0.0), going & ~ended

    states, observations = jax.vmap(begin)(keys)
    n = keys.shape[0]
    start = (jnp.int32(1), states, observations, jnp.zeros(n), jnp.ones(n, bool))
    unfinished = lambda carry: (carry[0] <= env.max_steps) & jnp.any(carry[4])  # noqa: E731
    return jax.lax.while_loop(unfinished, step, start)[3].reshape(shape)
