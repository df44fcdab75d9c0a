"""Regressors as bases of a location model: our trees, or any regressor of scikit-learn's kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.background_fits import BackgroundFits
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.extra_trees import ExtraTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.gradient_boosting import (
    GradientBoosting,
    GrowingTrees,
    StagedTrees,
    stop_members,
)
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
            _Job(
                _seeded(regressor, data.seed + member),
                *_training_rows(data, of_data, member, output, samples),
                _of_output(data, of_data.held_out_rows(member), output),
            )
            for regressor in regressors
            for data, of_data in self._sets
            for member in range(of_data.n_members)
            for output in range(data.y.shape[1])
        ]
        self._boosted = [job for job in self._jobs if isinstance(job.regressor, GradientBoosting)]
        self._n_threads = _background_threads(available_cores())
        work = [*(job.start for job in self._boosted), *(job.finish for job in self._jobs)]
        self._running = BackgroundFits(lambda do: do(self._paused), work, self._n_threads)

    def first_trees(self, number: int) -> np.ndarray | None:
        """The out-of-fold predictions (n_repeats, n, d) of data set ``number`` by the first boosted
        trees of its members; None without boosting."""
        if not self._boosted:
            return None
        data, folds = self._sets[number]
        n_before = sum(f.n_members * d.y.shape[1] for d, f in self._sets[:number])
        n_outputs = data.y.shape[1]

        def predict(member: int, rows: np.ndarray) -> np.ndarray:
            first = n_before + member * n_outputs
            return np.stack(
                [job.first_predicted() for job in self._boosted[first : first + n_outputs]], axis=-1
            )

        return folds.out_of_fold(predict)

    def pause(self) -> None:
        """Start no more fits, and end those of boosting soon; `collect` finishes them."""
        self._paused.set()

    def collect(self) -> list[list[tuple[TreeEnsemble | Regressors, np.ndarray]]]:
        """For each regressor and data set: the fits and their out-of-fold predictions,
        (n_repeats, n, d). Trees are read when they are first needed: the location model may be
        given up before."""
        self._running.results()
        if self._paused.is_set():
            self._paused.clear()
            rest = [job.finish for job in self._jobs]
            BackgroundFits(lambda do: do(self._paused), rest, self._n_threads).results()
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


class _Job:
    """A regressor to fit to one output, and x, y and weights of the held-out rows."""

    def __init__(
        self,
        regressor: Any,
        x: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        held_out: tuple[np.ndarray, np.ndarray, np.ndarray],
    ):
        self.regressor, self.held_out = regressor, held_out
        self._rows = x, y, weight
        self._growing: GrowingTrees | None = None
        self._started = Event()
        self._error: Exception | None = None
        self._fitted: tuple[Any, np.ndarray] | None = None

    def start(self, paused: Event) -> None:
        """Grow the first trees, whether paused or not."""
        try:
            growing = self.regressor.start(*self._rows, self.held_out)
            growing.grow(self.regressor.recipe.first_trees)
            self._growing = growing
        except Exception as error:
            self._error = error
            raise
        finally:
            self._started.set()

    def first_predicted(self) -> np.ndarray:
        """The predictions of the held-out rows by the first trees, waited for."""
        self._started.wait()
        if self._error is not None:
            raise self._error
        assert self._growing is not None
        return self._growing.predicted_after(self.regressor.recipe.first_trees)

    def finish(self, paused: Event) -> None:
        """Fit the regressor, or grow the other trees, unless paused."""
        if isinstance(self.regressor, GradientBoosting):
            self._started.wait()  # it was submitted before: some thread is at it
            if self._growing is not None:
                self._growing.grow(paused=paused)
        elif self._fitted is None and not paused.is_set():
            self._fitted = self._fit()

    def _fit(self) -> tuple[Any, np.ndarray]:
        x = self.held_out[0]
        if isinstance(self.regressor, ExtraTrees):
            return self.regressor.fit(*self._rows, x)
        rows, y, weight = self._rows
        self.regressor.fit(rows, y, **_weighted(self.regressor, weight))
        return self.regressor, self.regressor.predict(x) if len(x) else np.empty(0)

    def result(self) -> tuple[Any, np.ndarray]:
        """The fitted regressor and its predictions of the held-out rows. Boosted trees are not
        stopped yet."""
        if self._growing is not None:
            staged = self._growing.result()
            return staged, staged.predicted[-1]
        assert self._fitted is not None
        return self._fitted


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
