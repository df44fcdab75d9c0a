"""The compiled loop on environments of a few states: what it plays, keeps, resumes and refuses."""

from __future__ import annotations

import signal
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import NkcmeError, TrainingError
from nkcme.model_files import CheckpointFile
from nkcme.rl import DQN, NKDQN, Settings, train
from nkcme.rl import finite_rewards as known
from nkcme.rl import learner as learning
from nkcme.rl.learner import Program
from nkcme.rl.loop import episodes
from support.tiny_envs import Clock, Corridor, Stairs

# An evaluation every other step: a chunk is a hundred of them.
SETTINGS = Settings(
    n_steps=900,
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
CHUNKS = [200, 400, 600, 800, 900]
FUSE = NKDQN(n_atoms=9, support=(-2.0, 2.0))


class Memory:
    """A checkpoint that keeps copies of everything it was given."""

    def __init__(self, start=None):
        self.start, self.saved = start, []

    def load(self):
        return self.start

    def save(self, config, arrays):
        self.saved.append((dict(config), {k: v.copy() for k, v in arrays.items()}))


class CtrlC:
    def __init__(self, after):
        self.after, self.steps = after, []

    def update(self, step, values):
        assert set(values) >= {"return", "loss"}
        assert np.all(np.isfinite(list(values.values())))
        self.steps.append(step)
        if len(self.steps) == self.after:
            signal.raise_signal(signal.SIGINT)


def leaves(result):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result.networks)]


def assert_same_bits(a, b):
    for ours, theirs in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(a.curve.step, b.curve.step)
    np.testing.assert_array_equal(a.curve.returns, b.curve.returns)
    assert (a.n_steps, a.agent, a.settings) == (b.n_steps, b.agent, b.settings)


def corridor(agent=FUSE, settings=SETTINGS, seeds=(3, 4), **how):
    return train(Corridor(slip=0.1), agent, settings, seeds=seeds, **how)


@pytest.fixture(scope="module")
def uninterrupted():
    memory = Memory()
    return corridor(checkpoint=memory), memory


def test_what_a_run_gives(uninterrupted):
    result, memory = uninterrupted
    assert result.curve.step.tolist() == list(range(2, 901, 2))
    assert result.curve.returns.shape == (450, 2)
    assert (result.n_steps, result.interrupted, result.seeds) == (900, False, (3, 4))
    assert (result.env_name, result.n_actions, result.observation_size) == ("corridor", 2, 5)
    assert [config["step"] for config, _ in memory.saved] == CHUNKS
    # Rewards are -0.1 until 1 comes, or the limit of 12.
    played = set(np.round(10.0 * result.curve.returns.ravel()).astype(int).tolist())
    assert played <= {*range(-1, 11), -12}


def test_agents_learn_the_way(uninterrupted):
    result = uninterrupted[0]
    # From the places 0 to 3 the shortest ways bring 0.7 to 1; slips cost a little.
    assert result.curve.last_fifth().min() > 0.6
    assert result.act(np.eye(5)[:4], 0).tolist() == [1, 1, 1, 1]
    assert result.curve.last_fifth()[result.best()] == result.curve.last_fifth().max()


@pytest.mark.parametrize("chunk", [0, 2])
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(uninterrupted, chunk):
    result, memory = uninterrupted
    rest = Memory(memory.saved[chunk])
    assert_same_bits(corridor(checkpoint=rest), result)
    assert [config["step"] for config, _ in rest.saved] == CHUNKS[chunk + 1 :]


def test_a_finished_run_is_read_from_its_checkpoint(uninterrupted):
    result, memory = uninterrupted
    rest = Memory(memory.saved[-1])
    assert_same_bits(corridor(checkpoint=rest), result)
    assert rest.saved == []


