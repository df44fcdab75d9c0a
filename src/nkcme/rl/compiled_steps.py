"""The compiled programs of training: the random steps at the start, and a chunk of steps.

A *cycle* is ``update_every`` environment steps and one update. A *block* is as many cycles as fit
between two points at which the target network may be copied or the network evaluated, so no step
needs to check for either. A *chunk* of blocks is one program, and the agents in it are replicas.

All randomness in a block derives from (the agent's key, the number of the block). A run that is
stopped and resumed gives the same bits as an uninterrupted one.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl import learner as learning
from nkcme.rl import replay as buffer
from nkcme.rl.environment import Environment, Step
from nkcme.rl.finite_rewards import distinct_rewards_compiled
from nkcme.rl.learner import Learner, Program
from nkcme.rl.replay import Transition

PyTree = Any


class AgentState(NamedTuple):
    """What a checkpoint holds of an agent; each leaf has a leading axis of agents."""

    learner: Learner
    env: PyTree
    observation: Array
    key: Array  # raw data of two keys: for training and for evaluation


class Chunk(NamedTuple):
    """What a chunk returns."""

    state: AgentState
    snapshots: PyTree  # networks, with axes (evaluations, agents)
    values: dict[str, np.ndarray]  # "loss" and "outside", (agents,) each
    # (agents, MAX_REWARDS + 1): the distinct rewards, padded with NaN; one is infinite where a
    # reward was not finite
    rewards: np.ndarray


@partial(jax.jit, static_argnums=(0, 1))
def start(env: Environment, program: Program, seeds: Array) -> AgentState:
    """Return untrained agents with a replay of random steps."""
    settings = program.settings

    def one(seed: Array) -> AgentState:
        network_key, env_key, fill_key, run_key = jax.random.split(jax.random.key(seed), 4)
        state, observation = env.reset(env_key)

        def step(carry: PyTree, key: Array) -> tuple[PyTree, Array]:
            state, observation = carry
            action_key, step_key = jax.random.split(key)
            action = jax.random.randint(action_key, (), 0, program.n_actions)
            state, taken = env.step(step_key, state, action)
            return (state, taken.observation), _row(observation, action, taken)

        (state, observation), rows = jax.lax.scan(
            step, (state, observation), jax.random.split(fill_key, settings.prefill)
        )
        learner = learning.start(program, network_key)
        replay = learner.replay._replace(rows=learner.replay.rows.at[: settings.prefill].set(rows))
        return AgentState(
            learner._replace(replay=replay),
            state,
            observation,
            jax.random.key_data(jax.random.split(run_key)),
        )

    return jax.vmap(one)(seeds)


def _row(observation: Array, action: Array, taken: Step) -> Array:
    ended = taken.terminated | taken.truncated
    return buffer.pack(
        Transition(observation, taken.final, action, taken.reward, taken.terminated, ended)
    )


def prefill_rewards(states: list[AgentState], env: Environment, prefill: int) -> np.ndarray:
    """Return the rewards of the random steps at the start, flat."""
    rows = jnp.concatenate([s.learner.replay.rows[:, :prefill] for s in states])
    return np.ravel(buffer.unpack(rows, env.observation_size).reward)


def run_chunk(
    env: Environment, program: Program, n_steps: int, done: int, state: AgentState
) -> Chunk:
    """Train every agent for ``n_steps``, after ``done`` steps."""
    state, snapshots, values, rewards = _compiled_chunk(env, program, n_steps, state, done)
    return Chunk(state, snapshots, jax.device_get(values), np.asarray(rewards))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled_chunk(
    env: Environment, program: Program, n_steps: int, state: AgentState, start: int
) -> tuple[AgentState, PyTree, dict[str, Array], Array]:
    settings = program.settings
    per_cycle = settings.update_every
    block_steps = math.gcd(settings.target_every, settings.eval_every)
    n_cycles = block_steps // per_cycle
    capacity = settings.buffer_size

    def cycle(carry: PyTree, inputs: PyTree) -> tuple[PyTree, dict[str, Array]]:
        learner, env_state, observation = carry
        step, env_keys, uniforms, random_actions, batch = inputs
        rows, rewards = [], []
        for i in range(per_cycle):
            epsilon = learning.epsilon_at(settings, step + i)
            action = learning.act(
                program, learner.network, observation, epsilon, uniforms[i], random_actions[i]
            )
            env_state, taken = env.step(env_keys[i], env_state, action)
            rows.append(_row(observation, action, taken))
            rewards.append(taken.reward)
            observation = taken.observation
        position = (settings.prefill + step) % capacity
        replay = buffer.write(learner.replay, jnp.stack(rows), position)
        size = jnp.minimum(settings.prefill + step + per_cycle, capacity)
        learner, values = learning.learn(
            program,
            learner._replace(replay=replay),
            batch,
            size,
            position + per_cycle - 1,
        )
        return (learner, env_state, observation), values | {"rewards": jnp.stack(rewards)}

    def block(state: AgentState, number: Array) -> tuple[AgentState, PyTree]:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key[0]), number)
        env_key, uniform_key, action_key, batch_key = jax.random.split(key, 4)
        shape = (n_cycles, per_cycle)
        first = number * block_steps
        inputs = (
            first + per_cycle * jnp.arange(n_cycles),
            jax.random.split(env_key, shape),
            jax.random.uniform(uniform_key, shape),
            jax.random.randint(action_key, shape, 0, program.n_actions),
            jax.random.uniform(batch_key, (n_cycles, settings.batch_size)),
        )
        (learner, env_state, observation), values = jax.lax.scan(
            cycle, (state.learner, state.env, state.observation), inputs
        )
        learner = learning.with_target_copied(settings, learner, first + block_steps)
        rewards = values.pop("rewards")
        # NaN would stand for no reward.
        rewards = jnp.where(jnp.isfinite(rewards), rewards, jnp.inf)
        rewards = distinct_rewards_compiled(rewards)
        return (
            AgentState(learner, env_state, observation, state.key),
            ({name: jnp.mean(value) for name, value in values.items()}, rewards),
        )

    def until_evaluation(state: AgentState, numbers: Array) -> tuple[AgentState, PyTree]:
        state, values = jax.lax.scan(block, state, numbers)
        return state, (learning.acting(state.learner), values)

    def one(state: AgentState) -> tuple[AgentState, PyTree, dict[str, Array], Array]:
        numbers = (start + block_steps * jnp.arange(n_steps // block_steps)) // block_steps
        numbers = numbers.reshape(n_steps // settings.eval_every, -1)
        state, (snapshots, (values, rewards)) = jax.lax.scan(until_evaluation, state, numbers)
        values = {name: jnp.mean(value) for name, value in values.items()}
        return state, snapshots, values, distinct_rewards_compiled(rewards)

    # All agents are at the same step, which stays outside the map: a write to the replay is then a
    # slice and not a scatter.
    return jax.vmap(one, out_axes=(0, 1, 0, 0))(state)
