"""What a handful of seeds can tell: means with bootstrap intervals, and differences between two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

N_RESAMPLES = 10_000
_ENDS = (2.5, 97.5)  # of 95 %, in percent


class Estimate(NamedTuple):
    """A mean and its 95 % interval; numbers, or arrays where the values of a seed are arrays."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def overlaps(self, other: Estimate) -> bool:
        return bool(self.low <= other.high and other.low <= self.high)


def estimate(values: np.ndarray) -> Estimate:
    """The mean over seeds, which are the first axis, with its percentile bootstrap interval."""
    return Estimate(np.mean(values, axis=0), *_interval(_resampled_means(values, stream=0)))


def difference(a: np.ndarray, b: np.ndarray) -> Estimate:
    """The mean of ``a`` less that of ``b``, seeds drawn anew for each: they are not pairs."""
    resampled = _resampled_means(a, stream=0) - _resampled_means(b, stream=1)
    return Estimate(np.mean(a, axis=0) - np.mean(b, axis=0), *_interval(resampled))


def interquartile_mean(values: np.ndarray) -> float:
    """The mean of the middle half: without the lowest and the highest n // 4 of n values."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def _resampled_means(values: np.ndarray, stream: int) -> np.ndarray:
    """Means of seeds drawn with replacement, (N_RESAMPLES, ...): how often each was drawn times
    what it gave. The same draws every time, so a page does not change when it is written anew."""
    values = np.asarray(values, np.float64)
    n = len(values)
    rng = np.random.default_rng([n, stream])
    counts = rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    return np.tensordot(counts / n, values, axes=1)


def _interval(means: np.ndarray) -> np.ndarray:
    return np.percentile(means, _ENDS, axis=0)
