"""What the arrays of a model file of `NKCME` belong to, in all versions; read without JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.law_files import is_of_law, law_arrays
from nkcme.estimators.nkcme.location_model import BaseReader, LocationModel

# The names of arrays.
_COVARIANCES = "model.atoms.spread"
_LOCATION = "center/"


def solution_arrays(location: LocationModel | None, law: Law) -> dict[str, np.ndarray]:
    """The arrays of the location model and of the law."""
    arrays: dict[str, np.ndarray] = {}
    if location is not None:
        arrays |= {f"{_LOCATION}{k}": v for k, v in location.to_arrays().items()}
    return arrays | law_arrays(law)


def law_arrays_of(solution: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of the law among those of `solution_arrays`."""
    return {name: array for name, array in solution.items() if is_of_law(name)}


def location_from(
    arrays: dict[str, np.ndarray],
    n_in: int,
    n_out: int,
    read_networks: BaseReader,
    read_regressors: BaseReader,
) -> LocationModel | None:
    """The location model of a file, if it has one."""
    own = {k.removeprefix(_LOCATION): v for k, v in arrays.items() if k.startswith(_LOCATION)}
    if len(own) + sum(map(is_of_law, arrays)) != len(arrays):
        raise ModelFileError("the model file holds arrays that this model does not have")
    if not own:
        return None
    return LocationModel.from_arrays(own, n_in, n_out, read_networks, read_regressors)


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
