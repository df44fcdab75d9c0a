"""The plain loops that speed is measured against learn the same thing as the library."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.speed.agents import largest_difference
from benchmarks.speed.plain_agents import PlainAgents
from benchmarks.speed.plain_training import PlainTraining
from nkcme.rl.agents import NKDQN
from nkcme.rl.presets import paper


def test_the_plain_loss_of_agents_is_ours():
    agent, settings = paper("fuse", "CartPole-v1")
    assert isinstance(agent, NKDQN)
    # Losses are about 1, and float32 sums of 51 x 51 terms differ in the last digits.
    assert largest_difference(agent, settings.gamma, n=64) < 1e-4


def test_the_plain_training_reduces_its_loss():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2, 200, 1))
    plain = PlainTraining(X, np.sin(3 * X[..., 0]))
    first = plain.run(1)
    last = plain.run(200)
    assert first.shape == (2,)
    assert (last < first - 0.01).all()


def test_the_plain_agents_update_their_networks():
    agent, settings = paper("fuse", "CartPole-v1")
    assert isinstance(agent, NKDQN)
    plain = PlainAgents("CartPole-v1", 2, settings, jnp.asarray(agent.all_bandwidths()))
    before = jax.tree.map(np.asarray, plain._state["network"])
    plain.run(settings.update_every)
    after = plain._state["network"]
    changed = jax.tree.map(lambda old, new: not np.allclose(old, new, atol=1e-6), before, after)
    assert any(jax.tree.leaves(changed))
