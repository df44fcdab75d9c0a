"""The training loop: chunks of steps in one compiled scan, replicas side by side.

`train` knows no model. It takes a `Task` (how a replica is initialised, its losses, which leaves
they move) and `Rows` (the rows of a shared table that each replica draws). Inside a chunk nothing
is read back from the device; `nkcme.training.chunks` handles what happens between chunks.

All randomness in step t of a replica derives from (the replica's key, t). A run that is stopped
after any chunk and resumed makes the same draws as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.training.chunks import (
    Checkpoint,
    Progress,
    RunCheckpoint,
    Values,
    refuse_divergence,
    run_in_chunks,
)
from nkcme.training.compilation import jit_quickly, jit_tersely, use_compilation_cache
from nkcme.training.padding import eighth_larger, pad_to
from nkcme.training.plan import History, Judge, Plan
from nkcme.training.replicas import concatenated, groups, single_precision, workers
from nkcme.training.rows import Rows, draw
from nkcme.training.task import Objective, Task, apply_objective
from nkcme.training.validation import better_states, validation_score

__all__ = [
    "Checkpoint",
    "Judge",
    "Objective",
    "Plan",
    "Progress",
    "Rows",
    "Task",
    "Trained",
    "train",
]

PyTree = Any


@dataclass(frozen=True)
class Trained:
    """The models of all replicas, stacked along a leading axis, and the history of the run."""

    models: PyTree
    history: History
    n_steps: int
    interrupted: bool


@single_precision()
def train(
    task: Task,
    constants: PyTree,
    table: PyTree,
    rows: Rows,
    plan: Plan,
    keys: Array,
    *,
    validation_rows: Rows | None = None,
    judge: Judge | None = None,
    checkpoint: Checkpoint | None = None,
    fingerprint: str = "",
    progress: Progress | None = None,
) -> Trained:
    """Train one replica per key for ``plan.n_steps`` steps, or until its patience runs out.

    ``table`` is a pytree of arrays that share their first axis; ``constants`` one of arrays with a
    leading replica axis. With ``validation_rows`` the best state by validation is returned; with a
    ``judge``, which scores the stacked models of all replicas at the plan's marks, that with the
    best score. A
    ``checkpoint`` with this run's ``fingerprint`` is resumed; that of another run is refused.
    """
    use_compilation_cache()
    table = jax.tree.map(lambda leaf: jnp.asarray(_padded(leaf, axis=0)), table)
    slices = groups(len(keys))
    inputs = [
        _Inputs(
            keys[group],
            jax.tree.map(lambda c, g=group: jnp.asarray(c[g]), constants),
            _device_rows(rows, group),
            validation_rows and _device_rows(validation_rows, group),
        )
        for group in slices
    ]
    with workers(2 * len(slices)) as pool:
        run = _Run(task, plan, table, inputs, pool, judge)
        saved = None if checkpoint is None else RunCheckpoint(run, checkpoint, fingerprint)
        done, stop_requested = run_in_chunks(run, checkpoint=saved, progress=progress)
    state = concatenated(run.states)
    scored = validation_rows is not None or judge is not None
    if scored and run.history.step:
        refuse_divergence(run, np.asarray(state.best_score), done, "best validation score")
    models = state.best if scored else _result(state)
    return Trained(models, run.history, done, stop_requested and done < plan.n_steps)


class _Inputs(NamedTuple):
    """The inputs of one group of replicas, on the device."""

    keys: Array
    constants: PyTree
    rows: Rows
    validation_rows: Rows | None


class _State(NamedTuple):
    """What a checkpoint holds; each leaf has a leading replica axis."""

    model: PyTree
    optimizer: tuple[PyTree, ...]
    key: Array  # raw key data, because safetensors has no key types
    best: PyTree
    best_score: Array
    since_best: Array
    average: PyTree  # None for tasks without averaging


def _result(state: _State) -> PyTree:
    """The models that a state stands for."""
    return state.model if state.average is None else state.average


class _Run:
    """The run of `train`, for `nkcme.training.chunks.run_in_chunks`."""

    replica_name = "replica"
    divergence_advice = "lower the learning rate, or look for extreme values in the table"
    states: list[_State]

    def __init__(
        self,
        task: Task,
        plan: Plan,
        table: PyTree,
        inputs: list[_Inputs],
        pool: Executor,
        judge: Judge | None = None,
    ):
        self.task, self.plan, self.table, self.inputs, self.pool = task, plan, table, inputs, pool
        self.judge = judge
        self.history = History()

    def start(self) -> None:
        # All programs compile in parallel: compilation is most of the time of a short run.
        started = [self.pool.submit(_start, self.task, i.keys, i.constants) for i in self.inputs]
        compiled = [self.pool.submit(self._compile_chunk, i) for i in self.inputs]
        self.states = [future.result() for future in started]
        for future in compiled:
            future.result()

    def _compile_chunk(self, inputs: _Inputs) -> None:
        state = jax.eval_shape(partial(_initial_state, self.task), inputs.keys, inputs.constants)
        for length in self.plan.chunks()[:1]:
            draw = partial(_draw_chunk, self.plan.batch_size, length)
            drawn = jax.eval_shape(draw, state.key, inputs.rows, 0)
            _run_chunk.lower(self.task, state, self.table, drawn, 0).compile()

    def chunk_lengths(self, done: int) -> Iterator[int]:
        for length in self.plan.chunks(done):
            # Checked before a chunk, because a checkpoint may be of a run that had stopped.
            if self.plan.patience is not None and self._all_stopped(self.plan.patience):
                return
            yield length

    def _all_stopped(self, patience: int) -> bool:
        return all(bool(np.all(np.asarray(s.since_best) >= patience)) for s in self.states)

    def run_chunk(self, done: int, length: int) -> Values:
        def advance(state: _State, inputs: _Inputs) -> tuple[_State, dict[str, np.ndarray]]:
            drawn = _drawn_chunk(self.plan.batch_size, length, state.key, inputs.rows, done)
            state, values = _run_chunk(self.task, state, self.table, drawn, done)
            if inputs.validation_rows is not None:
                state, score = _validate(
                    self.task, state, self.table, inputs.validation_rows, self.plan.patience
                )
                values = {**values, "validation": score}
            return state, jax.device_get(values)

        results = list(self.pool.map(advance, self.states, self.inputs))
        self.states = [state for state, _ in results]
        if self.judge is not None and done + length in self.plan.marks:
            self._judge(self.judge, done + length)
        return {k: np.concatenate([v[k] for _, v in results]) for k in results[0][1]}

    def _judge(self, judge: Judge, done: int) -> None:
        """Score all replicas, and keep those that are better than before."""
        best = np.concatenate([np.asarray(state.best_score) for state in self.states])
        models = concatenated([_result(state) for state in self.states])
        scores = np.asarray(judge(models, done, best))
        first, judged = 0, []
        for state in self.states:
            last = first + len(state.best_score)
            own = jnp.asarray(scores[first:last], jnp.float32)
            judged.append(_keep_best(state, own, self.plan.patience, self.plan.least_gain))
            first = last
        self.states = judged

    def record(self, done: int, values: Values) -> dict[str, float]:
        self.history.append(done, values)
        return {name: float(np.mean(value)) for name, value in values.items()}

    def history_arrays(self) -> dict[str, np.ndarray]:
        return {f"{_HISTORY}{name}": value for name, value in self.history.as_arrays().items()}

    def restore_history(self, arrays: dict[str, np.ndarray]) -> None:
        own = {k.removeprefix(_HISTORY): v for k, v in arrays.items() if k.startswith(_HISTORY)}
        self.history = History.from_arrays(own)


#: What the names of the history's arrays begin with in a checkpoint.
_HISTORY = "history/"


def _device_rows(rows: Rows, group: slice) -> Rows:
    return Rows(*(jnp.asarray(_padded(leaf[group], axis=1)) for leaf in rows))


def _padded(array: np.ndarray, axis: int) -> np.ndarray:
    """Pad with the last entry: in `Rows` it is never drawn, and in a table it has no number."""
    return pad_to(array, eighth_larger(array.shape[axis], least=256), axis=axis, fill="last")


def _initial_state(task: Task, keys: Array, constants: PyTree) -> _State:
    def one(key: Array, constant: PyTree) -> _State:
        init_key, run_key = jax.random.split(key)
        # Weakly typed leaves would compile another program for the second chunk.
        model = jax.tree.map(
            lambda leaf: jnp.array(leaf, leaf.dtype), task.init(init_key, constant)
        )
        optimizer = tuple(
            o.optimizer.init(eqx.filter(model, o.trainable(model))) for o in task.objectives
        )
        infinity = jnp.array(jnp.inf, jnp.float32)
        return _State(
            model,
            optimizer,
            jax.random.key_data(run_key),
            model,
            infinity,
            jnp.zeros((), jnp.int32),
            model if task.averaging else None,
        )

    return jax.vmap(one)(keys, constants)


_start = jit_quickly(_initial_state, static_argnums=0)


#: The number of rows, of all replicas together, that are drawn in one call.
_MAX_DRAWN = 1 << 20


def _draw_chunk(
    batch_size: int, length: int, key_data: Array, rows: Rows, start: int
) -> tuple[Array, Array]:
    """The rows (replicas, length, batch_size) and the keys (replicas, length) of some steps."""
    steps = start + jnp.arange(length)

    def one(key_data: Array, index: Array, total: Array) -> tuple[Array, Array]:
        key = jax.random.wrap_key_data(key_data)
        pairs = jax.vmap(lambda t: jax.random.split(jax.random.fold_in(key, t)))(steps)
        # Drawing all minibatches of the chunk in one call is faster than drawing in each step.
        # There is a limit because a GPU's compiler writes out a constant of their size.
        drawn = lambda key: draw(index, total, key, batch_size)  # noqa: E731
        n_batches = _MAX_DRAWN // (len(rows.index) * batch_size)
        if n_batches >= length:
            return jax.vmap(drawn)(pairs[:, 0]), pairs[:, 1]
        return jax.lax.map(drawn, pairs[:, 0], batch_size=max(n_batches, 1)), pairs[:, 1]

    return jax.vmap(one)(key_data, *rows)


# A program of its own, which depends on no task: tasks with the same minibatches share it.
_drawn_chunk = jit_quickly(_draw_chunk, static_argnums=(0, 1))


@partial(jit_tersely, static_argnums=0, donate_argnums=1)
def _run_chunk(
    task: Task, state: _State, table: PyTree, drawn: tuple[Array, Array], start: int
) -> tuple[_State, dict[str, Array]]:
    """Train every replica on the drawn minibatches; return the mean loss and the last monitors."""
    steps = start + jnp.arange(drawn[0].shape[1])

    def one(state: _State, batches: Array, keys: Array) -> tuple[_State, dict[str, Array]]:
        def step(carry: PyTree, now: tuple[Array, Array, Array]) -> tuple[PyTree, Array]:
            model, optimizer, average = carry
            t, chosen, key = now
            batch = jax.tree.map(lambda leaf: leaf[chosen], table)
            model = task.advance(model)
            losses = []
            states = []
            for objective, opt_state in zip(task.objectives, optimizer, strict=True):
                model, opt_state, loss = apply_objective(objective, model, opt_state, batch, key, t)
                states.append(opt_state)
                losses.append(loss)
            # With windows, the loss is that of the objectives in their window; others are zero.
            windows = task.objectives[0].window is not None
            loss = sum(losses, jnp.zeros(())) if windows else losses[0]
            if task.averaging:
                share = 1.0 / (1.0 + task.averaging * t)
                average = jax.tree.map(lambda a, b: a + share * (b - a), average, model)
            return (model, tuple(states), average), loss

        (model, optimizer, average), losses = jax.lax.scan(
            step, (state.model, state.optimizer, state.average), (steps, batches, keys)
        )
        values = {"loss": jnp.mean(losses), **task.monitor(model)}
        return state._replace(model=model, optimizer=optimizer, average=average), values

    return jax.vmap(one)(state, *drawn)


@partial(jax.jit, static_argnums=(2, 3), donate_argnums=0)
def _keep_best(state: _State, scores: Array, patience: int | None, least_gain: float) -> _State:
    """The state with the best models so far, after these scores."""
    best, best_score, since_best = better_states(
        scores,
        _result(state),
        state.best,
        state.best_score,
        state.since_best,
        patience,
        least_gain,
    )
    return state._replace(best=best, best_score=best_score, since_best=since_best)


@partial(jax.jit, static_argnums=(0, 4), donate_argnums=1)
def _validate(
    task: Task, state: _State, table: PyTree, rows: Rows, patience: int | None
) -> tuple[_State, Array]:
    """Score every replica on its validation rows and keep the best state of each."""
    validation = task.validation
    assert validation is not None
    score = lambda model, *rows: validation_score(validation, model, table, *rows)  # noqa: E731
    scores = jax.vmap(score)(state.model, rows.index, rows.total)
    best, best_score, since_best = better_states(
        scores, state.model, state.best, state.best_score, state.since_best, patience
    )
    return state._replace(best=best, best_score=best_score, since_best=since_best), scores
