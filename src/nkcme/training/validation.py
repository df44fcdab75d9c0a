"""The validation score of a replica, and the state that scored best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from nkcme.training.replicas import where_replicas
from nkcme.training.rows import weights_of

PyTree = Any

#: Rows that are scored in one call of the validation function.
_BLOCK = 1024


def validation_score(
    validation: Callable[[PyTree, PyTree], Array],
    model: PyTree,
    table: PyTree,
    index: Array,
    total: Array,
) -> Array:
    """Return the weighted mean of ``validation`` over the rows of one replica, a scalar."""
    value = lambda i: validation(model, jax.tree.map(lambda leaf: leaf[i[None]], table))[0]  # noqa: E731
    values = jax.lax.map(value, index, batch_size=_BLOCK)
    return pairwise_sum(weights_of(total) * values)


def pairwise_sum(values: Array) -> Array:
    """Return the sum of a float32 vector with an error of log2(n) roundings, on any CPU.

    `jax.numpy.sum` adds in the order that suits the CPU; one running sum of 30,000 values is off
    by 6e-6 of its size, which is more than two states of training may differ by.
    """
    while len(values) > 1:
        half = len(values) // 2
        rest = values[2 * half :]  # one value, where their number is odd
        values = jnp.concatenate([values[:half] + values[half : 2 * half], rest])
    return values[0]


def better_states(
    scores: Any,
    models: PyTree,
    best: PyTree,
    best_score: Any,
    since_best: Any,
    patience: int | None,
    least_gain: float = 0.0,
) -> tuple[PyTree, Any, Any]:
    """Return the best models so far, their scores, and the scorings since each was found.

    All are arrays of JAX, or all of NumPy.

    A replica that is out of patience keeps its best model. Its result does not depend on how long
    the other replicas train. Scores that are better by less than the share ``least_gain`` use up
    patience too.
    """
    xp = scores.__array_namespace__()
    running = xp.ones(scores.shape, bool) if patience is None else since_best < patience
    better = running & (scores < best_score)
    return (
        where_replicas(better, models, best),
        xp.where(better, scores, best_score),
        xp.where(running & (scores < (1.0 - least_gain) * best_score), 0, since_best + 1),
    )
