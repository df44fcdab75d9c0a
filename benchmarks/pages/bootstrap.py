"""Means over seeds with bootstrap intervals, differences of two means, interquartile means."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

N_RESAMPLES = 10_000
_ENDS = (2.5, 97.5)  # of a 95 % interval, in percent


class Estimate(NamedTuple):
    """A mean and its 95 % interval; arrays where each seed has an array of values."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def overlaps(self, other: Estimate) -> bool:
        """Whether the two intervals have a point in common."""
        return bool(self.low <= other.high and other.low <= self.high)


def estimate(values: np.ndarray) -> Estimate:
    """The mean over seeds (the first axis) with its percentile bootstrap interval."""
    return Estimate(np.mean(values, axis=0), *_interval(_resampled_means(values, stream=0)))


def difference(a: np.ndarray, b: np.ndarray) -> Estimate:
    """The mean of ``a`` minus that of ``b``; their seeds are resampled independently."""
    resampled = _resampled_means(a, stream=0) - _resampled_means(b, stream=1)
    return Estimate(np.mean(a, axis=0) - np.mean(b, axis=0), *_interval(resampled))


def interquartile_mean(values: np.ndarray) -> float:
    """The mean of the middle half: without the lowest and the highest n // 4 of n values."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def _resampled_means(values: np.ndarray, stream: int) -> np.ndarray:
    """Means of seeds drawn with replacement, (N_RESAMPLES, ...)."""
    values = np.asarray(values, np.float64)
    return np.tensordot(_shares(len(values), stream), values, axes=1)


@cache
def _shares(n: int, stream: int) -> np.ndarray:
    """The share of each of n seeds in each resample, (N_RESAMPLES, n).

    Always the same resamples, so that the page does not change when it is written again.
    """
    rng = np.random.default_rng([n, stream])
    return rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES) / n


def _interval(means: np.ndarray) -> np.ndarray:
    return np.percentile(means, _ENDS, axis=0)
