"""The law of a fitted `NKCME`: how the weights of its ensemble are read as distributions of y."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from nkcme.calibration.calibration_map import CalibrationMap
from nkcme.distributions.embedding import Embedding, summing_to_one
from nkcme.distributions.support import EVERYTHING, Support
from nkcme.distributions.tails import Tails
from nkcme.distributions.transforms import NONE
from nkcme.estimators.nkcme.novelty import Novelty
from nkcme.forward_passes import product


class Atoms(Protocol):
    """Atoms that carry weights: those of an ensemble."""

    def embedding(
        self, weights: np.ndarray, location: Any, scale: Any, reading: str, **law: Any
    ) -> Embedding:
        """The embedding with these weights (n, m), in units of location and scale."""


@dataclass(frozen=True, eq=False)
class Law:
    """How weights become a distribution of y. `calibrating.fit_law` learns it.

    1. A small share of each prediction is the average prediction: what can happen somewhere can
       happen anywhere.
    2. Weights are smoothed over neighbouring atoms, by a normal distribution.
    3. The calibration map corrects cumulative probabilities.
    4. Atoms are spread over the gaps between them; beyond the outermost, tails follow.
    5. With a transform, all this is a law of log y, which becomes one of y.
    6. Far from the training rows the law is wider, in proportion, around its mean or median.
    7. All mass lies on the support of y.

    Attributes
    ----------
    support : Support
    transform : {"none", "log"}
    calibration : CalibrationMap or None
    prior : array (m,)
        The average weights.
    prior_share : float
    smoothing : float
        The standard deviation of step 2, in units of the atoms.
    overlap : float
        How far atoms reach; see `Embedding`.
    tails : Tails or None
        None where no rows were held out to learn them from.
    novelty : Novelty or None
        How new a row is; None where that was not learned.
    earlier : bool
        Whether the model is of an earlier version, which read its weights atomically.
    """

    support: Support = EVERYTHING
    transform: str = NONE
    calibration: CalibrationMap | None = None
    prior: np.ndarray | None = None
    prior_share: float = 0.0
    smoothing: float = 0.0
    overlap: float = 0.0
    tails: Tails | None = None
    novelty: Novelty | None = None
    earlier: bool = False

    def __repr__(self) -> str:
        parts = {"calibration map": self.calibration, "tails": self.tails, "novelty": self.novelty}
        of = "y" if self.transform == NONE else f"{self.transform} y"
        found = [name for name, part in parts.items() if part is not None]
        return f"Law({', '.join([f'of {of} on {self.support}', *found])})"

    def weights(self, weights: np.ndarray, atoms: np.ndarray, reading: str) -> np.ndarray:
        """The weights (n, m) of a reading for those that an ensemble gives to atoms (m, d).

        Only the law has a calibration map of its own; for other readings the map changes weights.
        """
        weights = summing_to_one(weights)
        if self.prior is not None:
            weights = (1.0 - self.prior_share) * weights + self.prior_share * self.prior
        if self.smoothing:
            smoother = _smoother(atoms[:, 0].tobytes(), atoms.dtype, self.smoothing)
            weights = product(weights, smoother)
        if self.calibration is None or reading == "law":
            return weights
        return self.calibration.of_weights(weights)

    def embedding(
        self,
        ensemble: Atoms,
        weights: np.ndarray,
        location: Any,
        scale: Any,
        reading: str,
        added_std: Any = 0.0,
    ) -> Embedding:
        """The distributions with these weights of the law; location and scale are in units of y, or
        of its transform."""
        if reading != "law":
            return ensemble.embedding(weights, location, scale, reading)
        return ensemble.embedding(
            weights,
            location,
            scale,
            reading,
            overlap=self.overlap,
            calibration=None if self.calibration is None else self.calibration.values,
            tails=self.tails,
            support=self.support,
            added_std=added_std,
            transform=self.transform,
        )


def reading_of(reading: str, head: str, n_outputs: int = 1) -> str:
    """The reading that "auto" means for weights of this head."""
    if reading == "auto":
        simplex = "law" if n_outputs == 1 else "atomic"
        return "smoothed" if head == "signed" else simplex
    return reading


@lru_cache(maxsize=16)
def _smoother(atoms: bytes, dtype: Any, bandwidth: float) -> np.ndarray:
    """The matrix (m, m) that spreads the weight of each atom over all atoms, by their share of a
    normal distribution around it."""
    eta = np.frombuffer(atoms, dtype).astype(np.float64)
    gaps = np.diff(eta)
    ends = gaps[[0, -1]] if len(gaps) else np.ones(2)
    room = 0.5 * (np.append(ends[0], gaps) + np.append(gaps, ends[1]))
    density = np.exp(-0.5 * np.square((eta[None] - eta[:, None]) / bandwidth)) * room
    return density / np.maximum(density.sum(axis=1, keepdims=True), 1e-300)
