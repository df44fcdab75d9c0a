"""The one training loop: whole chunks of steps in one compiled scan, replicas side by side.

`train` knows no model. It takes a `Task` (how a replica starts, what its losses are, what moves)
and `Rows` (which rows of a shared table each replica may draw), and runs. What happens between
chunks (history, validation, checkpoints, progress, Ctrl-C) happens on the host; inside a chunk
nothing is read back from the device.

Everything random in step t of a replica derives from (the replica's key, t), so a run that was
stopped at any chunk and resumed draws what the uninterrupted run drew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from nkcme.errors import TrainingError
from nkcme.training.compilation import use_compilation_cache
from nkcme.training.interrupts import Interrupts
from nkcme.training.replicas import (
    concatenated,
    groups,
    named_arrays,
    refilled,
    refuse_foreign,
    single_precision,
    workers,
)

PyTree = Any
AnyArray = Any  # numpy's on the host, JAX's on the device


class Objective(NamedTuple):
    """One gradient update: a loss, the leaves it moves, its optimiser and when it is made.

    ``loss(model, batch, key)`` is a scalar; ``trainable(model)`` marks with True the leaves that
    this objective moves. The update is made every so many steps and, where there is a ``window``,
    only from its first step up to, not including, its second: a model whose parts are trained one
    after the other is one run.
    """

    loss: Callable[[PyTree, PyTree, Array], Array]
    trainable: Callable[[PyTree], PyTree]
    optimizer: optax.GradientTransformation
    every: int = 1
    window: tuple[int, int] | None = None


class Task(NamedTuple):
    """What is trained.

    ``init(key, constant)`` makes one replica, a pytree whose leaves are all arrays. The objectives
    are applied in order in each step, on the same minibatch. ``advance`` updates state that is not
    learned, once a step. ``monitor`` gives named scalars for the history. ``validation(model,
    batch)`` gives one value a row, lower being better.

    A task is compared by identity: training the same task object on arrays of the same shapes
    again reuses the compiled program.
    """

    init: Callable[[Array, PyTree], PyTree]
    objectives: tuple[Objective, ...]
    advance: Callable[[PyTree], PyTree] = lambda model: model
    monitor: Callable[[PyTree], dict[str, Array]] = lambda model: {}
    validation: Callable[[PyTree, PyTree], Array] | None = None


class Rows(NamedTuple):
    """The rows of the shared table that belong to each replica, padded to one length.

    A draw is a number below 2^32, looked up in the running total of the rows' weights, so rows
    come with replacement and in proportion to their weight; a row of weight two is drawn exactly
    as two copies of it would be.
    """

    index: AnyArray  # (replicas, longest) int32
    total: AnyArray  # (replicas, longest) uint32, nondecreasing, 2^32 - 1 from the last row on

    @classmethod
    def of(cls, rows: Sequence[np.ndarray], weights: Sequence[np.ndarray] | None = None) -> Rows:
        """From one array of row numbers a replica and, perhaps, their weights."""
        longest = max(len(r) for r in rows)
        index = np.zeros((len(rows), longest), np.int32)
        total = np.full((len(rows), longest), 2**32 - 1, np.uint32)
        for i, r in enumerate(rows):
            w = np.ones(len(r)) if weights is None else np.asarray(weights[i], np.float64)
            r, w = np.asarray(r)[w > 0], w[w > 0]
            if not len(r):
                raise TrainingError(f"replica {i} has no row of positive weight to draw")
            # A power of two, so that whole weights add up without rounding, as copies would.
            running = np.cumsum(np.ldexp(w, -np.frexp(w.max())[1]))
            index[i] = r[-1]  # padding too: the topmost draw lands there
            index[i, : len(r)] = r
            total[i, : len(r)] = np.minimum(running / running[-1] * 2.0**32, 2.0**32 - 1)
        return cls(index, total)


def draw(index: Array, total: Array, key: Array, size: int) -> Array:
    """``size`` row numbers of one replica."""
    bits = jax.random.bits(key, (size,), jnp.uint32)
    # "right": a row owns the draws from its predecessor's total up to, not including, its own;
    # the topmost draw belongs to the last row.
    position = jnp.searchsorted(total, bits, side="right", method="scan_unrolled")
    return index[jnp.minimum(position, index.shape[0] - 1)]


@dataclass(frozen=True)
class Plan:
    """How long, in what pieces, and when to stop."""

    n_steps: int
    batch_size: int
    chunk_steps: int | None = None  # about a twentieth of the run unless given
    patience: int | None = None  # chunks without a better validation; None: never stop early

    def chunks(self, done: int = 0) -> list[int]:
        """Lengths of the chunks after ``done`` steps.

        All are equal when some length near the wanted one divides the whole, so that one program
        is compiled and not two.
        """
        if done >= self.n_steps:
            return []
        wanted = self.chunk_steps or min(max(self.n_steps // 20, 100), 2000)
        divisors = (c for c in range(wanted, wanted // 2, -1) if self.n_steps % c == 0)
        length = min(next(divisors, wanted), self.n_steps)
        whole, rest = divmod(self.n_steps - done, length)
        return [length] * whole + ([rest] if rest else [])


class Checkpoint(Protocol):
    """Where the state of a run is kept; see `nkcme.model_files.CheckpointFile`.

    Its text says where that is, for messages.
    """

    def __str__(self) -> str: ...

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None: ...

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None: ...


class Progress(Protocol):
    """Who is told of each chunk; see `nkcme.training.progress`."""

    def update(self, step: int, values: dict[str, float]) -> None: ...


@dataclass
class History:
    """One entry a chunk: the steps done, and arrays (replicas,) of loss, monitors, validation."""

    step: list[int] = field(default_factory=list)
    values: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def append(self, step: int, values: dict[str, np.ndarray]) -> None:
        self.step.append(step)
        for name, value in values.items():
            self.values.setdefault(name, []).append(np.asarray(value))

    def as_arrays(self) -> dict[str, np.ndarray]:
        """``step`` (entries,) and each value (entries, replicas)."""
        stacked = {name: np.stack(value) for name, value in self.values.items()}
        return {"step": np.asarray(self.step, np.int64), **stacked}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> History:
        values = {name: list(value) for name, value in arrays.items() if name != "step"}
        return cls([int(s) for s in arrays["step"]], values)


@dataclass(frozen=True)
class Trained:
    """The replicas' models stacked along a leading axis, and how they came to be."""

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
    checkpoint: Checkpoint | None = None,
    fingerprint: str = "",
    progress: Progress | None = None,
) -> Trained:
    """Train one replica a key for ``plan.n_steps`` steps, or until validation says to stop.

    ``table`` is a pytree of arrays that share their first axis; ``constants`` one of arrays with a
    leading replica axis. With ``validation_rows`` the state that scored best is what comes back.
    A ``checkpoint`` whose ``fingerprint`` is this run's is resumed; another run's is refused.
    """
    use_compilation_cache()
    table = jax.tree.map(lambda leaf: jnp.asarray(_with_room(leaf, axis=0)), table)
    parts = groups(len(keys))
    part_rows = [_device_rows(rows, p) for p in parts]
    part_validation = [validation_rows and _device_rows(validation_rows, p) for p in parts]
    part_constants = [jax.tree.map(lambda c, p=p: jnp.asarray(c[p]), constants) for p in parts]

    with workers(2 * len(parts)) as pool, Interrupts() as interrupts:
        # What compiles at the same time is ready sooner: of a short run it is most of the time.
        started = [
            pool.submit(_start, task, keys[p], constant)
            for p, constant in zip(parts, part_constants, strict=True)
        ]
        compiled = [
            pool.submit(_compile_chunk, task, plan, keys[p], constant, table, training)
            for p, constant, training in zip(parts, part_constants, part_rows, strict=True)
        ]
        states = [future.result() for future in started]
        for future in compiled:
            future.result()
        history, done = History(), 0
        if checkpoint is not None and (found := checkpoint.load()) is not None:
            states, history, done = _restore(found, states, fingerprint, str(checkpoint))

        def advance(item: tuple[_State, PyTree, PyTree]) -> tuple[_State, dict[str, np.ndarray]]:
            state, training, validation = item
            state, values = _run_chunk(task, plan.batch_size, length, state, table, training, done)
            if validation is not None:
                state, score = _validate(task, state, table, validation, plan.patience)
                values = {**values, "validation": score}
            return state, jax.device_get(values)

        for length in plan.chunks(done):
            if plan.patience is not None and _all_stopped(states, plan.patience):
                break  # asked before a chunk, for a checkpoint may be of a run that had stopped
            results = list(pool.map(advance, zip(states, part_rows, part_validation, strict=True)))
            states = [state for state, _ in results]
            values = {k: np.concatenate([v[k] for _, v in results]) for k in results[0][1]}
            done += length
            _refuse_divergence(values["loss"], done)
            history.append(done, values)
            if checkpoint is not None:
                checkpoint.save(*_snapshot(states, history, done, fingerprint))
            if progress is not None:
                progress.update(done, {name: float(np.mean(v)) for name, v in values.items()})
            if interrupts.requested:
                break
        interrupted = interrupts.requested and done < plan.n_steps
    state = concatenated(states)
    if validation_rows is not None and history.step:
        _refuse_divergence(np.asarray(state.best_score), done, "best validation score")
    models = state.model if validation_rows is None else state.best
    return Trained(models, history, done, interrupted)


