"""A model that was loaded without JAX, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.estimators.predicting_on_cores import map_rows_on_cores
from nkcme.estimators.predictions import PredictionMethods
from nkcme.runtime.rows import read_rows
from nkcme.tables.column_encoding import UnknownCategories
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.target import TargetScaler


class LearnedModel(Protocol):
    """What a kind of estimator learned."""

    def distribution(self, x: np.ndarray) -> Distribution:
        """The distributions at encoded inputs (n, p), in units of y."""


class RuntimeModel(PredictionMethods):
    """A saved model that predicts with NumPy alone; `nkcme.runtime.load` gives it.

    The methods are those of the estimators: `predict_dist`, `predict`, `predict_var`,
    `predict_quantiles`, `predict_interval` and `sample`. A table X is an array, a list of rows, a
    dict of columns, a dict of one row, a list of such dicts, or a data frame.

    Attributes
    ----------
    estimator : str
        The name of the estimator that was saved.
    encoder_ : TableEncoder
        The columns of X.
    n_features_in_, n_outputs_ : int
    target_name_ : str or None
        The name of y.
    """

    def __init__(
        self,
        estimator: str,
        encoder: TableEncoder,
        scaler: TargetScaler,
        predictor: LearnedModel,
        *,
        y_ndim: int,
        target_name: str | None,
    ):
        self.estimator = estimator
        self.encoder_ = encoder
        self.scaler_ = scaler
        self.y_ndim_ = y_ndim
        self.target_name_ = target_name
        self.n_features_in_ = len(encoder.columns)
        self.n_outputs_ = len(scaler.location)
        self._predictor = predictor

    def __repr__(self) -> str:
        return f"RuntimeModel({self.estimator}, {self.n_features_in_} columns)"

    def unknown_categories(self, X: Any) -> list[UnknownCategories]:
        """For each column with categories that the model does not know, how many rows hold them.

        They count as none of the known ones.
        """
        if self._encoded_records(X) is not None:
            return []
        return list(self.encoder_.unknown_categories(read_rows(X)))

    def _encode(self, X: Any) -> np.ndarray:
        encoded = self._encoded_records(X)
        if encoded is not None:
            return encoded
        return self.encoder_.transform(read_rows(X))

    def _encoded_records(self, X: Any) -> np.ndarray | None:
        """The inputs of dicts or lists of plain values, by a shorter way; None for other tables."""
        rows = [X] if isinstance(X, dict) else X
        if not isinstance(rows, list) or not rows:
            return None
        kinds = set(map(type, rows))
        if kinds == {dict}:
            return self.encoder_.transform_records(rows)
        return self.encoder_.transform_lists(rows) if kinds == {list} else None

    def _stream(
        self, X: Any, ask: Callable[[Distribution], np.ndarray], axis: int = 0
    ) -> np.ndarray:
        """Predict blocks of rows, on all cores where there are many."""
        x = self._encode(X)
        return map_rows_on_cores(lambda own: ask(self._distribution(own)), x, axis=axis)

    def _distribution(self, x: np.ndarray) -> Distribution:
        return self._predictor.distribution(x)

    def _herd(self, dist: Distribution, n_samples: int) -> np.ndarray:
        raise NkcmeError(
            'method="herd" needs the full library: load the model with nkcme.load, or use '
            'method="independent"'
        )
