"""Regressors as bases of a location model: our trees, or any regressor of scikit-learn's kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from sklearn.base import clone

from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.background_fits import BackgroundFits
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.extra_trees import ExtraTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.gradient_boosting import (
    GradientBoosting,
    StagedTrees,
    stop_members,
)
from nkcme.estimators.nkcme.regressor_job import RegressorJob
from nkcme.estimators.nkcme.tree_ensemble import TreeEnsemble
from nkcme.estimators.training_data import Encoded
from nkcme.training.cores import available_cores


@dataclass(frozen=True, eq=False)
class Regressors:
    """Fitted regressors of any kind, one per member and output."""

    models: list[list[Any]]

    @property
    def n_members(self) -> int:
        return len(self.models)

    def members(self, x: np.ndarray) -> np.ndarray:
        """The predictions of each member at encoded inputs, (n_members, n, d)."""
        predicted = [[one.predict(x) for one in of_member] for of_member in self.models]
        return np.moveaxis(np.asarray(predicted), 1, -1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        raise NkcmeError(
            "a model with your own regressor as its center cannot be saved: no safe file "
            'format holds it; use center="mean", which can be saved'
        )


class RegressorFits:
    """Regressors being cross-fitted, each to each data set.

    The fits start at once in other threads: networks can be compiled, and take their first steps,
    meanwhile. Boosting starts with the first trees of all members, which can be looked at before
    the others are grown. With ``samples`` each member trains on rows of its own, and those of the
    data set are new to all of them.
    """

    def __init__(
        self,
        regressors: Sequence[Any],
        datasets: Sequence[Encoded],
        folds: Sequence[Folds],
        samples: Sequence[Encoded] | None = None,
    ):
        self._regressors = regressors
        self._sets = list(zip(datasets, folds, strict=True))
        self._paused = Event()
        self._jobs = [
            RegressorJob(
                number,
                _seeded(regressor, data.seed + member),
                *_training_rows(data, of_data, member, output, samples),
                _of_output(data, of_data.held_out_rows(member), output),
            )
            for regressor in regressors
            for number, (data, of_data) in enumerate(self._sets)
            for member in range(of_data.n_members)
            for output in range(data.y.shape[1])
        ]
        self._boosted = [job for job in self._jobs if isinstance(job.regressor, GradientBoosting)]
        work = [*(job.start for job in self._boosted), *(job.finish for job in self._jobs)]
        self._running = BackgroundFits(
            lambda do: do(self._paused), work, _background_threads(available_cores())
        )

    def predicted_after(self, n_trees: int) -> list[np.ndarray]:
        """For each data set the out-of-fold predictions (n_repeats, n, d) by the first ``n_trees``
        boosted trees of its members, or by all where they are fewer; none without boosting. The
        first trees of all members are waited for."""
        if not self._boosted:
            return []
        return [self._predicted_after(n_trees, number) for number in range(len(self._sets))]

    def _predicted_after(self, n_trees: int, number: int) -> np.ndarray:
        data, folds = self._sets[number]
        own = [job.predicted_after(n_trees) for job in self._boosted if job.number == number]
        n_outputs = data.y.shape[1]
        return folds.out_of_fold(
            lambda member, _: np.stack(own[member * n_outputs :][:n_outputs], axis=-1)
        )

    def pause(self) -> None:
        """Start no more fits, and end those of boosting soon; `grow` and `collect` go on."""
        self._paused.set()

    def grow(self, numbers: Sequence[int], n_trees: int) -> None:
        """Grow the boosted trees of the data sets with these numbers up to ``n_trees``."""
        self._running.results()
        work = [partial(job.grow, n_trees) for job in self._boosted if job.number in numbers]
        BackgroundFits(lambda do: do(), work, available_cores()).results()

    def end(self, numbers: Sequence[int], n_trees: int) -> None:
        """Keep only the first ``n_trees`` boosted trees of these data sets, and grow no more."""
        for job in self._boosted:
            if job.number in numbers:
                job.most_trees = n_trees

    def collect(self) -> list[list[tuple[TreeEnsemble | Regressors, np.ndarray]]]:
        """For each regressor and data set: the fits and their out-of-fold predictions,
        (n_repeats, n, d). Trees are read when they are first needed: the location model may be
        given up before."""
        self._running.results()
        if self._paused.is_set():
            self._paused.clear()
            rest = [job.finish for job in self._jobs]
            BackgroundFits(lambda do: do(self._paused), rest, available_cores()).results()
        results = iter([job.result() for job in self._jobs])
        return [
            [_collected(regressor, results, data, of_data) for data, of_data in self._sets]
            for regressor in self._regressors
        ]

    def abandon(self) -> None:
        """Start no more fits, and wait for those that are running."""
        self._paused.set()
        self._running.abandon()


def _background_threads(n_cores: int) -> int:
    """The threads that fit regressors. Of many cores two are left to compile and drive networks; of
    few, none: networks wait for the regressors before they are first scored."""
    return max(n_cores - 2, min(n_cores, 2))


def _training_rows(
    data: Encoded, folds: Folds, member: int, output: int, samples: Sequence[Encoded] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if samples is None:
        return _of_output(data, folds.training_rows(member), output)
    own = samples[member]
    return own.x, own.y[:, output], own.weight


def _of_output(
    data: Encoded, rows: np.ndarray, output: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return data.x[rows], data.y[rows, output], data.weight[rows]


def _collected(
    regressor: Any, results: Iterator[tuple[Any, np.ndarray]], data: Encoded, folds: Folds
) -> tuple[TreeEnsemble | Regressors, np.ndarray]:
    n_outputs = data.y.shape[1]
    fitted = [[next(results) for _ in range(n_outputs)] for _ in range(folds.n_members)]
    by_output = [
        _ended([of_member[j] for of_member in fitted], data, folds, j) for j in range(n_outputs)
    ]
    models = [list(of_member) for of_member in zip(*(m for m, _ in by_output), strict=True)]
    predicted = np.stack([of_output for _, of_output in by_output], axis=-1)
    if isinstance(regressor, GradientBoosting | ExtraTrees):
        return TreeEnsemble.later(folds.n_members, partial(_trees_of, models)), predicted
    return Regressors(models), predicted


def _trees_of(models: Sequence[Sequence[Callable[[], BoostedTrees]]]) -> list[list[BoostedTrees]]:
    """The trees of each member and output, which threads read: the text of large trees takes
    LightGBM as long to write as they take to grow."""
    each = [read for of_member in models for read in of_member]
    trees = BackgroundFits(lambda read: read(), each, available_cores()).results()
    n_outputs = len(models[0])
    return [trees[i : i + n_outputs] for i in range(0, len(trees), n_outputs)]


def _ended(
    members: Sequence[tuple[Any, np.ndarray]], data: Encoded, folds: Folds, output: int
) -> tuple[list[Any], np.ndarray]:
    """The members for one output, and their out-of-fold predictions (n_repeats, n)."""
    models = [model for model, _ in members]
    if isinstance(models[0], StagedTrees):
        return stop_members(models, data.y[:, output], data.weight, folds)
    return models, folds.out_of_fold(lambda member, _: members[member][1])


def _seeded(regressor: Any, seed: int) -> Any:
    if isinstance(regressor, GradientBoosting | ExtraTrees):
        return replace(regressor, seed=seed)
    one = clone(regressor)
    if "random_state" in one.get_params() and one.get_params()["random_state"] is None:
        one.set_params(random_state=seed)
    return one
