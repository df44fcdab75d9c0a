"""Agents that are trained for a moment or not at all, for tests of what uses agents."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from nkcme.rl import Agent, Curve, Result, Settings, train
from nkcme.rl import learner as learning
from nkcme.rl.agents import agent_named
from nkcme.rl.learner import Program
from nkcme.rl.presets import preset

#: Settings of a run that takes a moment.
SHORT = {
    "n_steps": 400,
    "hidden": (8,),
    "prefill": 100,
    "buffer_size": 500,
    "epsilon_steps": 100,
    "eval_every": 100,
}


def hardly_trained(env: object, agent: str = "fuse", seeds: int = 2) -> Result:
    """Agents after a few hundred steps."""
    return train(env, agent_named(agent), Settings(**SHORT), seeds=seeds)


def short_recipe(*names: Any) -> tuple[Any, Settings]:
    """The agent and settings of `nkcme.rl.presets.preset`, with small networks and replays."""
    made, settings = preset(*names)
    return made, replace(settings, **SHORT | {"n_steps": settings.n_steps})


def untrained(
    agent: Agent,
    *,
    n_actions: int = 2,
    observation_size: int = 3,
    seeds: Sequence[int] = (0, 1),
    settings: Settings | None = None,
    outputs: np.ndarray | None = None,
) -> Result:
    """Agents with random networks; with ``outputs`` (n_actions, width), they return these."""
    settings = settings or Settings(hidden=(4,))
    program = Program(agent, settings, n_actions, observation_size, None)
    keys = jax.random.split(jax.random.key(0), len(seeds))
    networks = jax.vmap(lambda key: learning.fresh_network(program, key))(keys)
    if outputs is not None:
        zero = jax.tree.map(jnp.zeros_like, networks)
        bias = jnp.asarray(np.tile(np.ravel(outputs), (len(seeds), 1)), jnp.float32)
        networks = eqx.tree_at(lambda n: n.layers[-1].bias, zero, bias)
    curve = Curve.empty(len(seeds))
    curve.extend(np.array([100, 200]), np.array([[1.0, 4.0], [3.0, 2.0]])[:, : len(seeds)])
    return Result(
        env_name="somewhere",
        agent=agent,
        settings=settings,
        seeds=tuple(seeds),
        n_actions=n_actions,
        observation_size=observation_size,
        networks=networks,
        curve=curve,
        n_steps=200,
        interrupted=True,
    )
