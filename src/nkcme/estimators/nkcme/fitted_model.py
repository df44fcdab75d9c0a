"""A fitted `NKCME`: location model, ensemble, law, and the predictions they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from nkcme.distributions.confined_embedding import LAW
from nkcme.distributions.elementwise import mean_over
from nkcme.distributions.embedding import Embedding, summing_to_one
from nkcme.distributions.transforms import LOG, NONE, restored
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.location_model import Location, LocationModel
from nkcme.tables.target import TargetScaler

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.ensemble import EnsembleFit
    from nkcme.estimators.nkcme.uncertainty import Uncertainty


class Weighing(Protocol):
    """An ensemble that gives weights to the atoms that its members share."""

    @property
    def atoms(self) -> np.ndarray: ...

    @property
    def kernel(self) -> str: ...

    @property
    def bandwidth(self) -> float: ...

    def weights(self, x: np.ndarray) -> np.ndarray: ...

    def each_weights(self, x: np.ndarray) -> np.ndarray: ...

    def embedding(
        self, weights: np.ndarray, location: Any, scale: Any, reading: str, **law: Any
    ) -> Embedding: ...


#: The square of a factor with a larger logarithm is infinite.
_LARGEST_LOG = 300.0


class FittedModel(NamedTuple):
    """The three parts of a fitted model, and the units of y or of its transform."""

    location: LocationModel | None
    ensemble: Weighing
    law: Law
    scaler: TargetScaler
    reading: str

    def distribution(self, x: np.ndarray) -> Embedding:
        """P(y | x) at encoded inputs (n, p), in units of y."""
        location, inputs = self._locate(x)
        if location is None and self._widens:
            each = self.ensemble.each_weights(inputs)
            of_ensemble, spread = (
                mean_over(each, axis=0),
                spread_of_means(each, self.ensemble.atoms),
            )
        else:
            of_ensemble, spread = self.ensemble.weights(inputs), None
        weights = self._weights(of_ensemble)
        units = self._units(location, weights)
        added = self._added_std(x, location.spread[:, 0] if location is not None else spread)
        return self.law.embedding(self.ensemble, weights, *units, self.reading, added)

    def uncertainty(self, x: np.ndarray) -> Uncertainty:
        """Noise and disagreement of the members at encoded inputs (n, p)."""
        from nkcme.estimators.nkcme.uncertainty import Uncertainty, disagreement

        location, inputs = self._locate(x)
        each = self.ensemble.each_weights(inputs)
        weights = np.stack([summing_to_one(one) for one in each])
        mean, scale = self._units(location, self._weights(each.mean(axis=0)))
        atoms = self.ensemble.atoms.astype(np.float64)
        aleatoric = self._aleatoric(weights, atoms, mean, scale)
        shift = np.zeros((len(weights), len(x), atoms.shape[1]))
        if location is not None:
            shift = (location.members - location.mean) * self.scaler.scale / scale
        kernel, bandwidth = self.ensemble.kernel, self.ensemble.bandwidth
        epistemic = disagreement(weights, atoms, shift, kernel, bandwidth)
        return Uncertainty(aleatoric, epistemic)

    def _aleatoric(
        self, weights: np.ndarray, atoms: np.ndarray, mean: np.ndarray, scale: np.ndarray
    ) -> np.ndarray:
        """The root of the mean variance (n, d) of y by the weights of each member (k, n, m)."""
        if self.law.transform == NONE:
            variance = weights @ np.square(atoms) - np.square(weights @ atoms)
            return scale * np.sqrt(np.maximum(variance.mean(axis=0), 0.0))
        # Atoms are factors of exp(mean), which differ by row where the scale does.
        factors = np.expm1(np.clip(scale * atoms[:, 0], -_LARGEST_LOG, _LARGEST_LOG))
        around = np.einsum("kna,na->kn", weights, np.broadcast_to(factors, weights.shape[1:]))
        square = np.einsum("kna,na->kn", weights, np.broadcast_to(factors**2, weights.shape[1:]))
        variance = np.maximum(square - np.square(around), 0.0).mean(axis=0)
        return np.sqrt(variance)[:, None] * restored(mean, LOG)

    def _locate(self, x: np.ndarray) -> tuple[Location | None, np.ndarray]:
        """The location at x, and the inputs of the network of weights."""
        if self.location is None:
            return None, x
        location = self.location.at(x)
        return location, location.inputs

    @property
    def _widens(self) -> bool:
        """Whether distributions of new rows are widened."""
        return self.law.novelty is not None and self.reading == LAW

    def _added_std(self, x: np.ndarray, spread: np.ndarray | None) -> np.ndarray | float:
        """The root of what is added to the variance of y, or of its transform, for new rows with a
        variance (n,) between members."""
        if self.law.novelty is None or spread is None or not self._widens:
            return 0.0
        novelty = self.law.novelty
        variance = novelty.variance(x, spread) + novelty.extrapolated(x, self._mean)
        return self.scaler.scale[0] * np.sqrt(variance)

    def _mean(self, x: np.ndarray) -> np.ndarray:
        """The mean (n,) of standardised y, by location model or weights."""
        if self.location is not None:
            return self.location.at(x).mean[:, 0]
        weights = summing_to_one(self.ensemble.weights(x))
        return weights @ self.ensemble.atoms[:, 0]

    def _weights(self, weights: np.ndarray) -> np.ndarray:
        """The weights (n, m) of the law for those of the ensemble."""
        return self.law.weights(weights, self.ensemble.atoms, self.reading)

    def _units(
        self, location: Location | None, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Location and scale, in units of y or of its transform, of atoms with these weights."""
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


def member_spread(ensemble: Weighing, location: Location | None, x: np.ndarray) -> np.ndarray:
    """The variance (n,) of what members predict, in units of standardised y of one output."""
    if location is not None:
        return location.spread[:, 0]
    return spread_of_means(ensemble.each_weights(x), ensemble.atoms)


def spread_of_means(weights: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """The variance (n,) between the means that members with these weights (k, n, m) of atoms (m, 1)
    predict."""
    means = (weights @ atoms[:, 0] / np.add.reduce(weights, axis=-1)).astype(np.float64)
    return means.var(axis=0, ddof=1) if len(means) > 1 else np.zeros(weights.shape[1])


def bandwidths_above(floor: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """The bandwidth (k,) of each member: the softplus of its raw parameter, above its floor."""
    return (floor + np.logaddexp(np.float32(0.0), raw)).astype(np.float64)


def mean_bandwidth(each: np.ndarray) -> float:
    """The geometric mean of the members' bandwidths (k,)."""
    return float(np.exp(np.mean(np.log(each)))) if len(each) > 1 else float(each[0])


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
