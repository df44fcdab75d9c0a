"""What a model file of `NKCME` holds beside what every gradient-trained estimator has.

A file is read by what it says: old versions, which lacked some entries, are recognised by that.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from nkcme.calibration.calibration_map import CalibrationMap
from nkcme.distributions.atom_covariances import need_covariances
from nkcme.distributions.support import Support
from nkcme.distributions.tails import MAX_SHAPE, TailParameters, Tails
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.gradient_trained import GradientTrainedEstimator
from nkcme.estimators.nkcme.atom_placement import atom_shapes
from nkcme.estimators.nkcme.embedding_network import NeuralEmbedding, Spec
from nkcme.estimators.nkcme.ensemble import Ensemble
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.nkcme.parameters import has_center
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.estimators.saving import count_in_file
from nkcme.networks import SpectralLinear
from nkcme.training.named_arrays import need_array

#: Parameters that earlier versions did not have. The first trained one network on an even grid.
ABSENT_IN_OLD_FILES: dict[str, Any] = {
    "support": "none",
    "bounds": None,
    "integer": False,
    "values": None,
    "center": "none",
    "n_members": 1,
    "recalibrate": False,
    "atoms": "grid",
}

# The names of arrays.
_COVARIANCES = "model.atoms.spread"
_LOCATION = "center/"
_CALIBRATION = "recalibration"
_PRIOR = "average_weights"


def solution_arrays(location: LocationModel | None, law: Law) -> dict[str, np.ndarray]:
    """The arrays of the location model and of the law."""
    arrays: dict[str, np.ndarray] = {}
    if location is not None:
        arrays |= {f"{_LOCATION}{k}": v for k, v in location.to_arrays().items()}
    if law.calibration is not None:
        arrays[_CALIBRATION] = law.calibration.values
    if law.prior is not None:
        arrays[_PRIOR] = law.prior
    return arrays


def law_config(law: Law) -> dict[str, Any]:
    """What else a file says of the law."""
    support = asdict(law.support)
    for bound in ("lower", "upper"):  # JSON has no infinity
        support[bound] = support[bound] if np.isfinite(support[bound]) else None
    return {
        "support": support,
        "prior_share": law.prior_share,
        "smoothing": law.smoothing,
        "overlap": law.overlap,
        "tails": None if law.tails is None else [list(tail) for tail in law.tails],
        "earlier": law.earlier,
    }


def law_from(config: dict[str, Any], arrays: dict[str, np.ndarray], n_atoms: int) -> Law:
    """The law of a file; that of an earlier version has no tails and no support."""
    calibration = calibration_from(arrays)
    described = config.get("law")
    if described is None:
        return Law(calibration=calibration, earlier=True)
    try:
        support: dict[str, Any] = {
            key: _as_tuple(value)
            for key, value in described["support"].items()
            if value is not None
        }
        tails = described["tails"]
        law = Law(
            Support(**support),
            calibration,
            arrays.get(_PRIOR),
            float(described["prior_share"]),
            float(described["smoothing"]),
            float(described["overlap"]),
            None if tails is None else Tails(*(TailParameters(*map(float, t)) for t in tails)),
            bool(described["earlier"]),
        )
        _check_law(law, n_atoms)
    except (KeyError, TypeError, ValueError, AttributeError, NkcmeError) as error:
        raise ModelFileError(f"the law in the model file cannot be used: {error}") from error
    return law


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _check_law(law: Law, n_atoms: int) -> None:
    """Raises ValueError where the numbers of a law make no distribution."""
    numbers = [*(law.tails or ()), (law.prior_share, law.smoothing, law.overlap)]
    if not all(np.all(np.isfinite(some)) for some in numbers):
        raise ValueError("it holds numbers that are not finite")
    if not (0 <= law.prior_share <= 1 and 0 <= law.overlap <= 1 and law.smoothing >= 0):
        raise ValueError("a share is not between 0 and 1, or the smoothing is negative")
    support = law.support
    if not np.all(np.isfinite([*support.values, *np.ravel(support.odds), support.unseen])):
        raise ValueError("its support holds numbers that are not finite")
    if support.odds and np.shape(support.odds) != (len(support.reached), 2):
        raise ValueError("its point masses have not one pair of odds each")
    if not 0 <= support.unseen < 1:
        raise ValueError("the probability of other values is not a share")
    if law.prior is not None:
        if law.prior.shape != (n_atoms,) or not np.all(law.prior >= 0):
            raise ValueError("its average weights do not fit the atoms")
        if not abs(law.prior.sum() - 1.0) < 1e-3:
            raise ValueError("its average weights do not sum to one")
    for tail in law.tails or ():
        if not (0 <= tail.mass < 0.5 and tail.scale > 0 and 0 <= tail.shape <= MAX_SHAPE):
            raise ValueError("its tails are none")
    if np.any(np.diff(support.values) <= 0):
        raise ValueError("its values are not in increasing order")
    if not set(support.reached) <= {support.lower, support.upper}:
        raise ValueError("its point masses are not at bounds")


def calibration_from(arrays: dict[str, np.ndarray]) -> CalibrationMap | None:
    """The calibration map of a file, if it has one."""
    values = arrays.get(_CALIBRATION)
    if values is None:
        return None
    need_array(arrays, _CALIBRATION, (len(np.atleast_1d(values)),))
    try:
        return CalibrationMap(values)
    except NkcmeError as error:
        raise ModelFileError(str(error)) from error


def location_from(arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> LocationModel | None:
    """The location model of a file, if it has one."""
    own = {k.removeprefix(_LOCATION): v for k, v in arrays.items() if k.startswith(_LOCATION)}
    if len(own) + (_CALIBRATION in arrays) + (_PRIOR in arrays) != len(arrays):
        raise ModelFileError("the model file holds arrays that this model does not have")
    return LocationModel.from_arrays(own, n_in, n_out) if own else None


def upgraded(
    config: dict[str, Any], arrays: dict[str, np.ndarray], n_outputs: int
) -> dict[str, np.ndarray]:
    """The arrays of a file of any version, as those of today's."""
    if "n_members" not in config:  # the first version had one member and no axis for it
        arrays = {k: v[None] if k.startswith("model") else v for k, v in arrays.items()}
    if n_outputs > 1 and _COVARIANCES not in arrays:  # a version whose atoms had none
        shape = np.shape(arrays.get("model.atoms.locations", ()))
        arrays = arrays | {_COVARIANCES: np.zeros((*shape, n_outputs), np.float32)}
    return arrays


