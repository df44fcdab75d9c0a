"""Training replicas of a model side by side: which rows each draws, where state is kept.

Between an estimator and `nkcme.training.loop.train`: rows held out for validation, the concatenated
table of several data sets, checkpoints and progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from nkcme.errors import NkcmeError
from nkcme.estimators.training_data import Encoded
from nkcme.training.checkpoint_groups import CheckpointGroups
from nkcme.training.loop import Checkpoint, Judge, Plan, Progress, Rows, Task, Trained, train
from nkcme.training.padding import pad_to
from nkcme.training.progress import StagesBar, TrainingBar, wants_progress
from nkcme.training.streamed_minibatches import StreamedMinibatches

PyTree = Any


@dataclass(frozen=True)
class Run:
    """Where a fit keeps its state and shows its progress."""

    verbose: bool | str
    checkpoint: Checkpoint | None = None
    fingerprint: str = ""
    groups: CheckpointGroups | None = None
    stage: str = ""
    bar: StagesBar | None = None

    def in_groups(self) -> Run:
        """The same run, for training that has several stages in one checkpoint file."""
        if self.checkpoint is None:
            return self
        return replace(self, groups=CheckpointGroups(self.checkpoint))

    def group(self, name: str) -> Run:
        """One stage of the run."""
        if self.groups is None:
            return replace(self, stage=name)
        return replace(self, stage=name, checkpoint=self.groups.group(name))

    @contextmanager
    def with_stages(self, shares: dict[str, float]) -> Iterator[Run]:
        """The same run with one progress bar for all stages, where one is wanted; ``shares`` says
        about which share of the work each is."""
        if not wants_progress(self.verbose):
            yield self
            return
        with StagesBar(shares) as bar:
            yield replace(self, bar=bar)

    @contextmanager
    def progress_bar(self, n_steps: int) -> Iterator[Progress | None]:
        """A progress bar while the context lasts, where one is wanted."""
        if not wants_progress(self.verbose):
            yield None
            return
        if self.bar is not None:
            yield self.bar.stage(self.stage, n_steps)
            return
        with TrainingBar(n_steps) as bar:
            yield bar


class TrainingOptions(NamedTuple):
    """How long to train, on which minibatches, and when to stop."""

    n_steps: Callable[[int], int]  # by the number of rows
    batch_size: int
    validation_fraction: float
    patience: int | None
    marks: tuple[int, ...] = ()  # steps after which a judge scores all replicas
    least_gain: float = 0.0  # the share by which its score must improve
    judge_patience: int = 1  # scores of the judge in a row that may improve by less


class Program(NamedTuple):
    """What trains the replicas of tables of some size."""

    task: Task
    width: int | None = None  # columns that inputs are padded to with zeros; None: no padding
    values: PyTree = None  # numbers that each replica takes beside the constants of its data set


class Stream(Protocol):
    """Rows that need not fit into memory."""

    def minibatches(self, plan: Plan, n_replicas: int, width: int) -> StreamedMinibatches:
        """Minibatches of x, padded to ``width`` columns, and y, for a run by this plan."""


class Replica(NamedTuple):
    """One of the models that train side by side."""

    data: int  # the number of its data set
    rows: np.ndarray | None  # the rows it may draw; None: all
    seed: int


class Fitted(NamedTuple):
    """One replica after training; its arrays are NumPy's."""

    model: PyTree
    history: dict[str, np.ndarray]
    n_steps: int
    interrupted: bool

    @classmethod
    def of(cls, trained: Trained, replica: int) -> Fitted:
        """Replica number ``replica`` of a training run."""
        history = trained.history.as_arrays()
        own = {name: v if name == "step" else v[:, replica] for name, v in history.items()}
        model = jax.tree.map(lambda leaf: leaf[replica], trained.models)
        return cls(model, own, trained.n_steps, trained.interrupted)