class _State(NamedTuple):
    """What a checkpoint holds; each leaf has a leading replica axis."""

    model: PyTree
    optimizer: tuple[PyTree, ...]
    key: Array  # raw key data, for safe files know no key types
    best: PyTree
    best_score: Array
    since_best: Array


def _device_rows(rows: Rows, group: slice) -> Rows:
    return Rows(*(jnp.asarray(_with_room(leaf[group], axis=1)) for leaf in rows))


def _with_room(array: np.ndarray, axis: int) -> np.ndarray:
    """Padded along an axis to one of few lengths, so that tables of about a size (folds, say) share
    a compiled program. At most an eighth is added, or what is missing to 256.

    The last entry is repeated: in `Rows` it owns no draw, and no one looks at it in a table.
    """
    n = array.shape[axis]
    step = max(1 << max(n.bit_length() - 4, 0), 256)
    missing = -n % step
    return np.pad(array, [(0, missing if i == axis else 0) for i in range(array.ndim)], "edge")


@partial(jax.jit, static_argnums=0)
def _start(task: Task, keys: Array, constants: PyTree) -> _State:
    def one(key: Array, constant: PyTree) -> _State:
        init_key, run_key = jax.random.split(key)
        # Weakly typed leaves would make the second chunk another program.
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
        )

    return jax.vmap(one)(keys, constants)


