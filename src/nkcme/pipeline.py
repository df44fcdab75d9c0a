"""A scikit-learn pipeline whose last step predicts distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from nkcme.distributions.base import Distribution


def _last_step_has(name: str) -> Callable[[Any], bool]:
    """For `available_if`: whether the last step, fitted or not, has a method."""

    def check(pipeline: DistributionPipeline) -> bool:
        getattr(pipeline._final_estimator, name)  # its AttributeError names what is missing
        return True

    return check


class DistributionPipeline(Pipeline):
    """scikit-learn's ``Pipeline`` with the methods of an estimator of distributions.

    Steps before the last one transform X; the last one is an estimator of this library. Everything
    else is as in ``Pipeline``: it is made from a list of (name, estimator), parameters are
    ``step__name``, and ``clone``, ``GridSearchCV`` and ``ColumnTransformer`` work.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import StandardScaler
    >>> from nkcme import DistributionPipeline, KernelCME
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DistributionPipeline([("scale", StandardScaler()), ("cme", KernelCME())])
    >>> model.fit(X[:100], y[:100]).predict_interval(X[100:], 0.9).shape
    (342, 2)
    """

    @available_if(_last_step_has("predict_dist"))
    def predict_dist(self, X: Any) -> Distribution:
        """Predict P(y | x) for each row of X.

        Returns
        -------
        Distribution
        """
        return self._final_estimator.predict_dist(self._transformed(X))

    @available_if(_last_step_has("predict_quantiles"))
    def predict_quantiles(self, X: Any, *arguments: Any, **options: Any) -> np.ndarray:
        """Predict quantiles; arguments are those of the last step's method."""
        return self._final_estimator.predict_quantiles(self._transformed(X), *arguments, **options)

    @available_if(_last_step_has("predict_interval"))
    def predict_interval(self, X: Any, *arguments: Any, **options: Any) -> np.ndarray:
        """Predict central intervals; arguments are those of the last step's method."""
        return self._final_estimator.predict_interval(self._transformed(X), *arguments, **options)

    @available_if(_last_step_has("predict_var"))
    def predict_var(self, X: Any) -> np.ndarray:
        """Predict the conditional variance."""
        return self._final_estimator.predict_var(self._transformed(X))

    @available_if(_last_step_has("predict_uncertainty"))
    def predict_uncertainty(self, X: Any) -> Any:
        """Predict aleatoric and epistemic uncertainty, where the last step does."""
        return self._final_estimator.predict_uncertainty(self._transformed(X))

    @available_if(_last_step_has("sample"))
    def sample(self, X: Any, *arguments: Any, **options: Any) -> np.ndarray:
        """Draw samples of y given x; arguments are those of the last step's method."""
        return self._final_estimator.sample(self._transformed(X), *arguments, **options)

    def _transformed(self, X: Any) -> Any:
        """X after all steps but the last."""
        return self[:-1].transform(X) if len(self.steps) > 1 else X
