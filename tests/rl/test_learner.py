"""One update, against the same update computed from the rows of the replay in NumPy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from nkcme.rl import DQN, MMDQN, NKDQN
from nkcme.rl import learner as learning
from nkcme.rl import replay as buffer
from nkcme.rl.learner import Program
from nkcme.rl.replay import Transition
from nkcme.rl.settings import Settings

N_ROWS, OBSERVATION, ACTIONS, BATCH = 8, 3, 2, 16
TERMINATED, TRUNCATED = [2, 5], [3, 6]
SETTINGS = Settings(
    hidden=(4,),
    batch_size=BATCH,
    gamma=0.7,
    buffer_size=N_ROWS,
    prefill=N_ROWS,
    learning_rate=0.01,
)
NEWEST = N_ROWS - 1


def prepared(agent, settings):
    """A learner with two different networks, and the rows of its replay."""
    program = Program(agent, settings, ACTIONS, OBSERVATION, None)
    rng = np.random.default_rng(0)
    flag = lambda which: np.isin(np.arange(N_ROWS), which)  # noqa: E731
    rows = Transition(
        rng.normal(size=(N_ROWS, OBSERVATION)).astype(np.float32),
        rng.normal(size=(N_ROWS, OBSERVATION)).astype(np.float32),
        rng.integers(0, ACTIONS, N_ROWS),
        rng.normal(size=N_ROWS).astype(np.float32),
        flag(TERMINATED),
        flag(TERMINATED + TRUNCATED),
    )
    learner = learning.start(program, jax.random.key(0))
    # Networks that prefer both actions in some states, and differ.
    online, target = (
        jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype), net)
        for net in (learner.network, learner.target)
    )
    ring = learner.replay._replace(rows=buffer.pack(rows))
    return program, learner._replace(network=online, target=target, replay=ring), rows


UNIFORM = (np.arange(BATCH, dtype=np.float32) % N_ROWS + 0.5) / N_ROWS
INDEX = np.arange(BATCH) % N_ROWS


def update(program, learner):
    return jax.jit(lambda it: learning.learn(program, it, jnp.asarray(UNIFORM), N_ROWS, NEWEST))(
        learner
    )


@partial(jax.jit, static_argnums=0)
def every_output(program, network, observations):
    return jax.vmap(lambda o: learning.outputs(program, network, o))(observations)


def next_outputs(program, learner, rows, index):
    """The outputs that value the next actions, and those that choose them: (n, actions, width)."""
    output = partial(every_output, program)
    value = output(learner.target, rows.next_observation[index])
    if not program.settings.double:
        return np.asarray(value), np.asarray(value)
    return np.asarray(value), np.asarray(output(learner.network, rows.next_observation[index]))


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_the_bellman_target_of_dqn(double, bootstrap):
    settings = replace(SETTINGS, double=double, bootstrap_on_truncation=bootstrap, reward_scale=0.5)
    program, learner, rows = prepared(DQN(), settings)
    ahead, chooser = next_outputs(program, learner, rows, INDEX)
    best = chooser[..., 0].argmax(axis=1)
    assert set(best) == {0, 1}
    if double:  # otherwise this test would not distinguish the two
        assert np.any(best != ahead[..., 0].argmax(axis=1))
    worth = ahead[np.arange(BATCH), best, 0]
    no_future = rows.terminated if bootstrap else rows.ended
    target = 0.5 * rows.reward[INDEX] + np.where(no_future[INDEX], 0.0, 0.7 * worth)

    def loss(network):
        q = jax.vmap(lambda o: learning.outputs(program, network, o))(rows.observation[INDEX])
        return jnp.mean((target - q[np.arange(BATCH), rows.action[INDEX], 0]) ** 2)

    after, values = update(program, learner)
    value, gradient = jax.jit(jax.value_and_grad(loss))(learner.network)
    np.testing.assert_allclose(values["loss"], value, rtol=1e-5)
    # The network makes Adam's first step; the target does not change.
    rule = optax.adam(settings.learning_rate, eps=settings.adam_eps)
    change, _ = rule.update(gradient, rule.init(learner.network))
    for ours, old, step in zip(
        *map(jax.tree.leaves, (after.network, learner.network, change)), strict=True
    ):
        np.testing.assert_allclose(ours, old + step, rtol=1e-3, atol=1e-6)
    for ours, old in zip(*map(jax.tree.leaves, (after.target, learner.target)), strict=True):
        np.testing.assert_array_equal(ours, old)


@pytest.mark.parametrize("agent", [NKDQN(n_atoms=5, support=(-3.0, 3.0)), MMDQN(n_particles=4)])
@pytest.mark.parametrize("double", [False, True])
def test_the_best_next_action_has_the_highest_mean(agent, double):
    settings = replace(SETTINGS, double=double)
    program, learner, rows = prepared(agent, settings)
    ahead, chooser = next_outputs(program, learner, rows, INDEX)
    best, other = (np.asarray(agent.value(jnp.asarray(o))).argmax(axis=1) for o in (chooser, ahead))
    assert set(best) == {0, 1}
    assert np.any(best != other) == double
    now = every_output(program, learner.network, rows.observation[INDEX])
    each = np.arange(BATCH)
    discount = np.where(rows.terminated[INDEX], 0.0, 0.7).astype(np.float32)
    losses = jax.jit(agent.losses)(
        now[each, rows.action[INDEX]], ahead[each, best], rows.reward[INDEX], discount
    )
    np.testing.assert_allclose(update(program, learner)[1]["loss"], np.mean(losses), rtol=1e-5)


def test_prioritised_replay_weights_the_loss_and_sets_new_priorities():
    settings = replace(SETTINGS, prioritized=True)
    program, learner, rows = prepared(DQN(), settings)
    priority = np.linspace(0.5, 4.0, N_ROWS, dtype=np.float32)
    learner = learner._replace(replay=learner.replay._replace(priority=jnp.asarray(priority)))
    index = np.searchsorted(np.cumsum(priority), UNIFORM * priority.sum(), side="right")
    ahead, _ = next_outputs(program, learner, rows, index)
    target = rows.reward[index] + np.where(
        rows.terminated[index], 0.0, 0.7 * ahead[..., 0].max(axis=1)
    )
    now = np.asarray(every_output(program, learner.network, rows.observation[index]))
    losses = (target - now[np.arange(BATCH), rows.action[index], 0]) ** 2
    weight = (N_ROWS * priority[index] / priority.sum()) ** -0.4
    after, values = update(program, learner)
    np.testing.assert_allclose(values["loss"], np.mean(weight / weight.max() * losses), rtol=1e-4)
    expected = priority.copy()
    expected[index] = (losses + 1e-3) ** 0.6
    np.testing.assert_allclose(after.replay.priority, expected, rtol=1e-4)


def test_the_average_of_networks_acts():
    program, learner, _ = prepared(DQN(), replace(SETTINGS, averaging=0.75))
    learner = learner._replace(average=learner.target)
    after, _ = update(program, learner)
    for ours, old, new in zip(
        *map(jax.tree.leaves, (after.average, learner.average, after.network)), strict=True
    ):
        np.testing.assert_allclose(ours, 0.75 * old + 0.25 * new, rtol=1e-5, atol=1e-7)
    assert learning.acting(after) is after.average
    plain = prepared(DQN(), SETTINGS)[1]
    assert learning.acting(plain) is plain.network


def test_exploration_falls_linearly_and_takes_random_actions():
    program, learner, rows = prepared(DQN(), replace(SETTINGS, epsilon=0.1, epsilon_steps=1000))
    for step, epsilon in ((0, 1.0), (500, 0.55), (1000, 0.1), (9999, 0.1)):
        np.testing.assert_allclose(learning.epsilon_at(program.settings, step), epsilon, rtol=1e-6)
    for o in rows.observation[:4]:
        best = int(np.argmax(learning.outputs(program, learner.network, o)[:, 0]))
        act = lambda uniform, o=o, best=best: int(  # noqa: E731
            learning.act(program, learner.network, jnp.asarray(o), 0.3, uniform, 1 - best)
        )
        assert (act(0.29), act(0.31)) == (1 - best, best)


def test_the_cosine_schedule_ends_at_zero_with_the_run():
    settings = replace(SETTINGS, schedule="cosine", n_steps=200, eval_every=100, adam_eps=1e-8)
    rule = learning.optimizer(settings)
    state, sizes = rule.init(jnp.zeros(())), []
    for _ in range(settings.n_steps // settings.update_every):
        change, state = rule.update(jnp.ones(()), state)
        sizes.append(abs(float(change)))
    k = np.arange(100)
    expected = settings.learning_rate * 0.5 * (1 + np.cos(np.pi * k / 100))
    np.testing.assert_allclose(sizes, expected, rtol=1e-4, atol=1e-7)
