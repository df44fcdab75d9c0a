"""Means, standard deviations and standardised values of any magnitude, without overflow."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from nkcme.tables.sample_weights import are_whole

FLOAT32_MAX = float(np.finfo(np.float32).max)


def moments(values: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Weighted mean and standard deviation of finite values, without overflow or underflow.

    The sums are over (value - low) / (high - low), which lies in [0, 1] in any units and keeps its
    digits where the spread is tiny beside the mean.
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        return low, 0.0
    unit = _power_of_two_near(max(abs(low), abs(high)))
    base = low * unit
    span = high * unit - base
    share = (values * unit - base) / span
    mean = _average(share, weight)
    spread = math.sqrt(_average((share - mean) ** 2, weight))
    return min(max((base + mean * span) / unit, low), high), spread * span / unit


def robust_units(values: np.ndarray, weight: np.ndarray) -> tuple[float, float] | None:
    """The median, and the larger of the scales that the quartiles and the 5 % and 95 % quantiles of
    a normal distribution would have; None where these quantiles are equal.

    A few enormous values change neither. Quantiles are values of the table, so that a row of weight
    two counts as two equal rows, to the last bit.
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95]) * below[-1]
    place = np.minimum(np.searchsorted(below, levels), len(order) - 1)
    low, first, median, third, high = values[order[place]].tolist()
    with np.errstate(over="ignore"):
        scale = max((third - first) / 1.349, (high - low) / 3.290)
    return (median, scale) if 0 < scale < math.inf and math.isfinite(median / scale) else None


class Units(NamedTuple):
    """A location and a scale, each multiplied by a power of two that brings the scale near 1."""

    unit: Any
    location: Any
    scale: Any

    @classmethod
    def of(cls, location: Any, scale: Any) -> Units:
        """The units of positive scales."""
        unit = _power_of_two_near(scale)
        with np.errstate(over="ignore"):
            return cls(unit, location * unit, scale * unit)

    def standardised(self, values: np.ndarray) -> np.ndarray:
        """(values - location) / scale without intermediate overflow."""
        with np.errstate(over="ignore"):
            return (values * self.unit - self.location) / self.scale


def standardised(values: np.ndarray, mean: Any, scale: Any) -> np.ndarray:
    """(values - mean) / scale without intermediate overflow; 0 where the scale is 0."""
    if np.all(scale == 0):
        return np.zeros_like(values)
    return Units.of(mean, scale).standardised(values)


def _average(share: np.ndarray, weight: np.ndarray) -> float:
    """The weighted mean of numbers from 0 to 1.

    Where weights are whole, the numbers are rounded so finely that their sum is exact and so
    coarsely that it fits into a float. It is then the same in any order of rows, and the same for
    one row of weight two as for two equal rows.
    """
    total = weight.sum()
    if are_whole(weight):
        unit = 2.0 ** max(52 - math.ceil(math.log2(total)), 24)
        share = np.rint(share * unit) / unit
    return float(share @ weight / total)


def _power_of_two_near(size: Any) -> Any:
    """About the inverse of ``size``: multiplying by it is exact and brings numbers near 1."""
    return np.ldexp(1.0, -np.clip(np.frexp(size)[1], -1000, 1000))
