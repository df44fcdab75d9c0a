"""A sample of y for each row, read as a distribution: the prediction of models that only sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.distributions.blocks import count_that_fits, map_points, map_rows
from nkcme.distributions.checks import as_rows
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.distributions.piecewise import QuantileTable
from nkcme.errors import NkcmeError

#: The smallest bandwidth, as a share of the largest draw: equal draws have a density too.
MIN_BANDWIDTH = 1e-12

#: The mode is searched among this many of a row's draws.
MODE_CANDIDATES = 64


@dataclass(frozen=True, eq=False)
class SampleDistribution(Distribution):
    """Equally weighted draws of y for each row, as a distribution.

    Parameters
    ----------
    draws : array_like of shape (n_draws, n_rows) or (n_draws, n_rows, d)
        Finite values; at least one per row.

    Notes
    -----
    The sample is smoothed in two ways:

    - `cdf`, `ppf` and `crps` belong to the piecewise linear CDF through the order statistics, the
      i-th of n at level (i - 1/2) / n. Beyond the outermost draws it continues at the slope of the
      outermost step until it reaches 0 and 1. Equal draws make it jump. For several outputs `cdf`
      is the share of draws that are at most y in every output.
    - `pdf`, `logpdf` and `mode` belong to Gaussian kernels at the draws. For one output their
      bandwidth is 0.9 min(std, IQR / 1.34) n^(-1/5) (Silverman's rule; the std alone where the IQR
      is zero), for d > 1 a product of kernels has bandwidths std n^(-1/(d + 4)) (Scott's rule).
      `mode` is the draw of the highest density, among at most 64 of them.

    `mean` and `var` are those of the draws, and `rvs` resamples the draws with replacement.

    Examples
    --------
    >>> from nkcme.distributions.sample import SampleDistribution
    >>> dist = SampleDistribution([[1.0], [2.0], [4.0]])
    >>> dist.ppf([0.5, 1.0])
    array([[2., 5.]])
    """

    draws: np.ndarray

    def __post_init__(self) -> None:
        draws = np.asarray(self.draws, np.float64)
        draws = draws[..., None] if draws.ndim == 2 else draws
        if draws.ndim != 3 or not draws.shape[0] or not draws.shape[2]:
            raise NkcmeError(
                "expected draws (n_draws, n_rows) or (n_draws, n_rows, d), at least one per row; "
                f"got {np.shape(self.draws)}"
            )
        if not np.all(np.isfinite(draws)):
            raise NkcmeError("the draws must be finite; got NaN or infinite ones")
        object.__setattr__(self, "draws", draws)

    @property
    def n_rows(self) -> int:
        """The number of distributions."""
        return self.draws.shape[1]

    @property
    def n_outputs(self) -> int:
        """The dimension d of y."""
        return self.draws.shape[2]

    @property
    def n_draws(self) -> int:
        """The number of draws per row."""
        return self.draws.shape[0]

    def __getitem__(self, rows: Any) -> SampleDistribution:
        return replace(self, draws=self.draws[:, as_rows(rows)])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_draws} draws, {self.n_rows} rows, "
            f"{self.n_outputs} outputs)"
        )

    # --- the kernel density -----------------------------------------------------------------------

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return self._kernels._pdf(y)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._kernels._logpdf(y)

    def _mode(self) -> np.ndarray:
        # For one output the candidates are evenly spaced in rank.
        ranked = np.sort(self.draws, axis=0) if self.n_outputs == 1 else self.draws
        n_candidates = min(self.n_draws, MODE_CANDIDATES)
        candidates = ranked[np.linspace(0, self.n_draws - 1, n_candidates).round().astype(int)]
        best = self._kernels._logpdf(np.moveaxis(candidates, 0, 1)).argmax(axis=1)
        return candidates[best, np.arange(self.n_rows)]

    @cached_property
    def _kernels(self) -> GaussianMixture:
        """The mixture with one component per draw."""
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

    # --- the piecewise linear CDF -----------------------------------------------------------------

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        block_points = count_that_fits(self.n_draws * self.n_outputs)
        return map_points(self._cdf_of_rows, y, block_points=block_points)

    def _cdf_of_rows(self, y: np.ndarray) -> np.ndarray:
        y = np.broadcast_to(y, (self.n_rows, *y.shape[1:]))
        if self.n_outputs == 1:
            with np.errstate(over="ignore"):  # y may be infinitely far from all draws
                z = y[..., 0] / self._unit
            block_rows = count_that_fits(8 * (y.shape[1] + self.n_draws))
            return map_rows(lambda e, v: e._table.at(v), self, z, block_rows=block_rows)
        block_rows = count_that_fits(y.shape[1] * self.n_draws * self.n_outputs)
        return map_rows(
            lambda e, v: np.all(e.draws[:, :, None] <= v, axis=-1).mean(axis=0),
            self,
            y,
            block_rows=block_rows,
        )

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        block_rows = count_that_fits(4 * (len(q) + self.n_draws))
        return self._unit * map_rows(lambda e: e._table.inverse(q), self, block_rows=block_rows)

    def _crps(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # y may be infinitely far from all draws
            z = y / self._unit[:, 0]
        block_rows = count_that_fits(8 * (self.n_draws + 2))
        scores = map_rows(lambda e, v: e._table.crps(v), self, z, block_rows=block_rows)
        return scores * self._unit[:, 0]

    @cached_property
    def _table(self) -> QuantileTable:
        """The CDF of one output, in units of `_unit`."""
        n, ordered = self.n_draws, np.sort(self._standard[..., 0], axis=1)
        levels = np.concatenate([[0.0], (np.arange(n) + 0.5) / n, [1.0]])
        first, last = ordered[:, :1], ordered[:, -1:]
        if n > 1:
            first = first - 0.5 * (ordered[:, 1:2] - first)
            last = last + 0.5 * (last - ordered[:, -2:-1])
        return QuantileTable(levels, np.concatenate([first, ordered, last], axis=1))

    # --- the draws themselves ---------------------------------------------------------------------

    def _mean(self) -> np.ndarray:
        return self._unit * self._standard.mean(axis=1)

    def _std(self) -> np.ndarray:
        return self._unit * self._standard_std

    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        chosen = rng.randint(self.n_draws, size=(size, self.n_rows))
        return self.draws[chosen, np.arange(self.n_rows)]

    @cached_property
    def _unit(self) -> np.ndarray:
        """A power of two (n_rows, d) above the draws. In this unit no square overflows, and
        dividing and multiplying by it rounds nothing."""
        exponent = np.frexp(np.abs(self.draws).max(axis=0))[1]
        return np.ldexp(1.0, np.clip(exponent, -1021, 1023))

    @property
    def _standard(self) -> np.ndarray:
        """The draws in units of `_unit`, rows first: (n_rows, n_draws, d)."""
        return np.ascontiguousarray(np.moveaxis(self.draws / self._unit, 0, 1))

    @cached_property
    def _standard_std(self) -> np.ndarray:
        return self._standard.std(axis=1)
