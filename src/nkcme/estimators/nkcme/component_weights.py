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

#: Values of CDFs that are computed together: they stay in a core's cache, and are three times as
#: fast as a million.
_MOST_VALUES = 2**14

#: Further from its mean, in standard deviations, a component is all on one side: the difference is
#: less than the rounding of one in single precision.
_FAR = 6.0

#: Steps per standard deviation of the table of the normal CDF: interpolation is off by 1e-7.
_STEPS = 512


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
        below = np.zeros((n_members, n_rows, len(edges) + 2), np.float32)
        below[..., -1] = 1.0
        values_per_row = max(1, n_members * mean.shape[-1] * len(edges))
        for rows in row_slices(n_rows, max(1, _MOST_VALUES // values_per_row)):
            z = (edges - mean[:, rows, :, None]) / std[:, rows, :, None]
            cdf = _cdf(z.astype(np.float32, copy=False))
            below[:, rows, 1:-1] = (probability[:, rows, None] @ cdf)[:, :, 0]
        # Rounding may leave differences below zero.
        return np.maximum(below[..., 1:] - below[..., :-1], 0.0)

    def mass_between(self, outputs: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The probability (k, n) between two edges (n,) in each row."""
        probability, mean, std = self.mixture(outputs)
        upper, lower = (ndtr((edge[:, None] - mean) / std) for edge in (high, low))
        return np.sum(probability * (upper - lower), axis=-1)


def _cdf(z: np.ndarray) -> np.ndarray:
    """The normal CDF in single precision, to 3e-7; ``z`` is overwritten.

    By linear interpolation in a table: of the many values that one row needs, `ndtr` would take
    most of its time, and a compiled program longer to compile than all rows of a table.
    """
    values, slopes = _cdf_table()
    z = np.clip(z, -_FAR, _FAR, out=z)
    z += np.float32(_FAR)
    z *= np.float32(_STEPS)
    place = z.astype(np.int32)
    z -= place
    z *= slopes.take(place)
    z += values.take(place)
    return z


@cache
def _cdf_table() -> tuple[np.ndarray, np.ndarray]:
    """The normal CDF at the points of the table, and how much it rises to the next one."""
    cdf = ndtr(np.arange(round(2 * _FAR * _STEPS) + 1) / _STEPS - _FAR)
    return cdf.astype(np.float32), np.diff(cdf, append=cdf[-1]).astype(np.float32)
