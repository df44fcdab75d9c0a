"""Stacking: the best weighted mean of several cross-fitted predictors.

Each base is an ensemble that was cross-fitted. Out-of-fold, a row is predicted by one member per
repeat; a new row will be predicted by the mean of all members. Given the table, members are alike
and independent between repeats, so the second moments of the bases' means over k members are
B + C / k, whichever members they are, with C the covariance of members between repeats. The repeats
give an estimate of B, and so of the weights and the error that the mean of *all* members will have.
Without this correction a base that varies much from member to member, and therefore gains most by
averaging, would get too small a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

#: The least error of a stack, in units of standardised y: residuals are divided by it.
_LEAST_ERROR = 1e-6


class Stack(NamedTuple):
    """sum_b w_b m_b for one output, with w_b >= 0 and sum_b w_b <= 1.

    The squared error of its mean over k members is ``bias + variance / k``.
    """

    weights: np.ndarray  # (n_bases,)
    bias: float
    variance: float

    @classmethod
    def fit(
        cls,
        out_of_fold: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        n_members: int,
        least_bias_share: float,
    ) -> Stack:
        """The best weights for the mean of ``n_members`` members.

        Parameters
        ----------
        out_of_fold : array (n_bases, n_repeats, n_rows)
        y, weight : array (n_rows,)
        n_members : int
            How many members are averaged for a new row.
        least_bias_share : float
            The bias is at least this share of the error. Its estimate may be next to nothing, but a
            mean of many members is never that much better than a mean of few.
        """
        n_repeats = out_of_fold.shape[1]
        share = weight / weight.sum()
        mean = out_of_fold.mean(axis=1, dtype=np.float64)
        moments = (mean * share) @ mean.T
        target = (mean * share) @ y
        between = np.zeros_like(moments)
        if n_repeats > 1:
            around = out_of_fold - mean[:, None]
            between = np.einsum("bdn,cdn,n->bc", around, around, share) / (n_repeats - 1)
        gain = 1.0 / n_repeats - 1.0 / n_members
        weights = _on_simplex(moments - gain * between, target)
        error = float(share @ np.square(y - weights @ mean))
        variance = float(weights @ between @ weights)
        return cls(weights, max(error - variance / n_repeats, least_bias_share * error), variance)

    def error(self, n_members: int) -> float:
        """The root mean squared error of the mean of ``n_members`` members."""
        return float(np.sqrt(self.bias + self.variance / n_members))


def fit_stacks(
    y: np.ndarray,
    weight: np.ndarray,
    n_members: int,
    out_of_fold: Sequence[np.ndarray] | np.ndarray,
    least_bias_share: float,
) -> list[Stack]:
    """The best stack for each output of y (n, d), by out-of-fold predictions (n_repeats, n, d) of
    the bases."""
    predicted = np.clip(np.stack(list(out_of_fold)), *reach_of(y))
    return [
        Stack.fit(predicted[..., j], y[:, j], weight, n_members, least_bias_share)
        for j in range(y.shape[1])
    ]


def errors_of(stacks: Sequence[Stack], n_members: int) -> np.ndarray:
    """The error (d,) of the stack of each output, for the mean of ``n_members`` members."""
    return np.array([max(stack.error(n_members), _LEAST_ERROR) for stack in stacks])


def reach_of(y: np.ndarray) -> np.ndarray:
    """The bounds (2, d) of predictions: beyond the training y (n, d) by as much as their range."""
    low, high = y.min(axis=0).astype(np.float64), y.max(axis=0).astype(np.float64)
    return np.stack([2.0 * low - high, 2.0 * high - low])


def _on_simplex(moments: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The w >= 0 with a sum of at most one that minimises w'Mw / 2 - w't.

    The rest of the sum is the weight of a base that predicts the mean of y, which is zero. A sum
    above one can fit extrapolated moments better, but every base predicts y, and no multiple of it.
    """
    values, vectors = np.linalg.eigh(moments)
    # Bases whose predictions nearly agree, or are all zero, leave directions undetermined.
    root = np.sqrt(np.maximum(values, max(1e-9 * values[-1], 1e-12)))
    matrix, right = (vectors * root).T, (vectors / root).T @ target
    weights = nnls(matrix, right)[0]
    if weights.sum() <= 1.0:
        return weights
    heavy = 1e3 * root[-1]  # of a row that asks for a sum of one
    matrix = np.concatenate([matrix, np.full((1, len(target)), heavy)])
    weights = nnls(matrix, np.append(right, heavy))[0]
    return weights / weights.sum()