def _compile_chunk(
    task: Task, plan: Plan, keys: Array, constants: PyTree, table: PyTree, rows: Rows
) -> None:
    """Have the program of `_run_chunk` ready for when it is called."""
    state = jax.eval_shape(partial(_start, task), keys, constants)
    for length in plan.chunks()[:1]:
        _run_chunk.lower(task, plan.batch_size, length, state, table, rows, 0).compile()


#: Rows that are drawn at once, of all replicas together.
_DRAWN_AT_ONCE = 1 << 20


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _run_chunk(
    task: Task, batch_size: int, length: int, state: _State, table: PyTree, rows: Rows, start: int
) -> tuple[_State, dict[str, Array]]:
    """``length`` steps of every replica; the mean loss and the monitors at the end."""
    steps = start + jnp.arange(length)

    def step_keys(key_data: Array) -> tuple[Array, Array]:
        key = jax.random.wrap_key_data(key_data)
        pairs = jax.vmap(lambda t: jax.random.split(jax.random.fold_in(key, t)))(steps)
        return pairs[:, 0], pairs[:, 1]

    def one(state: _State, index: Array, total: Array) -> tuple[_State, dict[str, Array]]:
        draw_keys, loss_keys = step_keys(state.key)
        # All minibatches of the chunk at once: cheaper than a little drawing in each step. But a
        # GPU's compiler writes out a constant of their size, and so there is a limit.
        drawn = lambda key: draw(index, total, key, batch_size)  # noqa: E731
        at_once = _DRAWN_AT_ONCE // (len(rows.index) * batch_size)
        if at_once >= length:
            batches = jax.vmap(drawn)(draw_keys)
        else:
            batches = jax.lax.map(drawn, draw_keys, batch_size=max(at_once, 1))

        def step(carry: PyTree, now: tuple[Array, Array, Array]) -> tuple[PyTree, Array]:
            model, optimizer = carry
            t, chosen, key = now
            batch = jax.tree.map(lambda leaf: leaf[chosen], table)
            model = task.advance(model)
            losses = []
            states = []
            for objective, opt_state in zip(task.objectives, optimizer, strict=True):
                model, opt_state, loss = _apply(objective, model, opt_state, batch, key, t)
                states.append(opt_state)
                losses.append(loss)
            # Of objectives that take turns, those that rest count as zero.
            told = losses[0] if task.objectives[0].window is None else sum(losses, jnp.zeros(()))
            return (model, tuple(states)), told

        (model, optimizer), losses = jax.lax.scan(
            step, (state.model, state.optimizer), (steps, batches, loss_keys)
        )
        values = {"loss": jnp.mean(losses), **task.monitor(model)}
        return state._replace(model=model, optimizer=optimizer), values

    return jax.vmap(one)(state, rows.index, rows.total)


