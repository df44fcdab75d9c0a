"""What a fitted `NKCME` predicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.distributions.blocks import row_slices
from nkcme.distributions.embedding import Embedding
from nkcme.estimators.nkcme.ensemble import Ensemble
from nkcme.estimators.nkcme.files import StoredEstimator
from nkcme.estimators.nkcme.fitted_model import FittedModel
from nkcme.estimators.nkcme.law import reading_of
from nkcme.estimators.nkcme.uncertainty import Uncertainty
from nkcme.estimators.predicting_on_cores import map_rows_on_cores

#: Rows whose uncertainty is computed together: every member gives weights for them.
_ROWS = 1 << 12


class PredictingEstimator(StoredEstimator):
    """The predictions of `NKCME`, which is its only subclass."""

    head: str
    reading: str

    def predict_dist(self, X: Any) -> Embedding:
        """Predict P(y | x) for each row of X.

        Parameters
        ----------
        X : table with the columns of `fit`

        Returns
        -------
        Embedding
            One distribution per row: `pdf`, `cdf`, `ppf`, `interval`, `rvs`, `crps`, `mmd`, ...
        """
        return self._distribution(self._encode(X))

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Predict the noise in y and the disagreement of the ensemble, row by row.

        Returns
        -------
        Uncertainty
        """
        x, fitted = self._encode(X), self._fitted
        blocks = [fitted.uncertainty(x[rows]) for rows in row_slices(len(x), _ROWS)]
        aleatoric, epistemic = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
        return Uncertainty(aleatoric[:, 0] if self.y_ndim_ == 1 else aleatoric, epistemic)

    def _stream(
        self, X: Any, ask: Callable[[Distribution], np.ndarray], axis: int = 0
    ) -> np.ndarray:
        """Predict blocks of rows, on all cores where there are many."""
        x = self._encode(X)
        return map_rows_on_cores(lambda own: ask(self._distribution(own)), x, axis=axis)

    def _distribution(self, x: np.ndarray) -> Embedding:
        return self._fitted.distribution(x)

    @property
    def _fitted(self) -> FittedModel:
        return FittedModel(
            self.center_,
            Ensemble(self.model_),
            self.law_,
            self.scaler_,
            self._reading,
        )

    @property
    def _reading(self) -> str:
        """The reading of predictions."""
        reading = reading_of(self.reading, self.head, self.n_outputs_)
        return "atomic" if reading == "law" and self.law_.earlier else reading

    def _herd(self, dist: Embedding, n_samples: int) -> np.ndarray:  # type: ignore[override]
        return dist.herd(n_samples)
