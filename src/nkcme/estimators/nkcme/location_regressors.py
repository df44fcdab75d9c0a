"""Regressors as bases of a centre, cross-fitted: gradient boosting, or any of scikit-learn's."""

from __future__ import annotations

import os
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
from nkcme.estimators.base import Encoded
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.folds import Parts

#: Rows to be fitted in all, below which other processes are not worth their start.
_WORTH_PROCESSES = 50_000


def default_boosting(n_rows: int) -> HistGradientBoostingRegressor:
    """Gradient boosting for so many rows: larger trees where there are more of them. Half of the
    inputs are looked at in each split, which makes members differ and their mean better."""
    return HistGradientBoostingRegressor(
        max_iter=400,
        learning_rate=0.1,
        max_leaf_nodes=int(np.clip(n_rows // 100, 8, 127)),
        min_samples_leaf=5,
        l2_regularization=1.0,
        max_features=0.5,
    )


class Regressors(NamedTuple):
    """Fitted regressors, one a member and output."""

    models: list[list[Any]]

    @property
    def n_members(self) -> int:
        return len(self.models)

    def members(self, x: np.ndarray) -> np.ndarray:
        """What each says at encoded inputs, (n_members, n, d)."""
        said = [[one.predict(x) for one in of_member] for of_member in self.models]
        return np.moveaxis(np.asarray(said), 1, -1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        if not all(isinstance(one, BoostedTrees) for group in self.models for one in group):
            raise NkcmeError(
                "a model centred on a regressor of yours cannot be saved: there is no file for it "
                'that is safe to open; with center="mean" it can'
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
            raise ModelFileError("the centre's trees in the model file are not complete")
        return cls(
            [
                [BoostedTrees.from_arrays(trees[str(member), str(j)], n_in) for j in range(n_out)]
                for member in range(n_members)
            ]
        )


class Fitting:
    """Regressors that are being cross-fitted, each on each data set.

    Where there are cores to spare other processes begin at once, and the caller may do something
    else meanwhile. Otherwise all is done when it is asked for, one fit after the other, each with
    one thread: boosting's threads wait for each other.
    """

    def __init__(
        self, regressors: Sequence[Any], datasets: Sequence[Encoded], parts: Sequence[Parts]
    ):
        self._n_regressors = len(regressors)
        self._sets = list(zip(datasets, parts, strict=True))
        self._wanted = True
        jobs = [
            _Job(
                _seeded(regressor, data.seed + member),
                data.x[rows := dealt.rows_of(member)],
                data.y[rows, output],
                data.weight[rows],
                data.x[dealt.left_out_by(member)],
            )
            for regressor in regressors
            for data, dealt in self._sets
            for member in range(dealt.n_members)
            for output in range(data.y.shape[1])
        ]
        while_wanted = takewhile(lambda _: self._wanted, jobs)
        n_rows = sum(len(job.x) for job in jobs)
        # Two cores are left to compile and drive the networks that train meanwhile.
        n_spare = (os.cpu_count() or 1) - 2
        self._results: Iterator[tuple[Any, np.ndarray]]
        if n_spare >= 2 and n_rows >= _WORTH_PROCESSES:
            in_processes = Parallel(n_spare, return_as="generator")
            self._results = in_processes(delayed(_fit)(job) for job in while_wanted)
        else:
            self._results = map(_fit, while_wanted)

    def collect(self) -> list[list[tuple[Regressors, np.ndarray]]]:
        """For each regressor and data set what was fitted, and what it says out of part,
        (deals, n, d)."""
        return [
            [_collected(self._results, data, dealt) for data, dealt in self._sets]
            for _ in range(self._n_regressors)
        ]

    def abandon(self) -> None:
        """What has not begun need not; the little that has is waited for."""
        self._wanted = False
        for _ in self._results:
            pass


class _Job(NamedTuple):
    """A regressor to fit to one output, and rows it is to be asked about."""

    regressor: Any
    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    asked: np.ndarray


def _fit(job: _Job) -> tuple[Any, np.ndarray]:
    with threadpool_limits(1):
        job.regressor.fit(job.x, job.y, **_weighted(job.regressor, job.weight))
        said = job.regressor.predict(job.asked) if len(job.asked) else np.empty(0)
    is_boosting = type(job.regressor) is HistGradientBoostingRegressor
    return BoostedTrees.of(job.regressor) if is_boosting else job.regressor, said


def _collected(
    results: Iterator[tuple[Any, np.ndarray]], data: Encoded, parts: Parts
) -> tuple[Regressors, np.ndarray]:
    models: list[list[Any]] = []
    said: list[np.ndarray] = []
    for _ in range(parts.n_members):
        of_member = [next(results) for _ in range(data.y.shape[1])]
        models.append([model for model, _ in of_member])
        said.append(np.stack([one for _, one in of_member], axis=1))
    honest = [parts.out_of_part(deal, lambda j, _: said[j]) for deal in range(parts.n_deals)]
    return Regressors(models), np.stack(honest)


def _seeded(regressor: Any, seed: int) -> Any:
    one = clone(regressor)
    if "random_state" in one.get_params() and one.get_params()["random_state"] is None:
        one.set_params(random_state=seed)
    return one


def _weighted(model: Any, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Weights, for who wants them and where they differ."""
    if np.ptp(weight) == 0:
        return {}
    if not has_fit_parameter(model, "sample_weight"):
        raise NkcmeError(f"{type(model).__name__} as a centre does not take sample_weight")
    return {"sample_weight": weight}
