"""Sums of arithmetic progressions: of what changes evenly from one whole number to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Progressions:
    """Rows of arithmetic progressions.

    Attributes
    ----------
    count : array (n_rows, g)
        The number of terms, zero or more. Without terms the other numbers do not matter.
    first, last : array (n_rows, g)
        The first and the last term.
    """

    count: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def sum(self) -> np.ndarray:
        """The sum of all terms of each row, (n_rows,)."""
        return 0.5 * np.sum(self.count * (self.first + self.last), axis=1)

    def dot(self, other: Progressions) -> np.ndarray:
        """The sum of the products with terms of as many, (n_rows,)."""
        # The product of the means plus the covariance: n (n^2 - 1) / 12 times the steps, which
        # are the differences of last and first divided by n - 1.
        means = 0.25 * (self.first + self.last) * (other.first + other.last)
        differences = (self.last - self.first) * (other.last - other.first)
        share = (self.count + 1.0) / (12.0 * np.maximum(self.count - 1.0, 1.0))
        spread = np.where(self.count > 1, share * differences, 0.0)
        return np.sum(self.count * (means + spread), axis=1)
