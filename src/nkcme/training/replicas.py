"""Replicas (seeds, folds, ensemble members, agents) that train side by side on one machine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nkcme.training.cores import available_cores

PyTree = Any


@contextmanager
def single_precision() -> Iterator[None]:
    """Compute in float32, whatever precision the user's program has configured."""
    with jax.enable_x64(False):
        yield


def groups(n_replicas: int) -> list[slice]:
    """Split the replicas into groups; the replicas of a group share one call of a program.

    On a GPU there is one group. On a CPU there is one group per core: the operations of small
    networks are too short to be split over cores, so the groups run in parallel instead.
    """
    n_groups = min(n_replicas, available_cores()) if jax.default_backend() == "cpu" else 1
    edges = np.linspace(0, n_replicas, n_groups + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


def where_replicas(which: Any, new: PyTree, old: PyTree) -> PyTree:
    """The replicas of ``new`` where ``which`` is true, and those of ``old`` elsewhere; by NumPy
    where ``which`` is an array of NumPy."""
    where: Any = np.where if isinstance(which, np.ndarray) else jnp.where
    return jax.tree.map(
        lambda a, b: where(which.reshape((-1,) + (1,) * (a.ndim - 1)), a, b), new, old
    )


def workers(n_threads: int) -> ThreadPoolExecutor:
    """Make a pool of threads that compute in float32; a thread inherits no precision."""
    return ThreadPoolExecutor(n_threads, initializer=lambda: jax.enable_x64(False).__enter__())


def concatenated(states: list[PyTree]) -> PyTree:
    """Join the states of all groups along the replica axis.

    By NumPy: JAX would compile a program for every shape. There are several groups on a CPU only,
    where NumPy reads the arrays without a copy.
    """
    if len(states) == 1:
        return states[0]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *states)
