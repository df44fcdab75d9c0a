"""The compiled loop on environments of a few states."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import NkcmeError, TrainingError
from nkcme.model_files import CheckpointFile
from nkcme.rl import DQN, NKDQN, Settings, finite_rewards, train
from nkcme.rl import learner as learning
from support.tiny_envs import Clock, Corridor, Stairs
from support.training_runs import Listener, MemoryCheckpoint

# An evaluation after every other step: a chunk of 100 evaluations is 200 steps.
SETTINGS = Settings(
    n_steps=800,
    hidden=(8,),
    learning_rate=5e-3,
    batch_size=8,
    gamma=0.9,
    target_every=20,
    buffer_size=120,
    prefill=100,
    epsilon_steps=200,
    eval_every=2,
)
CHUNKS = [200, 400, 600, 800]


def leaves(result):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result.networks)]


def assert_same_bits(a, b):
    for ours, theirs in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(a.curve.step, b.curve.step)
    np.testing.assert_array_equal(a.curve.returns, b.curve.returns)
    assert (a.n_steps, a.agent, a.settings) == (b.n_steps, b.agent, b.settings)


def corridor(seeds=(3, 4), **options):
    return train(Corridor(slip=0.1), DQN(), SETTINGS, seeds=seeds, **options)


@pytest.fixture(scope="module")
def uninterrupted():
    memory = MemoryCheckpoint()
    return corridor(checkpoint=memory), memory


def test_the_result_describes_the_run(uninterrupted):
    result, memory = uninterrupted
    assert result.curve.step.tolist() == list(range(2, 801, 2))
    assert result.curve.returns.shape == (400, 2)
    assert (result.n_steps, result.interrupted, result.seeds) == (800, False, (3, 4))
    assert (result.env_name, result.n_actions, result.observation_size) == ("corridor", 2, 5)
    assert [config["step"] for config, _ in memory.saved] == CHUNKS
    # Rewards are -0.1 until 1 is reached, or the limit of 12 steps.
    returns = set(np.round(10.0 * result.curve.returns.ravel()).astype(int).tolist())
    assert returns <= {*range(-1, 11), -12}


def test_agents_learn_the_shortest_way(uninterrupted):
    result = uninterrupted[0]
    # From the places 0 to 3 the shortest ways return 0.7 to 1; slips cost a little.
    assert result.curve.last_fifth().min() > 0.6
    assert result.act(np.eye(5)[:4], 0).tolist() == [1, 1, 1, 1]
    assert result.curve.last_fifth()[result.best()] == result.curve.last_fifth().max()


@pytest.mark.parametrize("chunk", [0, 2, 3])
def test_a_resumed_run_gives_the_same_bits(uninterrupted, chunk):
    result, memory = uninterrupted
    rest = MemoryCheckpoint(memory.saved[chunk])
    assert_same_bits(corridor(checkpoint=rest), result)
    assert [config["step"] for config, _ in rest.saved] == CHUNKS[chunk + 1 :]


def test_ctrl_c_ends_the_run_after_the_chunk(uninterrupted, tmp_path):
    result = uninterrupted[0]
    file, listener = CheckpointFile(tmp_path / "run"), Listener(press_after=1)
    stopped = corridor(checkpoint=file, progress=listener)
    assert listener.steps == [200]
    assert set(listener.updates[0][1]) == {"return", "loss"}
    assert stopped.interrupted
    assert stopped.n_steps == 200
    np.testing.assert_array_equal(stopped.curve.returns, result.curve.returns[:100])
    assert np.all(np.isfinite(stopped.return_distribution(np.eye(5))[0].mean()))
    assert_same_bits(corridor(checkpoint=file), result)


def test_ctrl_c_in_the_last_chunk_interrupts_nothing(uninterrupted):
    late = corridor(progress=Listener(press_after=4))
    assert not late.interrupted
    assert_same_bits(late, uninterrupted[0])


def test_the_checkpoint_of_another_run_is_refused(uninterrupted):
    with pytest.raises(TrainingError, match="another run"):
        corridor(checkpoint=MemoryCheckpoint(uninterrupted[1].saved[0]), seeds=(3, 5))


def test_a_seed_gives_the_same_agent_alone_and_among_others(uninterrupted):
    """Up to rounding: the compiler may order sums otherwise."""
    pair = uninterrupted[0]
    assert not np.array_equal(pair.curve.returns[:, 0], pair.curve.returns[:, 1])
    among = corridor(seeds=[7, 8, 4], progress=Listener(press_after=1))
    np.testing.assert_allclose(among.curve.returns[:, 2], pair.curve.returns[:100, 1], atol=1e-5)
    alone = corridor(seeds=[4], progress=Listener(press_after=1))
    for ours, theirs in zip(leaves(alone), leaves(among), strict=True):
        np.testing.assert_allclose(ours[0], theirs[2], rtol=1e-4, atol=1e-5)
        assert not np.allclose(theirs[0], theirs[2])


def test_seeds_are_a_number_or_a_list():
    assert corridor(seeds=2, progress=Listener(press_after=1)).seeds == (0, 1)
    for none in (0, [], -1):
        with pytest.raises(NkcmeError, match="at least one"):
            corridor(seeds=none)
    for bad in ([-1], [2**32]):
        with pytest.raises(NkcmeError, match="seed"):
            corridor(seeds=bad)


def test_the_last_return_is_that_of_the_returned_network():
    """Neither the environment nor the actions are random here; the average of networks acts."""
    env = Corridor(start=1)
    settings = replace(SETTINGS, n_steps=200, eval_epsilon=0.0, averaging=0.5)
    result = train(env, DQN(), settings, seeds=2)
    step, reset = jax.jit(env.step), jax.jit(env.reset)
    for agent in range(2):
        state, observation = reset(jax.random.key(0))
        total, ended = 0.0, False
        while not ended:
            action = jnp.asarray(result.act(observation, agent))
            state, taken = step(jax.random.key(0), state, action)
            observation, total = taken.observation, total + float(taken.reward)
            ended = bool(taken.terminated | taken.truncated)
        np.testing.assert_allclose(result.curve.returns[-1, agent], total, rtol=1e-5)


def test_a_chunk_with_an_unseen_reward_is_run_again(monkeypatch):
    """The second run of the chunk starts from the same states: DQN, which ignores the support,
    gives the same bits as in a run without one."""
    settings = replace(SETTINGS, n_steps=200)
    env = Clock(before=1.0, later=-0.5, change=settings.prefill + 50)
    real, calls = finite_rewards.reward_support, []

    def watched(rewards, settings):
        calls.append(rewards.tolist())
        return real(rewards, settings)

    monkeypatch.setattr(finite_rewards, "reward_support", watched)
    result = train(env, DQN(), settings)
    assert calls == [[1.0], [-0.5, 1.0]]
    monkeypatch.setattr(finite_rewards, "reward_support", lambda *_: None)
    assert_same_bits(result, train(env, DQN(), settings))


def test_several_steps_priorities_double_learning_and_averages_learn_the_true_value():
    """A reward of 1 in every step is worth 1 / (1 - gamma): the time limit, every 5 steps, is not
    an end."""
    settings = replace(
        SETTINGS,
        n_steps=1200,
        eval_every=100,
        gamma=0.5,
        learning_rate=1e-2,
        schedule="cosine",
        n_step=3,
        prioritized=True,
        double=True,
        averaging=0.9,
        batch_size=32,
    )
    result = train(Clock(), NKDQN(n_atoms=9, support=(0.0, 4.0)), settings)
    for returns in result.return_distribution([1.0]):
        np.testing.assert_allclose(returns.mean(), 2.0, atol=0.15)


def test_an_automatic_support_comes_from_all_rewards_of_the_random_steps():
    """Also where they are many: from -9 to 2, scaled by a half. With gamma 0.9 the largest in
    every step adds up to 45."""
    short = replace(SETTINGS, n_steps=2, reward_scale=0.5)
    result = train(Stairs(), NKDQN(support="auto", n_atoms=9), short)
    np.testing.assert_allclose(result.agent.support, (-45.0, 45.0), rtol=1e-5)
    np.testing.assert_allclose(result.agent.atoms, np.linspace(-45.0, 45.0, 9), rtol=1e-5)
    # Return distributions are in the environment's unit.
    returns = result.return_distribution([1.0])[0]
    output = learning.outputs(result._program, result.network(), jnp.ones(1))[0]
    np.testing.assert_allclose(returns.mean(), 2.0 * result.agent.value(output), rtol=1e-4)


def test_an_automatic_support_needs_a_reward():
    with pytest.raises(NkcmeError, match="no reward but 0"):
        train(Clock(before=0.0, later=0.0), NKDQN(support="auto"), SETTINGS)


def test_a_support_that_is_too_narrow_gives_one_warning():
    settings = replace(SETTINGS, n_steps=400)
    with pytest.warns(UserWarning, match=r"outside the support of \[0, 0.5\]") as caught:
        train(Clock(), NKDQN(n_atoms=5, support=(0.0, 0.5)), settings)
    assert [w.filename for w in caught] == [__file__]
    assert 'support="auto"' in str(caught[0].message)


@dataclass(frozen=True)
class Faulty(Clock):
    """A clock with a reward that is not finite in one step."""

    fault: float = np.nan
    at: int = 0

    def step(self, key, state, action):
        after, step = super().step(key, state, action)
        return after, step._replace(reward=jnp.where(state[1] == self.at, self.fault, 1.0))


@pytest.mark.parametrize("agent", [NKDQN(n_atoms=5), DQN()], ids=str)
@pytest.mark.parametrize(
    ("env", "when"),
    [(Faulty(at=30), "at the start"), (Faulty(at=150, fault=-np.inf), "between step 0 and 200")],
    ids=str,
)
def test_rewards_that_are_not_finite_are_errors(env, when, agent):
    with pytest.raises(NkcmeError, match=rf"clock: expected finite .* {when}: correct"):
        train(env, agent, replace(SETTINGS, n_steps=200))


def test_an_environment_with_other_shapes_than_described_is_refused():
    @dataclass(frozen=True)
    class Array(Clock):
        def step(self, key, state, action):
            after, step = super().step(key, state, action)
            return after, step._replace(reward=step.reward[None])

    with pytest.raises(NkcmeError, match=r"the reward to have shape \(\), got \(1,\)"):
        train(Array(), DQN(), SETTINGS)
    with pytest.raises(NkcmeError, match=r"first observation to have shape \(2,\), got \(1,\)"):
        train(Clock(observation_size=2), DQN(), SETTINGS)
