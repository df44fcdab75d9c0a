"""A fitted `NKCME`: location model, ensemble, law, and the predictions they give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkcme.distributions.confined_embedding import LAW
from nkcme.distributions.embedding import Embedding, summing_to_one
from nkcme.estimators.nkcme.ensemble import Ensemble, EnsembleFit
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.location_model import Location, LocationModel
from nkcme.estimators.nkcme.uncertainty import Uncertainty, disagreement
from nkcme.tables.target import TargetScaler


class FittedModel(NamedTuple):
    """The three parts of a fitted model, and the units of y."""

    location: LocationModel | None
    ensemble: Ensemble
    law: Law
    scaler: TargetScaler
    reading: str

    def distribution(self, x: np.ndarray) -> Embedding:
        """P(y | x) at encoded inputs (n, p), in units of y."""
        location, inputs = self._locate(x)
        weights = self._weights(self.ensemble.weights(inputs))
        units = self._units(location, weights)
        added = self._added_std(location, x)
        return self.law.embedding(self.ensemble, weights, *units, self.reading, added)

    def uncertainty(self, x: np.ndarray) -> Uncertainty:
        """Noise and disagreement of the members at encoded inputs (n, p)."""
        location, inputs = self._locate(x)
        each = self.ensemble.each_weights(inputs)
        weights = np.stack([summing_to_one(one) for one in each])
        _, scale = self._units(location, self._weights(each.mean(axis=0)))
        atoms = self.ensemble.atoms.astype(np.float64)
        variance = weights @ np.square(atoms) - np.square(weights @ atoms)
        aleatoric = scale * np.sqrt(np.maximum(variance.mean(axis=0), 0.0))
        shift = np.zeros((len(weights), len(x), atoms.shape[1]))
        if location is not None:
            shift = (location.members - location.mean) * self.scaler.scale / scale
        kernel = self.ensemble.members.kernel_name
        epistemic = disagreement(weights, atoms, shift, kernel, self.ensemble.bandwidth)
        return Uncertainty(aleatoric, epistemic)

    def _locate(self, x: np.ndarray) -> tuple[Location | None, np.ndarray]:
        """The location at x, and the inputs of the network of weights."""
        if self.location is None:
            return None, x
        location = self.location.at(x)
        return location, location.inputs

    def _added_std(self, location: Location | None, x: np.ndarray) -> np.ndarray | float:
        """The root of what the law adds to the variance of y for rows that are new."""
        if self.law.novelty is None or self.reading != LAW:
            return 0.0
        spread = member_spread(self.ensemble, location, x)
        return self.scaler.scale[0] * np.sqrt(self.law.novelty.variance(x, spread))

    def _weights(self, weights: np.ndarray) -> np.ndarray:
        """The weights (n, m) of the law for those of the ensemble."""
        return self.law.weights(weights, self.ensemble.atoms, self.reading)

    def _units(
        self, location: Location | None, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Location and scale, in units of y, of atoms with these weights."""
        if location is None:
            return self.scaler.location, self.scaler.scale
        if location.least_share == 1.0:  # all members are averaged, as for the residuals' unit
            mean = self.scaler.location + self.scaler.scale * location.mean
            return mean, self.scaler.scale * location.scale
        # Models of earlier versions narrow the scale row by row.
        deviation = self.ensemble.embedding(weights, 0.0, 1.0, self.reading).std()
        narrowed = location.narrowed(np.square(deviation).reshape(location.mean.shape))
        mean = self.scaler.location + self.scaler.scale * location.mean
        return mean, self.scaler.scale * narrowed


def member_spread(ensemble: Ensemble, location: Location | None, x: np.ndarray) -> np.ndarray:
    """The variance (n,) of what members predict, in units of standardised y of one output."""
    return ensemble.spread(x) if location is None else location.spread[:, 0]


class TrainedModel(NamedTuple):
    """The state that training gives for one data set."""

    fit: EnsembleFit
    law: Law

    @property
    def n_steps(self) -> int:
        return self.fit.n_steps

    @property
    def interrupted(self) -> bool:
        return self.fit.interrupted
