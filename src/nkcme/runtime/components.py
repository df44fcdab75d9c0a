"""Weights from components without JAX: normal distributions, put on fixed atoms."""

from __future__ import annotations

import numpy as np

from nkcme.distributions.blocks import row_slices
from nkcme.distributions.special_functions import ndtr
from nkcme.errors import ModelFileError
from nkcme.runtime.file_arrays import FileArrays
from nkcme.runtime.networks import softmax

#: Values of CDFs that are computed together.
_MOST_VALUES = 2**20

#: Further from its mean, in standard deviations, a component is all on one side: the difference is
#: less than the rounding of one.
_FAR = 8.5


class StackedComponents:
    """The counterpart of `Components`, for members with common atoms.

    Parameters
    ----------
    arrays : FileArrays
    count : int
        The number of components.
    n_members : int
    atoms : array (m, 1)
        In increasing order.
    """

    def __init__(self, arrays: FileArrays, count: int, n_members: int, atoms: np.ndarray):
        prefix, each = "model.components", (n_members, 1, 1)
        self._starts = arrays.take(f"{prefix}.starts", (n_members, count))[:, None]
        self._unit_std = arrays.take(f"{prefix}.unit_std", (n_members,)).reshape(each)
        self._least_std = arrays.take(f"{prefix}.least_std", (n_members,)).reshape(each)
        if not (np.all(self._unit_std > 0) and np.all(self._least_std > 0)):
            raise ModelFileError(
                "the components of this model have no positive standard deviations"
            )
        self._edges = 0.5 * (atoms[1:, 0] + atoms[:-1, 0])

    def weights(self, outputs: np.ndarray) -> np.ndarray:
        """The weights (k, n, m) for outputs (k, n, 3 K) of the networks; they sum to one."""
        n_members, n_rows = outputs.shape[:2]
        logits, off, log_ratio = np.split(outputs, 3, axis=-1)
        probability, mean = softmax(logits.copy()), self._starts + off
        with np.errstate(over="ignore"):  # as wide as all numbers
            std = self._least_std + self._unit_std * np.exp(log_ratio)
        below = np.zeros((n_members, n_rows, len(self._edges) + 2))
        below[..., -1] = 1.0
        values_per_row = max(1, n_members * mean.shape[-1] * len(self._edges))
        for rows in row_slices(n_rows, max(1, _MOST_VALUES // values_per_row)):
            z = (self._edges - mean[:, rows, :, None]) / std[:, rows, :, None]
            cdf = (z > 0).astype(np.float64)
            near = np.abs(z) < _FAR
            cdf[near] = ndtr(z[near].astype(np.float64))
            below[:, rows, 1:-1] = (probability[:, rows, None] @ cdf)[:, :, 0]
        # Rounding may leave differences below zero.
        return np.maximum(np.diff(below, axis=-1), 0.0)
