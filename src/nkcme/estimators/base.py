"""What every conditional density estimator of this library shares: scikit-learn's contract.

A subclass says how it trains on encoded arrays and how encoded inputs become a `Distribution`. The
base validates and encodes tables, streams predictions, samples, and saves and loads.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.estimators.fingerprint import fingerprint
from nkcme.estimators.predictions import PredictionMethods
from nkcme.estimators.saving import chosen, from_json, save_estimator
from nkcme.estimators.training_data import Encoded, TrainingTable, checked_table, encode_training
from nkcme.forking import need_unforked_process
from nkcme.tables.column_types import need_types
from nkcme.training.compilation_clock import CompilationClock
from nkcme.training.garbage import old_objects_spared


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a fit. The ``models`` are fitted with the state of training at that moment."""

    def __init__(self, message: str, models: Sequence[ConditionalEstimator] = ()):
        super().__init__(message)
        self.models = list(models)


class ConditionalEstimator(PredictionMethods, RegressorMixin, BaseEstimator):
    """A regressor that predicts the whole distribution of y."""

    #: Parameters that files of earlier versions lack, with the values those versions used.
    _ABSENT_IN_OLD_FILES: ClassVar[dict[str, Any]] = {}

    #: Whether `fit` holds rows out in folds, which ``groups`` and ``times`` can change.
    _has_folds: ClassVar[bool] = False

    # Parameters that every subclass has.
    standardize: bool | str
    random_state: Any

    #: The types of columns; a parameter of the estimators of this library.
    columns: Mapping[Any, str] | None = None

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raises NkcmeError on a bad parameter; called before anything is learned."""
        standardize = self._standardisation
        robust = isinstance(standardize, str) and standardize == "robust"
        if not robust and not isinstance(standardize, bool | np.bool_):
            raise NkcmeError(
                f'standardize must be True or False, or "robust"; got {self.standardize!r}'
            )
        need_types("columns", self.columns)

    @abstractmethod
    def _train(self, datasets: Sequence[Encoded]) -> list[Any]:
        """The trained state for each data set, all trained together; ``self`` is not changed."""

    @abstractmethod
    def _accept(self, trained: Any) -> None:
        """Set the learned attributes from one of `_train`'s states."""

    @abstractmethod
    def _distribution(self, x: np.ndarray) -> Distribution:
        """The distributions at encoded inputs (n, p), in units of y."""

    @abstractmethod
    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The learned state as JSON and arrays, for a model file."""

    @abstractmethod
    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The reverse of `_learned`; raises ModelFileError on anything that does not fit."""

    # --- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        times: Any = None,
    ) -> Self:
        """Learn P(y | x) from a table.

        A fit that raises leaves the estimator as it was: parameters are checked first, and learned
        attributes are set together at the end. The order of rows makes no difference.

        Parameters
        ----------
        X : array, pandas or polars frame, (n_rows, n_columns)
            Columns of numbers, booleans, categories, text, dates or times, also as text; missing
            values are allowed. ``columns_`` says how each was read.
        y : array (n_rows,) or (n_rows, d)
            One output or several.
        sample_weight : array (n_rows,), optional
            Whole numbers are repetitions: a row of weight two counts as two rows, and the fit has
            the same bits. Other weights are relative; to use whole numbers as relative weights,
            divide them by their mean.
        X_val, y_val : optional
            Validation rows that decide which state of training is kept.
        groups : array (n_rows,), optional
            The group of each row, such as a customer. New rows are of other groups: the folds of
            `NKCME` keep the rows of a group together.
        times : array (n_rows,), optional
            The time of each row. New rows come later: `NKCME` calibrates its law on the last rows,
            or on folds that are blocks of time where rows are few.

        Returns
        -------
        self

        Raises
        ------
        NkcmeError
            If a parameter or the table cannot be used.
        TrainingInterrupted
            On Ctrl-C. If training had begun, the estimator holds the state of that moment.
        """
        self._check_parameters()
        start = time.perf_counter()
        with CompilationClock() as compilation, old_objects_spared():
            table = self._encode_training(X, y, sample_weight, X_val, y_val, groups, times)
            trained = self._train([table.data])[0]
            self._set_fitted(table.attributes, trained)
        self._set_seconds(time.perf_counter() - start, compilation.seconds)
        raise_if_interrupted(trained, [self])
        return self

    def fit_many(
        self, datasets: Sequence[tuple[Any, Any]], random_states: Sequence[int] | None = None
    ) -> list[Self]:
        """Fit clones of this estimator to many data sets as one compiled program.

        Much faster than one fit after the other for the seeds, folds or groups of an experiment.

        Parameters
        ----------
        datasets : sequence of (X, y)
            All with the same encoded columns and outputs.
        random_states : sequence of int, optional
            The random state of each clone; by default derived from this estimator's.

        Returns
        -------
        list of fitted estimators
        """
        if random_states is None:
            rng = check_random_state(self.random_state)
            random_states = [int(rng.randint(2**31 - 1)) for _ in datasets]
        if len(random_states) != len(datasets):
            raise NkcmeError(
                f"fit_many needs one random state for each of {len(datasets)} data sets; got "
                f"{len(random_states)}"
            )
        self._check_parameters()
        start = time.perf_counter()
        clones = [clone(self).set_params(random_state=state) for state in random_states]
        tables = [one._encode_training(X, y) for one, (X, y) in zip(clones, datasets, strict=True)]
        if len({(t.data.x.shape[1], t.data.y.shape[1]) for t in tables}) != 1:
            raise NkcmeError(
                "fit_many needs at least one data set, and all with the same encoded columns and "
                "outputs"
            )
        with CompilationClock() as compilation, old_objects_spared():
            trained = self._train([table.data for table in tables])
        for one, table, state in zip(clones, tables, trained, strict=True):
            one._set_fitted(table.attributes, state)
            one._set_seconds(time.perf_counter() - start, compilation.seconds)
        raise_if_interrupted(trained[0], clones)
        return clones

    def _encode_training(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        times: Any = None,
        *,
        distinct: bool = True,
    ) -> TrainingTable:
        need_unforked_process()
        if not self._has_folds and (groups is not None or times is not None):
            raise NkcmeError(
                f"{type(self).__name__} has no folds that groups or times could change; leave "
                "them out"
            )
        standardize = self._standardisation
        return encode_training(
            self,
            X,
            y,
            sample_weight,
            X_val,
            y_val,
            standardize=standardize if isinstance(standardize, str) else bool(standardize),
            random_state=self.random_state,
            types=self.columns,
            groups=groups,
            times=times,
            distinct=distinct,
        )

    @property
    def _standardisation(self) -> bool | str:
        """How inputs and outputs are standardised."""
        return self.standardize

    def _set_fitted(self, attributes: Mapping[str, Any], trained: Any) -> None:
        """Replace everything learned by an earlier fit."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)
        for name, value in attributes.items():
            setattr(self, name, value)
        self._accept(trained)

    def _set_seconds(self, total: float, compilation: float) -> None:
        """Set how long a fit took; of those by `fit_many`, how long all of them took."""
        self.fit_seconds_ = {"total": total, "compilation": compilation}

    # --- prediction ---------------------------------------------------------------------------

    def _encode(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        need_unforked_process()
        return self.encoder_.transform(checked_table(self, X, reset=False))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters that are not default and, below, what a fit chose."""
        parameters = super().__repr__(N_CHAR_MAX)
        return f"{parameters}\n  {chosen(self)}" if hasattr(self, "encoder_") else parameters

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = True
        return tags

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a directory, atomically.

        The directory holds ``config.json`` and ``model.safetensors``. `nkcme.load` reads it.

        Parameters
        ----------
        path : str or Path
            A new directory, or one that holds a model, which is replaced.
        """
        check_is_fitted(self)
        save_estimator(self, path)

    @classmethod
    def _parameter_from_file(cls, name: str, value: Any) -> Any:
        """The value of a parameter from the JSON of a model file."""
        return from_json(value)

    def _fingerprint(self, datasets: Sequence[Encoded]) -> str:
        """Identifies the run of a checkpoint: parameters that matter, data, seeds and version."""
        silent = {"checkpoint", "verbose", "random_state"}
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in silent}
        return fingerprint(parameters, [d.digest() for d in datasets])


def raise_if_interrupted(trained: Any, models: Sequence[ConditionalEstimator]) -> None:
    """Raise on Ctrl-C, once the models hold the state of training."""
    if getattr(trained, "interrupted", False):
        raise TrainingInterrupted(
            f"stopped by Ctrl-C after {trained.n_steps} steps; the estimator holds that state. "
            "To continue later, fit again with the same data, parameters and checkpoint=PATH",
            models,
        )
