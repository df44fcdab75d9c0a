"""Episodes of agents in the risky path, where returns have a closed form."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.rl import NKDQN, Settings, make
from nkcme.rl.play import play, record
from nkcme.rl.risky_path import FORK, VALLEY, RiskyPath, return_distribution
from support.agents_at_hand import untrained

GAMMA = 0.9


@pytest.fixture(scope="module")
def agents():
    """In every state they predict 1 for the valley, and 2 or an avalanche for the pass."""
    agent = NKDQN(n_atoms=10, support=(-6.0, 3.0))
    outputs = np.full((2, 10), -50.0)
    outputs[0, 7] = 0.0
    outputs[1, [1, 8]] = np.log([0.1, 0.9])
    return untrained(agent, outputs=outputs, settings=Settings(hidden=(4,), gamma=GAMMA))


def test_returns_follow_the_closed_form(agents):
    episodes = play(agents, RiskyPath(), 1000)
    values, chances = return_distribution(FORK, 1, GAMMA)
    np.testing.assert_allclose(np.unique(episodes.discounted), values, rtol=1e-6)
    np.testing.assert_allclose(episodes.discounted, GAMMA * episodes.returns, rtol=1e-6)
    # Four standard errors of a share of 0.1 in 1,000 episodes.
    assert np.mean(episodes.returns < 0) == pytest.approx(chances[0], abs=4 * 0.0095)
    np.testing.assert_array_equal(episodes.lengths, 2)
    assert episodes.terminated.all()
    np.testing.assert_array_equal(episodes.starts, np.tile(RiskyPath.observe(FORK), (1000, 1)))


def test_risk_averse_agents_take_the_valley(agents):
    averse = play(agents, RiskyPath(), 100, agent=1, risk=0.1)
    np.testing.assert_array_equal(averse.returns, 1.0)


def test_a_recording_holds_every_step(agents):
    episode = record(agents, RiskyPath(), risk=0.1, seed=5)
    assert [int(np.argmax(o)) for o in episode.observations] == [FORK, VALLEY]
    assert episode.actions.tolist() == [0, 0]
    assert episode.rewards.tolist() == [0.0, 1.0]
    assert episode.terminated
    assert episode.seed == 5
    np.testing.assert_allclose(episode.returns_to_go(GAMMA), [GAMMA, 1.0])


def test_the_same_seed_gives_the_same_episodes(agents):
    one, same, other = (play(agents, RiskyPath(), 50, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.returns, same.returns)
    assert not np.array_equal(one.returns, other.returns)


def test_another_environment_is_refused(agents):
    with pytest.raises(NkcmeError, match=r"2 actions and observations of 3 numbers.*CartPole-v1"):
        play(agents, make("CartPole-v1"), 1)
