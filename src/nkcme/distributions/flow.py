"""The distribution of a normal variable carried to y by an invertible map, as flows give it.

With one output everything is exact up to rounding and quadrature: the density by the change of
variables, the CDF as that of the normal score of y, quantiles as the map of normal quantiles. The
map is smooth between known breaks, so moments and the CRPS are integrals over normal scores by
Gauss-Legendre quadrature from break to break. With several outputs the density is exact and draws
are independent; mean, variance, mode and CDF are read off `N_POINTS` fixed points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from scipy.stats import qmc
from sklearn.utils import check_random_state

from nkcme.distributions.base import MAX_MEMORY, Standardised, as_rows, checked_size

#: Points (scrambled Sobol', the same for every row) that stand for a distribution of several
#: outputs where no closed form exists.
N_POINTS = 1024

# Quadrature: nodes between neighbouring breaks, and breaks besides the map's own. Beyond the
# outermost lies a probability of 2e-19. On a flow that bends hard, moments and the CRPS are good to
# 1e-6 standard deviations of y (8 nodes: to 1e-5).
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_FIXED_BREAKS = np.linspace(-9.0, 9.0, 13)

_HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)


class Transport(Protocol):
    """An increasing map (for several outputs an invertible one) between y and normal scores.

    ``rows`` are arrays with one entry a row; points are (n_rows, m, d) and the logarithm of the
    volume change (n_rows, m), all in double precision.
    """

    @property
    def n_outputs(self) -> int: ...

    @property
    def numbers_a_point(self) -> int:
        """How many are held at once while a point is carried, for bounding memory."""

    def to_normal(
        self, rows: tuple[np.ndarray, ...], z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Normal scores, and the log of their volume over that of z."""

    def from_normal(
        self, rows: tuple[np.ndarray, ...], u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """z, and the log of its volume over that of the scores."""

    def n_breaks(self, rows: tuple[np.ndarray, ...]) -> int:
        """How many breaks a row has."""

    def breaks(self, rows: tuple[np.ndarray, ...]) -> np.ndarray:
        """Normal scores (n_rows, n_breaks) between which the map of one output is smooth."""


@dataclass(frozen=True, eq=False)
class FlowDistribution(Standardised):
    """y = location + scale z, with z the map of a standard normal variable."""

    rows: tuple[np.ndarray, ...]
    transport: Transport
    location: Any = 0.0
    scale: Any = 1.0

    def __post_init__(self) -> None:
        self._settle_units()

    @property
    def n_rows(self) -> int:
        return len(self.rows[0])

    @property
    def n_outputs(self) -> int:
        return self.transport.n_outputs

    def __getitem__(self, rows: Any) -> FlowDistribution:
        rows = as_rows(rows)
        return replace(self, rows=tuple(a[rows] for a in self.rows), **self._units_of(rows))

    def __repr__(self) -> str:
        return f"FlowDistribution({self.n_rows} rows, {self.n_outputs} outputs)"

    def pdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The density at ``y``, exact; ``y`` as in `Distribution.pdf`."""
        with np.errstate(over="ignore"):
            return np.exp(self.logpdf(y, grid=grid))

    def logpdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The logarithm of the density, also where that is too small for a number."""
        return self._at(self._logpdf, y, grid)

    def mean(self) -> np.ndarray:
        """The expectation of y, by quadrature; for several outputs the mean of the fixed points."""
        return self._from_standard(self._moments()[:, 0])

    def var(self) -> np.ndarray:
        """The variance of y, by quadrature; for several outputs that of the fixed points."""
        with np.errstate(over="ignore"):  # units of 1e200, say, have an infinite square
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """The root of `var`, output by output."""
        return self._squeeze(self._moments()[:, 1] * self.scale)

    def mode(self) -> np.ndarray:
        """The y of the highest density among the nodes of quadrature, which lie close together
        where the map bends; for several outputs among the fixed points."""

        def densest(dist: FlowDistribution) -> np.ndarray:
            u = dist._quadrature()[0][..., None] if dist.n_outputs == 1 else dist._fixed_scores()
            z, log_slope = dist.transport.from_normal(dist.rows, u)
            best = np.argmax(_log_normal(u) - log_slope, axis=1)
            return z[np.arange(len(z)), best]

        return self._from_standard(self._by_rows(densest, width=self._points_at_once))

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Independent draws (size, n_rows[, d])."""
        rng = check_random_state(random_state)
        u = rng.normal(size=(self.n_rows, checked_size(size), self.n_outputs))
        z = self._by_rows(lambda dist, u: dist._carry(u), u, width=size)
        return np.moveaxis(self._from_standard(z), 1, 0)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """The integral of (F(t) - 1{t >= y})^2 dt, by quadrature; one ``y`` a row.

        As the mean pinball loss over all levels: 2 E[(z(u) - z) (1{u > u_z} - Phi(u))].
        """
        z = self._to_standard(self._one_y_a_row(y)[:, None, None])[:, :, 0]

        def score(dist: FlowDistribution, z: np.ndarray) -> np.ndarray:
            at_z = dist.transport.to_normal(dist.rows, z[..., None])[0][..., 0]
            u, weight = dist._quadrature(at_z)
            pinball = (dist._carry(u[..., None])[..., 0] - z) * ((u > at_z) - ndtr(u))
            return 2.0 * np.sum(weight * pinball, axis=1, keepdims=True)

        scores = self._by_rows(score, z, width=self._points_at_once)
        return (scores * self.scale)[:, 0]

    # --- the mathematics, in standard units ----------------------------------------------------

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return np.exp(self._logpdf(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        def at(dist: FlowDistribution, z: np.ndarray) -> np.ndarray:
            u, log_slope = dist.transport.to_normal(dist.rows, z)
            return _log_normal(u) + log_slope

        log_volume = np.sum(np.log(self.scale), axis=1)[:, None]
        return self._at_points(at, y) - log_volume

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        if self.n_outputs == 1:
            return self._at_points(
                lambda dist, z: ndtr(dist.transport.to_normal(dist.rows, z)[0][..., 0]), y
            )

        def share(dist: FlowDistribution, z: np.ndarray) -> np.ndarray:
            points = dist._carry(dist._fixed_scores())
            columns = [
                np.all(points <= at[:, None], axis=2).mean(axis=1) for at in z.swapaxes(0, 1)
            ]
            return np.stack(columns, axis=1) if columns else np.empty((len(points), 0))

        return self._at_points(share, y, width=N_POINTS)

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        u = np.broadcast_to(ndtri(q)[:, None], (self.n_rows, len(q), 1))
        z = self._by_rows(lambda dist, u: dist._carry(u), u, width=len(q))
        order = np.argsort(q)
        rising = np.maximum.accumulate(z[:, order], axis=1)  # whatever rounding did
        return self._from_standard(rising[:, np.argsort(order)])

    def _moments(self) -> np.ndarray:
        """Means and standard deviations of z, (n_rows, 2, d)."""

        def moments(dist: FlowDistribution) -> np.ndarray:
            if dist.n_outputs == 1:
                u, weight = dist._quadrature()
                u, weight = u[..., None], weight[..., None]
            else:
                u, weight = dist._fixed_scores(), np.full((1, 1, 1), 1.0 / N_POINTS)
            z = dist._carry(u)
            mean = np.sum(weight * z, axis=1, keepdims=True)
            spread = np.sqrt(np.sum(weight * np.square(z - mean), axis=1, keepdims=True))
            return np.concatenate([mean, spread], axis=1)

        return self._by_rows(moments, width=self._points_at_once)

    def _quadrature(self, more_breaks: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Nodes in normal scores and their probabilities, (n_rows, m)."""
        own = self.transport.breaks(self.rows)
        edges = [own, np.broadcast_to(_FIXED_BREAKS, (self.n_rows, len(_FIXED_BREAKS)))]
        edges += [] if more_breaks is None else [more_breaks]
        breaks = np.sort(np.clip(np.concatenate(edges, axis=1), *_FIXED_BREAKS[[0, -1]]), axis=1)
        half = 0.5 * np.diff(breaks, axis=1)[..., None]
        u = (0.5 * (breaks[:, 1:] + breaks[:, :-1])[..., None] + half * _NODES).reshape(
            self.n_rows, -1
        )
        weight = (half * _NODE_WEIGHTS).reshape(u.shape) * np.exp(_log_normal(u[..., None]))
        return u, weight / weight.sum(axis=1, keepdims=True)

    def _fixed_scores(self) -> np.ndarray:
        return np.broadcast_to(
            _sobol_scores(self.n_outputs), (self.n_rows, N_POINTS, self.n_outputs)
        )

    def _carry(self, u: np.ndarray) -> np.ndarray:
        return self.transport.from_normal(self.rows, u)[0]

    # --- memory ------------------------------------------------------------------------------

    @property
    def _points_at_once(self) -> int:
        """Points a row that moments need."""
        if self.n_outputs > 1:
            return N_POINTS
        return (self.transport.n_breaks(self.rows) + len(_FIXED_BREAKS)) * len(_NODES)

    def _at_points(self, f: Any, y: np.ndarray, width: int = 0) -> np.ndarray:
        """f(distribution, z) at points (n_rows or 1, m, d) of y: (n_rows, m)."""
        z = np.broadcast_to(self._to_standard(y), (self.n_rows, *y.shape[1:]))
        return self._by_rows(f, z, width=max(y.shape[1], width))

    def _by_rows(self, f: Any, *arrays: np.ndarray, width: int) -> np.ndarray:
        """f(distribution, *arrays) block of rows by block, for ``width`` points a row at once."""
        numbers = max(width, 1) * self.transport.numbers_a_point
        # A power of two, as the transport pads rows to one.
        at_once = 1 << (max(MAX_MEMORY // (8 * numbers), 1).bit_length() - 1)
        return self._in_blocks(f, *arrays, at_once=at_once)


def _log_normal(u: np.ndarray) -> np.ndarray:
    """The log density of standard normal scores (n_rows, m, d)."""
    return np.sum(-0.5 * np.square(u) - _HALF_LOG_TWO_PI, axis=-1)


@cache
def _sobol_scores(n_outputs: int) -> np.ndarray:
    """Well spread normal scores (N_POINTS, d)."""
    uniform = qmc.Sobol(n_outputs, rng=np.random.default_rng(0)).random(N_POINTS)
    return ndtri(np.clip(uniform, 1e-9, 1.0 - 1e-9))
