"""Replay: a ring buffer of transitions in the order of time, stored as one matrix.

A row holds the observation, the next one (before any reset), the action, the reward, and two flags:
whether the episode terminated there and whether it ended, by termination or truncation. With one
matrix, a cycle of steps is one write and a batch is one gather. A return over several steps is
computed from the rows that follow.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

#: Prioritised replay (Schaul et al., 2016): the power of the loss, and of the correction.
PRIORITY_POWER, CORRECTION_POWER = 0.6, 0.4
_LEAST_PRIORITY = 1e-3


class Transition(NamedTuple):
    """Transitions; the leaves share their leading axes."""

    observation: Array
    next_observation: Array
    action: Array
    reward: Array
    terminated: Array
    ended: Array


class Replay(NamedTuple):
    """The ring buffer."""

    rows: Array  # (capacity, width)
    priority: Array | None  # (capacity,); None where all rows are equally likely


class Sample(NamedTuple):
    """A batch of Bellman targets.

    ``reward`` is the discounted sum of up to ``n_step`` rewards. ``discount`` is the factor of the
    value of ``next_observation``, 0 after termination.
    """

    observation: Array
    next_observation: Array
    action: Array
    reward: Array
    discount: Array
    row: Array
    weight: Array


def pack(transition: Transition) -> Array:
    """Return transitions as rows, (..., width)."""
    scalars = [transition.action, transition.reward, transition.terminated, transition.ended]
    columns = [jnp.asarray(s, jnp.float32)[..., None] for s in scalars]
    return jnp.concatenate([transition.observation, transition.next_observation, *columns], axis=-1)


def unpack(rows: Array, observation_size: int) -> Transition:
    """Return rows (..., width) as transitions."""
    observation = rows[..., :observation_size]
    next_observation = rows[..., observation_size : 2 * observation_size]
    action, reward, terminated, ended = jnp.moveaxis(rows[..., 2 * observation_size :], -1, 0)
    return Transition(
        observation,
        next_observation,
        action.astype(jnp.int32),
        reward,
        terminated > 0,
        ended > 0,
    )


def write(replay: Replay, rows: Array, position: Array | int) -> Replay:
    """Write rows (k, width) at ``position``, a multiple of k, with the highest priority so far."""
    filled = jax.lax.dynamic_update_slice_in_dim(replay.rows, rows, position, axis=0)
    if replay.priority is None:
        return Replay(filled, None)
    fresh = jnp.full(rows.shape[0], jnp.max(replay.priority))
    priority = jax.lax.dynamic_update_slice_in_dim(replay.priority, fresh, position, axis=0)
    return Replay(filled, priority)


def sample(
    replay: Replay,
    uniform: Array,
    size: Array | int,
    newest: Array | int,
    *,
    observation_size: int,
    gamma: float,
    n_step: int,
    bootstrap_on_truncation: bool,
    n_envs: int = 1,
) -> Sample:
    """Return the batch that ``uniform`` (n,) in [0, 1) selects, with replacement.

    Only the first ``size`` rows are filled. ``newest`` is the row written last; a return over
    several steps ends there at the latest. Rows of ``n_envs`` environments take turns, so the next
    row of an episode is ``n_envs`` further on.
    """
    capacity = replay.rows.shape[0]
    if replay.priority is None:
        index = jnp.minimum((uniform * size).astype(jnp.int32), size - 1)
        weight = jnp.ones(uniform.shape)
    else:
        index, weight = _by_priority(replay.priority, uniform, size)
    first = unpack(replay.rows[index], observation_size)
    # Without bootstrapping on truncation, a time limit counts as an end.
    final = lambda t: t.terminated if bootstrap_on_truncation else t.ended  # noqa: E731
    reward, last, power = first.reward, first, jnp.ones(uniform.shape)
    running = ~first.ended
    for k in range(1, n_step):
        here = (index + k * n_envs) % capacity
        later = unpack(replay.rows[here], observation_size)
        # The row after the newest one is the oldest and belongs to another episode.
        running = running & ((newest - (index + (k - 1) * n_envs)) % capacity >= n_envs)
        reward = reward + jnp.where(running, gamma**k * later.reward, 0.0)
        power = power + running
        last = jax.tree.map(partial(_where, running), later, last)
        running = running & ~later.ended
    discount = jnp.where(final(last), 0.0, jnp.float32(gamma) ** power)
    return Sample(
        first.observation, last.next_observation, first.action, reward, discount, index, weight
    )


def _where(rows: Array, new: Array, old: Array) -> Array:
    return jnp.where(rows.reshape(rows.shape + (1,) * (new.ndim - 1)), new, old)


def _by_priority(priority: Array, uniform: Array, size: Array | int) -> tuple[Array, Array]:
    """Return rows in proportion to their priority, and the weights that correct for it."""
    known = jnp.where(jnp.arange(priority.shape[0]) < size, priority, 0.0)
    total = jnp.cumsum(known)
    index = jnp.minimum(jnp.searchsorted(total, uniform * total[-1], side="right"), size - 1)
    share = known[index] / total[-1]
    weight = (size * share) ** -CORRECTION_POWER
    return index, weight / jnp.max(weight)


def reprioritise(replay: Replay, index: Array, losses: Array) -> Replay:
    """Set the priorities of the rows of a batch from their losses."""
    if replay.priority is None:
        return replay
    priority = (jnp.abs(losses) + _LEAST_PRIORITY) ** PRIORITY_POWER
    return replay._replace(priority=replay.priority.at[index].set(priority))
