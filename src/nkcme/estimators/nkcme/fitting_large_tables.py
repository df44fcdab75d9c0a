"""`NKCME.fit` for tables in memory and on disk."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from nkcme.errors import NkcmeError, ProcessLostError
from nkcme.estimators.base import ConditionalEstimator, raise_if_interrupted
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.forking import need_unforked_process
from nkcme.tables.parquet_folder import ParquetFolder
from nkcme.tables.stream_source import is_stream, parquet_of
from nkcme.tables.survey import need_target
from nkcme.training.cluster import Cluster
from nkcme.training.compilation_clock import CompilationClock
from nkcme.training.garbage import old_objects_spared
from nkcme.training.progress import wants_progress


class FitsLargeTables(ConditionalEstimator):
    """`fit` for tables of any size, in memory and on disk; `NKCME` is its only subclass."""

    _recipe: Recipe

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        target: str | None = None,
        cluster: Cluster | None = None,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        times: Any = None,
    ) -> Self:
        """Learn P(y | x) from a table in memory, or from one on disk that need not fit into it.

        A fit that raises leaves the estimator as it was: parameters are checked first, and learned
        attributes are set together at the end. The order of rows makes no difference below 500,000
        rows. From there on nothing is cross-fitted, unless weights, groups, times, validation rows,
        several outputs or a parameter need it (docs/scale.md).

        Parameters
        ----------
        X : array, pandas or polars frame, (n_rows, n_columns); or a table on disk
            Columns of numbers, booleans, categories, text, dates or times, also as text; missing
            values are allowed. ``columns_`` says how each was read.
            On disk: a folder of Parquet files, a pattern such as ``"folder/*.parquet"``, a file or
            a list of them; a pyarrow dataset, a polars LazyFrame, or frames from an iterator or
            from a function that returns one. See docs/scale.md.
        y : array (n_rows,) or (n_rows, d)
            One output or several. None for a table on disk.
        sample_weight : array (n_rows,), optional
            Whole numbers are repetitions: a row of weight two counts as two rows, and the fit has
            the same bits. Other weights are relative; to use whole numbers as relative weights,
            divide them by their mean.
        target : str, optional
            The column of a table on disk that is predicted; all others are inputs.
        cluster : Cluster, optional
            The processes that fit a table on disk together; by default this one alone does.
        X_val, y_val : optional
            Validation rows that decide which state of training is kept.
        groups : array (n_rows,), optional
            The group of each row, such as a customer. New rows are of other groups: folds keep the
            rows of a group together.
        times : array (n_rows,), optional
            The time of each row. New rows come later: the law is calibrated on the last rows, or
            on folds that are blocks of time where rows are few.

        Returns
        -------
        self

        Raises
        ------
        NkcmeError
            If a parameter or the table cannot be used.
        ProcessLostError
            If one of the processes of a cluster dies; with ``checkpoint``, another fit goes on.
        TrainingInterrupted
            On Ctrl-C. If training had begun, the estimator holds the state of that moment.
        """
        beside = {
            "y": y,
            "sample_weight": sample_weight,
            "X_val": X_val,
            "y_val": y_val,
            "groups": groups,
            "times": times,
        }
        self._check_parameters()
        if target is None and not (y is None and is_stream(X)):
            if cluster is not None:
                raise NkcmeError("cluster is for tables on disk; give target, or leave it out")
            del beside["y"]
            if self._is_too_large_for_folds(X, y, beside):
                return self._fit_in_memory(X, y)
            return super().fit(X, y, **beside)
        if target is None:
            raise NkcmeError("a table on disk needs the name of the column to predict: give target")
        given = [name for name, value in beside.items() if value is not None]
        if given:
            raise NkcmeError(
                f"{given[0]} is for tables in memory; a table on disk has its target among its "
                "columns, named by target, and rows of equal weight"
            )
        need_unforked_process()
        if cluster is not None:
            cluster.check()
            self._need_lanes(cluster.processes)
            if cluster.coordinator is not None:
                return self._fit_as_one_of(cluster, X, target)
        with parquet_of(X) as folder:
            need_target(folder, target)
            if cluster is not None and cluster.processes > 1:
                return self._fit_in_others(cluster, folder, target)
            return self._fit_from_disk(folder, target)

    def _is_too_large_for_folds(self, X: Any, y: Any, beside: Mapping[str, Any]) -> bool:
        """Whether cross-fitting gains too little for its time, and nothing given needs it."""
        if not hasattr(X, "__len__") or len(X) < self._recipe.stream.from_rows:
            return False
        from nkcme.estimators.nkcme.stream_training import unsuited

        one_output = len(np.shape(y)) == 1
        return one_output and all(v is None for v in beside.values()) and unsuited(self) is None

    def _fit_in_memory(self, X: Any, y: Any) -> Self:
        from nkcme.estimators.nkcme.memory_fitting import train_in_memory

        start = time.perf_counter()
        with CompilationClock() as compilation, old_objects_spared():
            table = self._encode_training(X, y, distinct=False)
            trained = train_in_memory(self, table.data)
        self._set_fitted(table.attributes, trained)
        self._set_seconds(time.perf_counter() - start, compilation.seconds)
        raise_if_interrupted(trained, [self])
        return self

    def _need_lanes(self, n_processes: int) -> None:
        """Refuse processes of which some would have more lanes than others."""
        n_lanes = self._recipe.stream.n_lanes
        if n_lanes % n_processes:
            possible = [n for n in range(1, n_lanes + 1) if n_lanes % n == 0]
            raise NkcmeError(
                f"the {n_lanes} lanes of a table on disk cannot be divided evenly over "
                f"{n_processes} processes; give one of {', '.join(map(str, possible))}"
            )

    def _fit_from_disk(self, folder: ParquetFolder, target: str) -> Self:
        from nkcme.estimators.nkcme.folder_fitting import fit_folder

        if folder.n_rows < self._recipe.stream.from_rows:
            table = folder.read()
            y = table.column(target).to_numpy()
            super().fit(table.drop_columns([target]), y)
            self.held_out_rows_ = None
            return self
        start = time.perf_counter()
        with CompilationClock() as compilation, old_objects_spared():
            fitted = fit_folder(self, folder, target)
        self._set_fitted(fitted.attributes, fitted.trained)
        self.held_out_rows_ = fitted.held_out
        self._set_seconds(time.perf_counter() - start, compilation.seconds)
        raise_if_interrupted(fitted.trained, [self])
        return self

    def _fit_as_one_of(self, cluster: Cluster, source: Any, target: str) -> Self:
        """Fit as one of the processes that another program has started."""
        from nkcme.training.processes import join

        assert cluster.coordinator is not None
        assert cluster.process_id is not None
        watch = join(cluster.coordinator, cluster.processes, cluster.process_id)
        try:
            with parquet_of(source) as folder:
                need_target(folder, target)
                self._fit_from_disk(folder, target)
        except NkcmeError:
            raise
        except Exception as error:  # a sum that a lost process had a part in ends with any error
            if (lost := watch.lost(_LOST_SECONDS)) is None:
                raise
            watch.end()
            raise ProcessLostError(lost) from error
        watch.end()
        return self

    def _fit_in_others(self, cluster: Cluster, folder: ParquetFolder, target: str) -> Self:
        """Fit in processes that this one starts, and take over what they learned."""
        from nkcme.estimators.nkcme.launching import Runner, fit_in_processes, run_here

        start = time.perf_counter()
        model: Any = self
        run: Runner = partial(run_here, cluster.processes, wants_progress(model.verbose))
        if cluster.ray is not None:
            from nkcme.estimators.nkcme.ray_placement import run_on_ray

            run = partial(run_on_ray, cluster)
        launched = fit_in_processes(model, folder.files, target, cluster, run)
        learned = {k: v for k, v in vars(launched.model).items() if k.endswith("_")}
        for name in [n for n in vars(self) if n.endswith("_")]:
            delattr(self, name)
        for name, value in learned.items():
            setattr(self, name, value)
        self.held_out_rows_ = launched.held_out
        self._set_seconds(time.perf_counter() - start, 0.0)
        return self


#: Seconds in which it becomes known which process is gone.
_LOST_SECONDS = 8.0
