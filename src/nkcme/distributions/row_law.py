"""Laws of one output that are given row by row, by their quantiles."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from nkcme.distributions.base import Distribution


class RowLaw(Distribution):
    """A law of one output in each row; samples are quantiles at random levels."""

    @abstractmethod
    def quantiles(self, q: np.ndarray) -> np.ndarray:
        """Quantiles at levels (n_rows, m), which may differ by row."""

    @property
    def n_outputs(self) -> int:
        return 1

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        levels = q[None] if self.n_rows == 1 else np.broadcast_to(q, (self.n_rows, len(q)))
        return self.quantiles(levels)

    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        return self.quantiles(rng.uniform(size=(self.n_rows, size))).T[..., None]

    def _points(self, y: np.ndarray) -> np.ndarray:
        """Points (n_rows, m) for those of a public method, (n_rows or 1, m, 1)."""
        return np.broadcast_to(y[..., 0], (self.n_rows, y.shape[1]))
