"""The programs of training: the initial state of replicas, and steps in one compiled scan."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from nkcme.training.compilation import jit_literally, jit_quickly, jit_without_trials
from nkcme.training.mesh import REPLICAS, ROWS
from nkcme.training.row_shares import RowShare
from nkcme.training.rows import KEY_KIND
from nkcme.training.task import Task, apply_objective

PyTree = Any


class State(NamedTuple):
    """What a checkpoint holds; each leaf has a leading replica axis."""

    model: PyTree
    optimizer: tuple[PyTree, ...]
    key: Array  # raw key data, because safetensors has no key types
    best: PyTree
    best_score: Array
    since_best: Array
    average: PyTree  # None for tasks without averaging


def result_of(state: State) -> PyTree:
    """The models that a state stands for."""
    return state.model if state.average is None else state.average


def split_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two keys (n, 2) for each of some (n, 2): for its initialisation, and for its steps.

    By NumPy: JAX's generator takes a compiler longer than the rest of an initialisation.
    """
    words = np.stack([np.random.SeedSequence(key.tolist()).generate_state(4) for key in keys])
    return words[:, :2], words[:, 2:]


def _initial_state(task: Task, initial_keys: Array, keys: Array, constants: PyTree) -> State:
    def one(initial_key: Array, key: Array, constant: PyTree) -> State:
        init_key = jax.random.wrap_key_data(initial_key, impl=KEY_KIND)
        # Weakly typed leaves would compile another program for the second chunk.
        model = jax.tree.map(
            lambda leaf: jnp.array(leaf, leaf.dtype), task.init(init_key, constant)
        )
        optimizer = tuple(
            o.optimizer_for(constant).init(eqx.filter(model, o.trainable(model)))
            for o in task.objectives
        )
        infinity = jnp.array(jnp.inf, jnp.float32)
        return State(
            model,
            optimizer,
            key,
            model,
            infinity,
            jnp.zeros((), jnp.int32),
            model if task.averaging else None,
        )

    return jax.vmap(one)(initial_keys, keys, constants)


start_compiled = jit_quickly(_initial_state, static_argnums=0)


def start_by_numpy(task: Task, initial_keys: Any, keys: Any, constants: PyTree) -> State:
    """As `start_compiled` for tasks that start by NumPy. Optimisers start with zeros."""
    initial_keys, keys, constants = jax.device_get((initial_keys, keys, constants))
    model = task.init(initial_keys, constants)
    n = len(keys)

    def optimizer_of_one(model: PyTree, constant: PyTree) -> tuple[PyTree, ...]:
        return tuple(
            o.optimizer_for(constant).init(eqx.filter(model, o.trainable(model)))
            for o in task.objectives
        )

    first = jax.tree.map(lambda leaf: leaf[0], (model, constants))
    shapes = jax.eval_shape(optimizer_of_one, *first)
    optimizer = jax.tree.map(lambda leaf: np.zeros((n, *leaf.shape), leaf.dtype), shapes)
    best = (model, np.full(n, np.inf, np.float32), np.zeros(n, np.int32))
    average = model if task.averaging else None
    # Copies: the program of training writes into the arrays of a state.
    return State(*jax.device_put((model, optimizer, keys, *best, average), may_alias=False))


@partial(jit_without_trials, static_argnums=0, donate_argnums=1)
def run_steps(
    task: Task, state: State, constants: PyTree, batches: PyTree, keys: Array, start: int
) -> tuple[State, dict[str, Array]]:
    """Train every replica on these minibatches; return the mean loss and the last monitors.

    The minibatches, and the data of their keys, have axes of steps and of replicas: the scan reads
    them as they are in memory.
    """
    one = partial(_scanned, task, start, RowShare())
    return jax.vmap(one, in_axes=(0, 0, 1, 1))(state, constants, batches, keys)


def _steps_on_shared(
    task: Task,
    share: RowShare,
    state: State,
    constants: PyTree,
    batches: PyTree,
    keys: Array,
    start: int,
) -> tuple[State, dict[str, Array]]:
    """As `run_steps`, with minibatches that all replicas share: they have an axis of steps only.
    A ``share`` of their rows is on this device."""
    one = partial(_scanned, task, start, share)
    return jax.vmap(one, in_axes=(0, 0, None, 1))(state, constants, batches, keys)


#: The same program for minibatches that all replicas share, on one device.
run_shared_steps = jit_literally(_steps_on_shared, static_argnums=(0, 1), donate_argnums=2)


@lru_cache(maxsize=64)
def steps_on_mesh(task: Task, share: RowShare, mesh: Mesh) -> Any:
    """`run_shared_steps` of a task on many devices: each has some of the replicas and, of every
    minibatch, its ``share`` of the rows."""
    by_replica, by_row = PartitionSpec(REPLICAS), PartitionSpec(None, ROWS)
    program = jax.shard_map(
        partial(_steps_on_shared, task, share._replace(axis=ROWS)),
        mesh=mesh,
        in_specs=(by_replica, by_replica, by_row, PartitionSpec(None, REPLICAS), PartitionSpec()),
        out_specs=(by_replica, by_replica),
        # Sums that are equal on all devices are not known to be so.
        check_vma=False,
    )
    return jit_literally(program, donate_argnums=0)


def _scanned(
    task: Task,
    start: int,
    share: RowShare,
    state: State,
    constant: PyTree,
    batches: PyTree,
    keys: Array,
) -> tuple[State, dict[str, Array]]:
    """Train one replica; its minibatches and keys have an axis of steps."""

    def step(carry: PyTree, now: tuple[Array, PyTree, Array]) -> tuple[PyTree, Array]:
        model, optimizer, average = carry
        t, batch, key_data = now
        key = jax.random.wrap_key_data(key_data, impl=KEY_KIND)
        model = task.advance(model)
        losses = []
        states = []
        for objective, opt_state in zip(task.objectives, optimizer, strict=True):
            model, opt_state, loss = apply_objective(
                objective, constant, model, opt_state, batch, key, t, share
            )
            states.append(opt_state)
            losses.append(loss)
        # With windows, the loss is that of the objectives in their window; others are zero.
        windows = task.objectives[0].window is not None
        loss = sum(losses, jnp.zeros(())) if windows else losses[0]
        if task.averaging:
            newest = 1.0 / (1.0 + task.averaging * t)
            average = jax.tree.map(lambda a, b: a + newest * (b - a), average, model)
        return (model, tuple(states), average), loss

    steps = start + jnp.arange(len(keys))
    (model, optimizer, average), losses = jax.lax.scan(
        step, (state.model, state.optimizer, state.average), (steps, batches, keys)
    )
    values = {"loss": jnp.mean(losses), **task.monitor(model)}
    return state._replace(model=model, optimizer=optimizer, average=average), values