def train_replicas(
    datasets: Sequence[Encoded],
    replicas: Sequence[Replica],
    program_for: Callable[[int, int, int, int], Program],
    constants: Sequence[PyTree],
    options: TrainingOptions,
    run: Run,
    *,
    judge: Judge | None = None,
    more_columns: Callable[[np.ndarray, int], tuple[np.ndarray, ...]] = lambda x, seed: (),
    stream: Stream | None = None,
) -> list[Fitted]:
    """Train every replica on its data set, all as one compiled program.

    Parameters
    ----------
    datasets : sequence of Encoded
        All with the same numbers of inputs and outputs.
    replicas : sequence of Replica
    program_for : callable
        ``program_for(n_in, n_out, n_steps, n_rows)`` gives what to train.
    constants : sequence of pytrees
        What the model takes from each data set before training.
    options : TrainingOptions
    run : Run
    judge : callable or None
        Scores the stacked models of all replicas at the marks of the options; see `train`.
    more_columns : callable
        ``more_columns(x, seed)`` gives columns of the training table beside x and y.
    stream : Stream, optional
        What all replicas train on, instead of the rows of their data sets.
    """
    tables = [_Table.of(data, options.validation_fraction) for data in datasets]
    n_rows = int(np.mean([t.n_rows for t in tables]))
    plan = Plan(options.n_steps(n_rows), options.batch_size, patience=options.patience)
    if judge is not None:
        plan = Plan(
            options.marks[-1],
            options.batch_size,
            patience=options.judge_patience,
            marks=options.marks,
            least_gain=options.least_gain,
        )
    n_in, n_out = datasets[0].x.shape[1], datasets[0].y.shape[1]
    starts = np.cumsum([0] + [len(t.x) for t in tables[:-1]])
    drawn = [tables[r.data].drawn_by(r) for r in replicas]
    rows = Rows.of(
        [rows + starts[r.data] for r, (rows, _) in zip(replicas, drawn, strict=True)],
        [weight for _, weight in drawn],
    )
    held_out = None
    if options.patience is not None and not len(tables[0].held_out):
        raise NkcmeError(
            "patience needs rows held out: give validation_fraction above 0, or X_val and y_val"
        )
    if len(tables[0].held_out):
        held_out = Rows.of(
            [tables[r.data].held_out + starts[r.data] for r in replicas],
            [tables[r.data].held_out_weight for r in replicas],
        )
    program = program_for(n_in, n_out, plan.n_steps, n_rows)
    width = program.width or n_in
    of_replicas = _of_replicas([constants[r.data] for r in replicas], program.values)
    keys = seed_keys(np.array([replica.seed for replica in replicas], np.uint32))
    kept: dict[str, Any] = {
        "judge": judge,
        "checkpoint": run.checkpoint,
        "fingerprint": run.fingerprint,
    }
    with run.progress_bar(plan.n_steps) as bar:
        kept["progress"] = bar
        if stream is not None:
            with stream.minibatches(plan, len(replicas), width) as minibatches:
                trained = train(program.task, of_replicas, minibatches, None, plan, keys, **kept)
        else:
            columns = [
                (pad_to(t.x, width, axis=1), t.y, *more_columns(t.x, d.seed))
                for t, d in zip(tables, datasets, strict=True)
            ]
            table = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
            kept["validation_rows"] = held_out
            trained = train(program.task, of_replicas, table, rows, plan, keys, **kept)
    return [Fitted.of(trained, i) for i in range(len(replicas))]


class _Table(NamedTuple):
    """A data set laid out for training: rows to draw from, rows held out."""

    x: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    held_out: np.ndarray
    held_out_weight: np.ndarray
    n_rows: int  # to draw from, repetitions counted

    @classmethod
    def of(cls, data: Encoded, validation_fraction: float) -> _Table:
        n, weight = len(data.x), data.weight
        if data.x_validation is not None and data.y_validation is not None:
            x = np.concatenate([data.x, data.x_validation])
            y = np.concatenate([data.y, data.y_validation])
            held_out = np.arange(n, len(x))
            return cls(x, y, np.arange(n), weight, held_out, np.ones(len(x) - n), data.n_rows)
        order = np.random.default_rng(data.seed).permutation(n)
        n_held_out = min(int(np.ceil(validation_fraction * n)), n - 1)
        rows, held_out = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
        n_rows = max(round(data.n_rows * weight[rows].sum() / weight.sum()), 1)
        return cls(data.x, data.y, rows, weight[rows], held_out, weight[held_out], n_rows)

    def drawn_by(self, replica: Replica) -> tuple[np.ndarray, np.ndarray]:
        """The rows that a replica draws from, and their weights."""
        if replica.rows is None:
            return self.rows, self.weight
        among = np.isin(self.rows, replica.rows)
        return self.rows[among], self.weight[among]


def _of_replicas(constants: Sequence[PyTree], values: PyTree) -> PyTree:
    """The constants of each replica, stacked, and the values that all of them take."""
    # By NumPy: for hundreds of arguments JAX would compile a program to stack them.
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *constants)
    if values is None:
        return stacked
    return stacked, jax.tree.map(lambda v: np.full(len(constants), v, np.float32), values)


def seed_keys(seeds: np.ndarray) -> np.ndarray:
    """The data (n, 2) of the random key of each seed (n,), as `jax.random.key` makes it."""
    return np.stack([np.zeros(len(seeds), np.uint32), seeds.astype(np.uint32)], axis=1)
