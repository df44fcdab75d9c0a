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

import jax
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
from nkcme.training.compilation import use_compilation_cache
from nkcme.training.minibatches import Minibatches, device_rows, minibatches_of
from nkcme.training.plan import History, Judge, Plan
from nkcme.training.processes import from_first
from nkcme.training.replicas import concatenated, single_precision, workers
from nkcme.training.rows import Rows
from nkcme.training.steps import (
    State,
    result_of,
    split_keys,
    start_by_numpy,
    start_compiled,
)
from nkcme.training.streamed_minibatches import StreamedMinibatches
from nkcme.training.task import Objective, Task
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
    """The models of all replicas, as NumPy arrays with a leading axis, and the run's history."""

    models: PyTree
    history: History
    n_steps: int
    interrupted: bool


@single_precision()
def train(
    task: Task,
    constants: PyTree,
    table: PyTree | StreamedMinibatches,
    rows: Rows | None,
    plan: Plan,
    keys: np.ndarray,
    *,
    validation_rows: Rows | None = None,
    judge: Judge | None = None,
    checkpoint: Checkpoint | None = None,
    fingerprint: str = "",
    progress: Progress | None = None,
) -> Trained:
    """Train one replica per key for ``plan.n_steps`` steps, or until its patience runs out.

    ``table`` is a pytree of arrays that share their first axis, or a stream, which has no ``rows``;
    ``constants`` are arrays with a leading replica axis; ``keys`` (replicas, 2) are the data of
    random keys. With
    ``validation_rows`` the best state by validation is returned; with a ``judge``, which scores the
    stacked models of all replicas at the plan's marks, that with the best score. A ``checkpoint``
    with this run's ``fingerprint`` is resumed; that of another run is refused.
    """
    use_compilation_cache()
    is_stream = isinstance(table, StreamedMinibatches)
    minibatches = table if is_stream else minibatches_of(table, plan.batch_size)
    slices = minibatches.groups(len(keys))
    initial_keys, step_keys = split_keys(keys)
    inputs = [
        _Inputs(
            jax.device_put(initial_keys[group]),
            jax.device_put(step_keys[group]),
            jax.device_put(jax.tree.map(lambda c, g=group: np.asarray(c)[g], constants)),
            rows and minibatches.rows(rows, group),
            validation_rows and device_rows(validation_rows, group),
        )
        for group in slices
    ]
    with workers(2 * len(slices)) as pool:
        run = _Run(task, plan, minibatches, inputs, pool, judge)
        saved = None if checkpoint is None else RunCheckpoint(run, checkpoint, fingerprint)
        done, stop_requested = run_in_chunks(run, checkpoint=saved, progress=progress)
    state = concatenated(run.states)
    scored = validation_rows is not None or judge is not None
    if scored and run.history.step:
        refuse_divergence(run, np.asarray(state.best_score), done, "best validation score")
    models = jax.device_get(state.best if scored else result_of(state))
    return Trained(models, run.history, done, stop_requested and done < plan.n_steps)


class _Inputs(NamedTuple):
    """The inputs of one group of replicas, on the device."""

    initial_keys: Array
    keys: Array
    constants: PyTree
    rows: Any  # as its minibatches take them; None of a stream
    validation_rows: Rows | None


