"""Distributions with a constant density between edges, point masses, and tails beyond the edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from nkcme.distributions.checks import as_rows
from nkcme.distributions.elementwise import clipped, some
from nkcme.distributions.row_law import RowLaw
from nkcme.distributions.row_search import last_below
from nkcme.distributions.tails import Tail


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseUniform(RowLaw):
    """One law per row, of which every method gives another view.

    Row i has the CDF ``below[i, j]`` at ``edges[i, j]`` and rises linearly between edges. Where
    edges coincide it jumps: there is a point mass. ``below[i, 0]`` is the mass of the lower tail,
    or, without a tail, a point mass on the first edge; 1 - ``below[i, -1]`` likewise at the upper
    end.

    Parameters
    ----------
    edges, below : array (n_rows, g)
        They never fall along a row.
    lower, upper : Tail or None
        What lies beyond the edges.

    Notes
    -----
    `pdf` is the density with respect to the length plus the counting measure on the point masses,
    as for zero-inflated and censored models: at a point mass it is the probability of that point,
    elsewhere the density.
    """

    edges: np.ndarray
    below: np.ndarray
    lower: Tail | None = None
    upper: Tail | None = None

    @property
    def n_rows(self) -> int:
        return len(self.edges)

    def __getitem__(self, rows: Any) -> PiecewiseUniform:
        rows = as_rows(rows)
        tails = {
            name: None if tail is None else tail[rows]
            for name, tail in (("lower", self.lower), ("upper", self.upper))
        }
        return replace(self, edges=self.edges[rows], below=self.below[rows], **tails)

    # --- probabilities ----------------------------------------------------------------------------

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self.probability(self._points(y), inclusive=True)

    def probability(self, y: np.ndarray, *, inclusive: bool) -> np.ndarray:
        """P(Y <= y), or P(Y < y) unless ``inclusive``, at points (n_rows, m)."""
        j, n = last_below(self.edges, y, inclusive), self.edges.shape[1]
        value = self._interpolated(y, clipped(j, 0, n - 2))
        # Few points are beyond the edges.
        below, above = j < 0, j == n - 1
        if some(below):
            rows, columns = np.nonzero(below)
            value[rows, columns] = self._mass_below(rows, y[rows, columns])
        if some(above):
            rows, columns = np.nonzero(above)
            value[rows, columns] = 1.0 - self._mass_above(rows, y[rows, columns])
        return value

    def probability_between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """P(a < Y <= b) at points (n_rows, m), in the upper tail without cancellation."""
        value = self.probability(b, inclusive=True) - self.probability(a, inclusive=True)
        rows, columns = np.nonzero(a >= self.edges[:, -1:])
        ends = (self._mass_above(rows, point[rows, columns]) for point in (a, b))
        value[rows, columns] = np.subtract(*ends)
        return value

    def _pmf(self, y: np.ndarray) -> np.ndarray:
        points = self._points(y)
        jump = self.probability(points, inclusive=True) - self.probability(points, inclusive=False)
        return np.where(jump > _LEAST_JUMP, jump, 0.0)

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return np.exp(self._logpdf(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        points, jump = self._points(y), self._pmf(y)
        first, last = self.edges[:, :1], self.edges[:, -1:]
        n = self.edges.shape[1]
        j = clipped(last_below(self.edges, points, True), 0, n - 2)
        # On the last edge the density is that of the bin before it.
        left, right, low, high = self._bins(j)
        width, mass = right - left, high - low
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.where(width > 0, np.log(mass) - np.log(width), -np.inf)
            value = np.where((points < first) | (points > last), -np.inf, value)
            if self.lower is not None:
                tail = self.lower.log_density(np.maximum(first - points, 0.0))
                value = np.where(points < first, tail, value)
            if self.upper is not None:
                tail = self.upper.log_density(np.maximum(points - last, 0.0))
                value = np.where(points > last, tail, value)
            return np.where(jump > 0, np.log(jump), value)

    def quantiles(self, q: np.ndarray) -> np.ndarray:
        """Quantiles at levels (n_rows, m)."""
        j = clipped(last_below(self.below, q, False), 0, self.edges.shape[1] - 2)
        left, right, low, high = self._bins(j)
        value = np.minimum(left + _share(q, low, high) * (right - left), right)
        if self.lower is not None:
            mass = self.lower.mass[:, None]
            beyond = q < mass
            if some(beyond):
                with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                    t = self.lower.distance(clipped(q / mass, 0.0, 1.0))
                value = np.where(beyond, self.edges[:, :1] - t, value)
        if self.upper is not None:
            mass = self.upper.mass[:, None]
            beyond = 1.0 - q < mass
            if some(beyond):
                with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                    t = self.upper.distance(clipped((1.0 - q) / mass, 0.0, 1.0))
                value = np.where(beyond, self.edges[:, -1:] + t, value)
        return value

    def calibrated(self, values: np.ndarray) -> PiecewiseUniform:
        """The law with the CDF R(F(y)), for a map R with these values at even levels; no tails.

        R is linear between its levels, and F between its edges: so is R(F) between both.
        """
        levels, n_edges = _even_levels(len(values)), self.edges.shape[1]
        below = np.empty((self.n_rows, n_edges + len(levels) - 2))
        below[:, :n_edges] = self.below
        below[:, n_edges:] = levels[1:-1]
        below.sort(axis=1)
        mapped = np.interp(below, levels, np.minimum(values, 1.0))
        return PiecewiseUniform(self.quantiles(below), mapped)

    def widened(self, added_std: np.ndarray) -> PiecewiseUniform:
        """The law stretched around its mean, so that its variance grows by the square of this
        (n_rows,)."""
        mean, factor = self._mean()[:, 0], self.stretch(added_std)
        edges = mean[:, None] + factor[:, None] * (self.edges - mean[:, None])
        # Rows that are not stretched keep their edges to the last bit.
        edges = np.where(factor[:, None] > 1.0, edges, self.edges)
        lower, upper = (
            None if tail is None else replace(tail, scale=factor * tail.scale)
            for tail in (self.lower, self.upper)
        )
        return PiecewiseUniform(edges, self.below, lower, upper)

    def stretch(self, added_std: np.ndarray) -> np.ndarray:
        """The factor (n_rows,) by which the standard deviation is to grow."""
        std = self._std()[:, 0]
        # Where there is next to no width, there is nothing to stretch.
        relative = np.divide(added_std, std, out=np.zeros_like(std), where=std > 1e-6 * added_std)
        return np.hypot(1.0, relative)

    # --- moments, samples and scores --------------------------------------------------------------

    def _mean(self) -> np.ndarray:
        return self._centered.mean[:, None]

    def _std(self) -> np.ndarray:
        around = self._centered
        # In units of the largest distance: squares of units of 1e200 would be infinite.
        unit = np.maximum(-around.edges[:, :1], around.edges[:, -1:])
        unit[~(unit > 0)] = 1.0
        edges = around.edges / unit
        unit = unit[:, 0]
        left, right = edges[:, :-1], edges[:, 1:]
        squares = left * left + left * right + right * right
        second = np.add.reduce(around.mass * squares, axis=1) / 3.0
        for tail, beyond, edge, outward in self._ends(edges):
            second += beyond * edge * edge
            if tail is not None:
                mean, square = tail.relative_to(unit).moments()
                second += beyond * (2.0 * edge * outward * mean + square)
        first = (around.mean - around.origin) / unit
        return (unit * np.sqrt(np.maximum(second - first * first, 0.0)))[:, None]

    @cached_property
    def _centered(self) -> _Centered:
        # Around the median: far from zero squares would cancel.
        half = (self.below >= 0.5).argmax(axis=1)
        origin = self.edges[np.arange(self.n_rows), half]
        edges, mass = self.edges - origin[:, None], self.below[:, 1:] - self.below[:, :-1]
        mean = 0.5 * np.add.reduce(mass * (edges[:, 1:] + edges[:, :-1]), axis=1)
        for tail, beyond, edge, outward in self._ends(edges):
            mean += beyond * (edge if tail is None else edge + outward * tail.mean())
        return _Centered(origin, edges, mass, origin + mean)

    def _ends(
        self, edges: np.ndarray
    ) -> Iterator[tuple[Tail | None, np.ndarray, np.ndarray, float]]:
        """Each tail, the mass (n_rows,) beyond its edge, the edge among these, and its side."""
        yield self.lower, self.below[:, 0], edges[:, 0], -1.0
        yield self.upper, 1.0 - self.below[:, -1], edges[:, -1], 1.0

    def _mode(self) -> np.ndarray:
        """The largest point mass if there is one, else the middle of the densest bin."""
        width, mass = np.diff(self.edges, axis=1), np.diff(self.below, axis=1)
        rows = np.arange(self.n_rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            densest = np.where(width > 0, mass / width, 0.0).argmax(axis=1)
        middle = 0.5 * (self.edges[rows, densest] + self.edges[rows, densest + 1])
        values, masses = self._point_masses()
        if len(values):
            best = masses.argmax(axis=1)
            middle = np.where(masses[rows, best] > 0, values[best], middle)
        return middle[:, None]

    def _crps(self, y: np.ndarray) -> np.ndarray:
        inside = clipped(y, self.edges[:, 0], self.edges[:, -1])[:, None]
        j = clipped(last_below(self.edges, inside, True), 0, self.edges.shape[1] - 2)
        at_y = self._interpolated(inside, j)
        left, right, low, high = self._bins(j)
        score = square_integral(inside - left, low, at_y)
        score += square_integral(right - inside, 1.0 - at_y, 1.0 - high)
        width, start, end = np.diff(self.edges, axis=1), self.below[:, :-1], self.below[:, 1:]
        number = np.arange(width.shape[1])
        beside = np.where(number < j, square_integral(width, start, end), 0.0)
        beside += np.where(number > j, square_integral(width, 1.0 - start, 1.0 - end), 0.0)
        score = score[:, 0] + beside.sum(axis=1)
        score += _tail_score(self.lower, self.edges[:, 0] - y)
        return score + _tail_score(self.upper, y - self.edges[:, -1])

    def _point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        jump = np.diff(self.below, axis=1)
        jump[np.diff(self.edges, axis=1) > 0] = 0.0
        ends = [
            self.below[:, :1] if self.lower is None else np.zeros((self.n_rows, 1)),
            1.0 - self.below[:, -1:] if self.upper is None else np.zeros((self.n_rows, 1)),
        ]
        jump = np.concatenate([ends[0], jump, ends[1]], axis=1)
        place = np.concatenate([self.edges, self.edges[:, -1:]], axis=1)
        values = np.unique(place[jump > _LEAST_JUMP])
        masses = np.zeros((self.n_rows, len(values)))
        rows, columns = np.nonzero(jump > _LEAST_JUMP)
        found = np.searchsorted(values, place[rows, columns])
        np.add.at(masses, (rows, found), jump[rows, columns])
        return values, masses

    # --- edges ------------------------------------------------------------------------------------

    def mass_before(self, y: np.ndarray) -> np.ndarray:
        """P(Y < y), (n_rows, 1), for y up to the first edges."""
        if self.lower is None:
            return np.zeros((self.n_rows, 1))
        return self.lower.mass[:, None] * self.lower.survival(self.edges[:, :1] - y)

    def mass_after(self, y: np.ndarray) -> np.ndarray:
        """P(Y > y), (n_rows, 1), for y from the last edges on."""
        if self.upper is None:
            return np.zeros((self.n_rows, 1))
        return self.upper.mass[:, None] * self.upper.survival(y - self.edges[:, -1:])

    def _mass_below(self, rows: np.ndarray, y: np.ndarray) -> np.ndarray:
        """P(Y < y) of these rows, for y (m,) below their first edges."""
        if self.lower is None:
            return np.zeros(len(rows))
        return self.lower[rows].mass_beyond(self.edges[rows, 0] - y)

    def _mass_above(self, rows: np.ndarray, y: np.ndarray) -> np.ndarray:
        """P(Y > y) of these rows, for y (m,) above their last edges."""
        if self.upper is None:
            return np.zeros(len(rows))
        return self.upper[rows].mass_beyond(y - self.edges[rows, -1])

    def _interpolated(self, y: np.ndarray, j: np.ndarray) -> np.ndarray:
        left, right, low, high = self._bins(j)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = np.where(right > left, (y - left) / (right - left), 1.0)
        return low + clipped(share, 0.0, 1.0) * (high - low)

    def _bins(self, j: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The edges of the bins j, and the CDF at them: left, right, low, high (n_rows, m)."""
        place = j
        if self.n_rows > 1:
            place = j + self.edges.shape[1] * np.arange(self.n_rows)[:, None]
        after = place + 1
        edges, below = self.edges.ravel(), self.below.ravel()
        return edges.take(place), edges.take(after), below.take(place), below.take(after)


