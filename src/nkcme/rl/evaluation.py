"""Evaluation episodes of the compiled loop: all snapshots of a chunk play side by side."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.rl import learner as learning
from nkcme.rl.compiled_steps import Chunk
from nkcme.rl.environment import Environment
from nkcme.rl.learner import Program

PyTree = Any


def evaluate_snapshots(env: Environment, program: Program, done: int, chunk: Chunk) -> np.ndarray:
    """Return the return of one episode of every snapshot, (evaluations, agents).

    ``done`` is the number of steps before the chunk.
    """
    keys = chunk.state.key
    return np.asarray(_compiled_episodes(env, program, chunk.snapshots, keys, done))


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
    """Play one episode per network and key until the last has ended; return their returns."""
    epsilon = program.settings.eval_epsilon
    shape = keys.shape
    networks = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(shape) :]), networks)
    keys = keys.reshape(-1)

    def begin(key: Array) -> tuple[PyTree, Array]:
        return env.reset(jax.random.fold_in(key, 0))

    def step(carry: PyTree) -> PyTree:
        t, states, observations, total, running = carry

        def one(network: PyTree, key: Array, state: PyTree, observation: Array) -> PyTree:
            step_key, uniform_key, action_key = jax.random.split(jax.random.fold_in(key, t), 3)
            action = learning.act(
                program,
                network,
                observation,
                epsilon,
                jax.random.uniform(uniform_key),
                jax.random.randint(action_key, (), 0, program.n_actions),
            )
            state, taken = env.step(step_key, state, action)
            return state, taken.observation, taken.reward, taken.terminated | taken.truncated

        states, observations, rewards, ended = jax.vmap(one)(networks, keys, states, observations)
        total = total + jnp.where(running, rewards, 0.0)
        return t + 1, states, observations, total, running & ~ended

    states, observations = jax.vmap(begin)(keys)
    n = keys.shape[0]
    start = (jnp.int32(1), states, observations, jnp.zeros(n), jnp.ones(n, bool))
    unfinished = lambda carry: (carry[0] <= env.max_steps) & jnp.any(carry[4])  # noqa: E731
    return jax.lax.while_loop(unfinished, step, start)[3].reshape(shape)
