"""Conformal intervals: coverage that holds in finite samples, whatever the model is worth.

Distributional conformal prediction (Chernozhukov, Wüthrich and Zhu, 2021) in its split form. How
odd a y is, is its distance in probability from the median, |F(y | x) - 1/2|. Of n rows that the
model has not seen, and that are exchangeable with those to come, the ceil((n + 1) coverage)-th
smallest distance t is at least that of a new row with the probability asked for. So the interval
from the quantile 1/2 - t to the quantile 1/2 + t holds y at least so often.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.parameter_checks import need_number


class Predictor(Protocol):
    """A fitted estimator, as far as this module asks of it."""

    def predict_dist(self, X: Any) -> Distribution: ...

    def predict_quantiles(self, X: Any, alpha: ArrayLike) -> np.ndarray: ...


class ConformalIntervals:
    """A fitted estimator's intervals, widened or narrowed until held-out rows prove them.

    >>> intervals = ConformalIntervals(model).calibrate(X_held_out, y_held_out)
    >>> intervals.predict_interval(X, coverage=0.9)
    """

    def __init__(self, model: Predictor):
        self.model = model

    def calibrate(self, X: Any, y: ArrayLike) -> Self:
        """Learn how far from the median rows lie that the model has not been fitted to."""
        pit = self.model.predict_dist(X).cdf(np.asarray(y, np.float64).reshape(-1))
        self.distances_ = np.sort(np.abs(pit - 0.5))
        return self

    def radius(self, coverage: float = 0.9) -> float:
        """t: how far in probability from the median an interval reaches. One half or more where
        the rows are too few to promise anything less than everything."""
        need_number("coverage", coverage, above=0.0, below=1.0)
        if not hasattr(self, "distances_"):
            raise NkcmeError("call calibrate with rows the model was not fitted to first")
        rank = int(np.ceil((len(self.distances_) + 1) * coverage - 1e-9))
        return float(self.distances_[rank - 1]) if rank <= len(self.distances_) else np.inf

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals (n_rows, 2) that hold y with at least this probability, over the draw of the
        held-out rows and of the new one; without bounds where that is what it takes."""
        t = self.radius(coverage)
        # A little wider: where F is flat, its whole plateau is as far from the median.
        levels = [max(0.5 - t - 1e-9, 0.0), min(0.5 + t + 1e-9, 1.0)]
        intervals = self.model.predict_quantiles(X, levels)
        if t >= 0.5:  # some y lay outside all that the model thought possible
            intervals[:] = [-np.inf, np.inf]
        return intervals