class _Centered(NamedTuple):
    """What moments are computed from."""

    origin: np.ndarray  # (n_rows,), near the median
    edges: np.ndarray  # (n_rows, g), relative to it
    mass: np.ndarray  # (n_rows, g - 1), between edges
    mean: np.ndarray  # (n_rows,)


@lru_cache(maxsize=16)
def _even_levels(n: int) -> np.ndarray:
    """n even levels from 0 to 1."""
    levels = np.linspace(0.0, 1.0, n)
    levels.setflags(write=False)
    return levels


#: Smaller jumps of a CDF are rounding.
_LEAST_JUMP = 1e-12


def _share(q: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The position of levels between those of the edges beside them, from 0 to 1."""
    # The least difference keeps zero out of the denominator; with it the quotient is finite.
    return clipped((q - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)


def square_integral(width: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The integral of the square of a line from a to b."""
    return width * (a * a + a * b + b * b) / 3.0


def _tail_score(tail: Tail | None, distance: np.ndarray) -> np.ndarray:
    """What the CRPS gains beyond an edge, for y at a distance (n_rows,) from it, outwards.

    With S the probability further out, it is the integral of S^2, but of (1 - S)^2 from the edge
    to y.
    """
    t = np.maximum(distance, 0.0)[:, None]
    if tail is None:
        return t[:, 0]
    p = tail.mass[:, None]
    whole = p * p * tail.scale[:, None] / (2.0 - tail.shape[:, None])
    gained = t - 2.0 * p * tail.integral(t, 1)
    return (whole + gained)[:, 0]
