"""Networks as bases of a location model: all members of all data sets train as one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.folds import Folds, HeldOut
from nkcme.estimators.nkcme.recipe import NetworkRecipe
from nkcme.estimators.replica_training import Run, seed_keys
from nkcme.estimators.training_data import Encoded
from nkcme.networks import MLP
from nkcme.training.loop import Judge, Objective, Plan, Rows, Task, Trained, train
from nkcme.training.named_arrays import named_arrays, tree_from_model_file
from nkcme.training.optimizers import Descent
from nkcme.training.padding import pad_rows
from nkcme.training.replicas import where_replicas

PyTree = Any

#: ``error(number, out_of_fold)`` returns the error of data set ``number`` by these out-of-fold
#: predictions (n_repeats, n, d).
Error = Callable[[int, np.ndarray], float]

_ACTIVATION = "relu"


class Networks(NamedTuple):
    """Networks that predict the mean, stacked along a leading axis of members."""

    models: MLP

    @property
    def n_members(self) -> int:
        return len(jax.tree.leaves(self.models)[0])

    def member(self, number: int) -> Networks:
        """One member alone."""
        return Networks(jax.tree.map(lambda leaf: leaf[number : number + 1], self.models))

    def members(self, x: np.ndarray) -> np.ndarray:
        """The predictions of each member at encoded inputs, (n_members, n, d)."""
        return np.asarray(_each_member(self.models, pad_rows(x)))[:, : len(x)]

    def to_arrays(self) -> dict[str, np.ndarray]:
        return named_arrays(self.models)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> Networks:
        """From an untrusted file; the shapes of its arrays give the widths and the members."""
        biases = [v.shape for k, v in sorted(arrays.items()) if k.endswith("bias")]
        if not biases or not all(len(shape) == 2 for shape in biases):
            raise ModelFileError("the networks of the location model in the file are not complete")
        hidden = tuple(width for _, width in biases[:-1])
        init = partial(_init, n_in, n_out, hidden)
        skeleton = eqx.filter_eval_shape(init, jax.random.key(0), ())
        return cls(tree_from_model_file(skeleton, arrays, leading=(biases[0][0],)))


def fit_networks(
    recipe: NetworkRecipe,
    datasets: Sequence[Encoded],
    folds: Sequence[Folds],
    error: Error,
    to_beat: Callable[[int], float],
    run: Run,
) -> tuple[list[tuple[Networks, np.ndarray]], bool]:
    """Fit one network per member to every data set, until twice the steps gain too little.

    Where they predict y nearly exactly, a shorter phase with a falling learning rate follows: at a
    constant rate their parameters move around the best ones, and there no noise of y hides it.

    Parameters
    ----------
    recipe, datasets, folds
    error : callable
        ``error(number, out_of_fold)`` is the error of data set ``number`` by these predictions.
    to_beat : callable
        ``to_beat(number)`` is the error of the other bases. Networks that will not come below it,
        even if each doubling of the steps gains as much as the last, are not trained further.
    run : Run
        Its groups keep the state of the two phases.

    Returns
    -------
    fits : list of (Networks, array (n_repeats, n, d))
        For each data set the networks and their out-of-fold predictions.
    interrupted : bool
        Whether Ctrl-C ended training early.
    """
    fitting = _Fitting(recipe, datasets, folds, error)
    trained = fitting.train(to_beat, run.group("location"))
    models, interrupted = trained.models, trained.interrupted
    errors = fitting.errors(models)
    precise = errors < [min(recipe.precise, to_beat(i)) for i in range(len(datasets))]
    if precise.any() and not interrupted:
        refined = fitting.refine(models, trained.n_steps, run.group("location-refined"))
        better = (fitting.errors(refined.models) < errors)[fitting.members]
        models = where_replicas(jnp.asarray(better), refined.models, models)
        interrupted = refined.interrupted
    return fitting.result(models), interrupted


@dataclass(frozen=True, eq=False)
class _Fitting:
    """The networks of all members of all data sets, which train side by side."""

    recipe: NetworkRecipe
    datasets: Sequence[Encoded]
    folds: Sequence[Folds]
    error: Error

    @cached_property
    def members(self) -> np.ndarray:
        """The number of the data set of each member."""
        return np.repeat(np.arange(len(self.datasets)), [f.n_members for f in self.folds])

    @cached_property
    def _held_out(self) -> list[HeldOut]:
        pairs = zip(self.datasets, self.folds, strict=True)
        return [HeldOut.of(data.x, of_data) for data, of_data in pairs]

    def _of_each(self, models: MLP) -> list[MLP]:
        """The models of each data set."""
        return [
            jax.tree.map(lambda leaf: leaf[self.members == i], models)  # noqa: B023
            for i in range(len(self.datasets))
        ]

    def result(self, models: MLP) -> list[tuple[Networks, np.ndarray]]:
        """The networks of each data set with their out-of-fold predictions."""
        return [
            (Networks(own), rows.gather(_each_own(own, rows.x)))
            for own, rows in zip(self._of_each(models), self._held_out, strict=True)
        ]

    def errors(self, models: MLP) -> np.ndarray:
        """The error of each data set."""
        predicted = (out_of_fold for _, out_of_fold in self.result(models))
        return np.array([self.error(i, own) for i, own in enumerate(predicted)])

    def train(self, to_beat: Callable[[int], float], run: Run) -> Trained:
        """Train from random parameters at a constant rate, as long as it helps."""
        stopping, members = self.recipe.stopping, self.members

        def judge(models: MLP, done: int, best: np.ndarray) -> np.ndarray:
            errors = self.errors(models)
            before = np.array([best[members == i][0] for i in range(len(errors))])
            if not np.isfinite(before).all():  # the other bases may still be fitted
                return errors[members]
            others = np.array([to_beat(i) for i in range(len(errors))])
            return stopping.judged(errors, before, done, others)[members]

        marks, least_gain = stopping.marks, stopping.least_gain
        plan = Plan(stopping.most, self._batch, patience=1, marks=marks, least_gain=least_gain)
        descent = self._descent("constant", 0)
        task = _task(self._training(descent, self.recipe.averaging))
        return self._run(task, (), plan, judge, run)

    def refine(self, models: MLP, n_steps: int, run: Run) -> Trained:
        """Train these models further, with a rate that falls to zero."""
        n_steps = max(int(self.recipe.refining * n_steps), 1)
        task = _task(self._training(self._descent("cosine", n_steps), 0.0))
        task = task._replace(init=lambda key, model: model)
        return self._run(task, models, Plan(n_steps, self._batch), None, run)

    @property
    def _batch(self) -> int:
        return self.recipe.batch(int(np.mean([data.n_rows for data in self.datasets])))

    def _descent(self, schedule: str, n_steps: int) -> Descent:
        recipe = self.recipe
        return Descent(recipe.learning_rate, recipe.weight_decay, recipe.beta2, schedule, n_steps)

    def _training(self, descent: Descent, averaging: float) -> _Training:
        n_in, n_out = self.datasets[0].x.shape[1], self.datasets[0].y.shape[1]
        return _Training(n_in, n_out, self.recipe.hidden, descent, averaging)

    def _run(
        self, task: Task, constants: PyTree, plan: Plan, judge: Judge | None, run: Run
    ) -> Trained:
        columns = (np.concatenate([getattr(d, name) for d in self.datasets]) for name in "xy")
        n_members = [of_data.n_members for of_data in self.folds]
        with run.progress_bar(plan.n_steps) as bar:
            return train(
                task,
                constants,
                tuple(columns),
                _rows(self.datasets, self.folds),
                plan,
                _keys([data.seed for data in self.datasets], n_members),
                judge=judge,
                checkpoint=run.checkpoint,
                fingerprint=run.fingerprint,
                progress=bar,
            )


def _rows(datasets: Sequence[Encoded], folds: Sequence[Folds]) -> Rows:
    """The rows that each member of each data set trains on, in the concatenated table."""
    starts = np.cumsum([0] + [len(data.x) for data in datasets[:-1]])
    rows, weights = [], []
    for data, of_data, start in zip(datasets, folds, starts, strict=True):
        for member in range(of_data.n_members):
            chosen = of_data.training_rows(member)
            rows.append(chosen + start)
            weights.append(data.weight[chosen])
    return Rows.of(rows, weights)


_member_keys = jax.jit(jax.vmap(jax.random.fold_in))


def _keys(seeds: Sequence[int], n_members: Sequence[int]) -> Array:
    """A key for each member of each data set."""
    of_data = seed_keys(np.repeat(np.array(seeds, np.uint32), n_members))
    return _member_keys(of_data, np.concatenate([np.arange(n) for n in n_members]))


class _Training(NamedTuple):
    """What makes a training program; equal ones share it."""

    n_in: int
    n_out: int
    hidden: tuple[int, ...]
    descent: Descent
    averaging: float


@lru_cache(maxsize=64)
def _task(training: _Training) -> Task:
    def loss(model: MLP, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        return jnp.mean(jnp.sum(jnp.square(jax.vmap(model)(x) - y), axis=1))

    objective = Objective(loss, lambda model: model.trainable(), training.descent.optimizer())
    init = partial(_init, training.n_in, training.n_out, training.hidden)
    return Task(init=init, objectives=(objective,), averaging=training.averaging)


def _init(n_in: int, n_out: int, hidden: tuple[int, ...], key: Array, _: PyTree) -> MLP:
    return MLP(n_in, n_out, hidden, activation=_ACTIVATION, head="signed", key=key)


@jax.jit
def _each_member(models: MLP, x: Array) -> Array:
    with jax.default_matmul_precision("highest"):  # a GPU's ten bits are enough to train only
        return jax.vmap(lambda model: jax.vmap(model)(x))(models)


@jax.jit
def _each_own(models: MLP, x: Array) -> Array:
    """The predictions (n_members, n, d) of each member at rows of its own, (n_members, n, p)."""
    with jax.default_matmul_precision("highest"):
        return jax.vmap(lambda model, rows: jax.vmap(model)(rows))(models, x)