def test_ctrl_c_ends_after_the_chunk_with_what_was_learned(uninterrupted, tmp_path):
    result = uninterrupted[0]
    before = signal.getsignal(signal.SIGINT)
    file, listener = CheckpointFile(tmp_path / "run"), CtrlC(after=1)
    stopped = corridor(checkpoint=file, progress=listener)
    assert signal.getsignal(signal.SIGINT) is before
    assert listener.steps == [200]
    assert stopped.interrupted
    assert stopped.n_steps == 200
    np.testing.assert_array_equal(stopped.curve.returns, result.curve.returns[:100])
    assert not all(
        np.array_equal(a, b) for a, b in zip(leaves(stopped), leaves(result), strict=True)
    )
    assert np.all(np.isfinite(stopped.return_distribution(np.eye(5))[0].mean()))
    assert_same_bits(corridor(checkpoint=file), result)


def test_ctrl_c_in_the_last_chunk_interrupts_nothing(uninterrupted):
    late = corridor(progress=CtrlC(after=5))
    assert not late.interrupted
    assert_same_bits(late, uninterrupted[0])


@pytest.mark.parametrize(
    "other",
    [
        {"seeds": (3, 5)},
        {"settings": replace(SETTINGS, gamma=0.8)},
        {"agent": replace(FUSE, support=(-2.0, 2.5))},
    ],
)
def test_the_checkpoint_of_another_run_is_refused(uninterrupted, other):
    with pytest.raises(TrainingError, match="another run"):
        corridor(checkpoint=Memory(uninterrupted[1].saved[0]), **other)


def test_seeds_differ_and_do_not_depend_on_their_company(uninterrupted):
    """The same seed alone, or in another place among others: up to rounding, the same agent."""
    pair = uninterrupted[0]
    assert not np.array_equal(pair.curve.returns[:, 0], pair.curve.returns[:, 1])
    alone, among = (corridor(seeds=s, progress=CtrlC(after=1)) for s in ([4], [7, 8, 4]))
    np.testing.assert_allclose(among.curve.returns[:, 2], alone.curve.returns[:, 0], atol=1e-5)
    for ours, theirs in zip(leaves(alone), leaves(among), strict=True):
        np.testing.assert_allclose(ours[0], theirs[2], rtol=1e-4, atol=1e-5)
        assert not np.allclose(theirs[0], theirs[2])


def test_seeds_are_counted_or_given():
    assert corridor(seeds=2, progress=CtrlC(after=1)).seeds == (0, 1)
    for none in (0, [], -1):
        with pytest.raises(NkcmeError, match="at least one"):
            corridor(seeds=none)
    for bad in ([-1], [2**32]):
        with pytest.raises(NkcmeError, match="seed"):
            corridor(seeds=bad)


def test_evaluations_are_episodes_by_a_slow_replay():
    """Random actions, slips and starts included; some end, some are cut off."""
    env = Corridor(slip=0.3)
    settings = replace(SETTINGS, eval_epsilon=0.4)
    program = Program(DQN(), settings, 2, 5, None)
    shape = (3, 2)
    keys = jax.random.split(jax.random.key(0), shape)
    networks = jax.vmap(jax.vmap(lambda k: learning.fresh_network(program, k)))(keys)
    fast = jax.jit(lambda n, k: episodes(env, program, n, k))(networks, keys)
    step, reset = jax.jit(env.step), jax.jit(env.reset)
    greedy = jax.jit(lambda n, o: learning.greedy(program, n, o))

    @jax.jit
    def dice(key, t):
        step_key, chance_key, other_key = jax.random.split(jax.random.fold_in(key, t), 3)
        return step_key, jax.random.uniform(chance_key), jax.random.randint(other_key, (), 0, 2)

    lengths = []
    for i in np.ndindex(shape):
        network = jax.tree.map(lambda leaf, i=i: leaf[i], networks)
        state, observation = reset(jax.random.fold_in(keys[i], 0))
        total, t, ended = 0.0, 0, False
        while not ended:
            t += 1
            step_key, chance, other = dice(keys[i], t)
            action = other if chance < 0.4 else greedy(network, observation)
            state, came = step(step_key, state, action)
            observation, total = came.observation, total + float(came.reward)
            ended = bool(came.terminated | came.truncated)
        lengths.append(t)
        np.testing.assert_allclose(fast[i], total, rtol=1e-5)
    assert len(set(lengths)) > 2


