"""How many independent rows a table of dependent ones is worth.

Rows of one group share what is particular to the group, and neighbouring moments what is particular
to their time. The mean of n such values varies as that of fewer independent ones (the design effect
of Kish, 1965); so do quantiles that are estimated from them.
"""

from __future__ import annotations

import numpy as np

from nkcme.tables.row_groups import RowGroups

#: The largest autocorrelation, and the least number of rows that anything is worth.
_MOST_CORRELATED, _LEAST_ROWS = 0.999, 3.0


def effective_rows(values: np.ndarray, groups: RowGroups, weight: np.ndarray) -> float:
    """The number of independent rows from which mean and spread of values would be known as well.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Values with a distribution near a normal one, such as normal scores of F(y | x).
    groups : RowGroups
        Rows of a group depend on each other; by time, those of neighbouring moments do as well.
    weight : ndarray of shape (n_rows,)
        How many rows each row counts as.

    Returns
    -------
    float
        At least three, and at most the number of rows.
    """
    weight = np.asarray(weight, np.float64)
    most = weight.sum() ** 2 / np.square(weight).sum()
    around = values - np.average(values, weights=weight)
    squares = np.square(around)
    found = [most]
    for one in (around, squares - np.average(squares, weights=weight)):
        variance = np.average(np.square(one), weights=weight)
        of_sum = _variance_of_sum(weight * one, groups)
        if of_sum > 0:
            found.append(variance * weight.sum() ** 2 / of_sum)
    return max(min(found), min(_LEAST_ROWS, most))


def _variance_of_sum(values: np.ndarray, groups: RowGroups) -> float:
    """The variance of the sum of values whose own sum is zero."""
    _, place = np.unique(groups.codes, return_inverse=True)
    sums = np.bincount(place, weights=values)
    if not groups.by_time:
        return float(np.square(sums).sum()) * len(sums) / max(len(sums) - 1, 1)
    return max(_by_all_lags(sums), _by_first_lag(sums))


def _autocovariances(series: np.ndarray) -> np.ndarray:
    """The sums of the products of a series with itself at all lags."""
    spectrum = np.fft.rfft(series, 2 * len(series))
    return np.fft.irfft(np.square(np.abs(spectrum)), 2 * len(series))[: len(series)]


def _by_all_lags(series: np.ndarray) -> float:
    """The sum of autocovariances up to where those of two neighbouring lags are no longer positive
    in sum; these must not rise either (the initial sequence of Geyer, 1992)."""
    lags = _autocovariances(series)
    pairs = lags[: len(lags) // 2 * 2].reshape(-1, 2).sum(axis=1)
    positive = np.minimum.accumulate(pairs) > 0
    falling = np.minimum.accumulate(pairs[positive])
    return float(max(2.0 * falling.sum() - lags[0], lags[0]))


def _by_first_lag(series: np.ndarray) -> float:
    """The same for an autoregressive series, by its first lag without the bias of short series
    (Kendall, 1954). A series not much longer than it remembers shows too few lags."""
    lags = _autocovariances(series)
    if len(series) < 2 or not lags[1] > 0:
        return float(lags[0])
    first = lags[1] / lags[0]
    first = min(first + (1.0 + 3.0 * first) / len(series), _MOST_CORRELATED)
    return float(lags[0] * (1.0 + first) / (1.0 - first))
