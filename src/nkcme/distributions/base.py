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

#: Bytes that the temporary arrays of one method may take.
MAX_MEMORY = 2**28

#: Rows predicted at once; what is asked of them is kept, the rest is not.
BLOCK_ROWS = 8192


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

    def smoothed(self) -> Distribution:
        """The reading that has a smooth density, where there are two."""
        return self

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

    # What subclasses share.

    def _one_y_a_row(self, y: ArrayLike) -> np.ndarray:
        """The ``y`` (n_rows,) of a score that needs one a row, and one output."""
        self._need_one_output("the CRPS")
        points = np.asarray(y, np.float64)
        if points.shape != (self.n_rows,):
            raise NkcmeError(f"expected one y for each of {self.n_rows} rows; got {points.shape}")
        return points

    def _squeeze(self, values: np.ndarray) -> np.ndarray:
        """Without the last axis, that of the outputs, where there is one output."""
        return values[..., 0] if self.n_outputs == 1 else values

    def _in_blocks(
        self, f: Callable[..., np.ndarray], *arrays: np.ndarray, at_once: int
    ) -> np.ndarray:
        """f(distribution, *arrays), so many rows at once: (n_rows, ...)."""
        at_once = max(1, at_once)
        if self.n_rows <= at_once:
            return f(self, *arrays)
        return np.concatenate(
            [
                f(self[i : i + at_once], *(a[i : i + at_once] for a in arrays))
                for i in range(0, self.n_rows, at_once)
            ]
        )

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


class Standardised(Distribution):
    """A batch whose mathematics is done in standard units z, with y = location + scale z."""

    location: Any  # a number, or an array (d,) or (n_rows, d); settled, (1 or n_rows, d)
    scale: Any

    def _settle_units(self) -> None:
        """Check ``location`` and ``scale`` and bring them to (1 or n_rows, d)."""
        n, d = self.n_rows, self.n_outputs
        for name in ("location", "scale"):
            units = np.atleast_2d(np.asarray(getattr(self, name), np.float64))
            if units.ndim != 2 or len(units) not in (1, n) or units.shape[1] not in (1, d):
                raise NkcmeError(
                    f"{name} must be a number or an array ({d},) or ({n}, {d}); got shape "
                    f"{np.shape(getattr(self, name))}"
                )
            object.__setattr__(self, name, np.broadcast_to(units, (len(units), d)))
        if not np.all(self.scale > 0):
            raise NkcmeError(f"the scale must be positive; got {np.min(self.scale)}")

    def _units_of(self, rows: Any) -> dict[str, Any]:
        """The units of chosen rows."""
        units = {"location": self.location, "scale": self.scale}
        return {name: u[rows] if len(u) > 1 else u for name, u in units.items()}

    def _to_standard(self, y: np.ndarray) -> np.ndarray:
        """z from points (n_rows or 1, m, d) of y."""
        return (y - self.location[:, None]) / self.scale[:, None]

    def _from_standard(self, z: np.ndarray) -> np.ndarray:
        """y from z, (n_rows or 1, d) or (n_rows, m, d); the last axis goes for one output."""
        middle = (slice(None), None) if z.ndim == 3 else (slice(None),)
        return self._squeeze(self.location[middle] + self.scale[middle] * z)


def as_rows(rows: Any) -> Any:
    """What chooses rows of an array and leaves them an axis: an integer becomes a list of one."""
    return [rows] if isinstance(rows, int | np.integer) else rows


def by_points(
    f: Callable[[np.ndarray], np.ndarray], points: np.ndarray, *, at_once: int
) -> np.ndarray:
    """f at points (n_rows or 1, m, d), so many of the m at once: (n_rows, m)."""
    at_once = max(1, at_once)
    if points.shape[1] <= at_once:
        return f(points)
    parts = range(0, points.shape[1], at_once)
    return np.concatenate([f(points[:, i : i + at_once]) for i in parts], axis=1)


def checked_size(size: int) -> int:
    """A number of draws."""
    if size < 0:
        raise NkcmeError(f"the number of draws must not be negative; got {size}")
    return size