def _apply(
    objective: Objective, model: PyTree, opt_state: PyTree, batch: PyTree, key: Array, t: Array
) -> tuple[PyTree, PyTree, Array]:
    """One update by one objective, if step ``t`` is one of its steps."""

    def update(model: PyTree, opt_state: PyTree) -> tuple[PyTree, PyTree, Array]:
        moving, still = eqx.partition(model, objective.trainable(model))
        loss, gradient = jax.value_and_grad(
            lambda m: objective.loss(eqx.combine(m, still), batch, key)
        )(moving)
        change, opt_state = objective.optimizer.update(gradient, opt_state, moving)
        return eqx.combine(optax.apply_updates(moving, change), still), opt_state, loss

    if objective.every == 1 and objective.window is None:
        return update(model, opt_state)
    first, last = objective.window or (0, jnp.iinfo(jnp.int32).max)
    now = ((t + 1) % objective.every == 0) & (t >= first) & (t < last)
    skip = lambda model, opt_state: (model, opt_state, jnp.zeros(()))  # noqa: E731
    return jax.lax.cond(now, update, skip, model, opt_state)


@partial(jax.jit, static_argnums=(0, 4), donate_argnums=1)
def _validate(
    task: Task, state: _State, table: PyTree, rows: Rows, patience: int | None
) -> tuple[_State, Array]:
    """Score every replica on its validation rows and keep the best state of each.

    A replica whose patience has run out keeps its best, whatever comes later: what it gives back
    does not depend on how long its neighbours go on.
    """
    validation = task.validation
    assert validation is not None

    def score(model: PyTree, index: Array, total: Array) -> Array:
        # Whole numbers are subtracted: as floats, neighbouring totals would have few digits left.
        weight = jnp.diff(total, prepend=jnp.zeros(1, total.dtype)).astype(jnp.float32) / 2.0**32
        value = lambda i: validation(model, jax.tree.map(lambda leaf: leaf[i[None]], table))[0]  # noqa: E731
        return jnp.sum(weight * jax.lax.map(value, index, batch_size=1024))

    scores = jax.vmap(score)(state.model, rows.index, rows.total)
    running = jnp.ones(scores.shape, bool) if patience is None else state.since_best < patience
    better = running & (scores < state.best_score)
    best = jax.tree.map(
        lambda new, old: jnp.where(better.reshape((-1,) + (1,) * (new.ndim - 1)), new, old),
        state.model,
        state.best,
    )
    state = state._replace(
        best=best,
        best_score=jnp.where(better, scores, state.best_score),
        since_best=jnp.where(better, 0, state.since_best + 1),
    )
    return state, scores


def _all_stopped(states: list[_State], patience: int) -> bool:
    return all(bool(np.all(np.asarray(s.since_best) >= patience)) for s in states)


def _refuse_divergence(values: np.ndarray, step: int, what: str = "loss") -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise TrainingError(
            f"the {what} of replica {bad[0]} is {values[bad[0]]} after {step} steps: lower the "
            "learning rate, or look for extreme values in the table"
        )


def _snapshot(
    states: list[_State], history: History, done: int, fingerprint: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    arrays = named_arrays(concatenated(states))
    arrays |= {f"history/{name}": value for name, value in history.as_arrays().items()}
    return {"fingerprint": fingerprint, "step": done}, arrays


def _restore(
    found: tuple[dict[str, Any], dict[str, np.ndarray]],
    states: list[_State],
    fingerprint: str,
    where: str,
) -> tuple[list[_State], History, int]:
    """The states of a checkpoint, in the groups of ``states``."""
    config, arrays = found
    refuse_foreign(config, fingerprint, where)
    restored = refilled(states, arrays, [len(state.key) for state in states], where)
    prefix = "history/"
    history = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    return restored, History.from_arrays(history), int(config["step"])
