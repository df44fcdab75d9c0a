"""The contract of all agents. `AgentContract` holds an agent to it; see docs/add-an-agent.md."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import ModelFileError, NkcmeError
from nkcme.model_files import strict_json
from nkcme.rl import C51, DQN, MMDQN, NKDQN
from nkcme.rl.agents import AGENTS, agent_named
from nkcme.rl.agents.base import AtomAgent, agent_from_config

N = 4
DISCOUNTS = (0.0, 0.99, 1.0, 0.5)


@partial(jax.jit, static_argnums=(0, 5))
def losses(agent, output, target, reward, discount, reward_support=None):
    return agent.losses(output, target, reward, discount, reward_support)


@partial(jax.jit, static_argnums=0)
def slopes(agent, *batch):
    return jax.grad(lambda output: jnp.sum(agent.losses(output, *batch[1:])))(batch[0])


def outputs(agent, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, agent.width)).astype(np.float32)


class AgentContract:
    """What every agent must be and do. A subclass provides the fixture ``agent``."""

    def test_shapes(self, agent):
        output = jnp.asarray(outputs(agent))
        assert agent.value(output).shape == (N,)
        assert agent.value(output.reshape(2, 2, -1)).shape == (2, 2)
        assert agent.value(output[0]).shape == ()
        r, d = jnp.ones(N), jnp.full(N, 0.9)
        assert losses(agent, output, outputs(agent, 1), r, d).shape == (N,)
        assert agent.mass_outside(output, r, d).shape == (N,)
        returns = agent.distribution(np.asarray(output), 1.0)
        assert (returns.n_rows, returns.n_outputs) == (N, 1)

    @pytest.mark.parametrize("scale", [1.0, 10.0])
    def test_the_value_is_the_mean_of_the_distribution(self, agent, scale):
        output = outputs(agent)
        mean = agent.distribution(output, scale).mean()
        value = scale * np.asarray(agent.value(output))
        np.testing.assert_allclose(mean, value, rtol=1e-4, atol=1e-3)

    def test_the_loss_is_minimal_where_the_prediction_equals_the_target(self, agent):
        """With r = 0 and d = 1 the Bellman target is the target network's prediction."""
        output = outputs(agent)
        batch = (output, output, np.zeros(N, np.float32), np.ones(N, np.float32))
        np.testing.assert_allclose(slopes(agent, *batch), 0.0, atol=1e-4)
        lowest = np.asarray(losses(agent, *batch))
        other = np.asarray(losses(agent, outputs(agent, 1), *batch[1:]))
        assert np.all(other > lowest + 1e-4)

    def test_a_gradient_step_lowers_the_loss(self, agent):
        output, target = 0.3 * outputs(agent), outputs(agent, 1)
        batch = (target, np.float32([1.0, -1.0, 0.0, 5.0]), np.float32([0.9, 0, 0.9, 0]))
        slope = np.asarray(slopes(agent, output, *batch))
        step = 1e-2 / np.maximum(np.abs(slope).max(axis=1, keepdims=True), 1e-6)
        before = losses(agent, output, *batch)
        after = losses(agent, output - step * slope, *batch)
        assert np.all(np.asarray(after) < np.asarray(before))

    def test_losses_and_gradients_are_finite_for_any_reward(self, agent):
        for reward in (0.0, 1e-8, -1e3, 1e8, -1e15):
            batch = (
                30.0 * outputs(agent),
                outputs(agent, 1),
                np.full(N, reward, np.float32),
                np.float32(DISCOUNTS),
            )
            assert np.all(np.isfinite(losses(agent, *batch))), reward
            assert np.all(np.isfinite(slopes(agent, *batch))), reward

    @pytest.mark.parametrize(("reward", "unused"), [(1e8, ()), (0.5, ((-3.0, 0.9), (2.0, 0.81)))])
    def test_a_finite_reward_support_gives_the_same_losses(self, agent, reward, unused):
        """Also with pairs that do not occur in the batch."""
        batch = (
            3.0 * outputs(agent),
            outputs(agent, 1),
            np.full(N, reward, np.float32),
            np.float32(DISCOUNTS),
        )
        support = (*unused, *((reward, d) for d in DISCOUNTS))
        np.testing.assert_allclose(
            losses(agent, *batch, support), losses(agent, *batch), rtol=1e-3, atol=1e-4
        )

    def test_an_agent_is_an_immutable_value(self, agent):
        """Equal agents share a compiled program."""
        twin = replace(agent)
        assert twin == agent
        assert hash(twin) == hash(agent)
        for field in fields(agent):
            with pytest.raises(FrozenInstanceError):
                setattr(agent, field.name, None)

    def test_an_agent_goes_through_json_and_back(self, agent):
        config = strict_json.loads(strict_json.dumps(agent.to_config()))
        back = agent_from_config(config)
        assert back == agent
        assert hash(back) == hash(agent)
        assert type(back) is type(agent)

    def test_resolving_an_agent_without_auto_changes_nothing(self, agent):
        assert agent.resolved(np.array([1.0, -7.0]), 0.9) == agent


