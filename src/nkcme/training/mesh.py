"""Devices that train together: replicas on one axis of a mesh, rows of minibatches on the other.

The devices are those of one process, such as several GPUs, or of several processes that
`jax.distributed` has joined.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

PyTree = Any

#: The names of the axes.
REPLICAS, ROWS = "replicas", "rows"


class DeviceMesh(NamedTuple):
    """The devices of all processes as a mesh."""

    mesh: Mesh

    @classmethod
    def of(cls, n_replicas: int, n_lanes: int) -> DeviceMesh | None:
        """The mesh for some replicas and the lanes of this process; None where it is one device.

        It has as many devices as replicas and lanes can be divided over. Several processes share
        the rows alone: each then reads rows of its own, and only its own.
        """
        n_processes = jax.process_count()
        of_replicas, of_rows = shares_of(
            n_replicas if n_processes == 1 else 1, n_lanes, jax.local_device_count()
        )
        used = of_replicas * of_rows
        if used * n_processes == 1:
            return None
        devices = [d for i in range(n_processes) for d in _devices_of(i)[:used]]
        return cls(Mesh(np.reshape(devices, (of_replicas, -1)), (REPLICAS, ROWS)))

    @property
    def rows_by_process(self) -> int:
        """Into how many shares the rows of this process are divided."""
        return int(self.mesh.shape[ROWS]) // jax.process_count()

    def by_replica(self, tree: PyTree, axis: int = 0) -> PyTree:
        """Arrays that every process has, divided over devices along their axis of replicas."""
        sharding = NamedSharding(self.mesh, PartitionSpec(*[None] * axis, REPLICAS))

        def placed(leaf: Any) -> jax.Array:
            if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
                return leaf
            array = np.asarray(leaf)
            return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])

        return jax.tree.map(placed, tree)

    def by_row(self, tree: PyTree) -> PyTree:
        """Minibatches (steps, rows, ...) of which every process has its own rows."""
        sharding = NamedSharding(self.mesh, PartitionSpec(None, ROWS))
        return jax.tree.map(
            lambda leaf: jax.make_array_from_process_local_data(sharding, leaf), tree
        )


def shares_of(n_replicas: int, n_lanes: int, n_devices: int) -> tuple[int, int]:
    """Divisors of the replicas and of the lanes that make use of the most devices.

    Of several such pairs that with the most shares of replicas, which exchange nothing.
    """
    pairs = product(range(1, n_replicas + 1), range(1, n_lanes + 1))
    usable = [
        (a, b) for a, b in pairs if a * b <= n_devices and n_replicas % a == 0 and n_lanes % b == 0
    ]
    return max(usable, key=lambda pair: (pair[0] * pair[1], pair[0]))


def _devices_of(process: int) -> list[jax.Device]:
    return [device for device in jax.devices() if device.process_index == process]
