"""How well predicted probabilities agree with observed frequencies: QICE, PIT and coverage."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nkcme.errors import NkcmeError
from nkcme.metrics.checks import (
    FloatArray,
    IntArray,
    as_draws,
    as_intervals,
    as_rows,
    draw_blocks,
    need_positive,
    need_range,
)


def decile_counts(y: npt.ArrayLike, samples: npt.ArrayLike, n_bins: int = 10) -> IntArray:
    """The number of observed values in each of ``n_bins`` equally likely bins of their draws.

    The bins of a row lie between consecutive quantiles 0, 1/n_bins, ..., 1 of its draws and include
    their upper edge. A y below the lowest draw counts into the first bin, one above the highest
    into the last. For calibrated draws the expectation of every count is n_rows / n_bins.

    Parameters
    ----------
    y : array_like of shape (n_rows,)
        The observed values.
    samples : array_like of shape (n_draws, n_rows)
        Draws of the predicted distributions.
    n_bins : int
        The number of bins.

    Returns
    -------
    ndarray of shape (n_bins,)
    """
    draws = as_draws("samples", samples)
    observed = as_rows("y", y, n_rows=draws.shape[1])
    inner_levels = np.arange(1, need_positive("n_bins", n_bins)) / n_bins
    counts = np.zeros(n_bins, dtype=np.int64)
    for rows in draw_blocks(draws):
        edges = np.quantile(draws[:, rows], inner_levels, axis=0)
        # Values beyond the outermost edges count into the end bins, so those edges are not needed.
        bins = np.sum(observed[rows] > edges, axis=0)
        counts += np.bincount(bins, minlength=n_bins)
    return counts


def qice_from_counts(counts: npt.ArrayLike) -> float:
    """Quantile interval coverage error, (1/L) Σ_l |counts_l / n - 1/L|, as a fraction.

    Parameters
    ----------
    counts : array_like of shape (L,)
        The number of observed values in each of L equally likely bins, as from `decile_counts`.

    Returns
    -------
    float

    Raises
    ------
    NkcmeError
        If a count is negative, or if all are zero.
    """
    in_bin = as_rows("counts", counts)
    if np.any(in_bin < 0) or not in_bin.any():
        raise NkcmeError(f"counts must be non-negative and not all zero, got {in_bin.tolist()}")
    return float(np.mean(np.abs(in_bin / in_bin.sum() - 1 / len(in_bin))))


def qice(y: npt.ArrayLike, samples: npt.ArrayLike, n_bins: int = 10) -> float:
    """Quantile interval coverage error of draws, as a fraction (times 100 for percent).

    It is 0 when each bin of `decile_counts` holds the same number of observed values. Even a
    perfect model does not reach 0 on a finite test set: compare with `qice_floor`.

    Parameters
    ----------
    y, samples, n_bins
        As in `decile_counts`.

    Returns
    -------
    float
    """
    return qice_from_counts(decile_counts(y, samples, n_bins))


def qice_floor(n_rows: int, n_bins: int = 10) -> float:
    """The expected QICE of a perfectly calibrated model on ``n_rows`` test rows, as a fraction.

    Parameters
    ----------
    n_rows, n_bins : int
        The number of test rows, and of bins.

    Returns
    -------
    float

    Examples
    --------
    >>> from nkcme import metrics
    >>> round(100 * metrics.qice_floor(103), 2)  # Concrete's test rows, in percent
    2.37
    """
    from scipy.stats import binom  # half a second, which the command line's help can spare

    # Each count is Binomial(n, p = 1/L). De Moivre's mean absolute deviation of it is
    # 2 k (1 - p) P(Bin = k) with k = floor(n p) + 1.
    n, p = need_positive("n_rows", n_rows), 1 / need_positive("n_bins", n_bins)
    k = n // n_bins + 1
    return float(2 * k * (1 - p) * binom.pmf(k, n, p) / n)


def pit(cdf_at_y: npt.ArrayLike) -> FloatArray:
    """Probability integral transform F(y | x) of each row, uniform if the model is calibrated.

    Parameters
    ----------
    cdf_at_y : array_like of shape (n_rows,)
        The predicted CDF at each observed value.

    Returns
    -------
    ndarray of shape (n_rows,)
        The same values, clipped to [0, 1].

    Raises
    ------
    NkcmeError
        If a value is outside of [0, 1] by more than the rounding of float32.
    """
    values = as_rows("cdf_at_y", cdf_at_y)
    rounding = 1e-5
    need_range("cdf_at_y", values, -rounding, 1 + rounding, "[0, 1]")
    return np.clip(values, 0.0, 1.0)


def pit_from_samples(y: npt.ArrayLike, samples: npt.ArrayLike) -> FloatArray:
    """Probability integral transform of each row from draws.

    The share of draws below y plus half the share equal to y, so that ties (herded draws lie on a
    grid) move it neither up nor down.

    Parameters
    ----------
    y : array_like of shape (n_rows,)
        The observed values.
    samples : array_like of shape (n_draws, n_rows)
        Draws of the predicted distributions.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    draws = as_draws("samples", samples)
    observed = as_rows("y", y, n_rows=draws.shape[1])
    return (np.mean(draws < observed, axis=0) + np.mean(draws <= observed, axis=0)) / 2


def coverage(y: npt.ArrayLike, interval: npt.ArrayLike) -> float:
    """Share of rows with y in their closed interval.

    Parameters
    ----------
    y : array_like of shape (n_rows,)
        The observed values.
    interval : array_like of shape (n_rows, 2)
        Lower and upper ends, which may be infinite.

    Returns
    -------
    float

    Raises
    ------
    NkcmeError
        If a lower end is above its upper end.
    """
    ends = as_intervals(interval)
    observed = as_rows("y", y, n_rows=len(ends))
    return float(np.mean((ends[:, 0] <= observed) & (observed <= ends[:, 1])))


def interval_width(interval: npt.ArrayLike) -> float:
    """Mean length of intervals; among models of equal coverage, shorter is better.

    Parameters
    ----------
    interval : array_like of shape (n_rows, 2)
        Lower and upper ends.

    Returns
    -------
    float
    """
    ends = as_intervals(interval)
    return float(np.mean(ends[:, 1] - ends[:, 0]))


def coverage_curve(pit_values: npt.ArrayLike, levels: npt.ArrayLike) -> FloatArray:
    """Share of rows with y in the central interval of each nominal level.

    The curve of a calibrated model is the diagonal.

    Parameters
    ----------
    pit_values : array_like of shape (n_rows,)
        The probability integral transform of each row, as from `pit`.
    levels : array_like of shape (n_levels,)
        Nominal levels from 0 to 1.

    Returns
    -------
    ndarray of shape (n_levels,)
    """
    # The central interval of level c runs from quantile (1 - c)/2 to (1 + c)/2, so it contains y
    # exactly when |PIT - 1/2| <= c/2.
    distance = np.abs(pit(pit_values) - 0.5)
    nominal = as_rows("levels", levels)
    need_range("levels", nominal, 0.0, 1.0, "[0, 1]")
    return np.searchsorted(np.sort(distance), nominal / 2, side="right") / len(distance)