def check_model(
    model: NeuralEmbedding, bandwidth: float, location: LocationModel | None, n_inputs: int
) -> None:
    """Raises where the parts of a file do not fit each other."""
    if model.atoms.spread is not None:
        need_covariances(np.asarray(model.atoms.spread[0]))
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ModelFileError(f"the bandwidth of this model is {bandwidth}")
    if location is not None:
        n_inputs = location.n_inputs(n_inputs)
        if location.n_members != len(model.raw_bandwidth):
            raise ModelFileError("the location model and the ensemble have different members")
    first = model.network.layers[0]
    linear = first.linear if isinstance(first, SpectralLinear) else first
    if linear.weight.shape[-1] != n_inputs:
        raise ModelFileError("the location model in the file does not fit the network")


class StoredEstimator(GradientTrainedEstimator):
    """The file format of `NKCME`, which is its only subclass."""

    _ABSENT_IN_OLD_FILES = ABSENT_IN_OLD_FILES

    # Parameters and attributes of `NKCME` that its file depends on.
    center: Any
    recalibrate: bool | str
    atoms: str
    n_atoms: int | None

    def _describe(self) -> None:
        """Set the attributes that follow from the ensemble."""
        ensemble = Ensemble(self.model_)
        self.bandwidth_, self.n_members_ = ensemble.bandwidth, ensemble.n_members
        self.n_atoms_ = len(ensemble.atoms)
        self.support_, self.recalibration_ = self.law_.support, self.law_.calibration

    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        learned, arrays = super()._learned()
        counts = {
            "n_members": self.n_members_,
            "n_atoms": self.n_atoms_,
            "law": law_config(self.law_),
        }
        if self.center_ is not None:
            counts["n_inputs"] = self.center_.n_inputs(self.encoder_.n_outputs)
        return learned | counts, arrays

    def _solution(self) -> dict[str, np.ndarray]:
        return solution_arrays(self.center_, self.law_)

    def _leading_axes(self, config: dict[str, Any]) -> tuple[int, ...]:
        return (count_in_file(config, "n_members", 1),)

    def _constant_shape(self, spec: Spec) -> Any:
        return atom_shapes(self.atoms, spec.n_atoms, spec.n_out)

    def _spec_of_file(self, config: dict[str, Any]) -> Spec:
        # The first version had the number of atoms among its parameters.
        spec: Spec = super()._spec_of_file(config)
        return spec._replace(
            n_in=count_in_file(config, "n_inputs", spec.n_in),
            n_atoms=count_in_file(config, "n_atoms", self.n_atoms),
        )

    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._relearn(config, upgraded(config, arrays, self.n_outputs_))
        self.law_ = law_from(config, self._law_arrays, len(Ensemble(self.model_).atoms))
        del self._law_arrays
        self._describe()
        check_model(self.model_, self.bandwidth_, self.center_, self.encoder_.n_outputs)

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        self._law_arrays = {k: v for k, v in solution.items() if k in (_CALIBRATION, _PRIOR)}
        self.center_ = location_from(solution, self.encoder_.n_outputs, self.n_outputs_)
        calibrated, located = _CALIBRATION in solution, self.center_ is not None
        if self.recalibrate != "auto" and self.recalibrate != calibrated:
            raise ModelFileError("the model file and its parameters disagree on recalibration")
        without = has_center(self, "none")
        if not has_center(self, "auto") and without == located:
            raise ModelFileError("the model file and its parameters disagree on the center")

    @classmethod
    def _parameter_from_file(cls, name: str, value: Any) -> Any:
        if name == "recipe" and value is not None:
            return Recipe.from_config(value)
        return super()._parameter_from_file(name, value)
