"""The loop through Gymnasium: the same agents and results as the compiled loop."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from nkcme.errors import NkcmeError, TrainingError
from nkcme.rl import DQN, NKDQN, Settings, finite_rewards, load, make, train
from nkcme.rl.envs import Hosted
from nkcme.rl.play import record
from support.agents_at_hand import untrained
from support.training_runs import Listener, MemoryCheckpoint

SETTINGS = Settings(
    n_steps=200,
    hidden=(8,),
    batch_size=8,
    target_every=20,
    buffer_size=250,
    prefill=100,
    epsilon_steps=100,
    eval_every=50,
)
FUSE = NKDQN(n_atoms=9, support=(-10.0, 50.0))


class Stay(gymnasium.Env):
    """One state; a reward of 1, and -0.5 after step ``change``; truncated every 4 steps."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, change=10**9):
        self.clock, self.change = 0, change

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.ones(1), {}

    def step(self, action):
        self.t, self.clock = self.t + 1, self.clock + 1
        reward = 1.0 if self.clock <= self.change else -0.5
        return np.ones(1), reward, False, self.t == 4, {}


@pytest.fixture(scope="module")
def cartpole():
    listener = Listener()
    env = make("CartPole-v1", backend="gymnasium")
    return train(env, FUSE, SETTINGS, seeds=[3, 4], progress=listener), listener


def test_the_result_describes_the_run(cartpole):
    result, listener = cartpole
    assert result.curve.step.tolist() == [50, 100, 150, 200]
    assert result.curve.returns.shape == (4, 2)
    assert result.curve.returns.min() >= 8.0  # the pole never falls sooner
    assert (result.env_name, result.n_actions, result.observation_size) == ("CartPole-v1", 2, 4)
    assert (result.n_steps, result.interrupted, result.seeds) == (200, False, (3, 4))
    assert listener.steps == [50, 100, 150, 200]
    assert set(listener.updates[0][1]) == {"return", "loss"}
    assert not np.allclose(result.network(0).layers[0].weight, result.network(1).layers[0].weight)
    assert result.act(np.zeros((3, 4))).shape == (3,)


def test_a_seed_gives_the_same_agent_alone_and_among_others(cartpole):
    alone = train(make("CartPole-v1", backend="gymnasium"), FUSE, SETTINGS, seeds=[4])
    np.testing.assert_array_equal(alone.curve.returns[:, 0], cartpole[0].curve.returns[:, 1])


def test_saved_agents_play_in_gymnasium(tmp_path):
    agents = untrained(DQN(), observation_size=4)
    agents.save(tmp_path / "agents")
    env = make("CartPole-v1", backend="gymnasium")
    episode = record(load(tmp_path / "agents"), env, seed=3)
    assert episode.actions.tolist() == agents.act(episode.observations).tolist()
    assert len(episode.actions) >= 8


@pytest.fixture(scope="module")
def long():
    return replace(SETTINGS, n_steps=600, gamma=0.5, learning_rate=2e-2, target_every=10)


def test_values_are_learned_through_time_limits(long):
    """A reward of 1 in every step is worth 1 / (1 - gamma), truncated or not."""
    result = train(Hosted("stay", Stay()), DQN(), long)
    for returns in result.return_distribution([1.0]):
        np.testing.assert_allclose(returns.mean(), 2.0, atol=0.15)
    assert result.curve.returns[-1, 0] == 4.0


def test_an_unseen_reward_extends_the_reward_support(monkeypatch):
    """The result is that of the general loss."""
    agent = NKDQN(n_atoms=9, support=(-50.0, 100.0))
    # The reward changes after the 100 random steps and 30 steps of training.
    run = lambda: train(Hosted("stay", Stay(change=130)), agent, SETTINGS)  # noqa: E731
    real, calls = finite_rewards.reward_support, []

    def watched(rewards, settings):
        calls.append(rewards.tolist())
        return real(rewards, settings)

    monkeypatch.setattr(finite_rewards, "reward_support", watched)
    constants = run()
    assert calls == [[1.0], [-0.5, 1.0]]
    monkeypatch.setattr(finite_rewards, "reward_support", lambda *_: None)
    general = run()
    for ours, theirs in zip(
        constants.return_distribution([1.0]), general.return_distribution([1.0]), strict=True
    ):
        np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-2, atol=1e-4)


