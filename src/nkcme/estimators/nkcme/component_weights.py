"""Weights from components in NumPy: normal distributions, put on fixed atoms."""

from __future__ import annotations

from functools import cache
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

#: Steps per standard deviation of the table of the normal CDF.
_STEPS = 256


class StackedComponents(NamedTuple):
    """The numbers of `Components` for several members, which share the atoms."""

    starts: np.ndarray  # (k, K)
    unit_std: np.ndarray  # (k,)
    least_std: np.ndarray  # (k,)

    def mixture(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probabilities, means and standard deviations (k, n, K) for outputs (k, n, 3 K)."""
        logits, off, log_ratio = np.moveaxis(outputs.reshape(*outputs.shape[:-1], 3, -1), -2, 0)
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
        return np.maximum(below[..., 1:] - below[..., :-1], 0.0)

    def mass_between(self, outputs: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The probability (k, n) between two edges (n,) in each row."""
        probability, mean, std = self.mixture(outputs)
        upper, lower = (_cdf((edge[:, None] - mean) / std) for edge in (high, low))
        return np.sum(probability * (upper - lower), axis=-1)


def _cdf(z: np.ndarray) -> np.ndarray:
    """The normal CDF, to 1e-12.

    By Taylor's series around the nearest point of a table: of the many values that one row needs,
    `ndtr` would take most of its time.
    """
    table = _cdf_table()
    steps = np.minimum(np.maximum(z, -_FAR), _FAR) * _STEPS
    nearest = np.rint(steps)
    off = (steps - nearest).astype(np.float64)
    place = nearest.astype(np.intp)
    place += len(table[0]) // 2
    cdf = table[-1].take(place)
    for coefficient in table[-2::-1]:
        cdf *= off
        cdf += coefficient.take(place)
    return cdf


@cache
def _cdf_table() -> np.ndarray:
    """The coefficients (4, n) of the normal CDF around the points of the table, in its steps."""
    n = round(_FAR * _STEPS)
    x = np.arange(-n, n + 1) / _STEPS
    density = np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    return np.stack(
        [
            ndtr(x),
            density / _STEPS,
            -x * density / (2.0 * _STEPS**2),
            (x * x - 1.0) * density / (6.0 * _STEPS**3),
        ]
    )
