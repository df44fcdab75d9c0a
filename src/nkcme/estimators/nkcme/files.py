"""What a model file of `NKCME` holds beside what every gradient-trained estimator has.

A file is read by what it says: old versions, which lacked some entries, are recognised by that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme.distributions.atom_covariances import need_covariances
from nkcme.errors import ModelFileError
from nkcme.estimators.gradient_trained import GradientTrainedEstimator
from nkcme.estimators.nkcme.atom_placement import atom_shapes
from nkcme.estimators.nkcme.embedding_network import NeuralEmbedding, Spec
from nkcme.estimators.nkcme.ensemble import Ensemble
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.law_files import (
    CALIBRATION,
    is_of_law,
    law_arrays,
    law_config,
    law_from,
)
from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.nkcme.parameters import has_center
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.estimators.saving import count_in_file
from nkcme.networks import SpectralLinear

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


def solution_arrays(location: LocationModel | None, law: Law) -> dict[str, np.ndarray]:
    """The arrays of the location model and of the law."""
    arrays: dict[str, np.ndarray] = {}
    if location is not None:
        arrays |= {f"{_LOCATION}{k}": v for k, v in location.to_arrays().items()}
    return arrays | law_arrays(law)


def location_from(arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> LocationModel | None:
    """The location model of a file, if it has one."""
    own = {k.removeprefix(_LOCATION): v for k, v in arrays.items() if k.startswith(_LOCATION)}
    if len(own) + sum(map(is_of_law, arrays)) != len(arrays):
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
        sizes = (len(Ensemble(self.model_).atoms), self.encoder_.n_outputs)
        self.law_ = law_from(config, self._law_arrays, *sizes)
        del self._law_arrays
        self._describe()
        check_model(self.model_, self.bandwidth_, self.center_, self.encoder_.n_outputs)

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        self._law_arrays = {k: v for k, v in solution.items() if is_of_law(k)}
        self.center_ = location_from(solution, self.encoder_.n_outputs, self.n_outputs_)
        calibrated, located = CALIBRATION in solution, self.center_ is not None
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