class TestAgents(AgentContract):
    @pytest.fixture(params=list(AGENTS))
    def agent(self, request):
        return AGENTS[request.param]


# --- what only some agents have ------------------------------------------------------------------


@pytest.mark.parametrize("agent", [NKDQN(), MMDQN(), DQN()], ids=lambda agent: agent.kind)
def test_the_lowest_loss_is_zero(agent):
    output = outputs(agent)
    batch = (output, output, np.zeros(N, np.float32), np.ones(N, np.float32))
    np.testing.assert_allclose(losses(agent, *batch), 0.0, atol=1e-5)


def test_the_lowest_loss_of_c51_is_the_entropy():
    agent = C51()
    output = outputs(agent)
    batch = (output, output, np.zeros(N, np.float32), np.ones(N, np.float32))
    p = np.asarray(agent.weights(output), np.float64)
    np.testing.assert_allclose(losses(agent, *batch), -np.sum(p * np.log(p), axis=1), rtol=1e-4)


@pytest.mark.parametrize(
    "agent", [a for a in AGENTS.values() if isinstance(a, AtomAgent)], ids=lambda a: a.kind
)
def test_an_automatic_support_is_closed_under_the_bellman_update(agent):
    """r + gamma z stays inside, for every reward r and every z of the support."""
    auto = replace(agent, support="auto")
    with pytest.raises(NkcmeError, match="no atoms yet"):
        _ = auto.atoms
    rewards = np.array([-2.0, 0.5, 1.0])
    low, high = auto.resolved(rewards, 0.9).support
    assert low - 1e-9 <= (rewards[:, None] + 0.9 * np.array([low, high])).min()
    assert high + 1e-9 >= (rewards[:, None] + 0.9 * np.array([low, high])).max()
    assert low <= 0 <= high
    with pytest.raises(NkcmeError, match="no reward but 0"):
        auto.resolved(np.zeros(3), 0.9)


# --- names and kinds -----------------------------------------------------------------------------


def test_agents_have_names_and_differ():
    assert all(agent_named(name) is agent for name, agent in AGENTS.items())
    assert len(set(AGENTS.values())) == len(AGENTS)
    with pytest.raises(NkcmeError, match="fuse, single, c51, mmdqn, dqn; got 'x'"):
        agent_named("x")


def test_two_agents_cannot_have_the_same_kind():
    with pytest.raises(NkcmeError, match="the kind 'dqn' belongs to the agent DQN"):

        @dataclass(frozen=True)
        class Another(DQN):
            kind = "dqn"

    assert type(agent_from_config({"kind": "dqn"})) is DQN


def test_an_agent_needs_a_kind_of_its_class():
    @dataclass(frozen=True)
    class Derived(DQN):
        pass

    with pytest.raises(NkcmeError, match="the class Derived must set a kind"):
        Derived().to_config()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ModelFileError, match="found 'x': import the module that defines it"):
        agent_from_config({"kind": "x"})


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
def test_invalid_parameters_are_refused_in_one_line(kind, bad):
    with pytest.raises(NkcmeError) as error:
        kind(**bad)
    assert "\n" not in str(error.value)
