"""Minibatches of a table: drawn and gathered apart from the training program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.training.chunks import equal_chunks, near_divisor
from nkcme.training.compilation import jit_without_trials
from nkcme.training.padding import eighth_larger, pad_to, power_of_two
from nkcme.training.replicas import groups
from nkcme.training.rows import KEY_KIND, RowLookup, Rows, drawn_rows
from nkcme.training.steps import run_steps
from nkcme.training.task import Task

PyTree = Any

#: Tables up to this number of rows are padded to it and share all programs.
_MOST_ROWS = 1 << 15

#: The row numbers of all replicas of a group, below which that padding takes little memory.
_MOST_NUMBERS = 1 << 20

#: The bytes of minibatches that are gathered together.
_MAX_GATHERED = 1 << 27

#: The numbers of 32 bits in a block of the random generator.
_WORDS = 8


def device_rows(rows: Rows, group: slice) -> Rows:
    """The rows of a group of replicas, on the device."""
    own = [np.asarray(leaf)[group] for leaf in rows]
    fitting = power_of_two(_MOST_NUMBERS // len(own[0]) + 1) // 2
    least = max(min(fitting, _MOST_ROWS), 256)
    return Rows(*(jax.device_put(_padded(leaf, 1, least)) for leaf in own))


class Minibatches(ABC):
    """The minibatches of some steps.

    A training program that gets them sees nothing of the table, so tables of any number of rows
    share it, and the compiler's cache on disk has it from the first table on.
    """

    def __init__(self, table: PyTree, batch_size: int):
        self._table = jax.tree.map(np.asarray, table)
        self.batch_size = batch_size

    @cached_property
    def table(self) -> PyTree:
        """The table on the device, padded."""
        return jax.device_put(jax.tree.map(lambda leaf: _padded(leaf, 0, _MOST_ROWS), self._table))

    def groups(self, n_replicas: int) -> list[slice]:
        """The groups of replicas that share one call of a program."""
        return groups(n_replicas)

    def placed(self, tree: PyTree) -> PyTree:
        """Arrays with a leading axis of replicas, which are on the device already."""
        return tree

    def pieces(self, length: int, n_replicas: int) -> list[int]:
        """The numbers of steps, ``length`` in total, whose minibatches fit into memory at once."""
        of_row = sum(leaf.nbytes // max(len(leaf), 1) for leaf in jax.tree.leaves(self._table))
        of_step = n_replicas * self.batch_size * (of_row + 4)  # four for its random number
        return equal_chunks(length, near_divisor(length, max(_MAX_GATHERED // of_step, 1)), 0)

    @abstractmethod
    def rows(self, rows: Rows, group: slice) -> Any:
        """The rows of a group of replicas, as `of_steps` takes them."""

    @abstractmethod
    def of_steps(
        self, length: int, key_data: np.ndarray, rows: Any, start: int
    ) -> tuple[PyTree, Any]:
        """Minibatches (length, replicas, batch_size, ...) and key data (length, replicas, 2)."""

    def compile(self, task: Task, state: PyTree, constants: PyTree, length: int) -> None:
        """Compile the program of a chunk of this length, for states of these shapes."""
        n_replicas = len(state.key)
        length = self.pieces(length, n_replicas)[0]
        size = (length, n_replicas, self.batch_size)
        batches = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((*size, *leaf.shape[1:]), leaf.dtype), self._table
        )
        keys = jax.ShapeDtypeStruct((length, n_replicas, 2), np.uint32)
        run_steps.lower(task, state, constants, batches, keys, 0).compile()

    def run(self, *inputs: Any) -> Any:
        """The steps of a piece: the new state, and values of each replica."""
        return run_steps(*inputs)


class HostMinibatches(Minibatches):
    """Minibatches that NumPy gathers: beside a CPU that trains nothing needs to be compiled."""

    def rows(self, rows: Rows, group: slice) -> list[RowLookup]:
        return [RowLookup.of(*row) for row in zip(*(leaf[group] for leaf in rows), strict=True)]

    def of_steps(
        self, length: int, key_data: np.ndarray, rows: list[RowLookup], start: int
    ) -> tuple[PyTree, np.ndarray]:
        keys, bits = random_words(key_data, start, length, self.batch_size)
        drawn = np.stack([own.drawn(bits[:, i]) for i, own in enumerate(rows)], axis=1)
        return jax.tree.map(lambda leaf: leaf.take(drawn, axis=0), self._table), keys


class DeviceMinibatches(Minibatches):
    """Minibatches that are drawn and gathered on the device: a GPU would wait for the host."""

    def rows(self, rows: Rows, group: slice) -> Rows:
        return device_rows(rows, group)

    def of_steps(
        self, length: int, key_data: np.ndarray, rows: Rows, start: int
    ) -> tuple[PyTree, Any]:
        keys, bits = device_random_words(key_data, start, length, self.batch_size)
        return _gathered(self.table, rows, bits), keys


def minibatches_of(table: PyTree, batch_size: int) -> Minibatches:
    """The minibatches of a pytree of arrays that share their first axis."""
    on_cpu = jax.default_backend() == "cpu"
    return (HostMinibatches if on_cpu else DeviceMinibatches)(table, batch_size)


def random_words(
    key_data: np.ndarray, start: int, length: int, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The random numbers of some steps: key data (length, replicas, 2), and those that rows are
    drawn by (length, replicas, batch_size).

    The numbers of a step depend on the key of the replica and the number of the step alone. They
    are those of NumPy's generator: JAX's needs seconds to compile, or a quarter of the time of
    training where its program is not optimised.
    """
    blocks = -(-(2 + batch_size) // _WORDS)  # of the generator, for one step
    words = [
        np.random.Philox(key=int.from_bytes(key.tobytes(), "little"), counter=start * blocks)
        .random_raw(length * blocks * _WORDS // 2)
        .view(np.uint32)
        .reshape(length, -1)
        for key in np.asarray(key_data, np.uint32)
    ]
    of_replicas = np.stack(words, axis=1)
    return of_replicas[:, :, :2], of_replicas[:, :, 2 : 2 + batch_size]


@partial(jax.jit, static_argnums=(2, 3))
def device_random_words(
    key_data: Array, start: int, length: int, batch_size: int
) -> tuple[Array, Array]:
    """Other numbers of the same kind, made on the device."""

    def one(data: Array) -> Array:
        key = jax.random.wrap_key_data(data, impl=KEY_KIND)
        of_step = jax.vmap(partial(jax.random.fold_in, key))(start + jnp.arange(length))
        return jax.vmap(lambda k: jax.random.bits(k, (2 + batch_size,), jnp.uint32))(of_step)

    words = jax.vmap(one, out_axes=1)(key_data)
    return words[:, :, :2], words[:, :, 2:]


def _padded(array: np.ndarray, axis: int, least: int) -> np.ndarray:
    """Pad with the last entry: in `Rows` it is never drawn, and in a table it has no number."""
    array = np.asarray(array)
    return pad_to(array, eighth_larger(array.shape[axis], least=least), axis=axis, fill="last")


@jit_without_trials
def _gathered(table: PyTree, rows: Rows, bits: Array) -> PyTree:
    """The rows of a table that random bits (length, replicas, batch_size) stand for."""
    drawn = jax.vmap(drawn_rows, in_axes=(0, 0, 1), out_axes=1)(*rows, bits)
    return jax.tree.map(lambda leaf: leaf[drawn], table)
