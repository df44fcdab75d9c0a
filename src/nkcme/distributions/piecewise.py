"""Batches of piecewise linear CDFs with shared edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkcme.distributions.elementwise import clipped, every


class CdfTable(NamedTuple):
    """Row i rises linearly from values[i, j] at edges[j] to values[i, j + 1] at edges[j + 1].

    Every row starts at zero, ends at one and never falls, so its quantiles cannot cross.
    """

    edges: np.ndarray  # (g,), nondecreasing
    values: np.ndarray  # (n_rows, g)

    @classmethod
    def from_masses(cls, edges: np.ndarray, masses: np.ndarray) -> CdfTable:
        """The table with masses (n_rows, g - 1) between edges; negative ones count as zero.

        Each row is divided by its positive mass. A row without any is spread evenly over its bins,
        so that nothing is NaN.
        """
        values = np.zeros((len(masses), len(edges)))
        np.maximum(masses, 0.0, out=values[:, 1:])
        np.add.accumulate(values, axis=1, out=values)
        total = values[:, -1:].copy()
        if not every(total > 0):
            values[~(total[:, 0] > 0)] = np.linspace(0.0, 1.0, len(edges))
            total[~(total > 0)] = 1.0
        values /= total
        return cls(edges, values)

    def density(self, z: np.ndarray) -> np.ndarray:
        """The slope of the CDF at points (n_rows or 1, m): that of the bin on their right, and on
        the last edge that of the last bin."""
        width = np.diff(self.edges)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(width > 0, np.diff(self.values, axis=1) / width, 0.0)
        j = clipped(np.searchsorted(self.edges, z, "right") - 1, 0, len(self.edges) - 2)
        slope = np.take_along_axis(slope, np.broadcast_to(j, (len(slope), z.shape[1])), axis=1)
        return np.where((z >= self.edges[0]) & (z <= self.edges[-1]), slope, 0.0)

    def moments(self) -> np.ndarray:
        """Means and standard deviations, (n_rows, 2)."""
        # Around a point inside: far from zero the two squares would cancel.
        origin = self.edges[len(self.edges) // 2]
        mass, off = np.diff(self.values, axis=1), self.edges - origin
        first = mass @ (0.5 * (off[1:] + off[:-1]))
        second = mass @ ((off[1:] ** 2 + off[1:] * off[:-1] + off[:-1] ** 2) / 3.0)
        std = np.sqrt(np.maximum(second - first * first, 0.0))
        return np.stack([origin + first, std], axis=1)

    def at(self, z: np.ndarray) -> np.ndarray:
        """The CDF at points (n_rows or 1, m)."""
        j = clipped(np.searchsorted(self.edges, z, "right") - 1, 0, len(self.edges) - 2)
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
        j = clipped(position.reshape(n_rows, q.shape[1]) - lift * g - 1, 0, g - 2)
        low = np.take_along_axis(self.values, j, axis=1)
        high = np.take_along_axis(self.values, j + 1, axis=1)
        share = _share(q, low, high)
        return _between(self.edges[j], self.edges[j + 1], share)

    def crps(self, z: np.ndarray) -> np.ndarray:
        """The integral of (F(t) - 1{t >= z})^2 dt for one z per row, in closed form."""
        width = np.diff(self.edges)
        below = _square_integral(width, self.values[:, :-1], self.values[:, 1:])
        above = _square_integral(width, 1.0 - self.values[:, :-1], 1.0 - self.values[:, 1:])
        inside = clipped(z, self.edges[0], self.edges[-1])
        j = clipped(np.searchsorted(self.edges, inside, "right") - 1, 0, len(width) - 1)
        rows = np.arange(len(z))
        at_z = self.at(inside[:, None])[:, 0]
        bin_low, bin_high = self.values[rows, j], self.values[rows, j + 1]
        left_of_bin = np.cumsum(below, axis=1)[rows, j] - below[rows, j]
        right_of_bin = np.cumsum(above[:, ::-1], axis=1)[:, ::-1][rows, j] - above[rows, j]
        in_bin = _square_integral(inside - self.edges[j], bin_low, at_z) + _square_integral(
            self.edges[j + 1] - inside, 1.0 - at_z, 1.0 - bin_high
        )
        return left_of_bin + in_bin + right_of_bin + np.abs(z - inside)


def choose(weights: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Columns sampled in proportion to positive weights (n_rows, k), from uniform numbers
    (n_rows, m)."""
    k = weights.shape[1]
    table = CdfTable.from_masses(np.arange(k + 1.0), np.asarray(weights, np.float64))
    return clipped(table.inverse(uniform).astype(int), 0, k - 1)


def _share(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The position of x between low and high, from 0 to 1; a jump where they are equal."""
    span = high - low
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.where(span > 0, (x - low) / span, (x >= low).astype(np.float64))
    return clipped(share, 0.0, 1.0)


def _between(low: np.ndarray, high: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The point at ``share`` of the way; rounding does not move it beyond ``high``."""
    return np.minimum(low + share * (high - low), high)


def _square_integral(width: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The integral of the square of a line from a to b."""
    return width * (a * a + a * b + b * b) / 3.0
