"""Components of a model file, for weights in NumPy."""

from __future__ import annotations

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.component_weights import StackedComponents
from nkcme.runtime.file_arrays import FileArrays


def read_components(arrays: FileArrays, count: int, n_members: int) -> StackedComponents:
    """The components of a model file: ``count`` of each member."""
    prefix = "model.components"
    found = StackedComponents(
        arrays.take(f"{prefix}.starts", (n_members, count)),
        arrays.take(f"{prefix}.unit_std", (n_members,)),
        arrays.take(f"{prefix}.least_std", (n_members,)),
    )
    if not (np.all(found.unit_std > 0) and np.all(found.least_std > 0)):
        raise ModelFileError("the components of this model have no positive standard deviations")
    return found
