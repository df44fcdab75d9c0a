"""The risky path: its steps, its closed form, and what agents learn in it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nkcme.rl import DQN, NKDQN, Settings, train
from nkcme.rl.risky_path import FOOT, FORK, RISK, VALLEY, RiskyPath, return_distribution

GAMMA = 0.9
SETTINGS = Settings(
    n_steps=4000,
    hidden=(16,),
    learning_rate=3e-3,
    schedule="cosine",
    batch_size=64,
    averaging=0.99,
    gamma=GAMMA,
    prefill=2000,
    epsilon=0.3,
    epsilon_steps=1000,
    eval_every=1000,
)
FOLLOW_VALLEY, CLIMB = range(2)


@pytest.fixture(scope="module")
def fuse():
    agent = NKDQN(n_atoms=28, support=(-6.0, 3.0), bandwidths=(0.5, 1.5, 4.0))
    return train(RiskyPath(), agent, SETTINGS, seeds=2)


@pytest.fixture(scope="module")
def dqn():
    return train(RiskyPath(), DQN(), SETTINGS, seeds=2)


# --- the environment -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "action", "leads_to"),
    [(FORK, FOLLOW_VALLEY, VALLEY), (FORK, CLIMB, FOOT), (FOOT, FOLLOW_VALLEY, VALLEY)],
)
def test_steps_on_the_way_give_no_reward(state, action, leads_to):
    after, step = RiskyPath().step(jax.random.key(0), np.int32(state), np.int32(action))
    assert int(after) == leads_to
    assert float(step.reward) == 0.0
    assert not step.terminated
    np.testing.assert_array_equal(step.observation, RiskyPath.observe(leads_to))
    np.testing.assert_array_equal(step.final, step.observation)


@pytest.mark.parametrize("action", [FOLLOW_VALLEY, CLIMB])
def test_the_valley_ends_with_a_reward_of_one(action):
    after, step = RiskyPath().step(jax.random.key(0), np.int32(VALLEY), np.int32(action))
    assert (float(step.reward), bool(step.terminated), bool(step.truncated)) == (1.0, True, False)
    assert int(after) == FORK  # a new episode begins
    np.testing.assert_array_equal(step.observation, RiskyPath.observe(FORK))


def test_the_pass_ends_with_a_reward_of_two_or_an_avalanche():
    step = jax.jit(jax.vmap(lambda key: RiskyPath().step(key, np.int32(FOOT), np.int32(CLIMB))[1]))
    steps = step(jax.random.split(jax.random.key(0), 4000))
    assert np.all(steps.terminated)
    assert set(np.unique(steps.reward)) == {-5.0, 2.0}
    assert np.mean(np.asarray(steps.reward) < 0) == pytest.approx(RISK, abs=4 * 0.0047)


@pytest.mark.parametrize("state", [FORK, FOOT])
def test_the_mean_prefers_the_pass_and_the_worst_tenth_does_not(state):
    safe, certain = return_distribution(state, FOLLOW_VALLEY, GAMMA)
    risky, chances = return_distribution(state, CLIMB, GAMMA)
    assert risky @ chances > safe @ certain
    assert risky.min() < safe.min()
    assert chances[np.argmin(risky)] == RISK


# --- the agents ----------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [0, 1])
@pytest.mark.parametrize("state", [FORK, FOOT, VALLEY])
def test_the_learned_distribution_is_the_true_one(fuse, agent, state):
    dists = fuse.return_distribution(RiskyPath.observe(state), agent)
    for action, dist in enumerate(dists):
        values, chances = return_distribution(state, action, GAMMA)
        # The replay holds a finite number of avalanches, so their share is off by about 0.02.
        assert dist.mean()[0] == pytest.approx(values @ chances, abs=0.3)
        assert dist.cdf(0.0)[0] == pytest.approx(chances[values < 0].sum(), abs=0.04)
        for value, chance in zip(values, chances, strict=True):
            near = dist.cdf(value + 0.7)[0] - dist.cdf(value - 0.7)[0]
            assert near == pytest.approx(chance, abs=0.06)


@pytest.mark.parametrize("agent", [0, 1])
def test_agents_take_the_pass_by_its_mean(fuse, dqn, agent):
    for result in (fuse, dqn):
        for state in (FORK, FOOT):
            assert result.act(RiskyPath.observe(state), agent) == CLIMB


@pytest.mark.parametrize("agent", [0, 1])
def test_only_a_distributional_agent_can_avoid_the_risk(fuse, dqn, agent):
    fork = RiskyPath.observe(FORK)
    assert fuse.act(fork, agent, risk=0.1) == FOLLOW_VALLEY
    assert fuse.act(fork, agent, risk=0.99) == CLIMB
    assert dqn.act(fork, agent, risk=0.1) == CLIMB  # all its mass is at the mean
