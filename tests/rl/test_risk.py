"""Two roads: what an agent learned against the closed form, and what aversion to risk makes."""

import jax
import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.rl import DQN, NKDQN, Settings, train
from nkcme.rl.play import play, record
from nkcme.rl.risky_path import ACTIONS, FOOT, FORK, RISK, VALLEY, TwoRoads, returns

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
VALLEY_ROAD, PASS = range(2)


@pytest.fixture(scope="module")
def fuse():
    return train(TwoRoads(), NKDQN(n_atoms=28, support=(-6.0, 3.0)), SETTINGS, seeds=2)


@pytest.fixture(scope="module")
def dqn():
    return train(TwoRoads(), DQN(), SETTINGS, seeds=2)


def walk(state, action, key=0):
    return TwoRoads().step(jax.random.key(key), np.int32(state), np.int32(action))


# ------------------------------------------------------------------------------- the environment


@pytest.mark.parametrize(
    ("state", "action", "leads_to"),
    [(FORK, VALLEY_ROAD, VALLEY), (FORK, PASS, FOOT), (FOOT, VALLEY_ROAD, VALLEY)],
)
def test_roads_lead_where_they_should(state, action, leads_to):
    after, step = walk(state, action)
    assert int(after) == leads_to
    assert float(step.reward) == 0.0
    assert not step.terminated
    np.testing.assert_array_equal(step.observation, TwoRoads.observe(leads_to))
    np.testing.assert_array_equal(step.final, step.observation)


@pytest.mark.parametrize("action", [VALLEY_ROAD, PASS])
def test_the_valley_ends_at_home(action):
    after, step = walk(VALLEY, action)
    assert (float(step.reward), bool(step.terminated), bool(step.truncated)) == (1.0, True, False)
    assert int(after) == FORK  # a new episode begins
    np.testing.assert_array_equal(step.observation, TwoRoads.observe(FORK))


def test_the_pass_brings_two_or_an_avalanche():
    steps = jax.vmap(lambda key: TwoRoads().step(key, np.int32(FOOT), np.int32(PASS))[1])(
        jax.random.split(jax.random.key(0), 4000)
    )
    assert np.all(steps.terminated)
    assert set(np.unique(steps.reward)) == {-5.0, 2.0}
    assert np.mean(np.asarray(steps.reward) < 0) == pytest.approx(RISK, abs=4 * 0.0047)


@pytest.mark.parametrize("state", [FORK, FOOT])
def test_the_mean_prefers_the_pass_and_the_tail_does_not(state):
    (safe, sure), (risky, chances) = (returns(state, a, GAMMA) for a in (VALLEY_ROAD, PASS))
    assert risky @ chances > safe @ sure
    assert risky.min() < safe.min()
    assert chances[np.argmin(risky)] == RISK  # so the worst tenth is the avalanche, whole


def test_the_closed_form_is_what_playing_brings(dqn):
    came = play(dqn, TwoRoads(), 4000).discounted  # greedy by the mean
    values, chances = returns(FORK, PASS, GAMMA)
    np.testing.assert_allclose(np.unique(came), values, rtol=1e-6)
    assert np.mean(came < 0) == pytest.approx(chances[0], abs=4 * 0.0047)


# ------------------------------------------------------------------------------------- the agents


@pytest.mark.parametrize("agent", [0, 1])
@pytest.mark.parametrize("state", [FORK, FOOT, VALLEY])
def test_the_distribution_learned_is_the_true_one(fuse, agent, state):
    dists = fuse.return_distribution(TwoRoads.observe(state), agent)
    for action, dist in enumerate(dists):
        values, chances = returns(state, action, GAMMA)
        # The replay has seen a finite number of avalanches: their share is off by some 0.02.
        assert dist.mean()[0] == pytest.approx(values @ chances, abs=0.3)
        assert dist.cdf(0.0)[0] == pytest.approx(chances[values < 0].sum(), abs=0.04)
        for value, chance in zip(values, chances, strict=True):
            near = dist.cdf(value + 0.7)[0] - dist.cdf(value - 0.7)[0]
            assert near == pytest.approx(chance, abs=0.06)


@pytest.mark.parametrize("agent", [0, 1])
def test_q_values_take_the_pass(fuse, dqn, agent):
    for result in (fuse, dqn):
        for state in (FORK, FOOT):
            assert result.act(TwoRoads.observe(state), agent)[0] == PASS


@pytest.mark.parametrize("agent", [0, 1])
def test_only_a_distribution_can_be_averse_to_risk(fuse, dqn, agent):
    fork = TwoRoads.observe(FORK)
    assert fuse.act(fork, agent, risk=0.1)[0] == VALLEY_ROAD
    assert dqn.act(fork, agent, risk=0.1)[0] == PASS  # its tail is its mean
    averse = play(fuse, TwoRoads(), 500, agent=agent, risk=0.1)
    np.testing.assert_array_equal(averse.returns, 1.0)
    assert play(fuse, TwoRoads(), 500, agent=agent).returns.min() == -5.0


def test_a_hardly_averse_agent_takes_the_pass(fuse):
    assert fuse.act(TwoRoads.observe(FORK), risk=0.99)[0] == PASS


@pytest.mark.parametrize("risk", [0.0, 1.0, -0.1, np.nan])
def test_risk_must_be_a_share(fuse, risk):
    with pytest.raises(NkcmeError, match="risk"):
        fuse.act(TwoRoads.observe(FORK), risk=risk)


# ----------------------------------------------------------------------------------------- playing


def test_an_episode_step_by_step(fuse):
    episode = record(fuse, TwoRoads(), risk=0.1)
    assert [int(np.argmax(o)) for o in episode.observations] == [FORK, VALLEY]
    assert episode.actions[0] == ACTIONS.index("valley")
    assert episode.rewards.tolist() == [0.0, 1.0]
    assert episode.terminated
    np.testing.assert_allclose(episode.returns_to_go(GAMMA), [GAMMA, 1.0])


def test_the_same_seed_plays_the_same(fuse):
    one, same, other = (play(fuse, TwoRoads(), 50, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.returns, same.returns)
    assert not np.array_equal(one.returns, other.returns)
    assert set(one.lengths) == {2}


def test_agents_of_another_environment_are_refused(fuse):
    from nkcme.rl import make

    with pytest.raises(NkcmeError, match="these agents know 2 actions and 3 numbers"):
        play(fuse, make("CartPole-v1"), 1)
