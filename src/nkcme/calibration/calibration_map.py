"""Recalibration: a monotone map of predicted probabilities, learned from honest predictions.

Where F is the predicted distribution function, U = F(y | x) is uniform if predictions are
calibrated. If it is distributed as R instead, then R(F(y | x)) is the calibrated one (Kuleshov,
Fenner and Ermon, 2018). On the weights of an embedding this is a change of weights: sums of them
from the left are mapped, and their differences are the new ones. Atoms and kernel stay, and
quantiles cannot cross.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln

from nkcme.errors import NkcmeError

#: Even steps of probability at which the map is kept.
N_STEPS = 100

#: As many rows as these speak for the identity when a beta distribution is fitted to U.
_ROWS_FOR_IDENTITY = 100.0
#: And for that distribution when U is counted: as many of these as make the counts most likely. A
#: few hundred rows then correct the middle and the spread, and only many bend the map in detail, or
#: a shape that is far from any beta's.
_ROWS_FOR_BETA = 500.0 * 2.0 ** np.arange(8)


@dataclass(frozen=True, eq=False)
class Recalibration:
    """R, piecewise linear between even levels: ``values`` (N_STEPS + 1,) from zero to one."""

    values: np.ndarray

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        rises = values.ndim == 1 and len(values) > 1 and np.all(np.diff(values) >= 0)
        if not (rises and values[0] == 0.0 and abs(values[-1] - 1.0) < 1e-6):
            raise NkcmeError("a recalibration must rise from zero to one")
        object.__setattr__(self, "values", np.minimum(values, 1.0))

    @classmethod
    def fit(cls, pit: np.ndarray, weight: np.ndarray | None = None) -> Recalibration:
        """From F(y | x) of rows that the predictions have not seen."""
        return cls.from_counts(counts(pit, weight))

    @classmethod
    def from_counts(cls, seen: np.ndarray) -> Recalibration:
        """From the rows (N_STEPS,) in each step of probability; negative ones count as none."""
        seen = np.maximum(seen, 0.0)
        smooth = np.diff(_beta_of(seen).cdf(np.linspace(0.0, 1.0, N_STEPS + 1)))
        together = seen + _rows_for(smooth, seen) * smooth
        values = np.concatenate([[0.0], np.cumsum(together)]) / together.sum()
        values[-1] = 1.0
        return cls(values)

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """R at probabilities of any shape."""
        levels = np.linspace(0.0, 1.0, len(self.values))
        return np.interp(probability, levels, self.values)

    def of_weights(self, weights: np.ndarray) -> np.ndarray:
        """The weights (n_rows, m), of atoms in increasing order and on the simplex, of which the
        distribution function is R of what it was."""
        below = np.cumsum(np.asarray(weights, np.float64), axis=1)
        below = self(below / below[:, -1:])
        return np.diff(below, axis=1, prepend=0.0)


def _beta_of(seen: np.ndarray) -> Any:
    """The beta distribution with the mean and variance of rows counted in even steps."""
    middles = (np.arange(N_STEPS) + 0.5) / N_STEPS
    rows = seen + _ROWS_FOR_IDENTITY / N_STEPS
    mean = np.average(middles, weights=rows)
    # Within a step rows are spread evenly, which has a variance too.
    variance = np.average(np.square(middles - mean), weights=rows) + 1.0 / (12.0 * N_STEPS**2)
    size = mean * (1.0 - mean) / variance - 1.0
    return stats.beta(max(mean * size, 0.05), max((1.0 - mean) * size, 0.05))


def _rows_for(smooth: np.ndarray, seen: np.ndarray) -> float:
    """How many rows to give to a smooth law of the steps: what makes the counts most likely if
    their law is drawn from a Dirichlet distribution about it."""
    rows = _ROWS_FOR_BETA[:, None] * np.maximum(smooth, 1e-9)
    likely = np.sum(gammaln(rows + seen) - gammaln(rows), axis=1)
    likely += gammaln(_ROWS_FOR_BETA) - gammaln(_ROWS_FOR_BETA + seen.sum())
    return float(_ROWS_FOR_BETA[np.argmax(likely)])


def counts(pit: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """How many rows have their F(y | x) in each step of probability, (N_STEPS,)."""
    levels = np.linspace(0.0, 1.0, N_STEPS + 1)
    return np.histogram(np.clip(pit, 0.0, 1.0), levels, weights=weight)[0].astype(np.float64)


def counts_of_more_members(
    single: np.ndarray, mean: np.ndarray, n_averaged: int, n_members: int
) -> np.ndarray:
    """The counts to expect of the mean of all members' distributions.

    ``single`` are those of a member alone, ``mean`` those of the mean of ``n_averaged``. To first
    order in the variance between members counts change with one over their number: averaging
    widens a distribution, and what it does from one to a few tells what it will do from a few to
    all. With one there is nothing to tell, and ``mean`` comes back.
    """
    if n_averaged == 1:
        return mean
    slope = (single - mean) / (1.0 - 1.0 / n_averaged)
    return mean + slope * (1.0 / n_members - 1.0 / n_averaged)
