"""What every agent must be. A new agent is an entry in AGENTS, and is held to this."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.model_files import strict_json
from nkcme.rl import C51, MMDQN, NKDQN
from nkcme.rl.agents import AGENTS, agent_named
from nkcme.rl.agents.base import AtomAgent
from nkcme.rl.result import agent_from_config

every_agent = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)

N = 4


@partial(jax.jit, static_argnums=(0, 5))
def losses(agent, output, target, reward, discount, outcomes=None):
    return agent.losses(output, target, reward, discount, outcomes)


@partial(jax.jit, static_argnums=0)
def slopes(agent, *batch):
    return jax.grad(lambda output: jnp.sum(agent.losses(output, *batch[1:])))(batch[0])


def outputs(agent, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, agent.width)).astype(np.float32)


@every_agent
def test_shapes(agent):
    output = jnp.asarray(outputs(agent))
    assert agent.value(output).shape == (N,)
    assert agent.value(output.reshape(2, 2, -1)).shape == (2, 2)
    assert agent.value(output[0]).shape == ()
    r, d = jnp.ones(N), jnp.full(N, 0.9)
    for outcomes in (None, ((1.0, 0.9),)):
        assert losses(agent, output, outputs(agent, 1), r, d, outcomes).shape == (N,)
    assert agent.outside(output, r, d).shape == (N,)
    returns = agent.distribution(np.asarray(output), 1.0)
    assert (returns.n_rows, returns.n_outputs) == (N, 1)


@every_agent
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_the_value_is_the_mean_of_the_distribution(agent, scale):
    output = outputs(agent)
    mean = agent.distribution(output, scale).mean()
    np.testing.assert_allclose(mean, scale * np.asarray(agent.value(output)), rtol=1e-4, atol=1e-3)


@every_agent
def test_a_prediction_that_equals_its_target_cannot_be_bettered(agent):
    """With r = 0 and d = 1 the target is the target network's own distribution. The cross-entropy
    is then that distribution's entropy, every other loss zero, and no slope is left."""
    output = outputs(agent)
    batch = (output, output, np.zeros(N, np.float32), np.ones(N, np.float32))
    expected = np.zeros(N)
    if isinstance(agent, C51):
        p = np.asarray(agent.weights(output), np.float64)
        expected = -np.sum(p * np.log(p), axis=1)
    np.testing.assert_allclose(losses(agent, *batch), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(slopes(agent, *batch), 0.0, atol=1e-4)
    other = (outputs(agent, 1), *batch[1:])
    assert np.all(np.asarray(losses(agent, *other)) > expected + 1e-4)


@every_agent
def test_a_step_down_the_slope_lowers_the_loss(agent):
    output, target = 0.3 * outputs(agent), outputs(agent, 1)
    batch = (target, np.array([1.0, -1.0, 0.0, 5.0], np.float32), np.float32([0.9, 0, 0.9, 0]))
    slope = np.asarray(slopes(agent, output, *batch))
    step = 1e-2 / np.maximum(np.abs(slope).max(axis=1, keepdims=True), 1e-6)
    before, after = losses(agent, output, *batch), losses(agent, output - step * slope, *batch)
    assert np.all(np.asarray(after) < np.asarray(before))


@every_agent
@pytest.mark.parametrize("reward", [0.0, 1e-8, -1e3, 1e8, -1e15])
def test_losses_and_slopes_are_finite_for_any_reward(agent, reward):
    batch = (
        30.0 * outputs(agent),
        outputs(agent, 1),
        np.full(N, reward, np.float32),
        np.float32([0.0, 0.99, 1.0, 0.5]),
    )
    assert np.all(np.isfinite(losses(agent, *batch)))
    assert np.all(np.isfinite(slopes(agent, *batch)))
    known = tuple((reward, d) for d in (0.0, 0.99, 1.0, 0.5))
    np.testing.assert_allclose(
        losses(agent, *batch, known), losses(agent, *batch), rtol=1e-3, atol=1e-4
    )


@every_agent
def test_outcomes_of_no_concern_change_nothing(agent):
    """A pair that is listed but does not occur."""
    batch = (outputs(agent), outputs(agent, 1), np.ones(N, np.float32), np.float32([0.9, 0] * 2))
    few, more = ((1.0, 0.0), (1.0, 0.9)), ((-3.0, 0.9), (1.0, 0.0), (1.0, 0.9), (2.0, 0.81))
    np.testing.assert_allclose(
        losses(agent, *batch, few), losses(agent, *batch, more), rtol=1e-5, atol=1e-7
    )


@every_agent
def test_agents_are_values(agent):
    """Equal ones share a compiled program; none changes."""
    twin = replace(agent)
    assert twin == agent
    assert hash(twin) == hash(agent)
    for field in fields(agent):
        with pytest.raises(FrozenInstanceError):
            setattr(agent, field.name, None)
    assert len({AGENTS[name] for name in AGENTS}) == len(AGENTS)


@every_agent
def test_configs_go_through_json_and_back(agent):
    config = strict_json.loads(strict_json.dumps(agent.to_config()))
    back = agent_from_config(config)
    assert back == agent
    assert hash(back) == hash(agent)
    assert type(back) is type(agent)


@every_agent
def test_settled_agents_stay_as_they_are(agent):
    assert agent.settled(np.array([1.0, -7.0]), 0.9) == agent


@pytest.mark.parametrize(
    "agent", [a for a in AGENTS.values() if isinstance(a, AtomAgent)], ids=lambda a: a.kind
)
def test_an_open_support_is_settled_by_rewards(agent):
    """So that r + gamma z stays inside, for each reward and each z of it."""
    open_ = replace(agent, support="auto")
    with pytest.raises(NkcmeError, match="no atoms yet"):
        _ = open_.atoms
    rewards = np.array([-2.0, 0.5, 1.0])
    low, high = open_.settled(rewards, 0.9).support
    assert low - 1e-9 <= (rewards[:, None] + 0.9 * np.array([low, high])).min()
    assert high + 1e-9 >= (rewards[:, None] + 0.9 * np.array([low, high])).max()
    assert low <= 0 <= high
    with pytest.raises(NkcmeError, match="no reward but 0"):
        open_.settled(np.zeros(3), 0.9)


@pytest.mark.parametrize("name", AGENTS)
def test_agents_have_names(name):
    assert agent_named(name) is AGENTS[name]


def test_an_unknown_name_is_refused():
    with pytest.raises(NkcmeError, match="fuse, single, c51, mmdqn, dqn; got 'x'"):
        agent_named("x")


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (NKDQN, {"n_atoms": 1}),
        (NKDQN, {"support": (1.0, 1.0)}),
        (NKDQN, {"support": (1.0, np.inf)}),
        (NKDQN, {"support": "wide"}),
        (NKDQN, {"support": (1.0, 2.0, 3.0)}),
        (NKDQN, {"kernels": "many"}),
        (NKDQN, {"bandwidths": (1.0, 0.0)}),
        (NKDQN, {"bandwidths": ()}),
        (NKDQN, {"kernels": "single", "bandwidths": (1.0, 2.0)}),
        (C51, {"n_atoms": 2.5}),
        (MMDQN, {"n_particles": 0}),
        (MMDQN, {"bandwidths": (-1.0,)}),
        (MMDQN, {"bandwidths": ()}),
    ],
)
def test_what_cannot_be_is_refused(kind, bad):
    with pytest.raises(NkcmeError) as error:
        kind(**bad)
    assert "\n" not in str(error.value)
