"""Scorers for scikit-learn's model selection: ``GridSearchCV(model, grid, scoring=crps_scorer)``.

Higher is better, as everywhere in scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from nkcme.distribution import Distribution


def crps_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Minus the mean continuous ranked probability score."""
    return -float(np.mean(_predicted(estimator, X).crps(np.asarray(y, np.float64).reshape(-1))))


def log_density_scorer(estimator: Any, X: Any, y: Any) -> float:
    """The mean log density at the observed y, embeddings being read smoothed."""
    dist = _predicted(estimator, X).smoothed()
    target = np.asarray(y, np.float64)
    if dist.n_outputs == 1:
        target = target.reshape(-1)
    return float(np.mean(dist.logpdf(target)))


def _predicted(estimator: Any, X: Any) -> Distribution:
    """The distributions an estimator predicts, also at the end of a pipeline."""
    if isinstance(estimator, Pipeline):
        return estimator[-1].predict_dist(estimator[:-1].transform(X))
    return estimator.predict_dist(X)
