"""Batches of piecewise linear CDFs with shared edges or shared levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class CdfTable(NamedTuple):
    """Row i rises linearly from values[i, j] at edges[j] to values[i, j + 1] at edges[j + 1].

    Every row starts at zero, ends at one and never falls, so its quantiles cannot cross.
    """

    edges: np.ndarray  # (g,), nondecreasing
    values: np.ndarray  # (n_rows, g)

    @classmethod
    def from_masses(cls, edges: np.ndarray, masses: np.ndarray) -> tuple[CdfTable, np.ndarray]:
        """The table with masses (n_rows, g - 1) between edges; negative ones count as zero.

        Also returns the positive mass (n_rows,) by which each row is divided. A row without
        positive mass is spread evenly over its bins, so that nothing is NaN.
        """
        positive = np.maximum(masses, 0.0)
        positive[~(positive.sum(axis=1) > 0)] = 1.0 / max(len(edges) - 1, 1)
        total = positive.sum(axis=1)
        values = np.zeros((len(masses), len(edges)))
        np.cumsum(positive / total[:, None], axis=1, out=values[:, 1:])
        values[:, -1] = 1.0
        return cls(edges, np.minimum(values, 1.0)), total

    def at(self, z: np.ndarray) -> np.ndarray:
        """The CDF at points (n_rows or 1, m)."""
        j = np.clip(np.searchsorted(self.edges, z, "right") - 1, 0, len(self.edges) - 2)
        share = _share(z, self.edges[j], self.edges[j + 1])
        j = np.broadcast_to(j, (len(self.values), z.shape[1]))
        low = np.take_along_axis(self.values, j, axis=1)
        high = np.take_along_axis(self.values, j + 1, axis=1)
        return _between(low, high, share)

    def inverse(self, q: np.ndarray) -> np.ndarray:
        """Quantiles at levels (n_rows or 1, m)."""
        n_rows, g = self.values.shape
        # Concatenated rows, each shifted by its number, are one sorted sequence to search.
        lift = np.arange(n_rows)[:, None]
        position = np.searchsorted((self.values + lift).ravel(), (q + lift).ravel(), "left")
        j = np.clip(position.reshape(n_rows, q.shape[1]) - lift * g - 1, 0, g - 2)
        low = np.take_along_axis(self.values, j, axis=1)
        high = np.take_along_axis(self.values, j + 1, axis=1)
        share = _share(q, low, high)
        return _between(self.edges[j], self.edges[j + 1], share)

    def crps(self, z: np.ndarray) -> np.ndarray:
        """The integral of (F(t) - 1{t >= z})^2 dt for one z per row, in closed form."""
        width = np.diff(self.edges)
        below = _square_integral(width, self.values[:, :-1], self.values[:, 1:])
        above = _square_integral(width, 1.0 - self.values[:, :-1], 1.0 - self.values[:, 1:])
        inside = np.clip(z, self.edges[0], self.edges[-1])
        j = np.clip(np.searchsorted(self.edges, inside, "right") - 1, 0, len(width) - 1)
        rows = np.arange(len(z))
        at_z = self.at(inside[:, None])[:, 0]
        bin_low, bin_high = self.values[rows, j], self.values[rows, j + 1]
        left_of_bin = np.cumsum(below, axis=1)[rows, j] - below[rows, j]
        right_of_bin = np.cumsum(above[:, ::-1], axis=1)[:, ::-1][rows, j] - above[rows, j]
        in_bin = _square_integral(inside - self.edges[j], bin_low, at_z) + _square_integral(
            self.edges[j + 1] - inside, 1.0 - at_z, 1.0 - bin_high
        )
        return left_of_bin + in_bin + right_of_bin + np.abs(z - inside)


class QuantileTable(NamedTuple):
    """Row i rises linearly from levels[j] at points[i, j] to levels[j + 1] at points[i, j + 1].

    Where points are equal it jumps. Points never fall, so quantiles cannot cross.
    """

    levels: np.ndarray  # (g,), from zero to one
    points: np.ndarray  # (n_rows, g)

    def at(self, z: np.ndarray) -> np.ndarray:
        """The CDF at points (n_rows, m)."""
        j = self._bin(z)
        low = np.take_along_axis(self.points, j, axis=1)
        high = np.take_along_axis(self.points, j + 1, axis=1)
        return _between(self.levels[j], self.levels[j + 1], _share(z, low, high))

    def inverse(self, q: np.ndarray) -> np.ndarray:
        """Quantiles at levels (m,), the same for every row."""
        j = np.clip(np.searchsorted(self.levels, q, "right") - 1, 0, len(self.levels) - 2)
        share = _share(q, self.levels[j], self.levels[j + 1])
        return _between(self.points[:, j], self.points[:, j + 1], share)

    def crps(self, z: np.ndarray) -> np.ndarray:
        """The integral of (F(t) - 1{t >= z})^2 dt for one z per row, in closed form."""
        width, low, high = np.diff(self.points, axis=1), self.levels[:-1], self.levels[1:]
        inside = np.clip(z, self.points[:, 0], self.points[:, -1])
        j = self._bin(inside[:, None])
        at_z = self.at(inside[:, None])
        left, right = (np.take_along_axis(self.points, i, axis=1) for i in (j, j + 1))
        in_bin = _square_integral(inside[:, None] - left, self.levels[j], at_z)
        in_bin += _square_integral(right - inside[:, None], 1.0 - at_z, 1.0 - self.levels[j + 1])
        index = np.arange(len(low))
        beside = np.where(index < j, _square_integral(width, low, high), 0.0)
        beside += np.where(index > j, _square_integral(width, 1.0 - low, 1.0 - high), 0.0)
        return in_bin[:, 0] + beside.sum(axis=1) + np.abs(z - inside)

    def _bin(self, z: np.ndarray) -> np.ndarray:
        """The last j for which points[i, j] is at most z, by bisection in all rows together."""
        low = np.zeros(z.shape, int)
        step = 1 << (len(self.levels) - 1).bit_length()
        while step := step // 2:
            ahead = np.minimum(low + step, len(self.levels) - 1)
            low = np.where(np.take_along_axis(self.points, ahead, axis=1) <= z, ahead, low)
        return np.minimum(low, len(self.levels) - 2)


def choose(weights: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Columns sampled in proportion to positive weights (n_rows, k), from uniform numbers
    (n_rows, m)."""
    k = weights.shape[1]
    table, _ = CdfTable.from_masses(np.arange(k + 1.0), np.asarray(weights, np.float64))
    return np.clip(table.inverse(uniform).astype(int), 0, k - 1)


def _share(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The position of x between low and high, from 0 to 1; a jump where they are equal."""
    span = high - low
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.where(span > 0, (x - low) / span, (x >= low).astype(np.float64))
    return np.clip(share, 0.0, 1.0)


def _between(low: np.ndarray, high: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The point at ``share`` of the way; rounding does not move it beyond ``high``."""
    return np.minimum(low + share * (high - low), high)


def _square_integral(width: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The integral of the square of a line from a to b."""
    return width * (a * a + a * b + b * b) / 3.0
