"""The interface of every predicted distribution: a batch of distributions, one per row.

A subclass implements the underscored methods; the base checks arguments, arranges axes and derives
everything else. Axes are the same everywhere: samples first, (n_samples, n_rows[, d]); quantiles
and intervals (n_rows, n).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.checks import (
    arranged_points,
    as_floats,
    as_random_state,
    checked_coverage,
    checked_size,
)
from nkcme.distributions.description import DescribedRows
from nkcme.distributions.elementwise import every
from nkcme.errors import NkcmeError

#: Quantiles whose log densities are averaged to an entropy.
_ENTROPY_LEVELS = 4096


class Distribution(DescribedRows):
    """A batch of predicted distributions of y, one per row.

    Methods are named as in `scipy.stats`. ``len(dist)`` is the number of rows. Indexing with a
    slice, a list of integers or a mask selects rows; an integer gives a batch of one row.

    Points ``y`` of `pdf`, `logpdf` and `cdf` have one of these shapes, where points of d > 1
    outputs have a last axis d in addition:

    - ``(n_rows,)``: one point per row, result (n_rows,);
    - a single number: the same point for all rows, result (n_rows,);
    - ``(n_rows, m)``: m points per row, result (n_rows, m);
    - ``(m,)`` with ``grid=True``: m points shared by all rows, result (n_rows, m).

    A point that is NaN has the density, log density, probability and score NaN.
    """

    @abstractmethod
    def __getitem__(self, rows: Any) -> Distribution:
        """The selected rows; an integer gives a batch of one row."""

    def __len__(self) -> int:
        return self.n_rows

    def smoothed(self) -> Distribution:
        """The distribution with a smooth density, for drawing curves and for log-likelihoods."""
        return self

    def without_support(self) -> Distribution:
        """The distribution before it is confined to a support: continuous, over all numbers."""
        return self

    def pdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The density at ``y``.

        Parameters
        ----------
        y : array_like
            Points, see the class description for their shapes.
        grid : bool
            Whether ``y`` is one list of points shared by all rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, m)

        Raises
        ------
        NkcmeError
            If the shape of ``y`` does not match the number of rows and outputs.
        """
        return self._at(self._pdf, y, grid)

    def logpdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The logarithm of the density at ``y``, -inf where the density is zero.

        Parameters and shapes are those of `pdf`.
        """
        return self._at(self._logpdf, y, grid)

    def cdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The probability of a value of at most ``y``, in every output.

        Parameters and shapes are those of `pdf`.
        """
        return self._at(self._cdf, y, grid)

    def sf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The probability of a value above ``y``: one minus the `cdf` of one output.

        Parameters and shapes are those of `pdf`.
        """
        self._need_one_output("the survival function")
        return 1.0 - self.cdf(y, grid=grid)

    def pmf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The probability of exactly ``y``: zero except at point masses.

        Parameters and shapes are those of `pdf`.
        """
        return self._at(self._pmf, y, grid)

    def point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        """The values (k,) of positive probability, and the probabilities (n_rows, k)."""
        return self._point_masses()

    def ppf(self, q: ArrayLike) -> np.ndarray:
        """Quantiles at the levels ``q``. They never cross.

        Parameters
        ----------
        q : float or array_like of shape (k,)
            Levels from 0 to 1, in any order.

        Returns
        -------
        ndarray of shape (n_rows, k), or (n_rows,) for a single level

        Raises
        ------
        NkcmeError
            If a level is outside [0, 1], or if y has several outputs.
        """
        self._need_one_output("a quantile")
        levels = as_floats("quantile levels", q)
        if levels.ndim > 1 or not every((levels >= 0) & (levels <= 1)):
            raise NkcmeError("quantile levels must be numbers from 0 to 1, in a list or alone")
        if levels.ndim == 0:
            return self._ppf(levels[None])[:, 0]
        values = self._ppf(levels)
        # Rounding may let neighbouring quantiles cross in the last digit.
        if every(levels[1:] >= levels[:-1]):
            return np.maximum.accumulate(values, axis=1, out=values)
        order = np.argsort(levels)
        values[:, order] = np.maximum.accumulate(values[:, order], axis=1)
        return values

    def isf(self, q: ArrayLike) -> np.ndarray:
        """Quantiles at the levels 1 - ``q``: the values that are exceeded with probability ``q``.

        Parameters and shapes are those of `ppf`.
        """
        return self.ppf(1.0 - as_floats("quantile levels", q))

    def median(self) -> np.ndarray:
        """The 0.5 quantile, (n_rows,)."""
        return self.ppf(0.5)

    def interval(self, coverage: float | Sequence[float] | np.ndarray = 0.9) -> np.ndarray:
        """The central interval that contains y with probability ``coverage``.

        Parameters
        ----------
        coverage : float or list of k floats
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, k, 2) for k coverages
            The quantiles at (1 - coverage) / 2 and (1 + coverage) / 2.

        Raises
        ------
        NkcmeError
            If a coverage is not between 0 and 1.
        """
        if np.ndim(coverage) != 1:
            level = checked_coverage(coverage)
            return self.ppf([(1 - level) / 2, (1 + level) / 2])
        levels = [checked_coverage(one) for one in coverage]  # type: ignore[union-attr]
        ends = [end for level in levels for end in ((1 - level) / 2, (1 + level) / 2)]
        return self.ppf(ends).reshape(self.n_rows, len(levels), 2)

    def entropy(self) -> np.ndarray:
        """The entropy E[-log pdf(y)] of one output, (n_rows,), by quadrature over quantiles."""
        # Levels 3 t^2 - 2 t^3 of even t are dense at both ends, where the density changes most.
        t = (np.arange(_ENTROPY_LEVELS) + 0.5) / _ENTROPY_LEVELS
        share = 6.0 * t * (1.0 - t) / _ENTROPY_LEVELS
        return -self.logpdf(self.ppf(t * t * (3.0 - 2.0 * t))) @ share

    def mean(self) -> np.ndarray:
        """The expectation of y.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, d) for d > 1 outputs
        """
        return self._squeeze(self._mean())

    def var(self) -> np.ndarray:
        """The variance of y, for each output: (n_rows,), or (n_rows, d) for d > 1 outputs."""
        with np.errstate(over="ignore"):  # the square of units of 1e200 is infinite
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """The standard deviation of y, for each output, in the shape of `var`."""
        return self._squeeze(self._std())

    def mode(self) -> np.ndarray:
        """The y of the highest density, in the shape of `mean`."""
        return self._squeeze(self._mode())

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Independent samples of y.

        Parameters
        ----------
        size : int
            Samples per row.
        random_state : int, RandomState or None
            The seed, or the generator to use.

        Returns
        -------
        ndarray of shape (size, n_rows), or (size, n_rows, d) for d > 1 outputs

        Raises
        ------
        NkcmeError
            If ``size`` is not a whole number of at least 0.
        """
        size = checked_size(size)
        return self._squeeze(self._rvs(size, as_random_state(random_state)))

    def crps(self, y: ArrayLike) -> np.ndarray:
        """The continuous ranked probability score of one ``y`` per row; lower is better.

        It is the integral of (F(t) - 1{t >= y})^2 dt with F the `cdf`, in units of y.

        Parameters
        ----------
        y : array_like of shape (n_rows,)
            The observed values.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        NkcmeError
            If ``y`` has another shape, or if y has several outputs.
        """
        self._need_one_output("the CRPS")
        observed = as_floats("y", y)
        if observed.shape != (self.n_rows,):
            raise NkcmeError(f"expected one y for each of {self.n_rows} rows; got {observed.shape}")
        missing = np.isnan(observed)
        scores = self._crps(np.where(missing, 0.0, observed))
        return np.where(missing, np.nan, scores)

    # What a subclass with point masses implements.

    def _pmf(self, y: np.ndarray) -> np.ndarray:
        """The probability of points: (n_rows, m)."""
        return np.zeros((self.n_rows, y.shape[1]))

    def _point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        """Values (k,) of positive probability, and the probabilities (n_rows, k)."""
        return np.empty(0), np.empty((self.n_rows, 0))

    # What a subclass implements. Points have the shape (n_rows or 1, m, d) and no NaN.

    @abstractmethod
    def _pdf(self, y: np.ndarray) -> np.ndarray:
        """The density at points: (n_rows, m)."""

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        """The log density at points: (n_rows, m)."""
        with np.errstate(divide="ignore"):
            return np.log(self._pdf(y))

    @abstractmethod
    def _cdf(self, y: np.ndarray) -> np.ndarray:
        """The CDF at points: (n_rows, m)."""

    @abstractmethod
    def _ppf(self, q: np.ndarray) -> np.ndarray:
        """Quantiles of one output at levels (k,): (n_rows, k)."""

    @abstractmethod
    def _mean(self) -> np.ndarray:
        """(n_rows, d)."""

    @abstractmethod
    def _std(self) -> np.ndarray:
        """(n_rows, d)."""

    @abstractmethod
    def _mode(self) -> np.ndarray:
        """(n_rows, d)."""

    @abstractmethod
    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        """Samples (size, n_rows, d)."""

    @abstractmethod
    def _crps(self, y: np.ndarray) -> np.ndarray:
        """The score of one output at y (n_rows,): (n_rows,)."""

    def _squeeze(self, values: np.ndarray) -> np.ndarray:
        """``values`` without their last axis, that of the outputs, where there is one output."""
        return values[..., 0] if self.n_outputs == 1 else values

    def _need_one_output(self, what: str) -> None:
        if self.n_outputs != 1:
            raise NkcmeError(
                f"{what} is defined for one output only, and this distribution has "
                f"{self.n_outputs}: sample with rvs and summarise each output"
            )

    def _at(
        self, function: Callable[[np.ndarray], np.ndarray], y: ArrayLike, grid: bool
    ) -> np.ndarray:
        """``function`` at the points ``y``, in the shape that belongs to theirs."""
        points, one_per_row = arranged_points(y, self.n_rows, self.n_outputs, grid)
        missing = np.isnan(points).any(axis=-1)
        if missing.any():
            points = np.where(missing[..., None], 0.0, points)
        values = function(points)
        if missing.any():
            values = np.where(missing, np.nan, values)
        return values[:, 0] if one_per_row else values