def test_ctrl_c_ends_the_run_at_the_next_evaluation():
    """All agents are then at the same step."""
    listener = Listener(press_after=2)
    result = train(Hosted("stay", Stay()), DQN(), SETTINGS, seeds=3, progress=listener)
    assert listener.steps == [50, 100]
    assert result.interrupted
    assert result.n_steps == 100
    assert result.seeds == (0, 1, 2)
    assert result.curve.returns.shape == (2, 3)


def test_ctrl_c_at_the_last_evaluation_interrupts_nothing():
    result = train(
        Hosted("stay", Stay()), DQN(), SETTINGS, seeds=2, progress=Listener(press_after=4)
    )
    assert not result.interrupted
    assert result.n_steps == 200


def test_an_automatic_support_comes_from_the_rewards_of_the_random_steps():
    result = train(Hosted("stay", Stay()), NKDQN(n_atoms=9, support="auto"), SETTINGS)
    np.testing.assert_allclose(result.agent.support, (-100.0, 100.0))


def test_divergence_is_an_error():
    with pytest.raises(TrainingError, match=r"loss of agent 0 is .* lower the learning rate, or"):
        train(Hosted("stay", Stay()), DQN(), replace(SETTINGS, learning_rate=1e30))


def test_a_support_that_is_too_narrow_gives_one_warning():
    agent = NKDQN(n_atoms=9, support=(0.0, 0.5))
    with pytest.warns(UserWarning, match=r"outside the support of \[0, 0.5\]") as caught:
        train(Hosted("stay", Stay()), agent, SETTINGS)
    assert [w.filename for w in caught] == [__file__]


def test_a_run_goes_on_with_new_episodes():
    """The learner and its replay are those of the run, the curve is extended."""
    memory = MemoryCheckpoint()
    agent = NKDQN(n_atoms=9, support="auto")
    first = train(Stay, agent, SETTINGS, seeds=[3, 4], checkpoint=memory)
    assert len(memory.saved) == 1  # when the run ends
    with pytest.raises(NkcmeError, match="go_on=True"):
        train(Stay, agent, SETTINGS, seeds=[3, 4], checkpoint=MemoryCheckpoint(memory.saved[0]))
    more = MemoryCheckpoint(memory.saved[0])
    long = replace(SETTINGS, n_steps=300)
    second = train(Stay, first.agent, long, seeds=[3, 4], checkpoint=more, go_on=True)
    assert second.curve.step.tolist() == [50, 100, 150, 200, 250, 300]
    np.testing.assert_array_equal(second.curve.returns[:4], first.curve.returns)
    assert second.n_steps == 300
    rows = more.saved[0][1]["state.replay.rows"]
    # The ring of 250 rows: the first 150 are of the steps from 150 to 300, the rest as they were.
    kept = memory.saved[0][1]["state.replay.rows"]
    np.testing.assert_array_equal(rows[:, 150:249], kept[:, 150:249])


def test_a_run_has_steps_to_go_on():
    memory = MemoryCheckpoint()
    train(Stay, DQN(), SETTINGS, checkpoint=memory)
    for n_steps, why in ((100, "has done 200 steps"),):
        with pytest.raises(NkcmeError, match=why):
            train(
                Stay,
                DQN(),
                replace(SETTINGS, n_steps=n_steps),
                checkpoint=MemoryCheckpoint(memory.saved[0]),
                go_on=True,
            )
    with pytest.raises(NkcmeError, match="no checkpoint to go on from"):
        train(Stay, DQN(), SETTINGS, go_on=True)
