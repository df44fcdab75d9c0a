"""Devices that train together: replicas on one axis of a mesh, rows of minibatches on the other.

The devices are those of one process, such as several GPUs, or of several processes that
`jax.distributed` has joined.
"""

from __future__ import annotations

from math import gcd
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
    def of(cls, n_replicas: int) -> DeviceMesh | None:
        """The mesh of all devices for some replicas; None where there is one device.

        Several processes share the rows alone: each then reads rows of its own, and only its own.
        """
        devices = np.array(jax.devices())
        if len(devices) == 1:
            return None
        of_replicas = gcd(n_replicas, len(devices)) if jax.process_count() == 1 else 1
        return cls(Mesh(devices.reshape(of_replicas, -1), (REPLICAS, ROWS)))

    @property
    def rows_by_process(self) -> int:
        """Into how many shares the rows of this process are divided."""
        return max(int(self.mesh.shape[ROWS]) // jax.process_count(), 1)

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
