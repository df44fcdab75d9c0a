"""The baselines that NumPy can predict with: MDN, KernelCME and DeepFeatureCME."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkcme.distributions.embedding import Embedding, summing_to_one
from nkcme.distributions.gaussian_mixture import LOG_STD, GaussianMixture
from nkcme.distributions.readings import READINGS
from nkcme.errors import ModelFileError
from nkcme.estimators.closed_form.gaussian_gram import gaussian
from nkcme.forward_passes import ACTIVATIONS, StackedNetworks, product
from nkcme.model_files.array_checks import need_array
from nkcme.runtime.file_arrays import FileArrays, split_solution
from nkcme.runtime.networks import read_networks
from nkcme.tables.target import TargetScaler


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """A mixture density network."""

    network: StackedNetworks
    n_components: int
    scaler: TargetScaler

    def distribution(self, x: np.ndarray) -> GaussianMixture:
        """P(y | x) at encoded inputs (n, p), in units of y."""
        out, k = self.network(x)[0].astype(np.float64), self.n_components
        means, log_stds = np.split(out[:, k:], 2, axis=1)
        shape = (len(x), k, len(self.scaler.location))
        return GaussianMixture(
            log_weights=out[:, :k],
            means=means.reshape(shape),
            stds=np.exp(np.clip(log_stds.reshape(shape), *LOG_STD)),
            location=self.scaler.location,
            scale=self.scaler.scale,
        )


@dataclass(frozen=True, eq=False)
class RidgeModel:
    """Weights of atoms that are linear in features of x: `KernelCME` and `DeepFeatureCME`."""

    features: Callable[[np.ndarray], np.ndarray]
    operator: np.ndarray
    atoms: np.ndarray
    bandwidth: float
    reading: str
    scaler: TargetScaler

    def __post_init__(self) -> None:
        if not 0 < self.bandwidth < np.inf or not self.operator.size:
            raise ModelFileError("the model file has no atoms, or no positive bandwidth")
        if self.reading not in READINGS:
            raise ModelFileError(f"the reading must be one of {READINGS}; got {self.reading!r}")

    def distribution(self, x: np.ndarray) -> Embedding:
        """P(y | x) at encoded inputs (n, p), in units of y."""
        return Embedding(
            atoms=self.atoms,
            weights=summing_to_one(product(self.features(x), self.operator)),
            bandwidth=self.bandwidth,
            location=self.scaler.location,
            scale=self.scaler.scale,
            reading=self.reading,
        )


def read_mdn(
    parameters: dict[str, Any],
    learned: dict[str, Any],
    arrays: dict[str, np.ndarray],
    n_in: int,
    scaler: TargetScaler,
) -> MixtureModel:
    """The model of a file of `MDN`, for ``n_in`` encoded inputs."""
    model, k = _one_member(arrays)[0], int(parameters["n_components"])
    network = read_networks(
        model,
        "model.network",
        n_in=n_in,
        n_out=k * (1 + 2 * len(scaler.location)),
        activation=parameters["activation"],
    )
    model.need_all_taken()
    return MixtureModel(network, k, scaler)


def read_kernel_cme(
    parameters: dict[str, Any],
    learned: dict[str, Any],
    arrays: dict[str, np.ndarray],
    n_in: int,
    scaler: TargetScaler,
) -> RidgeModel:
    """The model of a file of `KernelCME`, for ``n_in`` encoded inputs."""
    if set(arrays) != {"anchors", "atoms", "operator"}:
        raise ModelFileError("the model file must hold the arrays anchors, atoms and operator")
    need_array(arrays, "anchors", (len(arrays["anchors"]), n_in))
    atoms = _atoms(arrays, len(arrays["anchors"]), scaler)
    anchors, width = arrays["anchors"], float(learned["input_bandwidth"])
    if not 0 < width < np.inf:
        raise ModelFileError(f"the bandwidth of the inputs in the model file is {width}")
    return RidgeModel(
        lambda x: gaussian(x.astype(np.float64), anchors, width),
        arrays["operator"],
        atoms,
        float(learned["bandwidth"]),
        parameters["reading"],
        scaler,
    )


def read_deep_feature_cme(
    parameters: dict[str, Any],
    learned: dict[str, Any],
    arrays: dict[str, np.ndarray],
    n_in: int,
    scaler: TargetScaler,
) -> RidgeModel:
    """The model of a file of `DeepFeatureCME`, for ``n_in`` encoded inputs."""
    model, solution = _one_member(arrays)
    if set(solution) != {"operator", "atoms"}:
        raise ModelFileError("the model file must hold the arrays operator and atoms")
    n_features, activation = int(parameters["hidden"][-1]), parameters["activation"]
    network = read_networks(
        model, "model.network", n_in=n_in, n_out=n_features, activation=activation
    )
    bandwidth = float(model.take("model.bandwidth", (1,))[0])
    model.need_all_taken()
    return RidgeModel(
        lambda x: ACTIVATIONS[activation](network(x)[0]).astype(np.float64),
        solution["operator"],
        _atoms(solution, n_features, scaler),
        bandwidth,
        parameters["reading"],
        scaler,
    )


def _one_member(
    arrays: dict[str, np.ndarray],
) -> tuple[FileArrays, dict[str, np.ndarray]]:
    """The contents of a file with one network, whose arrays get an axis of members."""
    return split_solution({k: v[None] if k.startswith("model") else v for k, v in arrays.items()})


def _atoms(arrays: dict[str, np.ndarray], n_features: int, scaler: TargetScaler) -> np.ndarray:
    """The atoms of a ridge regression, after checks of its arrays."""
    need_array(arrays, "atoms", (len(arrays["atoms"]), len(scaler.location)))
    need_array(arrays, "operator", (n_features, len(arrays["atoms"])))
    return arrays["atoms"]
