"""Weights from components in NumPy: normal distributions, put on fixed atoms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkcme.distributions.blocks import row_slices
from nkcme.distributions.special_functions import ndtr
from nkcme.forward_passes import softmax

#: No standard deviation is larger than this many of its unit, by the logarithm: exp would overflow.
MOST_LOG_RATIO = 5.0

#: Values of CDFs that are computed together.
_MOST_VALUES = 2**20

#: Further from its mean, in standard deviations, a component is all on one side: the difference is
#: less than the rounding of one.
_FAR = 8.5


class StackedComponents(NamedTuple):
    """The numbers of `Components` for several members, which share the atoms."""

    starts: np.ndarray  # (k, K)
    unit_std: np.ndarray  # (k,)
    least_std: np.ndarray  # (k,)

    def mixture(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probabilities, means and standard deviations (k, n, K) for outputs (k, n, 3 K)."""
        logits, off, log_ratio = np.split(outputs, 3, axis=-1)
        ratio = np.exp(np.minimum(log_ratio, MOST_LOG_RATIO))
        std = self.least_std[:, None, None] + self.unit_std[:, None, None] * ratio
        return softmax(logits.copy()), self.starts[:, None] + off, std

    def weights(self, outputs: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        """The weights (k, n, m) of atoms (m,), in increasing order, for outputs (k, n, 3 K) of the
        networks; they sum to one."""
        edges = 0.5 * (atoms[1:] + atoms[:-1])
        probability, mean, std = self.mixture(outputs)
        n_members, n_rows = outputs.shape[:2]
        below = np.zeros((n_members, n_rows, len(edges) + 2))
        below[..., -1] = 1.0
        values_per_row = max(1, n_members * mean.shape[-1] * len(edges))
        for rows in row_slices(n_rows, max(1, _MOST_VALUES // values_per_row)):
            z = (edges - mean[:, rows, :, None]) / std[:, rows, :, None]
            below[:, rows, 1:-1] = (probability[:, rows, None] @ _cdf(z))[:, :, 0]
        # Rounding may leave differences below zero.
        return np.maximum(np.diff(below, axis=-1), 0.0)

    def mass_between(self, outputs: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The probability (k, n) between two edges (n,) in each row."""
        probability, mean, std = self.mixture(outputs)
        upper, lower = (_cdf((edge[:, None] - mean) / std) for edge in (high, low))
        return np.sum(probability * (upper - lower), axis=-1)


def _cdf(z: np.ndarray) -> np.ndarray:
    cdf = (z > 0).astype(np.float64)
    near = np.abs(z) < _FAR
    cdf[near] = ndtr(z[near].astype(np.float64))
    return cdf
