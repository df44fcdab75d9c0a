"""Networks as bases of a location model: all members of all data sets train as one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.blocks import map_rows
from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.recipe import NetworkRecipe
from nkcme.estimators.nkcme.training_stream import TrainingStream
from nkcme.estimators.replica_training import Run
from nkcme.estimators.training_data import Encoded
from nkcme.forward_passes import StackedNetworks
from nkcme.networks import MLP
from nkcme.training.loop import Judge, Objective, Plan, Rows, Task, Trained, train
from nkcme.training.named_arrays import named_arrays, tree_from_model_file
from nkcme.training.optimizers import FALLING, Descent
from nkcme.training.padding import pad_to, padded_width
from nkcme.training.replicas import where_replicas

PyTree = Any


class OtherBases(Protocol):
    """The bases that are fitted beside the networks."""

    def stack_error(self, number: int, *out_of_fold: np.ndarray) -> float:
        """The error of data set ``number`` by these out-of-fold predictions (n_repeats, n, d)."""

    def errors(self, networks: Sequence[np.ndarray]) -> np.ndarray:
        """The errors of the other bases, beside networks with these predictions."""


#: The stages of their training, in checkpoints and progress bars.
LOCATION, REFINED = "location", "location-refined"

_ACTIVATION = "relu"

#: Rows that all members predict together.
_BLOCK_ROWS = 8192


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
        return map_rows(self.models.stacked(), x, block_rows=_BLOCK_ROWS, axis=1)

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
        skeleton = eqx.filter_eval_shape(init, jax.random.key(0), None)
        return cls(tree_from_model_file(skeleton, arrays, leading=(biases[0][0],)))


def fit_networks(
    recipe: NetworkRecipe,
    datasets: Sequence[Encoded],
    folds: Sequence[Folds],
    others: OtherBases,
    run: Run,
    stream: TrainingStream | None = None,
) -> tuple[list[tuple[Networks, np.ndarray]], bool]:
    """Fit one network per member to every data set, until twice the steps gain too little.

    Where they predict y nearly exactly, a shorter phase with a falling learning rate follows: at a
    constant rate their parameters move around the best ones, and there no noise of y hides it.

    Parameters
    ----------
    recipe, datasets, folds
    others : OtherBases
        Networks that will not come below their error, even if each doubling of the steps gains as
        much as the last, are not trained further.
    run : Run
        Its groups keep the state of the two phases.
    stream : TrainingStream, optional
        What they train on instead of the data set, whose rows are then new to all members.

    Returns
    -------
    fits : list of (Networks, array (n_repeats, n, d))
        For each data set the networks and their out-of-fold predictions.
    interrupted : bool
        Whether Ctrl-C ended training early.
    """
    fitting = _Fitting(recipe, datasets, folds, others, stream)
    trained = fitting.train(run.group(LOCATION))
    models, interrupted = trained.models, trained.interrupted
    predicted = fitting.out_of_fold(models)
    errors = fitting.errors(predicted)
    if fitting.may_refine(errors, predicted).any() and not interrupted:
        refined = fitting.refine(models, run.group(REFINED))
        errors_after = fitting.errors(fitting.out_of_fold(refined.models))
        better = (errors_after < errors)[fitting.members]
        models = where_replicas(better, refined.models, models)
        interrupted = refined.interrupted
    return fitting.result(models), interrupted


@dataclass(frozen=True, eq=False)
class _Fitting:
    """The networks of all members of all data sets, which train side by side.

    Their inputs are padded; only the networks of a `result` have the inputs of the table.
    """

    recipe: NetworkRecipe
    datasets: Sequence[Encoded]
    folds: Sequence[Folds]
    others: OtherBases
    stream: TrainingStream | None

    @cached_property
    def members(self) -> np.ndarray:
        """The number of the data set of each member."""
        return np.repeat(np.arange(len(self.datasets)), [f.n_members for f in self.folds])

    def _of_each(self, models: MLP) -> list[MLP]:
        """The models of each data set."""
        return [
            jax.tree.map(lambda leaf: leaf[self.members == i], models)  # noqa: B023
            for i in range(len(self.datasets))
        ]

    def result(self, models: MLP) -> list[tuple[Networks, np.ndarray]]:
        """The networks of each data set with their out-of-fold predictions."""
        each = self._of_each(models.with_inputs(self._n_in))
        return list(zip(map(Networks, each), self.out_of_fold(models), strict=True))

    def errors(self, predicted: Sequence[np.ndarray]) -> np.ndarray:
        """The error of each data set by out-of-fold predictions."""
        return np.array([self.others.stack_error(*one) for one in enumerate(predicted)])

    def out_of_fold(self, models: MLP) -> list[np.ndarray]:
        """The out-of-fold predictions (n_repeats, n, d) of each data set."""
        each = self._of_each(models.with_inputs(self._n_in))
        return [
            _out_of_fold(own.stacked(), data.x, folds)
            for own, data, folds in zip(each, self.datasets, self.folds, strict=True)
        ]

    def may_refine(self, errors: np.ndarray, predicted: Sequence[np.ndarray]) -> np.ndarray:
        """Whether networks are nearly exact, and not far worse than the other bases."""
        reach = self.recipe.refining_reach * self.others.errors(predicted)
        return (errors < self.recipe.precise) & (errors < reach)

    def train(self, run: Run) -> Trained:
        """Train from random parameters at a constant rate, as long as it helps."""
        stopping, members = self.recipe.stopping, self.members

        def judge(models: MLP, done: int, best: np.ndarray) -> np.ndarray:
            predicted = self.out_of_fold(models)
            errors = self.errors(predicted)
            before = np.array([best[members == i][0] for i in range(len(errors))])
            if done < stopping.least:  # training goes on; the other bases may still be fitted
                return errors[members]
            others = self.others.errors(predicted)
            others[self.may_refine(errors, predicted)] = np.inf
            return stopping.judged(errors, before, done, others)[members]

        plan = Plan(
            stopping.most,
            self._batch,
            patience=stopping.patience,
            marks=stopping.marks,
            least_gain=stopping.least_gain_of_mark,
            least_steps=stopping.least,
        )
        fan_in = np.full(len(members), self._n_in, np.float32)
        return self._run(_task(self._training), fan_in, plan, judge, run)

    def refine(self, models: MLP, run: Run) -> Trained:
        """Train these models further, with a rate that falls to zero."""
        n_steps = max(int(self.recipe.refining * self.recipe.stopping.most), 1)
        plan = Plan(n_steps, self._batch, self.recipe.stopping.first)
        constants = models, np.full(len(self.members), n_steps, np.float32)
        recipe = self.recipe
        descent = self._training.descent._replace(
            learning_rate=recipe.refining_rate,
            weight_decay=recipe.refining_decay,
            schedule=FALLING,
        )
        task = _refining_task(self._training._replace(descent=descent))
        return self._run(task, constants, plan, None, run)

    @property
    def _batch(self) -> int:
        return self.recipe.batch(int(np.mean([data.n_rows for data in self.datasets])))

    @property
    def _n_in(self) -> int:
        return self.datasets[0].x.shape[1]

    @property
    def _training(self) -> _Training:
        recipe, n_out = self.recipe, self.datasets[0].y.shape[1]
        descent = Descent(recipe.learning_rate, recipe.weight_decay, recipe.beta2, "constant", 0)
        width = padded_width(self._n_in)
        return _Training(width, n_out, recipe.hidden, descent, recipe.averaging)

    def _run(
        self, task: Task, constants: PyTree, plan: Plan, judge: Judge | None, run: Run
    ) -> Trained:
        width = padded_width(self._n_in)
        n_members = [of_data.n_members for of_data in self.folds]
        options: dict[str, Any] = {
            "judge": judge,
            "checkpoint": run.checkpoint,
            "fingerprint": run.fingerprint,
        }
        keys = _keys([data.seed for data in self.datasets], n_members)
        with run.progress_bar(plan.n_steps) as bar:
            if self.stream is not None:
                with self.stream.minibatches(plan, len(keys), width) as minibatches:
                    return train(
                        task, constants, minibatches, None, plan, keys, **options, progress=bar
                    )
            x = np.concatenate([pad_to(data.x, width, axis=1) for data in self.datasets])
            y = np.concatenate([data.y for data in self.datasets])
            rows = _rows(self.datasets, self.folds)
            return train(task, constants, (x, y), rows, plan, keys, **options)


def _out_of_fold(networks: StackedNetworks, x: np.ndarray, folds: Folds) -> np.ndarray:
    """The predictions (n_repeats, n, d) of rows by the members that did not train on them."""
    return folds.out_of_fold(lambda member, rows: networks.of_member(member, x[rows]))


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


def _keys(seeds: Sequence[int], n_members: Sequence[int]) -> np.ndarray:
    """The data (n, 2) of a random key for each member of each data set."""
    numbered = [(seed, j) for seed, n in zip(seeds, n_members, strict=True) for j in range(n)]
    return np.stack([np.random.SeedSequence(one).generate_state(2) for one in numbered])


class _Training(NamedTuple):
    """What makes a training program; equal ones share it. Inputs are padded to ``n_in``."""

    n_in: int
    n_out: int
    hidden: tuple[int, ...]
    descent: Descent
    averaging: float


@lru_cache(maxsize=64)
def _task(training: _Training) -> Task:
    """Training from random parameters; the constant of a replica is its number of inputs."""
    objective = Objective(_loss, lambda model: model.trainable(), training.descent.optimizer())
    init = partial(_init, training.n_in, training.n_out, training.hidden)
    return Task(init, (objective,), averaging=training.averaging, starts_by_numpy=True)


@lru_cache(maxsize=64)
def _refining_task(training: _Training) -> Task:
    """Further training; the constant of a replica is its model and the number of steps."""
    objective = Objective(
        _precise_loss,
        lambda model: model.trainable(),
        lambda constant: training.descent.optimizer(n_steps=constant[1]),
    )
    return Task(lambda key, constant: constant[0], (objective,), starts_by_numpy=True)


def _loss(model: MLP, batch: tuple[Array, Array], _: Array) -> Array:
    x, y = batch
    return jnp.mean(jnp.sum(jnp.square(jax.vmap(model)(x) - y), axis=1))


def _precise_loss(model: MLP, batch: tuple[Array, Array], key: Array) -> Array:
    """The same without a GPU's ten bits of a float's 24, which nearly exact networks outgrow."""
    with jax.default_matmul_precision("highest"):
        return _loss(model, batch, key)


def _init(n_in: int, n_out: int, hidden: tuple[int, ...], key: Any, fan_in: Any) -> MLP:
    return MLP(n_in, n_out, hidden, activation=_ACTIVATION, head="signed", key=key, fan_in=fan_in)
