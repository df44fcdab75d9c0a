"""Conformal intervals: coverage that holds in finite samples for any model.

Distributional conformal prediction (Chernozhukov, Wüthrich and Zhu, 2021) in its split form. The
conformity score of a row is the distance of its y from the median in probability,
|F(y | x) - 1/2|. Take n rows that the model was not fitted to and that are exchangeable with new
rows. The score of a new row is at most their ceil((n + 1) coverage)-th smallest score t with
probability ``coverage`` or more. The interval from the quantile 1/2 - t to the quantile 1/2 + t
therefore contains y with at least that probability.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.base import Distribution
from nkcme.distributions.checks import checked_coverage
from nkcme.errors import NkcmeError


class Predictor(Protocol):
    """The methods of a fitted estimator that conformal intervals need."""

    def predict_dist(self, X: Any) -> Distribution: ...

    def predict_quantiles(self, X: Any, alpha: ArrayLike) -> np.ndarray: ...


class ConformalIntervals:
    """Prediction intervals of a fitted estimator with guaranteed coverage.

    Parameters
    ----------
    model : estimator
        A fitted estimator of one output with ``predict_dist`` and ``predict_quantiles``.

    Attributes
    ----------
    distances_ : ndarray of shape (n_calibration_rows,)
        The sorted conformity scores |F(y | x) - 1/2| of the calibration rows.

    Examples
    --------
    ::

        intervals = ConformalIntervals(model).calibrate(X_held_out, y_held_out)
        intervals.predict_interval(X_new, coverage=0.9)
    """

    def __init__(self, model: Predictor):
        self.model = model

    def calibrate(self, X: Any, y: ArrayLike) -> Self:
        """Compute the conformity scores of held-out rows.

        Parameters
        ----------
        X : table
            Rows that the model was not fitted to, exchangeable with those to predict.
        y : array_like of shape (n_rows,)
            Their observed values.

        Returns
        -------
        ConformalIntervals
            This object.
        """
        pit = self.model.predict_dist(X).cdf(np.asarray(y, np.float64).reshape(-1))
        self.distances_ = np.sort(np.abs(pit - 0.5))
        return self

    def radius(self, coverage: float = 0.9) -> float:
        """The distance t from the median, in probability, to which an interval extends.

        Parameters
        ----------
        coverage : float
            One number between 0 and 1.

        Returns
        -------
        float
            At least one half where the calibration rows are too few to guarantee a bounded
            interval.

        Raises
        ------
        NkcmeError
            If ``coverage`` is not one number between 0 and 1, or before `calibrate`.
        """
        level = checked_coverage(coverage)
        if not hasattr(self, "distances_"):
            raise NkcmeError(
                "the intervals are not calibrated; call calibrate with rows that the model was not "
                "fitted to"
            )
        rank = int(np.ceil((len(self.distances_) + 1) * level - 1e-9))
        return float(self.distances_[rank - 1]) if rank <= len(self.distances_) else np.inf

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals that contain y with at least the given probability.

        The probability is over the calibration rows and the new row together.

        Parameters
        ----------
        X : table
            The rows to predict.
        coverage : float
            One number between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper ends; infinite where no bounded interval can be guaranteed.

        Raises
        ------
        NkcmeError
            As in `radius`.
        """
        t = self.radius(coverage)
        # Slightly wider: where F is flat, the whole plateau is at the same distance.
        levels = [max(0.5 - t - 1e-9, 0.0), min(0.5 + t + 1e-9, 1.0)]
        intervals = self.model.predict_quantiles(X, levels)
        if t >= 0.5:  # a calibration row lay outside the support of its prediction
            intervals[:] = [-np.inf, np.inf]
        return intervals
