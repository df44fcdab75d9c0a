"""A fitted `NKCME`: location model, ensemble, calibration map, and the predictions they give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkcme.calibration.calibration_map import CalibrationMap
from nkcme.distributions.embedding import Embedding, summing_to_one
from nkcme.estimators.nkcme.ensemble import Ensemble, EnsembleFit
from nkcme.estimators.nkcme.location_model import Location, LocationModel
from nkcme.estimators.nkcme.uncertainty import Uncertainty, disagreement
from nkcme.tables.target import TargetScaler


class FittedModel(NamedTuple):
    """The three parts of a fitted model, and the units of y."""

    location: LocationModel | None
    ensemble: Ensemble
    calibration: CalibrationMap | None
    scaler: TargetScaler
    reading: str

    def distribution(self, x: np.ndarray) -> Embedding:
        """P(y | x) at encoded inputs (n, p), in units of y."""
        location, inputs = self._locate(x)
        weights = self._calibrated(self.ensemble.weights(inputs))
        return self.ensemble.embedding(weights, *self._units(location, weights), self.reading)

    def uncertainty(self, x: np.ndarray) -> Uncertainty:
        """Noise and disagreement of the members at encoded inputs (n, p)."""
        location, inputs = self._locate(x)
        each = self.ensemble.each_weights(inputs)
        weights = np.stack([summing_to_one(one) for one in each])
        _, scale = self._units(location, self._calibrated(each.mean(axis=0)))
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

    def _calibrated(self, weights: np.ndarray) -> np.ndarray:
        """Weights (n, m) that sum to one, after the calibration map."""
        weights = summing_to_one(weights)
        return weights if self.calibration is None else self.calibration.of_weights(weights)

    def _units(
        self, location: Location | None, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Location and scale, in units of y, of atoms with these weights."""
        if location is None:
            return self.scaler.location, self.scaler.scale
        deviation = self.ensemble.embedding(weights, 0.0, 1.0, self.reading).std()
        narrowed = location.narrowed(np.square(deviation).reshape(location.mean.shape))
        mean = self.scaler.location + self.scaler.scale * location.mean
        return mean, self.scaler.scale * narrowed


class TrainedModel(NamedTuple):
    """The state that training gives for one data set."""

    fit: EnsembleFit
    calibration: CalibrationMap | None

    @property
    def n_steps(self) -> int:
        return self.fit.n_steps

    @property
    def interrupted(self) -> bool:
        return self.fit.interrupted
