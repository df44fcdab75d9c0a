"""Recalibration: a monotone map of predicted probabilities, learned from honest predictions.

Where F is the predicted distribution function, U = F(y | x) is uniform if predictions are
calibrated. If it is distributed as R instead, then R(F(y | x)) is the calibrated one (Kuleshov,
Fenner and Ermon, 2018). On the weights of an embedding this is a change of weights: sums of them
from the left are mapped, and their differences are the new ones. Atoms and kernel stay, and
quantiles cannot cross.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nkcme.errors import NkcmeError

#: Even steps of probability at which the map is kept.
N_STEPS = 100

#: As many rows as this speak for the map as it was, the identity, against those that were seen.
#: It keeps the map strictly increasing, and near the identity where rows are few.
PRIOR_ROWS = 20.0


@dataclass(frozen=True, eq=False)
class Recalibration:
    """R, piecewise linear between even levels: ``values`` (N_STEPS + 1,) from zero to one."""

    values: np.ndarray

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        rises = values.ndim == 1 and len(values) > 1 and np.all(np.diff(values) >= 0)
        if not (rises and values[0] == 0.0 and abs(values[-1] - 1.0) < 1e-6):
            raise NkcmeError("a recalibration must rise from zero to one")
        object.__setattr__(self, "values", np.minimum(values, 1.0))

    @classmethod
    def fit(cls, pit: np.ndarray, weight: np.ndarray | None = None) -> Recalibration:
        """From F(y | x) of rows that the predictions have not seen."""
        levels = np.linspace(0.0, 1.0, N_STEPS + 1)
        counts, _ = np.histogram(np.clip(pit, 0.0, 1.0), levels, weights=weight)
        counts = counts + PRIOR_ROWS / N_STEPS
        values = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
        values[-1] = 1.0
        return cls(values)

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """R at probabilities of any shape."""
        levels = np.linspace(0.0, 1.0, len(self.values))
        return np.interp(probability, levels, self.values)

    def of_weights(self, weights: np.ndarray) -> np.ndarray:
        """The weights (n_rows, m), of atoms in increasing order and on the simplex, of which the
        distribution function is R of what it was."""
        below = np.cumsum(np.asarray(weights, np.float64), axis=1)
        below = self(below / below[:, -1:])
        return np.diff(below, axis=1, prepend=0.0)
