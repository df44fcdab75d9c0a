"""The face of every predicted distribution: a batch of them, one a row, with scipy's names.

A subclass computes; this base validates, settles the axes and derives what follows. Axes are the
same everywhere: draws first, (n_draws, n_rows[, d]); quantiles and intervals (n_rows, n).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nkcme.errors import NkcmeError


class Distribution(ABC):
    """A batch of distributions of y, one a row; index it to choose rows."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many distributions these are."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """The dimension of y."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Distribution:
        """The chosen rows; an integer gives a batch of one."""

    def __len__(self) -> int:
        return self.n_rows

    def pdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The density at ``y``.

        ``y`` holds one value a row, (n_rows,), or several, (n_rows, m), or is one number for all.
        With ``grid=True`` it is a grid (m,) shared by all rows and the result is (n_rows, m).
        For outputs of dimension d > 1 a point has a last axis d: (n_rows, d), or a grid (m, d).
        """
        return self._at(self._pdf, y, grid)

    def logpdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The logarithm of the density; ``y`` as in `pdf`."""
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(y, grid=grid))

    def cdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The probability of being at most ``y`` (in every output); ``y`` as in `pdf`."""
        return self._at(self._cdf, y, grid)

    def ppf(self, q: ArrayLike) -> np.ndarray:
        """Quantiles (n_rows, len(q)), or (n_rows,) for one number; they never cross."""
        self._need_one_output("a quantile")
        levels = np.asarray(q, np.float64)
        if levels.ndim > 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise NkcmeError("quantile levels must be numbers from 0 to 1, in a list or alone")
        values = self._ppf(np.atleast_1d(levels))
        return values[:, 0] if levels.ndim == 0 else values

    def median(self) -> np.ndarray:
        """The 0.5 quantile."""
        return self.ppf(0.5)

    def interval(self, coverage: float = 0.9) -> np.ndarray:
        """The central interval (n_rows, 2) that holds ``coverage`` of the probability."""
        if not 0 < coverage < 1:
            raise NkcmeError(f"coverage must lie between 0 and 1, as 0.9 does; got {coverage}")
        return self.ppf([(1 - coverage) / 2, (1 + coverage) / 2])

    @abstractmethod
    def mean(self) -> np.ndarray:
        """The expectation of y."""

    @abstractmethod
    def var(self) -> np.ndarray:
        """The variance of y, output by output."""

    def std(self) -> np.ndarray:
        """The standard deviation of y, output by output."""
        return np.sqrt(self.var())

    @abstractmethod
    def mode(self) -> np.ndarray:
        """The y of the highest density."""

    @abstractmethod
    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """``size`` independent draws a row, draws first: (size, n_rows[, d])."""

    @abstractmethod
    def crps(self, y: ArrayLike) -> np.ndarray:
        """The continuous ranked probability score of one ``y`` a row; lower is better."""

    # What a subclass gives: points arrive as (n_rows or 1, m, d) and leave as (n_rows, m).

    @abstractmethod
    def _pdf(self, y: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _cdf(self, y: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _ppf(self, q: np.ndarray) -> np.ndarray: ...

    def _need_one_output(self, what: str) -> None:
        if self.n_outputs != 1:
            raise NkcmeError(
                f"{what} has a meaning for one output only, and this distribution has "
                f"{self.n_outputs}: draw with rvs and summarise each output"
            )

    def _at(
        self, function: Callable[[np.ndarray], np.ndarray], y: ArrayLike, grid: bool
    ) -> np.ndarray:
        """Bring ``y`` to (n_rows or 1, m, d), call, and give back the shape that was asked for."""
        points = np.asarray(y, np.float64)
        d, n = self.n_outputs, self.n_rows
        if d == 1:
            points = points[..., None]
        if points.shape[-1:] != (d,):
            raise NkcmeError(f"a point has {d} outputs in its last axis; got shape {points.shape}")
        lead = points.shape[:-1]
        if grid:
            if len(lead) != 1:
                raise NkcmeError(f"a grid is one list of points; got shape {np.shape(y)}")
            return function(points[None])
        if lead == () or lead == (n,):
            points = np.broadcast_to(points, (n, d))
            return function(points[:, None, :])[:, 0]
        if len(lead) == 2 and lead[0] == n:
            return function(points)
        raise NkcmeError(
            f"expected one y for each of {n} rows, got shape {np.shape(y)}; "
            "for points shared by all rows pass grid=True"
        )