class _Run:
    """The run of `train`, for `nkcme.training.chunks.run_in_chunks`."""

    replica_name = "replica"
    divergence_advice = "lower the learning rate, or look for extreme values in the table"
    states: list[State]

    def __init__(
        self,
        task: Task,
        plan: Plan,
        minibatches: Minibatches | StreamedMinibatches,
        inputs: list[_Inputs],
        pool: Executor,
        judge: Judge | None = None,
    ):
        self.task, self.plan, self.inputs, self.pool = task, plan, inputs, pool
        self.minibatches, self.judge = minibatches, judge
        self.history = History()

    def start(self) -> None:
        # Programs compile in parallel, but are traced only once: groups of one size share them.
        of_start = [self._of_start(inputs) for inputs in self.inputs]
        if self.task.starts_by_numpy:
            self.states = [start_by_numpy(*one) for one in of_start]
            shapes: list[Any] = self.states
        else:
            shapes = [start_compiled.eval_shape(*one) for one in of_start]
        by_size = {
            len(one.keys): (one, shape) for one, shape in zip(self.inputs, shapes, strict=True)
        }
        compiled = [
            self.pool.submit(self._compile_chunk, shape, one) for one, shape in by_size.values()
        ]
        if not self.task.starts_by_numpy:
            self.states = list(self.pool.map(start_compiled, *zip(*of_start, strict=True)))
        for future in compiled:
            future.result()

    def _of_start(self, inputs: _Inputs) -> tuple[Any, ...]:
        """The arguments of the program that initialises a group."""
        return self.task, inputs.initial_keys, inputs.keys, inputs.constants

    def _compile_chunk(self, state: State, inputs: _Inputs) -> None:
        """Compile the program of the first chunk, for states of these shapes."""
        for length in self.plan.chunks()[:1]:
            self.minibatches.compile(self.task, state, inputs.constants, length)

    def chunk_lengths(self, done: int) -> Iterator[int]:
        for length in self.plan.chunks(done):
            # Checked before a chunk, because a checkpoint may be of a run that had stopped.
            if self.plan.patience is not None and self._all_stopped(self.plan.patience):
                return
            yield length

    def _all_stopped(self, patience: int) -> bool:
        return all(bool(np.all(np.asarray(s.since_best) >= patience)) for s in self.states)

    def run_chunk(self, done: int, length: int) -> Values:
        def advance(state: State, inputs: _Inputs) -> tuple[State, dict[str, np.ndarray]]:
            first, losses = done, []
            state, constants = self.minibatches.placed((state, inputs.constants))
            for piece in self.minibatches.pieces(length, len(inputs.keys)):
                key_data = np.asarray(state.key)
                drawn = self.minibatches.of_steps(piece, key_data, inputs.rows, first)
                state, values = self.minibatches.run(self.task, state, constants, *drawn, first)
                losses.append((piece, values["loss"]))
                first += piece
            values["loss"] = sum(piece * np.asarray(loss) for piece, loss in losses) / length
            if inputs.validation_rows is not None:
                held_out = self.minibatches.table, inputs.validation_rows
                state, score = _validate(self.task, state, *held_out, self.plan.patience)
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
        models = jax.device_get(concatenated([result_of(state) for state in self.states]))
        # One process decides: scores may differ by a rounding, and a run must not end in some.
        scores = from_first(np.asarray(judge(models, done, best), np.float32))
        early = done < self.plan.least_steps  # any score will do
        least_gain = _ANY_LOSS if early else self.plan.least_gain
        first, judged = 0, []
        for state in self.states:
            last = first + len(state.best_score)
            own = jax.tree.map(lambda leaf: leaf[first:last], models)  # noqa: B023
            # By NumPy: the models are on the host already, and there is nothing to compile.
            best, *before = jax.device_get((state.best, state.best_score, state.since_best))
            so_far = best, before[0], before[1]
            kept = better_states(scores[first:last], own, *so_far, self.plan.patience, least_gain)
            placed = jax.device_put(kept, may_alias=False)
            judged.append(state._replace(**dict(zip(_BEST, placed, strict=True))))
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


#: A share by which no score becomes worse; minus infinity would make a score of zero undefined.
_ANY_LOSS = -1e30

#: The fields of a state that `better_states` replaces.
_BEST = ("best", "best_score", "since_best")


@partial(jax.jit, static_argnums=(0, 4), donate_argnums=1)
def _validate(
    task: Task, state: State, table: PyTree, rows: Rows, patience: int | None
) -> tuple[State, Array]:
    """Score every replica on its validation rows and keep the best state of each."""
    validation = task.validation
    assert validation is not None
    score = lambda model, *rows: validation_score(validation, model, table, *rows)  # noqa: E731
    scores = jax.vmap(score)(state.model, rows.index, rows.total)
    best, best_score, since_best = better_states(
        scores, state.model, state.best, state.best_score, state.since_best, patience
    )
    return state._replace(best=best, best_score=best_score, since_best=since_best), scores
