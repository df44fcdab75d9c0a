"""Equally weighted draws, read as a distribution: what a model that can only sample predicts.

Two smoothings of one sample, each for what it is good at:

- `cdf`, `ppf` and `crps` are those of the piecewise linear CDF through the order statistics, the
  i-th of n at level (i - 1/2)/n. Beyond the outermost ones their steps go on for the half level
  that is left, so that it reaches 0 and 1. Equal draws make it jump.
- `pdf`, `logpdf` and `mode` are those of Gaussian kernels at the draws.

`mean` and `var` are the draws' own, and `rvs` draws among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from nkcme.distributions.base import (
    MAX_MEMORY,
    Distribution,
    as_rows,
    by_points,
    checked_size,
)
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.distributions.piecewise import QuantileTable
from nkcme.errors import NkcmeError

#: The narrowest kernel, as a share of the largest draw: equal draws have a density too.
MIN_BANDWIDTH = 1e-12

#: The mode is sought among so many of a row's draws.
MODE_CANDIDATES = 64


@dataclass(frozen=True, eq=False)
class Draws(Distribution):
    """A sample of y for each row: ``draws`` (n_draws, n_rows), or (n_draws, n_rows, d)."""

    draws: np.ndarray

    def __post_init__(self) -> None:
        draws = np.asarray(self.draws, np.float64)
        draws = draws[..., None] if draws.ndim == 2 else draws
        if draws.ndim != 3 or not draws.shape[0] or not draws.shape[2]:
            raise NkcmeError(
                "expected draws (n_draws, n_rows) or (n_draws, n_rows, d), at least one a row; got "
                f"{np.shape(self.draws)}"
            )
        if not np.all(np.isfinite(draws)):
            raise NkcmeError("the draws must be finite; got NaN or infinite ones")
        object.__setattr__(self, "draws", draws)

    @property
    def n_rows(self) -> int:
        return self.draws.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.draws.shape[2]

    @property
    def n_draws(self) -> int:
        return self.draws.shape[0]

    def __getitem__(self, rows: Any) -> Draws:
        return replace(self, draws=self.draws[:, as_rows(rows)])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_draws} draws, {self.n_rows} rows, "
            f"{self.n_outputs} outputs)"
        )

    # --- the distribution -------------------------------------------------------------------

    def pdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The density of Gaussian kernels at the draws; ``y`` as everywhere.

        Bandwidths go by row and output: for one output 0.9 min(std, IQR / 1.34) n^(-1/5)
        (Silverman; the std alone where the IQR is zero), for d > 1 a product of kernels of
        std n^(-1/(d + 4)) (Scott). None is below `MIN_BANDWIDTH` of the largest draw.
        """
        return super().pdf(y, grid=grid)

    def logpdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The logarithm of `pdf`, also where that is too small for a float."""
        return self._at(self._kernels._logpdf, y, grid)

    def mean(self) -> np.ndarray:
        """The mean of the draws."""
        return self._squeeze(self._unit * self._standard.mean(axis=1))

    def var(self) -> np.ndarray:
        """The mean squared distance of the draws from their mean, output by output."""
        with np.errstate(over="ignore"):  # units of 1e200, say, have an infinite square
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """The root of `var`, output by output."""
        return self._squeeze(self._unit * self._standard_std)

    def mode(self) -> np.ndarray:
        """The draw of the highest `pdf`, among at most `MODE_CANDIDATES` of them (for one output
        spread evenly over the ranks)."""
        ranked = np.sort(self.draws, axis=0) if self.n_outputs == 1 else self.draws
        some = min(self.n_draws, MODE_CANDIDATES)
        tried = ranked[np.linspace(0, self.n_draws - 1, some).round().astype(int)]
        best = self._kernels._logpdf(np.moveaxis(tried, 0, 1)).argmax(axis=1)
        return self._squeeze(tried[best, np.arange(self.n_rows)])

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draws among the draws, with replacement: (size, n_rows[, d])."""
        rng = check_random_state(random_state)
        chosen = rng.randint(self.n_draws, size=(checked_size(size), self.n_rows))
        return self._squeeze(self.draws[chosen, np.arange(self.n_rows)])

    def crps(self, y: ArrayLike) -> np.ndarray:
        """The integral of (F(t) - 1{t >= y})^2 dt, with F the `cdf`; one ``y`` a row."""
        with np.errstate(over="ignore"):  # a y that is infinitely far from all draws
            z = self._one_y_a_row(y)[:, None] / self._unit
        scores = self._in_blocks(
            lambda e, v: e._table.crps(v[:, 0])[:, None],
            z,
            at_once=MAX_MEMORY // (64 * (self.n_draws + 2)),
        )
        return (scores * self._unit)[:, 0]

    # --- the mathematics: points (n_rows or 1, m, d) -> (n_rows, m) ------------------------------

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return self._kernels._pdf(y)

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return by_points(self._cdf_at, y, at_once=MAX_MEMORY // (4 * self.n_draws * self.n_outputs))

    def _cdf_at(self, y: np.ndarray) -> np.ndarray:
        y = np.broadcast_to(y, (self.n_rows, *y.shape[1:]))
        if self.n_outputs == 1:
            width = 8 * (y.shape[1] + self.n_draws)
            with np.errstate(over="ignore"):  # a y that is infinitely far from all draws
                z = y[..., 0] / self._unit
            return self._in_blocks(
                lambda e, v: e._table.at(v), z, at_once=MAX_MEMORY // (8 * width)
            )
        return self._in_blocks(
            lambda e, v: np.all(e.draws[:, :, None] <= v, axis=-1).mean(axis=0),
            y,
            at_once=MAX_MEMORY // (4 * max(y.shape[1], 1) * self.n_draws * self.n_outputs),
        )

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        width = 4 * (len(q) + self.n_draws)
        z = self._in_blocks(lambda e: e._table.inverse(q), at_once=MAX_MEMORY // (8 * width))
        return self._unit * z

    @cached_property
    def _unit(self) -> np.ndarray:
        """A power of two (n_rows, d) above the draws: in it no square overflows, and going to it
        and back rounds nothing."""
        exponent = np.frexp(np.abs(self.draws).max(axis=0))[1]
        return np.ldexp(1.0, np.clip(exponent, -1021, 1023))

    @property
    def _standard(self) -> np.ndarray:
        """The draws in those units, rows first: (n_rows, n_draws, d)."""
        return np.ascontiguousarray(np.moveaxis(self.draws / self._unit, 0, 1))

    @cached_property
    def _standard_std(self) -> np.ndarray:
        return self._standard.std(axis=1)

    @cached_property
    def _table(self) -> QuantileTable:
        """The CDF of one output, in those units."""
        n, ordered = self.n_draws, np.sort(self._standard[..., 0], axis=1)
        levels = np.concatenate([[0.0], (np.arange(n) + 0.5) / n, [1.0]])
        first, last = ordered[:, :1], ordered[:, -1:]
        if n > 1:
            first = first - 0.5 * (ordered[:, 1:2] - first)
            last = last + 0.5 * (last - ordered[:, -2:-1])
        return QuantileTable(levels, np.concatenate([first, ordered, last], axis=1))

    @cached_property
    def _kernels(self) -> GaussianMixture:
        """A component for each draw."""
        n, d = self.n_draws, self.n_outputs
        if d == 1:
            low, high = self._ppf(np.array([0.25, 0.75])).T[..., None] / self._unit
            iqr = (high - low) / 1.34
            spread = np.where(iqr > 0, np.minimum(self._standard_std, iqr), self._standard_std)
            bandwidth = 0.9 * spread * n**-0.2
        else:
            bandwidth = self._standard_std * n ** (-1 / (d + 4))
        bandwidth = np.maximum(bandwidth, MIN_BANDWIDTH)[:, None]
        return GaussianMixture(
            np.broadcast_to(0.0, (self.n_rows, n)),
            self._standard,
            np.broadcast_to(bandwidth, (self.n_rows, n, d)),
            scale=self._unit,
        )
