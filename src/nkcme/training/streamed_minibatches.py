"""Minibatches that are read while training goes on, from a table that need not fit into memory.

A block holds the minibatches of some steps. While the device works on one block, a thread reads the
next. All replicas train on the same minibatches.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from types import TracebackType
from typing import Any, Self

import jax
import numpy as np

from nkcme.training.cores import available_cores
from nkcme.training.mesh import DeviceMesh
from nkcme.training.minibatches import random_words
from nkcme.training.replicas import groups
from nkcme.training.row_shares import RowShare
from nkcme.training.rows import Rows
from nkcme.training.steps import run_shared_steps, steps_on_mesh
from nkcme.training.task import Task

PyTree = Any

#: Reads block number n of this process: arrays (steps, rows, ...) of fixed shapes.
ReadBlock = Callable[[int], PyTree]


class StreamedMinibatches:
    """The minibatches of a stream, in place of `nkcme.training.minibatches.Minibatches`.

    Parameters
    ----------
    read : callable
        ``read(n)`` gives block n: a pytree of arrays (block_steps, rows of this process, ...). It
        is called in one thread, for neighbouring numbers in their order.
    block_steps : int
    n_replicas : int
    n_lanes : int
        Equal parts of the rows of this process, each with a gradient of its own.
    """

    table = None

    def __init__(self, read: ReadBlock, block_steps: int, n_replicas: int, n_lanes: int):
        self.block_steps = block_steps
        self._mesh = DeviceMesh.of(n_replicas, n_lanes)
        self._n_lanes = n_lanes
        self._read = read
        self._pool = ThreadPoolExecutor(1, "nkcme-read")
        self._reading: dict[int, Future[PyTree]] = {}
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def groups(self, n_replicas: int) -> list[slice]:
        """The groups of replicas that share one call of a program."""
        return groups(n_replicas) if self._mesh is None else [slice(0, n_replicas)]

    def pieces(self, length: int, n_replicas: int) -> list[int]:
        """The steps of each block of some steps."""
        return [self.block_steps] * (length // self.block_steps)

    def rows(self, rows: Rows, group: slice) -> None:
        """Nothing: a stream is all that its replicas train on."""

    def of_steps(
        self, length: int, key_data: np.ndarray, rows: None, start: int
    ) -> tuple[PyTree, Any]:
        """The minibatches (length, batch_size, ...) of a block, and key data (length, replicas,
        2)."""
        keys = random_words(key_data, start, length, 0)[0]
        number = start // self.block_steps
        batches = self._block(number).result()
        if available_cores() > 1:
            # On a single core reading would only delay steps, at other moments in each of several
            # processes, which would wait for each other every time.
            self._block(number + 1)
        return batches, keys if self._mesh is None else self._mesh.by_replica(keys, axis=1)

    def _block(self, number: int) -> Future[PyTree]:
        with self._lock:
            for old in [n for n in self._reading if n < number - 1]:
                del self._reading[old]
            if number not in self._reading:
                self._reading[number] = self._pool.submit(self._placed_block, number)
            return self._reading[number]

    def _placed_block(self, number: int) -> PyTree:
        block = self._read(number)
        return jax.device_put(block) if self._mesh is None else self._mesh.by_row(block)

    def placed(self, tree: PyTree) -> PyTree:
        """Arrays with a leading axis of replicas, where the program needs them."""
        return tree if self._mesh is None else self._mesh.by_replica(tree)

    def compile(self, task: Task, state: PyTree, constants: PyTree, length: int) -> None:
        """Nothing: the program compiles when its first block was read."""

    def run(self, task: Task, *inputs: Any) -> Any:
        """The steps of a block: the new state, and values of each replica."""
        if self._mesh is None:
            return run_shared_steps(task, self._share(1), *inputs)
        share = self._share(self._mesh.rows_by_process)
        return steps_on_mesh(task, share, self._mesh.mesh)(*inputs)

    def _share(self, n_devices: int) -> RowShare:
        """What each of these devices of this process has."""
        if jax.default_backend() != "cpu":  # which would wait for many small products
            return RowShare()
        return RowShare(self._n_lanes // n_devices)
