"""The calibration map: a monotone map of predicted probabilities, fitted out of fold.

Where F is the predicted CDF, the probability integral transform U = F(y | x) is uniform if the
predictions are calibrated. If U has the CDF R instead, then R(F(y | x)) is calibrated (Kuleshov,
Fenner and Ermon, 2018). For an embedding the map changes the weights: their cumulative sums are
mapped, and the differences are the new weights. Atoms and kernel stay the same, and quantiles
cannot cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nkcme.errors import NkcmeError

#: Even steps of probability at which the map is stored.
N_STEPS = 100

#: Pseudo-rows of a uniform U that are added when a beta distribution is fitted to U.
UNIFORM_ROWS = 50.0
#: Candidates for the pseudo-rows of that beta distribution which are added to the counts of U; the
#: likeliest is used. A few hundred rows then correct the middle and the spread, and only many
#: rows, or a shape far from any beta distribution, bend the map in detail.
BETA_ROWS = tuple(62.5 * 2.0**i for i in range(11))


@dataclass(frozen=True, eq=False)
class CalibrationMap:
    """The map R of predicted to calibrated probabilities, linear between even levels.

    Parameters
    ----------
    values : array_like of shape (n_steps + 1,)
        R at even levels from 0 to 1: not decreasing, from zero to one.

    Raises
    ------
    NkcmeError
        If the values decrease, or do not start at zero and end at one.

    Examples
    --------
    >>> import numpy as np
    >>> from nkcme.calibration.calibration_map import CalibrationMap
    >>> rng = np.random.default_rng(0)
    >>> too_wide = CalibrationMap.fit(rng.beta(2, 2, size=5000))  # PIT values gather in the middle
    >>> too_wide(np.array([0.05, 0.5, 0.95])).round(2)
    array([0.01, 0.5 , 0.99])
    """

    values: np.ndarray

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        rises = values.ndim == 1 and len(values) > 1 and np.all(np.diff(values) >= 0)
        if not (rises and values[0] == 0.0 and abs(values[-1] - 1.0) < 1e-6):
            raise NkcmeError("a calibration map must rise from zero to one")
        object.__setattr__(self, "values", np.minimum(values, 1.0))

    def __repr__(self) -> str:
        even = np.linspace(0.0, 1.0, len(self.values))
        return (
            f"CalibrationMap(moves a probability by up to {np.abs(self.values - even).max():.3g})"
        )

    @classmethod
    def fit(cls, pit: ArrayLike, weight: ArrayLike | None = None) -> CalibrationMap:
        """The map for given values of F(y | x).

        Parameters
        ----------
        pit : array_like of shape (n_rows,)
            F(y | x) of rows that the predicting model was not fitted to.
        weight : array_like of shape (n_rows,) or None
            How many rows each row counts as; None for one each.

        Returns
        -------
        CalibrationMap
        """
        return cls.from_counts(pit_counts(pit, weight))

    @classmethod
    def from_counts(
        cls,
        counts: np.ndarray,
        *,
        expected: np.ndarray | None = None,
        uniform_rows: float = UNIFORM_ROWS,
        beta_rows: Sequence[float] = BETA_ROWS,
    ) -> CalibrationMap:
        """The map for given counts of F(y | x).

        Parameters
        ----------
        counts : ndarray of shape (N_STEPS,)
            The rows in each step of probability, from `pit_counts`.
        expected : ndarray of shape (N_STEPS,) or None
            The counts to expect from new rows, where those differ (see `extrapolated_counts`).
            Extrapolation makes them noisy, so only the beta distribution is fitted to them; what
            bends the map in detail are the counts themselves. None: the same counts.
        uniform_rows : float
            Pseudo-rows of a uniform U that are added when a beta distribution is fitted to U.
        beta_rows : sequence of float
            Candidates for the pseudo-rows of that beta distribution which are added to the counts.

        Returns
        -------
        CalibrationMap
        """
        smooth = _beta_shares(counts, uniform_rows)
        together = counts + _likeliest_rows(smooth, counts, np.asarray(beta_rows)) * smooth
        if expected is not None:
            together *= _beta_shares(expected, uniform_rows) / np.maximum(smooth, 1e-300)
        values = np.concatenate([[0.0], np.cumsum(together)]) / together.sum()
        values[-1] = 1.0
        return cls(values)

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """R at predicted probabilities.

        Parameters
        ----------
        probability : ndarray
            Probabilities, of any shape.

        Returns
        -------
        ndarray of the same shape
        """
        levels = np.linspace(0.0, 1.0, len(self.values))
        return np.interp(probability, levels, self.values)

    def widened(self, n_rows: float) -> CalibrationMap:
        """The map for new rows where this one was learned from few.

        Quantiles by the standard deviation of n normal values hold less than they should: a new
        value follows Student's distribution with n - 1 degrees of freedom. Here this is done to
        normal scores. (The error of the mean of n values adds nothing: the rows of a map are new to
        the model, so their F(y | x) shows the error of its centre.)

        Parameters
        ----------
        n_rows : float
            The independent rows that the map was learned from, above one.

        Returns
        -------
        CalibrationMap
        """
        from scipy.special import ndtri, stdtr

        inner = stdtr(n_rows - 1.0, ndtri(self.values[1:-1]))
        return CalibrationMap(np.concatenate([[0.0], inner, [1.0]]))

    def of_weights(self, weights: np.ndarray) -> np.ndarray:
        """The weights whose CDF is R of the CDF of the given weights.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, m)
            Weights of atoms in increasing order, not negative.

        Returns
        -------
        ndarray of shape (n_rows, m)
            Weights that sum to one.
        """
        below = np.cumsum(np.asarray(weights, np.float64), axis=1)
        below = self(below / below[:, -1:])
        return np.diff(below, axis=1, prepend=0.0)


def pit_counts(
    pit: ArrayLike, weight: ArrayLike | None = None, *, lower: ArrayLike | None = None
) -> np.ndarray:
    """The number of rows, or their weight, with F(y | x) in each step of probability, (N_STEPS,).

    Parameters
    ----------
    pit : array_like of shape (n_rows,)
        F(y | x) of each row.
    weight : array_like of shape (n_rows,) or None
        How many rows each row counts as; None for one each.
    lower : array_like of shape (n_rows,) or None
        P(Y < y | x), where y has point masses. A row is then spread evenly from there to F(y | x):
        the expectation of a randomised PIT, which is uniform for a perfect model.
    """
    levels = np.linspace(0.0, 1.0, N_STEPS + 1)
    upper = np.clip(np.asarray(pit, np.float64), 0.0, 1.0)
    rows = np.ones(len(upper)) if weight is None else np.asarray(weight, np.float64)
    start = upper if lower is None else np.clip(np.asarray(lower, np.float64), 0.0, upper)
    jumps = upper - start > 1e-9
    counts = np.histogram(upper[~jumps], levels, weights=rows[~jumps])[0].astype(np.float64)
    if jumps.any():
        share = (levels - start[jumps, None]) / (upper - start)[jumps, None]
        counts += np.diff(rows[jumps] @ np.clip(share, 0.0, 1.0))
    return counts


def extrapolated_counts(
    single: np.ndarray, averaged: np.ndarray, n_averaged: int, n_members: int
) -> np.ndarray:
    """The counts to expect from the average of ``n_members`` predicted distributions.

    ``single`` are the counts of one member, ``averaged`` those of the average of ``n_averaged``.
    Averaging widens a distribution. To first order in the variance between members the counts are
    linear in one over their number, so the change from one to a few members determines the change
    from a few to all. With one averaged member nothing can be extrapolated, and ``averaged`` is
    returned.
    """
    if n_averaged == 1:
        return averaged
    slope = (single - averaged) / (1.0 - 1.0 / n_averaged)
    return averaged + slope * (1.0 / n_members - 1.0 / n_averaged)


def _beta_shares(counts: np.ndarray, uniform_rows: float) -> np.ndarray:
    """The share of each step in the beta distribution with the mean and variance of the rows that
    are counted in even steps; negative counts are zero."""
    from scipy.stats import beta as beta_law  # half a second, which only a fit needs

    counts = np.maximum(counts, 0.0)
    middles = (np.arange(N_STEPS) + 0.5) / N_STEPS
    rows = counts + uniform_rows / N_STEPS
    mean = np.average(middles, weights=rows)
    # Plus the variance within a step, over which rows are spread evenly.
    variance = np.average(np.square(middles - mean), weights=rows) + 1.0 / (12.0 * N_STEPS**2)
    size = mean * (1.0 - mean) / variance - 1.0
    beta = beta_law(max(mean * size, 0.05), max((1.0 - mean) * size, 0.05))
    return np.diff(beta.cdf(np.linspace(0.0, 1.0, N_STEPS + 1)))


def _likeliest_rows(smooth: np.ndarray, counts: np.ndarray, candidates: np.ndarray) -> float:
    """The number of pseudo-rows of a smooth distribution of steps that makes the counts likeliest.

    The distribution of the counts has a Dirichlet prior with the smooth one as its mean.
    """
    from scipy.special import gammaln

    rows = candidates[:, None] * np.maximum(smooth, 1e-9)
    likely = np.sum(gammaln(rows + counts) - gammaln(rows), axis=1)
    likely += gammaln(candidates) - gammaln(candidates + counts.sum())
    return float(candidates[np.argmax(likely)])
