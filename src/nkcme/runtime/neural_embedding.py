"""`NKCME` without JAX: its networks in NumPy; location model and law are those of the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme.distributions.atom_covariances import need_covariances
from nkcme.distributions.confined_embedding import LAW
from nkcme.distributions.elementwise import mean_over
from nkcme.distributions.embedding import Embedding
from nkcme.distributions.kernel_values import need_kernel
from nkcme.distributions.transforms import NONE
from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.component_weights import StackedComponents
from nkcme.estimators.nkcme.file_contents import law_arrays_of, location_from, upgraded
from nkcme.estimators.nkcme.fitted_model import FittedModel, bandwidths_above, mean_bandwidth
from nkcme.estimators.nkcme.law import reading_of
from nkcme.estimators.nkcme.law_files import law_from
from nkcme.estimators.nkcme.tree_ensemble import TreeEnsemble
from nkcme.forward_passes import StackedNetworks, softmax
from nkcme.runtime.components import read_components
from nkcme.runtime.file_arrays import FileArrays, split_solution
from nkcme.runtime.networks import read_networks
from nkcme.tables.target import TargetScaler

_HEADS = ("simplex", "components", "signed")


class NetworkBase:
    """Networks as a base of a location model."""

    def __init__(self, networks: StackedNetworks):
        self._networks = networks

    @property
    def n_members(self) -> int:
        return self._networks.n_members

    def members(self, x: np.ndarray) -> np.ndarray:
        """The predictions of each member at encoded inputs, (n_members, n, d)."""
        return self._networks(x)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> NetworkBase:
        """From an untrusted file."""
        own = FileArrays(arrays)
        networks = read_networks(own, "", n_in=n_in, n_out=n_out, activation="relu")
        own.need_all_taken()
        return cls(networks)

    def to_arrays(self) -> dict[str, np.ndarray]:
        raise NotImplementedError("the runtime writes no files")


class EmbeddingEnsemble:
    """Networks that give weights to common atoms; the counterpart of `Ensemble`.

    ``components`` is what the file says of them, None where the networks' outputs are weights.
    """

    def __init__(
        self,
        arrays: FileArrays,
        parameters: dict[str, Any],
        components: dict[str, Any] | None,
        n_in: int,
        n_out: int,
    ):
        self.kernel, self.head = str(parameters["kernel"]), parameters["head"]
        need_kernel(self.kernel)
        if self.head not in _HEADS:
            raise ModelFileError(f"the head of a network is one of {_HEADS}; got {self.head!r}")
        k, m, *_ = *arrays.shape("model.atoms.locations")[:2], 0, 0
        self.atoms = arrays.take("model.atoms.locations", (k, m, n_out))[0]
        self._double_atoms = self.atoms.astype(np.float64)
        self._components: StackedComponents | None = None
        n_outputs, activation = m, parameters["activation"]
        if components is not None:
            count, activation = components["count"], components["activation"]
            self._components = read_components(arrays, count, k)
            n_outputs = 3 * count
        self.networks = read_networks(
            arrays, "model.network", n_in=n_in, n_out=n_outputs, activation=activation
        )
        if "model.atoms.spacing" in arrays:
            arrays.take("model.atoms.spacing", (k,))
        self._covariances = None
        if n_out > 1:
            self._covariances = arrays.take("model.atoms.spread", (k, m, n_out, n_out))[0]
            need_covariances(self._covariances)
        each = bandwidths_above(
            arrays.take("model.bandwidth_floor", (k,)), arrays.take("model.raw_bandwidth", (k,))
        )
        if not np.all((each > 0) & np.isfinite(each)):
            raise ModelFileError("a bandwidth of this model is not positive")
        self.bandwidth = mean_bandwidth(each)

    @property
    def n_members(self) -> int:
        return self.networks.n_members

    def each_weights(self, x: np.ndarray) -> np.ndarray:
        """The weights (n_members, n, m) of each member."""
        out = self.networks(x)
        if self._components is not None:
            return self._components.weights(out, self.atoms[:, 0])
        return out if self.head == "signed" else softmax(out)

    def weights(self, x: np.ndarray) -> np.ndarray:
        """The mean (n, m) of the members' weights."""
        return mean_over(self.each_weights(x), axis=0)

    def embedding(
        self, weights: np.ndarray, location: Any, scale: Any, reading: str, **law: Any
    ) -> Embedding:
        """The embedding with these weights (n, m), in units of location and scale."""
        return Embedding(
            atoms=self._double_atoms,
            weights=weights,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            location=location,
            scale=scale,
            reading=reading,
            covariances=self._covariances,
            **law,
        )


def read_nkcme(
    parameters: dict[str, Any],
    learned: dict[str, Any],
    arrays: dict[str, np.ndarray],
    n_in: int,
    scaler: TargetScaler,
) -> FittedModel:
    """The model of a file of `NKCME`, for ``n_in`` encoded inputs."""
    n_out = len(scaler.location)
    contents = split_solution(upgraded(learned, arrays, n_out))
    location = location_from(
        contents.solution, n_in, n_out, NetworkBase.from_arrays, TreeEnsemble.from_arrays
    )
    n_inputs = n_in if location is None else location.n_inputs(n_in)
    components = learned.get("components")
    ensemble = EmbeddingEnsemble(contents.model, parameters, components, n_inputs, n_out)
    contents.model.need_all_taken()
    if location is not None and location.n_members != ensemble.n_members:
        raise ModelFileError("the location model and the ensemble have different members")
    law = law_from(learned, law_arrays_of(contents.solution), len(ensemble.atoms), n_in)
    reading = reading_of(str(parameters["reading"]), ensemble.head, n_out)
    if reading == LAW and law.earlier:
        reading = "atomic"
    if law.transform != NONE and reading != LAW:
        raise ModelFileError("the model file and its parameters disagree on the transform")
    return FittedModel(location, ensemble, law, scaler, reading)
