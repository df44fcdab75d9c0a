"""Stacking: the best mean of several predictors, judged by rows that their members have not seen.

Each base is an ensemble that was cross-fitted. Out of part a row is predicted by one member a deal;
a new row will be predicted by the mean of all. Given the table, members are alike and independent
from deal to deal, so that the second moments of the bases' means over k members are B + C / k,
whichever members they are, with C the covariance of members between deals. What is seen at k deals
tells B, and so the weights and the error that the mean of *all* members will have. Without this a
base that varies much from member to member, and gains most by averaging, would get too little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls


class Stack(NamedTuple):
    """sum_b w_b m_b for one output, w_b >= 0, and the squared error of its mean over k members:
    bias + variance / k."""

    weights: np.ndarray  # (n_bases,)
    bias: float
    variance: float

    @classmethod
    def fit(cls, said: np.ndarray, y: np.ndarray, weight: np.ndarray, n_members: int) -> Stack:
        """``said`` (n_bases, n_deals, n_rows) by members out of part; ``n_members`` will speak."""
        n_deals = said.shape[1]
        share = weight / weight.sum()
        mean = said.mean(axis=1, dtype=np.float64)
        moments = (mean * share) @ mean.T
        target = (mean * share) @ y
        varies = np.zeros_like(moments)
        if n_deals > 1:
            around = said - mean[:, None]
            varies = np.einsum("bdn,cdn,n->bc", around, around, share) / (n_deals - 1)
        fewer = 1.0 / n_deals - 1.0 / n_members
        weights = _non_negative(moments - fewer * varies, target)
        error = float(share @ np.square(y - weights @ mean))
        variance = float(weights @ varies @ weights)
        # What is left of the error when all variance is gone may be estimated as next to nothing;
        # but a mean of many members is never that much better than one of few.
        return cls(weights, max(error - variance / n_deals, 0.05 * error), variance)

    def error(self, n_members: int) -> float:
        """The root of the mean squared error of the mean of so many members."""
        return float(np.sqrt(self.bias + self.variance / n_members))


def _non_negative(moments: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The w >= 0 that minimises w'Mw / 2 - w't."""
    values, vectors = np.linalg.eigh(moments)
    # Bases that say nearly the same, or all nothing, leave directions of which nothing is known.
    root = np.sqrt(np.maximum(values, max(1e-9 * values[-1], 1e-12)))
    return nnls((vectors * root).T, (vectors / root).T @ target)[0]
