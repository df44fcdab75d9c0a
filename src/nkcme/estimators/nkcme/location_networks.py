"""Networks as bases of a location model: all members of all data sets train as one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.folds import Folds, HeldOut
from nkcme.estimators.nkcme.recipe import NetworkRecipe
from nkcme.estimators.replica_training import Run
from nkcme.estimators.training_data import Encoded
from nkcme.networks import MLP
from nkcme.training.loop import Objective, Plan, Rows, Task, train
from nkcme.training.named_arrays import named_arrays, tree_from_model_file
from nkcme.training.optimizers import Descent
from nkcme.training.padding import map_blocks, pad_to, padded_width

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
        width = padded_width(x.shape[1])
        compute = partial(_each_member, self.models.with_inputs(width))
        return map_blocks(compute, pad_to(x, width, axis=1), out_axis=1)

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
    error: Error,
    to_beat: Callable[[int], float],
    run: Run,
) -> tuple[list[tuple[Networks, np.ndarray]], bool]:
    """Fit one network per member to every data set, until twice the steps gain too little.

    Parameters
    ----------
    recipe, datasets, folds, run
    error : callable
        ``error(number, out_of_fold)`` is the error of data set ``number`` by these predictions.
    to_beat : callable
        ``to_beat(number)`` is the error of the other bases. Networks that will not come below it,
        even if each doubling of the steps gains as much as the last, are not trained further.

    Returns
    -------
    fits : list of (Networks, array (n_repeats, n, d))
        For each data set the networks and their out-of-fold predictions.
    interrupted : bool
        Whether Ctrl-C ended training early.
    """
    n_rows = int(np.mean([data.n_rows for data in datasets]))
    n_in = datasets[0].x.shape[1]
    width = padded_width(n_in)
    training = _Training(
        width,
        datasets[0].y.shape[1],
        recipe.hidden,
        Descent(recipe.learning_rate, recipe.weight_decay, recipe.beta2, "constant", 0),
        recipe.averaging,
    )
    members = np.repeat(np.arange(len(datasets)), [of_data.n_members for of_data in folds])
    held_out = [HeldOut.of(data.x, of_data) for data, of_data in zip(datasets, folds, strict=True)]

    def out_of_fold(models: MLP) -> list[np.ndarray]:
        """The out-of-fold predictions of each data set by the models of all members."""
        each = [jax.tree.map(lambda leaf: leaf[members == i], models) for i in range(len(datasets))]  # noqa: B023
        return [rows.predict(_each_own, own) for own, rows in zip(each, held_out, strict=True)]

    stopping = recipe.stopping

    def judge(models: MLP, done: int, best: np.ndarray) -> np.ndarray:
        errors = np.array([error(i, own) for i, own in enumerate(out_of_fold(models))])
        if not np.isfinite(best).all():
            return errors[members]
        # At best the error falls by the same factor whenever the steps double.
        before = np.array([best[members == i][0] for i in range(len(datasets))])
        expected = errors * (errors / before) ** np.log2(stopping.most / done)
        useless = expected > [to_beat(i) for i in range(len(datasets))]
        return np.where(useless, np.maximum(errors, before), errors)[members]

    plan = Plan(
        stopping.most,
        recipe.batch(n_rows),
        patience=1,
        marks=stopping.marks,
        least_gain=stopping.least_gain,
    )
    with run.progress_bar(plan.n_steps) as bar:
        trained = train(
            _task(training),
            np.full(len(members), n_in, np.float32),
            (
                np.concatenate([pad_to(data.x, width, axis=1) for data in datasets]),
                np.concatenate([data.y for data in datasets]),
            ),
            _rows(datasets, folds),
            plan,
            _keys([data.seed for data in datasets], [of_data.n_members for of_data in folds]),
            judge=judge,
            checkpoint=run.checkpoint,
            fingerprint=run.fingerprint,
            progress=bar,
        )
    models = trained.models.with_inputs(n_in)
    networks = [
        Networks(jax.tree.map(lambda leaf: jax.device_put(leaf[members == i]), models))  # noqa: B023
        for i in range(len(datasets))
    ]
    return list(zip(networks, out_of_fold(trained.models), strict=True)), trained.interrupted


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
    def loss(model: MLP, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        return jnp.mean(jnp.sum(jnp.square(jax.vmap(model)(x) - y), axis=1))

    objective = Objective(loss, lambda model: model.trainable(), training.descent.optimizer())
    init = partial(_init, training.n_in, training.n_out, training.hidden)
    return Task(init=init, objectives=(objective,), averaging=training.averaging)


def _init(n_in: int, n_out: int, hidden: tuple[int, ...], key: Array, fan_in: Array | None) -> MLP:
    return MLP(n_in, n_out, hidden, activation=_ACTIVATION, head="signed", key=key, fan_in=fan_in)


@jax.jit
def _each_member(models: MLP, x: Array) -> Array:
    with jax.default_matmul_precision("highest"):  # a GPU's ten bits are enough to train only
        return jax.vmap(lambda model: jax.vmap(model)(x))(models)


@jax.jit
def _each_own(models: MLP, x: Array) -> Array:
    """The predictions (n_members, n, d) of each member at rows of its own, (n_members, n, p)."""
    with jax.default_matmul_precision("highest"):
        return jax.vmap(lambda model, rows: jax.vmap(model)(rows))(models, x)
