"""Evaluation episodes against the same episodes played step by step."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from nkcme.rl import DQN, Settings
from nkcme.rl import learner as learning
from nkcme.rl.evaluation import episodes
from nkcme.rl.learner import Program
from support.tiny_envs import Corridor

EPSILON = 0.4


def test_returns_are_those_of_episodes_played_step_by_step():
    """With random actions, slips and starts; some episodes terminate, some are truncated."""
    env = Corridor(slip=0.3)
    settings = replace(Settings(), hidden=(8,), eval_epsilon=EPSILON)
    program = Program(DQN(), settings, 2, 5, None)
    shape = (3, 2)
    keys = jax.random.split(jax.random.key(0), shape)
    networks = jax.vmap(jax.vmap(lambda k: learning.fresh_network(program, k)))(keys)
    returns = jax.jit(lambda n, k: episodes(env, program, n, k))(networks, keys)

    @jax.jit
    def step(key, t, network, state, observation):
        step_key, uniform_key, action_key = jax.random.split(jax.random.fold_in(key, t), 3)
        action = learning.greedy(program, network, observation)
        random = jax.random.randint(action_key, (), 0, 2)
        action = jax.numpy.where(jax.random.uniform(uniform_key) < EPSILON, random, action)
        return env.step(step_key, state, action)

    reset, lengths = jax.jit(env.reset), []
    for i in np.ndindex(shape):
        network = jax.tree.map(lambda leaf, i=i: leaf[i], networks)
        state, observation = reset(jax.random.fold_in(keys[i], 0))
        total, t, ended = 0.0, 0, False
        while not ended:
            t += 1
            state, taken = step(keys[i], t, network, state, observation)
            observation, total = taken.observation, total + float(taken.reward)
            ended = bool(taken.terminated | taken.truncated)
        lengths.append(t)
        np.testing.assert_allclose(returns[i], total, rtol=1e-5)
    assert len(set(lengths)) > 2
