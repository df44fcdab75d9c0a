"""Regressors as bases of a location model: gradient boosting, or any of scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.recipe import BoostingRecipe
from nkcme.estimators.training_data import Encoded
from nkcme.training.replicas import available_cores

#: Rows to be fitted in all, below which other processes are not worth their start.
_WORTH_PROCESSES = 50_000


def boosting(recipe: BoostingRecipe, n_rows: int) -> HistGradientBoostingRegressor:
    """Gradient boosting for a table of ``n_rows``."""
    return HistGradientBoostingRegressor(
        max_iter=recipe.n_trees,
        learning_rate=recipe.learning_rate,
        max_leaf_nodes=recipe.n_leaves(n_rows),
        min_samples_leaf=recipe.min_samples_leaf,
        l2_regularization=recipe.l2,
        max_features=recipe.max_features,
    )


class Regressors(NamedTuple):
    """Fitted regressors, one per member and output."""

    models: list[list[Any]]

    @property
    def n_members(self) -> int:
        return len(self.models)

    def members(self, x: np.ndarray) -> np.ndarray:
        """The predictions of each member at encoded inputs, (n_members, n, d)."""
        predicted = [[one.predict(x) for one in of_member] for of_member in self.models]
        return np.moveaxis(np.asarray(predicted), 1, -1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        if not all(isinstance(one, BoostedTrees) for group in self.models for one in group):
            raise NkcmeError(
                "a model with your own regressor as its center cannot be saved: no safe file "
                'format holds it; use center="mean", which can be saved'
            )
        return {
            f"{member}/{output}/{name}": value
            for member, of_member in enumerate(self.models)
            for output, one in enumerate(of_member)
            for name, value in one.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> Regressors:
        """From an untrusted file."""
        trees: dict[tuple[str, str], dict[str, np.ndarray]] = {}
        for name, value in arrays.items():
            member, _, rest = name.partition("/")
            output, _, key = rest.partition("/")
            trees.setdefault((member, output), {})[key] = value
        n_members = len(trees) // max(n_out, 1)
        expected = {(str(member), str(j)) for member in range(n_members) for j in range(n_out)}
        if not trees or set(trees) != expected:
            raise ModelFileError("the trees of the location model in the file are not complete")
        return cls(
            [
                [BoostedTrees.from_arrays(trees[str(member), str(j)], n_in) for j in range(n_out)]
                for member in range(n_members)
            ]
        )


class RegressorFits:
    """Regressors being cross-fitted, each to each data set.

    With cores to spare, the fits start at once in other processes, and the caller may do something
    else meanwhile. Otherwise they run when they are collected, one after the other and each with
    one thread, because the threads of gradient boosting wait for each other.
    """

    def __init__(
        self, regressors: Sequence[Any], datasets: Sequence[Encoded], folds: Sequence[Folds]
    ):
        self._n_regressors = len(regressors)
        self._sets = list(zip(datasets, folds, strict=True))
        self._wanted = True
        jobs = [
            _Job(
                _seeded(regressor, data.seed + member),
                data.x[rows := of_data.training_rows(member)],
                data.y[rows, output],
                data.weight[rows],
                data.x[of_data.held_out_rows(member)],
            )
            for regressor in regressors
            for data, of_data in self._sets
            for member in range(of_data.n_members)
            for output in range(data.y.shape[1])
        ]
        while_wanted = takewhile(lambda _: self._wanted, jobs)
        n_rows = sum(len(job.x) for job in jobs)
        # Two cores are left to compile and drive the networks that train meanwhile.
        n_spare = available_cores() - 2
        self._results: Iterator[tuple[Any, np.ndarray]]
        if n_spare >= 2 and n_rows >= _WORTH_PROCESSES:
            in_processes = Parallel(n_spare, return_as="generator")
            self._results = in_processes(delayed(_fit)(job) for job in while_wanted)
        else:
            self._results = map(_fit, while_wanted)

    def collect(self) -> list[list[tuple[Regressors, np.ndarray]]]:
        """For each regressor and data set: the fits and their out-of-fold predictions,
        (n_repeats, n, d)."""
        return [
            [_collected(self._results, data, of_data) for data, of_data in self._sets]
            for _ in range(self._n_regressors)
        ]

    def abandon(self) -> None:
        """Start no more fits, and wait for those that are running."""
        self._wanted = False
        for _ in self._results:
            pass


class _Job(NamedTuple):
    """A regressor to fit to one output, and the held-out rows to predict."""

    regressor: Any
    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    held_out: np.ndarray


def _fit(job: _Job) -> tuple[Any, np.ndarray]:
    with threadpool_limits(1):
        job.regressor.fit(job.x, job.y, **_weighted(job.regressor, job.weight))
        predicted = job.regressor.predict(job.held_out) if len(job.held_out) else np.empty(0)
    is_boosting = type(job.regressor) is HistGradientBoostingRegressor
    return BoostedTrees.of(job.regressor) if is_boosting else job.regressor, predicted


def _collected(
    results: Iterator[tuple[Any, np.ndarray]], data: Encoded, folds: Folds
) -> tuple[Regressors, np.ndarray]:
    models: list[list[Any]] = []
    predicted: list[np.ndarray] = []
    for _ in range(folds.n_members):
        of_member = [next(results) for _ in range(data.y.shape[1])]
        models.append([model for model, _ in of_member])
        predicted.append(np.stack([one for _, one in of_member], axis=1))
    return Regressors(models), folds.out_of_fold(lambda member, _: predicted[member])


def _seeded(regressor: Any, seed: int) -> Any:
    one = clone(regressor)
    if "random_state" in one.get_params() and one.get_params()["random_state"] is None:
        one.set_params(random_state=seed)
    return one


def _weighted(model: Any, weight: np.ndarray) -> dict[str, np.ndarray]:
    """The sample weights as arguments of `fit`, where they differ."""
    if np.ptp(weight) == 0:
        return {}
    if not has_fit_parameter(model, "sample_weight"):
        raise NkcmeError(
            f"{type(model).__name__} as center does not take sample_weight; fit without weights, "
            "or use another regressor"
        )
    return {"sample_weight": weight}
