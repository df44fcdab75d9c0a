"""Minibatches of a table: drawn and gathered by small programs, apart from the training program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.training.chunks import equal_chunks, near_divisor
from nkcme.training.compilation import jit_quickly, jit_tersely
from nkcme.training.padding import eighth_larger, pad_to, power_of_two
from nkcme.training.rows import KEY_KIND, Rows, draw

PyTree = Any

#: Tables up to this number of rows are padded to it and share all programs.
_MOST_ROWS = 1 << 15

#: The row numbers of all replicas of a group, below which that padding takes little memory.
_MOST_NUMBERS = 1 << 20

#: The number of rows, of all replicas together, that are drawn in one call.
_MAX_DRAWN = 1 << 20

#: The bytes of minibatches that are gathered together.
_MAX_GATHERED = 1 << 27


def device_rows(rows: Rows, group: slice) -> Rows:
    """The rows of a group of replicas, on the device."""
    own = [np.asarray(leaf)[group] for leaf in rows]
    fitting = power_of_two(_MOST_NUMBERS // len(own[0]) + 1) // 2
    least = max(min(fitting, _MOST_ROWS), 256)
    return Rows(*(jax.device_put(_padded(leaf, 1, least)) for leaf in own))


class Minibatches:
    """The minibatches of some steps.

    A training program that gets them sees nothing of the table, so tables of any number of rows
    share it, and the compiler's cache on disk has it from the first table on.
    """

    def __init__(self, table: PyTree, batch_size: int):
        self.table = jax.device_put(jax.tree.map(lambda leaf: _padded(leaf, 0, _MOST_ROWS), table))
        self.batch_size = batch_size

    def pieces(self, length: int, n_replicas: int) -> list[int]:
        """The numbers of steps, ``length`` in total, whose minibatches fit into memory at once."""
        of_row = sum(leaf.nbytes // max(len(leaf), 1) for leaf in jax.tree.leaves(self.table))
        of_step = n_replicas * self.batch_size * max(of_row, 1)
        return equal_chunks(length, near_divisor(length, max(_MAX_GATHERED // of_step, 1)), 0)

    def of_steps(
        self, length: int, key_data: Array, rows: Rows, start: int
    ) -> tuple[PyTree, Array]:
        """Minibatches (replicas, length, batch_size, ...) and a key for each (replicas, length)."""
        drawn, keys = _drawn(self.batch_size, length, key_data, rows, start)
        return _gathered(self.table, drawn), keys

    def shapes(self, length: int, key_data: Array, rows: Rows) -> tuple[PyTree, Array]:
        """The shapes of `of_steps`."""
        drawn, keys = _drawn.eval_shape(self.batch_size, length, key_data, rows, 0)
        return _gathered.eval_shape(self.table, drawn), keys


def _padded(array: np.ndarray, axis: int, least: int) -> np.ndarray:
    """Pad with the last entry: in `Rows` it is never drawn, and in a table it has no number."""
    array = np.asarray(array)
    return pad_to(array, eighth_larger(array.shape[axis], least=least), axis=axis, fill="last")


def _draw(
    batch_size: int, length: int, key_data: Array, rows: Rows, start: int
) -> tuple[Array, Array]:
    """The rows (replicas, length, batch_size) and the keys (replicas, length) of some steps."""
    steps = start + jnp.arange(length)

    def one(key_data: Array, index: Array, total: Array) -> tuple[Array, Array]:
        key = jax.random.wrap_key_data(key_data, impl=KEY_KIND)
        pairs = jax.vmap(lambda t: jax.random.split(jax.random.fold_in(key, t)))(steps)
        # Drawing all minibatches of the chunk in one call is faster than drawing in each step.
        # There is a limit because a GPU's compiler writes out a constant of their size.
        drawn = lambda key: draw(index, total, key, batch_size)  # noqa: E731
        n_batches = _MAX_DRAWN // (len(rows.index) * batch_size)
        if n_batches >= length:
            return jax.vmap(drawn)(pairs[:, 0]), pairs[:, 1]
        return jax.lax.map(drawn, pairs[:, 0], batch_size=max(n_batches, 1)), pairs[:, 1]

    return jax.vmap(one)(key_data, *rows)


_drawn = jit_quickly(_draw, static_argnums=(0, 1))


@jit_tersely
def _gathered(table: PyTree, drawn: Array) -> PyTree:
    """The rows of a table with numbers (replicas, length, batch_size)."""
    return jax.tree.map(lambda leaf: leaf[drawn], table)