def test_the_last_return_is_that_of_the_agent_that_comes_back():
    """Without chance in the environment or in acting; of the average, where that acts."""
    env = Corridor(start=1)
    settings = replace(SETTINGS, n_steps=200, eval_epsilon=0.0, averaging=0.5)
    result = train(env, DQN(), settings, seeds=2)
    for agent in range(2):
        state, observation = env.reset(jax.random.key(0))
        total, ended = 0.0, False
        while not ended:
            action = jnp.asarray(result.act(observation, agent)[0])
            state, came = env.step(jax.random.key(0), state, action)
            observation, total = came.observation, total + float(came.reward)
            ended = bool(came.terminated | came.truncated)
        np.testing.assert_allclose(result.curve.returns[-1, agent], total, rtol=1e-5)


def test_a_reward_that_comes_late_makes_the_chunk_run_again(monkeypatch):
    """The constants of one reward would be wrong for two; the result is that of the general loss,
    which knows of no constants."""
    settings = replace(SETTINGS, n_steps=200)
    env = Clock(before=1.0, later=-0.5, change=settings.prefill + 50)
    agent = NKDQN(n_atoms=9, support=(-6.0, 12.0))
    real, asked = known.outcomes, []

    def watched(rewards, settings):
        asked.append(rewards.tolist())
        return real(rewards, settings)

    monkeypatch.setattr(known, "outcomes", watched)
    constants = train(env, agent, settings)
    assert asked == [[1.0], [-0.5, 1.0]]
    monkeypatch.setattr(known, "outcomes", lambda *_: None)
    general = train(env, agent, settings)
    for ours, theirs in zip(leaves(constants), leaves(general), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(constants.curve.returns, general.curve.returns)


def test_n_steps_priorities_double_and_averages_learn_the_same_values():
    """A reward of 1 for ever is worth 1 / (1 - gamma) by any of them, though a time limit cuts it
    off every 5 steps: that is no end."""
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


def test_divergence_is_an_error():
    with pytest.raises(TrainingError, match="lower the learning rate"):
        corridor(DQN(), replace(SETTINGS, learning_rate=1e30, n_steps=200))


def test_a_support_is_chosen_from_the_rewards_seen():
    """All of them, also where they are many: from -9 to 2, scaled by a half. The largest at every
    step, with gamma 0.9, adds up to 45."""
    short = replace(SETTINGS, n_steps=2, reward_scale=0.5)
    result = train(Stairs(), NKDQN(support="auto", n_atoms=9), short)
    np.testing.assert_allclose(result.agent.support, (-45.0, 45.0), rtol=1e-5)
    np.testing.assert_allclose(result.agent.atoms, np.linspace(-45.0, 45.0, 9), rtol=1e-5)
    # What people read is in the environment's unit.
    returns = result.return_distribution([1.0])[0]
    output = learning.outputs(result.program, result.network(), jnp.ones(1))[0]
    np.testing.assert_allclose(returns.mean(), 2.0 * result.agent.value(output), rtol=1e-4)


def test_no_reward_gives_no_support():
    with pytest.raises(NkcmeError, match="no reward but 0"):
        train(Clock(before=0.0, later=0.0), NKDQN(support="auto"), SETTINGS)


def test_a_support_that_is_too_narrow_is_warned_of_once():
    settings = replace(SETTINGS, n_steps=400)
    with pytest.warns(UserWarning, match=r"outside the support of \[0, 0.5\]") as caught:
        train(Clock(), NKDQN(n_atoms=5, support=(0.0, 0.5)), settings)
    assert [w.filename for w in caught] == [__file__]
    assert 'support="auto"' in str(caught[0].message)
