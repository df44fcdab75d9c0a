"""What a model file of `NKCME` holds beside what every gradient-trained estimator has.

A file is read by what it says: old versions, which lacked some entries, are recognised by that.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import numpy as np

from nkcme.distributions.atom_covariances import need_covariances
from nkcme.distributions.confined_embedding import LAW
from nkcme.distributions.transforms import NONE
from nkcme.errors import ModelFileError
from nkcme.estimators.gradient_trained import GradientTrainedEstimator
from nkcme.estimators.nkcme.atom_placement import atom_shapes
from nkcme.estimators.nkcme.embedding_network import NeuralEmbedding, Spec, TableValues
from nkcme.estimators.nkcme.ensemble import Ensemble
from nkcme.estimators.nkcme.file_contents import (
    law_arrays_of,
    location_from,
    solution_arrays,
    upgraded,
)
from nkcme.estimators.nkcme.law_files import CALIBRATION, law_config, law_from
from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.nkcme.location_networks import Networks
from nkcme.estimators.nkcme.parameters import has_center
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.estimators.nkcme.tree_ensemble import TreeEnsemble
from nkcme.estimators.saving import count_in_file
from nkcme.networks import ACTIVATIONS, SpectralLinear

#: Parameters that earlier versions did not have. The first trained one network on an even grid.
ABSENT_IN_OLD_FILES: dict[str, Any] = {
    "support": "none",
    "bounds": None,
    "integer": False,
    "values": None,
    "transform": "none",
    "center": "none",
    "n_members": 1,
    "recalibrate": False,
    "atoms": "grid",
}


def check_model(
    model: NeuralEmbedding, bandwidth: float, location: LocationModel | None, n_inputs: int
) -> None:
    """Raises where the parts of a file do not fit each other."""
    if model.atoms.spread is not None:
        need_covariances(np.asarray(model.atoms.spread[0]))
    if model.components is not None and not (
        np.all(model.components.least_std > 0) and np.all(model.components.unit_std > 0)
    ):
        raise ModelFileError("the components of this model have no positive standard deviations")
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

    @property
    @abstractmethod
    def _reading(self) -> str:
        """The reading of predictions."""

    def _describe(self) -> None:
        """Set the attributes that follow from the ensemble."""
        ensemble = Ensemble(self.model_)
        self.bandwidth_, self.n_members_ = ensemble.bandwidth, ensemble.n_members
        self.n_atoms_ = len(ensemble.atoms)
        self.support_, self.recalibration_ = self.law_.support, self.law_.calibration
        self.transform_ = self.law_.transform

    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        learned, arrays = super()._learned()
        counts = {
            "n_members": self.n_members_,
            "n_atoms": self.n_atoms_,
            "law": law_config(self.law_),
        }
        if self.model_.components is not None:
            # Which head a model has may have been chosen by its out-of-fold score.
            counts["components"] = {
                "count": self.model_.components.starts.shape[-1],
                "activation": self.model_.network.activation,
            }
        if self.center_ is not None:
            counts["n_inputs"] = self.center_.n_inputs(self.encoder_.n_outputs)
        return learned | counts, arrays

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {
            "center": "none" if self.center_ is None else self.center_.summary(),
            "recalibrated": self.recalibration_ is not None,
            "transform": self.transform_,
            "support": str(self.support_),
        }

    def _solution(self) -> dict[str, np.ndarray]:
        return solution_arrays(self.center_, self.law_)

    def _leading_axes(self, config: dict[str, Any]) -> tuple[int, ...]:
        return (count_in_file(config, "n_members", 1),)

    def _constant_shape(self, spec: Spec) -> Any:
        number = jax.ShapeDtypeStruct((), np.float32)
        values = TableValues(*[number] * len(TableValues._fields))
        return atom_shapes(self.atoms, spec.n_atoms, spec.n_out), values

    def _spec_of_file(self, config: dict[str, Any]) -> Spec:
        # The first version had the number of atoms among its parameters.
        spec: Spec = super()._spec_of_file(config)
        spec = spec._replace(
            n_in=count_in_file(config, "n_inputs", spec.n_in),
            n_atoms=count_in_file(config, "n_atoms", self.n_atoms),
        )
        components = config.get("components")
        if components is None:
            return spec._replace(n_components=0)
        if not isinstance(components, dict) or components.get("activation") not in ACTIVATIONS:
            raise ModelFileError(f"the components in the model file are not usable: {components!r}")
        return spec._replace(
            n_components=count_in_file(components, "count"), activation=components["activation"]
        )

    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._relearn(config, upgraded(config, arrays, self.n_outputs_))
        sizes = (len(Ensemble(self.model_).atoms), self.encoder_.n_outputs)
        self.law_ = law_from(config, self._law_arrays, *sizes)
        del self._law_arrays
        if self.law_.transform != NONE and self._reading != LAW:
            raise ModelFileError("the model file and its parameters disagree on the transform")
        self._describe()
        check_model(self.model_, self.bandwidth_, self.center_, self.encoder_.n_outputs)

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        self._law_arrays = law_arrays_of(solution)
        sizes = (self.encoder_.n_outputs, self.n_outputs_)
        self.center_ = location_from(
            solution, *sizes, Networks.from_arrays, TreeEnsemble.from_arrays
        )
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
