"""The ring buffer: writing, sampling, returns over several steps, priorities."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.rl import replay as buffer
from nkcme.rl.replay import Replay, Transition

GAMMA = 0.5


def transitions(n, seed=0, terminated=(), truncated=()):
    """n consecutive transitions; number i has reward 2^i and leads from observation i to i + 1."""
    rng = np.random.default_rng(seed)
    flag = lambda which: np.isin(np.arange(n), which)  # noqa: E731
    return Transition(
        np.stack([np.arange(n), rng.normal(size=n)], axis=1).astype(np.float32),
        np.stack([np.arange(n) + 1, rng.normal(size=n)], axis=1).astype(np.float32),
        rng.integers(0, 4, n),
        np.float32(2.0) ** np.arange(n),
        flag(terminated),
        flag(terminated) | flag(truncated),
    )


def ring(n, capacity=None, **ends):
    rows = buffer.pack(transitions(n, **ends))
    empty = jnp.full((capacity or n, rows.shape[1]), jnp.nan)
    return Replay(empty.at[:n].set(rows), None)


def draw(replay, index, newest, size=None, n_step=1, bootstrap=True):
    """The sample of these rows."""
    size = len(replay.rows) if size is None else size
    uniform = (np.asarray(index, np.float32) + 0.5) / size
    return _sample(replay, uniform, size, newest, n_step, bootstrap)


@partial(jax.jit, static_argnums=(4, 5))
def _sample(replay, uniform, size, newest, n_step, bootstrap):
    return buffer.sample(
        replay,
        uniform,
        size,
        newest,
        observation_size=2,
        gamma=GAMMA,
        n_step=n_step,
        bootstrap_on_truncation=bootstrap,
    )


def test_pack_and_unpack_are_inverse():
    made = transitions(5, terminated=[1], truncated=[3])
    for axes in ((5,), (5, 1)):
        shaped = jax.tree.map(lambda a, axes=axes: a.reshape(*axes, *a.shape[1:]), made)
        back = buffer.unpack(buffer.pack(shaped), 2)
        for ours, theirs in zip(back, shaped, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert back.terminated.dtype == bool
        assert jnp.issubdtype(back.action.dtype, jnp.integer)


def test_writes_wrap_around_and_keep_other_rows():
    rows = np.asarray(buffer.pack(transitions(10)))
    replay = Replay(jnp.zeros((6, rows.shape[1])), None)
    for first in range(0, 10, 2):
        replay = buffer.write(replay, jnp.asarray(rows[first : first + 2]), first % 6)
    np.testing.assert_array_equal(replay.rows, rows[[6, 7, 8, 9, 4, 5]])


def test_samples_are_uniform_over_the_filled_rows():
    replay = ring(6, capacity=10)
    n = 3000
    uniform = (np.arange(n) + 0.5) / n
    got = _sample(replay, uniform.astype(np.float32), 6, 5, 1, True)
    np.testing.assert_array_equal(np.bincount(got.row, minlength=10), [500] * 6 + [0] * 4)
    assert not np.any(np.isnan(got.observation))
    np.testing.assert_array_equal(got.weight, 1.0)
    # The largest float below one selects the last filled row.
    edge = np.full(1, np.nextafter(np.float32(1), np.float32(0)))
    assert _sample(replay, edge, 6, 5, 1, True).row[0] == 5


def test_a_sample_of_one_step_is_the_transition_of_its_row():
    made = transitions(6, terminated=[2])
    got = draw(ring(6, terminated=[2]), [4, 2, 0], newest=5)
    np.testing.assert_array_equal(got.row, [4, 2, 0])
    np.testing.assert_array_equal(got.observation, made.observation[[4, 2, 0]])
    np.testing.assert_array_equal(got.next_observation, made.next_observation[[4, 2, 0]])
    np.testing.assert_array_equal(got.action, made.action[[4, 2, 0]])
    np.testing.assert_array_equal(got.reward, [16.0, 4.0, 1.0])
    np.testing.assert_array_equal(got.discount, [GAMMA, 0.0, GAMMA])


@pytest.mark.parametrize("n_step", [1, 3])
def test_truncation_is_an_end_only_without_bootstrapping(n_step):
    replay = ring(6, terminated=[1], truncated=[3])
    rows = [1, 3]
    through = draw(replay, rows, 5, n_step=n_step)
    np.testing.assert_array_equal(through.discount, [0.0, GAMMA])
    np.testing.assert_array_equal(through.next_observation[:, 0], [2, 4])
    ended = draw(replay, rows, 5, n_step=n_step, bootstrap=False)
    np.testing.assert_array_equal(ended.discount, [0.0, 0.0])
    np.testing.assert_array_equal(ended.reward, through.reward)


def test_returns_over_three_steps():
    """8 rows with rewards 2^i; the newest is row 4, row 2 terminates and row 6 is truncated.

    The k-th reward ahead is 2^k times as large and discounted by 2^-k, so a return over n steps is
    n times the first reward."""
    got = draw(ring(8, terminated=[2], truncated=[6]), range(8), newest=4, n_step=3)
    steps = np.array([3, 2, 1, 2, 1, 2, 1, 3])  # until an end, the newest row, or three
    first = 2.0 ** np.arange(8)
    # Row 7 is followed by rows 0 and 1, with rewards 1 and 2.
    expected = np.where(np.arange(8) == 7, 128 + 0.5 * 1 + 0.25 * 2, steps * first)
    np.testing.assert_allclose(got.reward, expected)
    discount = GAMMA**steps
    discount[[0, 1, 2]] = 0.0  # these reach the termination
    np.testing.assert_allclose(got.discount, discount)
    last = (np.arange(8) + steps - 1) % 8
    np.testing.assert_array_equal(got.next_observation[:, 0], last + 1)
    np.testing.assert_array_equal(got.observation[:, 0], np.arange(8))


def test_returns_over_many_steps_end_at_the_newest_row():
    got = draw(ring(4, capacity=10), range(4), newest=3, size=4, n_step=6)
    np.testing.assert_allclose(got.reward, (4 - np.arange(4)) * 2.0 ** np.arange(4))
    np.testing.assert_allclose(got.discount, GAMMA ** (4.0 - np.arange(4)))
    np.testing.assert_array_equal(got.next_observation[:, 0], 4)


def test_rows_are_drawn_in_proportion_to_their_priority_and_weights_correct_for_it():
    priority = np.array([1.0, 4.0, 0.5, 2.5, 9.0, 9.0])  # the last two rows are not filled
    replay = ring(6)._replace(priority=jnp.asarray(priority, jnp.float32))
    n = 8000
    uniform = ((np.arange(n) + 0.5) / n).astype(np.float32)
    got = _sample(replay, uniform, 4, 3, 1, True)
    share = priority[:4] / priority[:4].sum()
    np.testing.assert_allclose(np.bincount(got.row, minlength=6)[:4] / n, share, atol=2 / n)
    assert got.row.max() == 3
    # Schaul et al.: (N P(i))^-beta, over the largest; with beta 0.4.
    weight = (4 * share) ** -0.4
    np.testing.assert_allclose(got.weight, (weight / weight.max())[got.row], rtol=1e-5)


def test_priorities_are_powers_of_losses_and_new_rows_get_the_highest():
    replay = ring(6)._replace(priority=jnp.ones(6))
    replay = buffer.reprioritise(replay, jnp.array([1, 4]), jnp.array([8.0, -0.25]))
    expected = np.array([1, 8.001**0.6, 1, 1, 0.251**0.6, 1])
    np.testing.assert_allclose(replay.priority, expected, rtol=1e-6)
    replay = buffer.write(replay, replay.rows[:2], 2)
    expected[2:4] = 8.001**0.6
    np.testing.assert_allclose(replay.priority, expected, rtol=1e-6)


def test_without_priorities_a_replay_ignores_losses():
    replay = ring(4)
    assert buffer.reprioritise(replay, jnp.array([1]), jnp.array([8.0])) is replay
