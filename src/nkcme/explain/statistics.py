"""Numbers of a distribution that can be explained: its mean, its spread, any quantile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.distributions.checks import as_floats
from nkcme.errors import NkcmeError
from nkcme.evaluation import NOMINAL


def checked_levels(quantiles: Any) -> np.ndarray:
    """Levels of quantiles (k,), which must lie between 0 and 1."""
    levels = np.atleast_1d(as_floats("quantile levels", quantiles))
    if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
        raise NkcmeError("quantile levels must be numbers between 0 and 1, as in 0.05, 0.5, 0.95")
    return levels


def quantile_name(level: float) -> str:
    """The name of a quantile, as in the tables of `nkcme predict`."""
    return f"q{level:g}"


class Statistics:
    """Numbers that are computed of each row of a distribution.

    Parameters
    ----------
    chosen : sequence of str or float
        "mean", "spread" (the width of the central 90 % interval) or the level of a quantile.
    """

    def __init__(self, chosen: Sequence[str | float]):
        self._chosen = [one if one in ("mean", "spread") else self._level(one) for one in chosen]
        if not self._chosen:
            raise NkcmeError('expected at least one of "mean", "spread" or a level such as 0.95')

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [one if isinstance(one, str) else quantile_name(one) for one in self._chosen]

    def of(self, dist: Distribution) -> np.ndarray:
        """Their values (n_rows, k)."""
        return np.stack([self._value(dist, one) for one in self._chosen], axis=1)

    @staticmethod
    def _value(dist: Distribution, one: str | float) -> np.ndarray:
        if one == "mean":
            return dist.mean()
        if one == "spread":
            return np.ptp(dist.interval(NOMINAL), axis=1)
        return dist.ppf(float(one))

    @staticmethod
    def _level(one: Any) -> float:
        if isinstance(one, str):
            raise NkcmeError(
                f'a statistic is "mean", "spread" or the level of a quantile, as 0.95; got {one!r}'
            )
        return float(checked_levels(one)[0])
