"""A sample of y for each row, read as a distribution: the prediction of models that only sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.distributions.blocks import count_that_fits, map_points, map_rows
from nkcme.distributions.checks import as_rows
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.tails import Tail
from nkcme.errors import NkcmeError

#: The smallest bandwidth, as a share of the largest draw: equal draws have a density too.
MIN_BANDWIDTH = 1e-12

#: The mode is searched among this many of a row's draws.
MODE_CANDIDATES = 64

#: Beyond the outermost draws the law goes on with exponential tails. Their scale, in standard
#: deviations of the draws, is about that of a normal distribution beyond the largest of 100 draws.
TAIL_SCALE = 0.35


@dataclass(frozen=True, eq=False, repr=False)
class SampleDistribution(Distribution):
    """Equally weighted draws of y for each row, as a distribution.

    Parameters
    ----------
    draws : array_like of shape (n_draws, n_rows) or (n_draws, n_rows, d)
        Finite values; at least one per row.

    Notes
    -----
    For one output every method is a view of one law. Its CDF is piecewise linear through the order
    statistics, the i-th of n at level (i - 1/2) / n, with an exponential tail of mass 1 / (2 n)
    beyond each of the outermost draws. Its mean is that of the draws. Equal draws make the CDF
    jump, and if all draws of a row are equal they are a point mass. The density between two draws
    is as uneven as the gaps between them.

    `smoothed` gives Gaussian kernels at the draws, a `GaussianMixture` with a smooth density. For
    one output their bandwidth is 0.9 min(std, IQR / 1.34) n^(-1/5) (Silverman's rule; the std alone
    where the IQR is zero), for d > 1 a product of kernels has bandwidths std n^(-1/(d + 4))
    (Scott's rule). For several outputs every method is a view of this mixture. `mode` is the draw
    where its density is highest, among at most 64 of them.

    Examples
    --------
    >>> from nkcme.distributions.sample import SampleDistribution
    >>> dist = SampleDistribution([[1.0], [2.0], [4.0]])
    >>> dist.ppf([0.5, 0.75])
    array([[2. , 3.5]])
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

    def _details(self) -> str:
        return f"{self.n_draws:,} draws, {super()._details()}"

    def smoothed(self) -> GaussianMixture:
        """The mixture of Gaussian kernels at the draws, which has a smooth density.

        Returns
        -------
        GaussianMixture
        """
        n, d = self.n_draws, self.n_outputs
        standard = np.ascontiguousarray(np.moveaxis(self.draws / self._unit, 0, 1))
        std = standard.std(axis=1)
        if d == 1:
            low, high = self._ppf(np.array([0.25, 0.75])).T[..., None] / self._unit
            iqr = (high - low) / 1.34
            bandwidth = 0.9 * np.where(iqr > 0, np.minimum(std, iqr), std) * n**-0.2
        else:
            bandwidth = std * n ** (-1 / (d + 4))
        bandwidth = np.maximum(bandwidth, MIN_BANDWIDTH)[:, None]
        return GaussianMixture(
            np.broadcast_to(0.0, (self.n_rows, n)),
            standard,
            np.broadcast_to(bandwidth, (self.n_rows, n, d)),
            scale=self._unit,
        )

    @cached_property
    def _law(self) -> Distribution:
        """The distribution of which every method is a view: of one output in units of `_unit`."""
        return self._between_draws(self._unit) if self.n_outputs == 1 else self.smoothed()

    def _between_draws(self, unit: np.ndarray | float) -> PiecewiseUniform:
        """The law of one output in these units."""
        n = self.n_draws
        edges = np.sort((self.draws / unit)[..., 0].T, axis=1)
        if n == 1:
            return PiecewiseUniform(edges[:, [0, 0]], np.tile([0.0, 1.0], (self.n_rows, 1)))
        scale = TAIL_SCALE * edges.std(axis=1)
        # Equal draws have no tails.
        spread = (edges[:, 0] < edges[:, -1]) & (scale > 0)
        outside = np.where(spread, 0.5 / n, 0.0)
        tail = Tail(outside, np.where(spread, scale, 1.0))
        share = np.linspace(0.0, 1.0, n)
        below = outside[:, None] + (1.0 - 2.0 * outside)[:, None] * share
        return PiecewiseUniform(edges, below, tail, tail)

    @cached_property
    def _unit(self) -> np.ndarray:
        """A power of two (n_rows, d) above the draws. In this unit no square overflows, and
        dividing and multiplying by it rounds nothing."""
        exponent = np.frexp(np.abs(self.draws).max(axis=0))[1]
        return np.ldexp(1.0, np.clip(exponent, -1021, 1023))

    # --- views of the law, in blocks of rows and points -------------------------------------------

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # units of 1e-300
            return np.exp(self._logpdf(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        value = self._at_points("_logpdf", y)
        if self.n_outputs > 1:
            return value
        # At a point mass it is a probability, which has no units.
        return value - np.where(self._pmf(y) > 0, 0.0, np.log(self._unit))

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._at_points("_cdf", y)

    def _pmf(self, y: np.ndarray) -> np.ndarray:
        return self._at_points("_pmf", y)

    def _point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        if self.n_outputs > 1:
            return super()._point_masses()
        return self._between_draws(1.0)._point_masses()

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # a tail may reach beyond the largest float
            return self._law_unit * self._by_rows(lambda law: law._ppf(q), n_points=len(q))

    def _mean(self) -> np.ndarray:
        return self._law_unit * self._by_rows(lambda law: law._mean())

    def _std(self) -> np.ndarray:
        return self._law_unit * self._by_rows(lambda law: law._std())

    def _mode(self) -> np.ndarray:
        # Of the smoothed density: between draws it is highest wherever two happen to be close.
        # For one output the candidates are evenly spaced in rank.
        ranked = np.sort(self.draws, axis=0) if self.n_outputs == 1 else self.draws
        n_candidates = min(self.n_draws, MODE_CANDIDATES)
        candidates = ranked[np.linspace(0, self.n_draws - 1, n_candidates).round().astype(int)]
        best = self.smoothed()._logpdf(np.moveaxis(candidates, 0, 1)).argmax(axis=1)
        return candidates[best, np.arange(self.n_rows)]

    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        return self._law_unit * self._law._rvs(size, rng)

    def _crps(self, y: np.ndarray) -> np.ndarray:
        unit = self._unit[:, 0]
        with np.errstate(over="ignore"):  # y may be infinitely far from all draws
            z = y / unit
        return unit * self._by_rows(lambda law, own: law._crps(own), z)

    @property
    def _law_unit(self) -> np.ndarray | float:
        return self._unit if self.n_outputs == 1 else 1.0

    def _at_points(self, name: str, y: np.ndarray) -> np.ndarray:
        """A method of the law at points y (n_rows or 1, m, d)."""
        points = np.broadcast_to(y, (self.n_rows, *y.shape[1:]))
        if self.n_outputs == 1:
            with np.errstate(over="ignore"):
                points = points / self._unit[:, None]
        return map_points(
            lambda some: self._by_rows(
                lambda law, own: getattr(law, name)(own), some, n_points=some.shape[1]
            ),
            points,
            block_points=count_that_fits(self.n_draws * self.n_outputs),
        )

    def _by_rows(
        self, f: Callable[..., np.ndarray], *arrays: np.ndarray, n_points: int = 1
    ) -> np.ndarray:
        """f(law, *arrays), in blocks of rows."""
        numbers = 8 * (n_points + self.n_draws) * self.n_outputs
        return map_rows(
            lambda some, *own: f(some._law, *own),
            self,
            *arrays,
            block_rows=count_that_fits(numbers),
        )
