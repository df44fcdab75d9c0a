"""The loop through Gymnasium: the same agents, results and refusals."""

from __future__ import annotations

import signal
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from nkcme.errors import NkcmeError, TrainingError
from nkcme.rl import DQN, NKDQN, Settings, load, make, train
from nkcme.rl import finite_rewards as known
from nkcme.rl.envs import Hosted

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
    """One state, a reward of 1 and from step ``change`` on of -0.5, cut off every 4 steps."""

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


class Listener:
    def __init__(self, interrupt_after=None):
        self.steps, self.after = [], interrupt_after

    def update(self, step, values):
        assert set(values) >= {"return", "loss"}
        self.steps.append(step)
        if len(self.steps) == self.after:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def cartpole():
    listener = Listener()
    env = make("CartPole-v1", backend="gymnasium")
    return train(env, FUSE, SETTINGS, seeds=[3, 4], progress=listener), listener


def test_a_run_gives_what_the_compiled_loop_gives(cartpole):
    result, listener = cartpole
    assert result.curve.step.tolist() == [50, 100, 150, 200]
    assert result.curve.returns.shape == (4, 2)
    assert result.curve.returns.min() >= 8.0  # no pole falls sooner
    assert (result.env_name, result.n_actions, result.observation_size) == ("CartPole-v1", 2, 4)
    assert (result.n_steps, result.interrupted, result.seeds) == (200, False, (3, 4))
    assert listener.steps == [25, 50, 75, 100, 125, 150, 175, 200]
    assert not np.allclose(result.network(0).layers[0].weight, result.network(1).layers[0].weight)
    assert result.act(np.zeros((3, 4))).shape == (3,)


def test_an_agent_of_one_seed_is_the_same_in_any_company(cartpole):
    alone = train(make("CartPole-v1", backend="gymnasium"), FUSE, SETTINGS, seeds=[4])
    np.testing.assert_array_equal(alone.curve.returns[:, 0], cartpole[0].curve.returns[:, 1])


def test_the_same_file_plays_in_both(tmp_path):
    """Trained in gymnax, saved, loaded: it acts in Gymnasium as it does on gymnax's arrays."""
    trained = train("CartPole-v1", DQN(), replace(SETTINGS, n_steps=50, prefill=50))
    trained.save(tmp_path / "agent")
    loaded = load(tmp_path / "agent")
    env = make(loaded.env_name, backend="gymnasium")
    observation, seen, actions = env.reset(0), [], []
    for _ in range(8):
        seen.append(observation)
        actions.append(int(loaded.act(observation)[0]))
        observation = env.step(actions[-1])[0]
    assert trained.act(np.stack(seen)).tolist() == actions


@pytest.fixture(scope="module")
def long():
    return replace(SETTINGS, n_steps=600, gamma=0.5, learning_rate=2e-2, target_every=10)


def test_values_are_learned_through_time_limits(long):
    """A reward of 1 for ever is worth 1 / (1 - gamma), cut off or not."""
    result = train(Hosted("stay", Stay()), DQN(), long)
    for returns in result.return_distribution([1.0]):
        np.testing.assert_allclose(returns.mean(), 2.0, atol=0.15)
    assert result.curve.returns[-1, 0] == 4.0


def test_a_reward_that_comes_late_is_learned_as_by_the_general_loss(monkeypatch):
    agent = NKDQN(n_atoms=9, support=(-50.0, 100.0))
    # 100 steps before, and among the first 50 come evaluations of 4 steps.
    run = lambda: train(Hosted("stay", Stay(change=130)), agent, SETTINGS)  # noqa: E731
    real, asked = known.outcomes, []

    def watched(rewards, settings):
        asked.append(rewards.tolist())
        return real(rewards, settings)

    monkeypatch.setattr(known, "outcomes", watched)
    constants = run()
    assert asked == [[1.0], [-0.5, 1.0]]
    monkeypatch.setattr(known, "outcomes", lambda *_: None)
    general = run()
    for ours, theirs in zip(
        constants.return_distribution([1.0]), general.return_distribution([1.0]), strict=True
    ):
        np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(("after", "done", "seeds"), [(2, 100, 1), (4, 200, 1), (5, 200, 1)])
def test_ctrl_c_ends_at_the_next_evaluation_with_what_was_learned(after, done, seeds):
    """Also where it comes with the last evaluation of a seed: the others are not begun. Of a
    later seed that was cut short nothing is kept, for it would cut the curves of the others."""
    listener = Listener(interrupt_after=after)
    before = signal.getsignal(signal.SIGINT)
    result = train(Hosted("stay", Stay()), DQN(), SETTINGS, seeds=3, progress=listener)
    assert signal.getsignal(signal.SIGINT) is before
    assert len(listener.steps) == after
    assert result.interrupted
    assert result.n_steps == done
    assert result.seeds == tuple(range(seeds))
    assert result.curve.returns.shape == (done // 50, seeds)


def test_ctrl_c_with_the_last_evaluation_of_all_interrupts_nothing():
    result = train(
        Hosted("stay", Stay()), DQN(), SETTINGS, seeds=2, progress=Listener(interrupt_after=8)
    )
    assert not result.interrupted
    assert result.n_steps == 200


def test_a_support_is_chosen_from_the_rewards_seen():
    result = train(Hosted("stay", Stay()), NKDQN(n_atoms=9, support="auto"), SETTINGS)
    np.testing.assert_allclose(result.agent.support, (-100.0, 100.0))


def test_divergence_is_an_error():
    with pytest.raises(TrainingError, match="lower the learning rate"):
        train(Hosted("stay", Stay()), DQN(), replace(SETTINGS, learning_rate=1e30))


def test_a_support_that_is_too_narrow_is_warned_of_once():
    agent = NKDQN(n_atoms=9, support=(0.0, 0.5))
    with pytest.warns(UserWarning, match=r"outside the support of \[0, 0.5\]") as caught:
        train(Hosted("stay", Stay()), agent, SETTINGS)
    assert [w.filename for w in caught] == [__file__]


def test_a_checkpoint_is_refused():
    class Never:
        def load(self):
            raise AssertionError

    with pytest.raises(NkcmeError, match="cannot be resumed"):
        train(Hosted("stay", Stay()), DQN(), SETTINGS, checkpoint=Never())
