"""Laws of whole numbers: a continuous law, rounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkcme.distributions.checks import as_rows
from nkcme.distributions.elementwise import clipped
from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.progressions import Progressions
from nkcme.distributions.row_law import RowLaw
from nkcme.distributions.tail_sums import tail_sums
from nkcme.distributions.tails import Tail
from nkcme.errors import NkcmeError

#: The most values that `WholeNumbers.point_masses` lists.
MAX_LISTED = 100_000

#: It lists the values between the quantiles at this level and at one minus it.
_RARE = 1e-9


class WholeNumbers(RowLaw):
    """A continuous law, rounded to the nearest whole number.

    The probability G(k) of at most k is that of at most k + 1/2 under the continuous law. For the
    whole numbers k between two rounded edges it is an arithmetic progression, because the
    continuous CDF is linear there. Moments and scores are sums over such runs and over the tails:
    their cost does not depend on how many whole numbers a row reaches.

    Parameters
    ----------
    law : PiecewiseUniform
    lower, upper : float
        Bounds; what lies beyond is rounded to the outermost whole number within them.
    """

    def __init__(self, law: PiecewiseUniform, lower: float = -np.inf, upper: float = np.inf):
        self.law = law
        self.lower = float(np.ceil(lower))
        self.upper = max(float(np.floor(upper)), self.lower)

    @property
    def n_rows(self) -> int:
        return self.law.n_rows

    def __getitem__(self, rows: Any) -> WholeNumbers:
        return WholeNumbers(self.law[as_rows(rows)], self.lower, self.upper)

    # --- probabilities ----------------------------------------------------------------------------

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._upto(np.floor(self._points(y)))

    def _pmf(self, y: np.ndarray) -> np.ndarray:
        return self._mass(self._points(y))

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return self._pmf(y)

    def quantiles(self, q: np.ndarray) -> np.ndarray:
        """Quantiles at levels (n_rows, m)."""
        return self._rounded(self.law.quantiles(q))

    def _point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        reach = self.quantiles(np.tile([_RARE, 1.0 - _RARE], (self.n_rows, 1)))
        if not len(reach):
            return np.empty(0), np.empty((0, 0))
        low, high = reach[:, 0].min(), reach[:, 1].max()
        if high - low >= MAX_LISTED:
            raise NkcmeError(
                f"predictions span {high - low:.3g} whole numbers, and point_masses lists at most "
                f"{MAX_LISTED}; ask pmf for the values of interest, or select rows"
            )
        values = np.arange(low, high + 1.0)
        masses = self._mass(np.broadcast_to(values, (self.n_rows, len(values))))
        positive = masses.any(axis=0)
        return values[positive], masses[:, positive]

    def _rounded(self, x: np.ndarray) -> np.ndarray:
        """x rounded to whole numbers within the bounds, halves downwards."""
        return clipped(np.ceil(x - 0.5), self.lower, self.upper) + 0.0  # and -0 to 0

    def _upper_end(self, k: np.ndarray) -> np.ndarray:
        """The largest x that is rounded to k, if k is within the bounds."""
        return np.where(k >= self.upper, np.inf, k + 0.5)

    def _upto(self, k: np.ndarray) -> np.ndarray:
        """G(k) for whole numbers k (n_rows, m)."""
        value = self.law.probability(self._upper_end(k), inclusive=True)
        return np.where(k < self.lower, 0.0, value)

    def _mass(self, y: np.ndarray) -> np.ndarray:
        """The probability of exactly y (n_rows, m)."""
        lower_end = np.where(y <= self.lower, -np.inf, y - 0.5)
        possible = (np.rint(y) == y) & (y >= self.lower) & (y <= self.upper)
        return np.where(possible, self.law.probability_between(lower_end, self._upper_end(y)), 0.0)

    # --- sums over whole numbers ------------------------------------------------------------------

    def _mean(self) -> np.ndarray:
        origin, first, _ = self._moments()
        return (origin + first)[:, None]

    def _std(self) -> np.ndarray:
        _, first, second = self._moments()
        return np.sqrt(np.maximum(second - first * first, 0.0))[:, None]

    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """An origin within each law, the mean distance from it, and the mean square distance."""
        # With c the origin and H(k) = 1{k >= c} - G(k), they are the sums of H(k) and of
        # (2 (k - c) + 1) H(k). Runs begin at rounded edges, so that c between them splits none.
        half = np.argmin(np.abs(self.law.below - 0.5), axis=1)
        c = self._rounded(self.law.edges[np.arange(self.n_rows), half])
        runs = self._runs(self.law)
        h, start = runs.below_step(c), 2.0 * (runs.start - c[:, None]) + 1.0
        weight = Progressions(runs.count, start, start + 2.0 * (runs.count - 1.0))
        first, second = h.sum(), h.dot(weight)
        for side in self._sides():
            if side.tail is not None:
                total, by_number = tail_sums(side.tail, side.distance, side.count)
                first += side.outward * total
                second += (2.0 * np.abs(side.start - c) + 1.0) * total + 2.0 * by_number
        return c, first, second

    def _crps(self, y: np.ndarray) -> np.ndarray:
        """The sum of H(k)^2 with c = y, and for y between two whole numbers a share of either."""
        finite = np.isfinite(y)
        y = np.where(finite, y, 0.0)
        inside = clipped(y, self.lower, self.upper)
        c = np.floor(inside)
        h = self._runs(_with_edge(self.law, c)).below_step(c)
        score = h.dot(h) + np.abs(y - inside)
        for side in self._sides():
            # Beyond the edges H is P, the probability further out, but 1 - P up to c.
            between = np.maximum(side.outward * (c - side.start), 0.0)
            score += between
            if side.tail is not None:
                score += tail_sums(side.tail.squared(), side.distance, side.count)[0]
                score -= 2.0 * tail_sums(side.tail, side.distance, between)[0]
        score += (inside - c) * (2.0 * self._upto(c[:, None])[:, 0] - 1.0)
        return np.where(finite, score, np.inf)

    def _mode(self) -> np.ndarray:
        """A whole number of the largest probability; the middle of several beside each other."""
        runs = self._runs(self.law)
        start, count, values = runs.start, runs.count, runs.values
        # G just before each run, from the last run that has whole numbers.
        before = self._upto(start[:, :1] - 1.0)
        ends = np.where(count > 0, values.last, 0.0)
        before = np.maximum.accumulate(np.concatenate([before, ends[:, :-1]], axis=1), axis=1)
        # Within a run all probabilities are equal, except that of its first whole number.
        step = np.where(count > 1, (values.last - values.first) / np.maximum(count - 1.0, 1.0), 0.0)
        jump = np.where(count > 0, values.first - before, 0.0)
        # Probabilities fall outwards in the tails, but a bound has what lies beyond it.
        bounds = [bound for bound in (self.lower, self.upper) if np.isfinite(bound)]
        last = self._rounded(self.law.edges[:, -1:])
        beside = np.concatenate([start[:, :1] - 1.0, last, last + 1.0], axis=1)
        beside = np.concatenate([beside, np.tile(bounds, (self.n_rows, 1))], axis=1)
        place = np.concatenate([start + np.floor(0.5 * count), start, beside], axis=1)
        best = np.concatenate([step, jump, self._mass(beside)], axis=1).argmax(axis=1)
        return np.take_along_axis(place, best[:, None], axis=1)

    def _runs(self, law: PiecewiseUniform) -> _Runs:
        """The runs of whole numbers between neighbouring edges, within the bounds."""
        numbers = self._rounded(law.edges)
        start, stop = numbers[:, :-1], numbers[:, 1:]
        left, width = law.edges[:, :-1], np.diff(law.edges, axis=1)
        below, mass = law.below[:, :-1], np.diff(law.below, axis=1)

        def upto(k: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                share = np.where(width > 0, (k + 0.5 - left) / width, 0.0)
            return below + clipped(share, 0.0, 1.0) * mass

        return _Runs(start, Progressions(stop - start, upto(start), upto(stop - 1.0)))

    def _sides(self) -> Iterator[_Side]:
        law = self.law
        first, last = self._rounded(law.edges[:, 0]), self._rounded(law.edges[:, -1])
        below, above = law.edges[:, 0] - (first - 0.5), last + 0.5 - law.edges[:, -1]
        yield _Side(-1.0, first, law.lower, np.maximum(below, 0.0), first - self.lower)
        yield _Side(1.0, last, law.upper, np.maximum(above, 0.0), self.upper - last)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of whole numbers k, in which G(k) is an arithmetic progression.

    Attributes
    ----------
    start : array (n_rows, g)
        The first whole number of each run; the next one begins where it ends.
    values : Progressions
        G(k).
    """

    start: np.ndarray
    values: Progressions

    @property
    def count(self) -> np.ndarray:
        return self.values.count

    def below_step(self, c: np.ndarray) -> Progressions:
        """1{k >= c} - G(k), where no run contains c (n_rows,) but as its first number."""
        step = (self.start >= c[:, None]).astype(np.float64)
        return Progressions(self.count, step - self.values.first, step - self.values.last)


@dataclass(frozen=True, eq=False)
class _Side:
    """What lies beyond the lower or the upper edge.

    Attributes
    ----------
    outward : float
        -1 or 1.
    start : array (n_rows,)
        The outermost edge, rounded.
    tail : Tail or None
    distance : array (n_rows,)
        How far beyond the edge the first of the points k + 1/2 lies.
    count : array (n_rows,)
        The number of these points within the bounds.
    """

    outward: float
    start: np.ndarray
    tail: Tail | None
    distance: np.ndarray
    count: np.ndarray


def _with_edge(law: PiecewiseUniform, y: np.ndarray) -> PiecewiseUniform:
    """The law with one more edge at y (n_rows,), or at the outermost edge where y is beyond."""
    edge = clipped(y, law.edges[:, 0], law.edges[:, -1])[:, None]
    below = law.probability(edge, inclusive=True)
    # Neither falls along a row, so that either can be sorted by itself.
    edges = np.sort(np.concatenate([law.edges, edge], axis=1), axis=1)
    return PiecewiseUniform(edges, np.sort(np.concatenate([law.below, below], axis=1), axis=1))
