"""Scores of predicted distributions and point predictions at the observed values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nkcme.errors import NkcmeError
from nkcme.metrics.checks import (
    FloatArray,
    as_draws,
    as_joint_draws,
    as_numbers,
    as_rows,
    draw_blocks,
    need_finite,
)


def crps_ensemble(y: npt.ArrayLike, samples: npt.ArrayLike, *, fair: bool = False) -> FloatArray:
    """Continuous ranked probability score of draws, for each row; lower is better.

    CRPS = ∫ (F(t) - 1{y <= t})^2 dt = E|X - y| - E|X - X'| / 2, exactly for the empirical measure F
    of the draws. As an estimate for the distribution of the draws it is biased upwards by
    E|X - X'| / (2 n_draws).

    Parameters
    ----------
    y : array_like of shape (n_rows,)
        The observed values.
    samples : array_like of shape (n_draws, n_rows)
        Draws of the predicted distributions.
    fair : bool
        Whether to remove the bias, which needs two independent draws or more.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    NkcmeError
        If ``y`` and ``samples`` have different rows, or if a value is NaN or infinite.

    Examples
    --------
    >>> from nkcme import metrics
    >>> metrics.crps_ensemble([0.0], [[-1.0], [1.0]])
    array([0.5])
    """
    draws = as_draws("samples", samples)
    observed = as_rows("y", y, n_rows=draws.shape[1])
    n_draws = len(draws)
    # E|X - X'| / 2 by the order of the draws. (scoringrules has it too, but takes ten seconds to
    # import where numba is installed.)
    pairs = n_draws * (n_draws - 1) if fair else n_draws**2
    factor = (2.0 * np.arange(n_draws) + 1.0 - n_draws) / max(pairs, 1)
    score = np.empty_like(observed)
    for rows in draw_blocks(draws):
        own = np.sort(draws[:, rows], axis=0)
        score[rows] = np.abs(own - observed[rows]).mean(axis=0) - factor @ own
    return score


def energy_score(y: npt.ArrayLike, samples: npt.ArrayLike) -> FloatArray:
    """Energy score of draws of d outputs, for each row; lower is better.

    ES = E|X - y| - E|X - X'| / 2, a proper score of the joint distribution (Gneiting and Raftery,
    2007), exactly for the empirical measure of the draws and in O(n_draws^2). As an estimate for
    the distribution of the draws it is biased upwards by E|X - X'| / (2 n_draws).

    Parameters
    ----------
    y : array_like of shape (n_rows, d)
        The observed values.
    samples : array_like of shape (n_draws, n_rows, d)
        Draws of the predicted distributions.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    NkcmeError
        If shapes do not match, or if a value is NaN or infinite.
    """
    from scipy.spatial.distance import cdist  # a fifth of a second, which only this score needs

    draws = as_joint_draws("samples", samples)
    observed = as_numbers("y", y, ndim=2, axes="(n_rows, d)")
    if observed.shape != draws.shape[1:]:
        raise NkcmeError(f"y must have shape {draws.shape[1:]}, as draws do, got {observed.shape}")
    need_finite("y", observed)
    rows = np.moveaxis(draws, 1, 0)
    to_y = np.mean(np.linalg.norm(rows - observed[:, None], axis=2), axis=1)
    # Not scoringrules.es_ensemble: without numba it holds all pairs of all rows, and is 15 times
    # slower for 100 rows of 500 draws.
    return to_y - 0.5 * np.array([cdist(row, row).mean() for row in rows])


def rmse(y: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Root mean squared error of a point prediction.

    Parameters
    ----------
    y, prediction : array_like of shape (n_rows,)
        Observed and predicted values.

    Returns
    -------
    float
    """
    observed = as_rows("y", y)
    predicted = as_rows("prediction", prediction, n_rows=len(observed))
    return float(np.sqrt(np.mean((observed - predicted) ** 2)))


def nll(logpdf: npt.ArrayLike) -> float:
    """Mean negative log-likelihood, -(1/n) Σ log p(y_i | x_i).

    Parameters
    ----------
    logpdf : array_like of shape (n_rows,)
        The predicted log density at each observed value. A density of zero (-inf) makes the result
        infinite.

    Returns
    -------
    float

    Raises
    ------
    NkcmeError
        If a log density is NaN or +inf.
    """
    log_density = as_numbers("logpdf", logpdf, ndim=1, axes="(n_rows,)")
    if np.any(np.isnan(log_density) | np.isposinf(log_density)):
        raise NkcmeError("logpdf must hold numbers or -inf, got NaN or +inf")
    return float(-np.mean(log_density))
