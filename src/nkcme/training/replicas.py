"""Replicas side by side: how they share a machine, its precision, and a checkpoint.

Used by both loops, that of the estimators (`nkcme.training.loop`) and that of the agents
(`nkcme.rl.loop`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import TrainingError

PyTree = Any


@contextmanager
def single_precision() -> Iterator[None]:
    """Whatever the rest of the user's program computes in."""
    with jax.enable_x64(False):
        yield


def groups(n_replicas: int) -> list[slice]:
    """Replicas that share a compiled program.

    On a GPU all do. On a CPU the operations of small networks are too short to be worth splitting
    over cores, so whole groups of replicas run beside each other, one a core.
    """
    n_groups = min(n_replicas, os.cpu_count() or 1) if jax.default_backend() == "cpu" else 1
    edges = np.linspace(0, n_replicas, n_groups + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


def workers(n_groups: int) -> ThreadPoolExecutor:
    """One thread a group. A thread inherits no precision; these keep ours while they live."""
    return ThreadPoolExecutor(n_groups, initializer=lambda: jax.enable_x64(False).__enter__())


def concatenated(states: list[PyTree]) -> PyTree:
    """The states of all groups as one."""
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)


def named_arrays(state: PyTree) -> dict[str, np.ndarray]:
    """The leaves of a state, each under the path that leads to it."""
    leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
    return {f"state{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def refilled(
    states: list[PyTree], arrays: dict[str, np.ndarray], sizes: list[int], where: str
) -> list[PyTree]:
    """``states``, of so many replicas each, filled with what `named_arrays` gave of them all."""
    result, first = [], 0
    for state, size in zip(states, sizes, strict=True):
        group = slice(first, first + size)
        first += size

        def part(path: Any, leaf: Array, group: slice = group) -> Array:
            saved = arrays.get(f"state{jax.tree_util.keystr(path)}")
            if saved is None or saved[group].shape != leaf.shape:
                raise TrainingError(
                    f"the checkpoint {where} was written by other versions of the libraries: "
                    "delete it to start afresh"
                )
            return jnp.asarray(saved[group], leaf.dtype)

        result.append(jax.tree_util.tree_map_with_path(part, state))
    return result


def refuse_foreign(config: dict[str, Any], fingerprint: str, where: str) -> None:
    """Raise unless a checkpoint is of the run with this fingerprint."""
    if config.get("fingerprint") != fingerprint:
        raise TrainingError(
            f"the checkpoint {where} is of another run (other data, parameters or seed): give "
            "another path, or delete this one to start afresh"
        )
