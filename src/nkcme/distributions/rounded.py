"""Laws of y that takes separate values: each value has the mass that lies nearest to it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from nkcme.distributions.checks import as_rows
from nkcme.distributions.elementwise import clipped
from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.row_law import RowLaw
from nkcme.distributions.tails import Tail

#: Beyond the outermost values, what was never seen lies within about this share of their range.
_TAIL_SPAN = 0.05


class Rounded(RowLaw):
    """A continuous law, rounded to the nearest of some values.

    Probabilities of points need only the continuous law beside these points. Moments and scores
    need the probabilities of all values, `_whole`.

    Parameters
    ----------
    law : PiecewiseUniform
    values : array (k,)
        In increasing order.
    unseen : float
        The share of the law that is not rounded, for values that are not listed. It is uniform
        between neighbouring values.
    """

    def __init__(self, law: PiecewiseUniform, values: np.ndarray, unseen: float = 0.0):
        self.law = law
        self.values = values
        self.unseen = unseen

    @property
    def n_rows(self) -> int:
        return self.law.n_rows

    def __getitem__(self, rows: Any) -> Rounded:
        return Rounded(self.law[as_rows(rows)], self.values, self.unseen)

    @cached_property
    def _middles(self) -> np.ndarray:
        """The points between neighbouring values, with infinities at the ends."""
        between = 0.5 * (self.values[1:] + self.values[:-1])
        return np.concatenate([[-np.inf], between, [np.inf]])

    @cached_property
    def _steps(self) -> np.ndarray:
        """What a fully rounded law has below each value, and below infinity: (n_rows, k + 1)."""
        inner = np.broadcast_to(self._middles[1:-1], (self.n_rows, len(self.values) - 1))
        steps = np.zeros((self.n_rows, len(self.values) + 1))
        steps[:, 1:-1] = self.law.probability(inner, inclusive=True)
        steps[:, -1] = 1.0
        return steps

    @property
    def _masses(self) -> np.ndarray:
        """The probability of each value."""
        return (1.0 - self.unseen) * np.diff(self._steps, axis=1)

    @cached_property
    def _whole(self) -> PiecewiseUniform:
        """The same law as edges with jumps at all values."""
        below = np.repeat(self._steps, 2, axis=1)[:, 1:-1]
        edges = np.broadcast_to(np.repeat(self.values, 2), below.shape)
        if not self.unseen:
            return PiecewiseUniform(edges, below)
        at_values = self.law.probability(
            np.broadcast_to(self.values, (self.n_rows, len(self.values))), inclusive=True
        )
        at_edges = np.repeat(at_values, 2, axis=1)
        span = np.full(self.n_rows, _TAIL_SPAN * max(self.values[-1] - self.values[0], 1e-300))
        lower = Tail(self.unseen * at_edges[:, 0], span)
        upper = Tail(self.unseen * (1.0 - at_edges[:, -1]), span)
        below = (1.0 - self.unseen) * below + self.unseen * at_edges
        return PiecewiseUniform(edges, below, lower, upper)

    def _jumps(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether y (n_rows, m) is a value, and what a fully rounded law has below and up to it."""
        j = clipped(np.searchsorted(self.values, y, "right") - 1, -1, len(self.values) - 1)
        listed = (j >= 0) & (self.values[np.maximum(j, 0)] == y)
        upto = np.where(j >= 0, self._probability(self._middles[j + 1]), 0.0)
        below = np.where(listed, self._probability(self._middles[np.maximum(j, 0)]), upto)
        return listed, below, upto

    def _probability(self, point: np.ndarray) -> np.ndarray:
        finite = np.isfinite(point)
        value = self.law.probability(np.where(finite, point, 0.0), inclusive=True)
        return np.where(finite, value, (point > 0).astype(np.float64))

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        if self.unseen:
            return self._whole._cdf(y)
        return self._jumps(self._points(y))[2]

    def _pmf(self, y: np.ndarray) -> np.ndarray:
        listed, below, upto = self._jumps(self._points(y))
        return np.where(listed, (1.0 - self.unseen) * (upto - below), 0.0)

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return np.exp(self._logpdf(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        if self.unseen:
            return self._whole._logpdf(y)
        with np.errstate(divide="ignore"):
            return np.log(self._pmf(y))

    def quantiles(self, q: np.ndarray) -> np.ndarray:
        """Quantiles at levels (n_rows, m)."""
        if self.unseen:
            return self._whole.quantiles(q)
        place = np.searchsorted(self._middles[1:-1], self.law.quantiles(q), "left")
        return self.values[place]

    def _mean(self) -> np.ndarray:
        return self._whole._mean()

    def _std(self) -> np.ndarray:
        return self._whole._std()

    def _mode(self) -> np.ndarray:
        return self.values[self._masses.argmax(axis=1)][:, None]

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return self._whole._crps(y)

    def _point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        masses = self._masses
        possible = masses.any(axis=0)
        return self.values[possible], masses[:, possible]
