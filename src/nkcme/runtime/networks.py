"""Networks of a model file, for forward passes in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.forward_passes import StackedNetworks, spectrally_normalised
from nkcme.runtime.file_arrays import FileArrays


def read_networks(
    arrays: FileArrays, prefix: str, *, n_in: int, n_out: int, activation: str
) -> StackedNetworks:
    """The networks whose arrays have names with this prefix; their widths are in the file."""
    shapes = list(_bias_shapes(arrays, prefix))
    if not shapes or not all(len(shape) == 2 for shape in shapes) or shapes[-1][1] != n_out:
        raise ModelFileError("the networks in the model file are not complete")
    k, sizes = shapes[0][0], [n_in, *(width for _, width in shapes)]
    layers = []
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        name = f"{prefix}.layers[{i}]"
        normalised = f"{name}.linear.bias" in arrays
        inner = f"{name}.linear" if normalised else name
        weight = arrays.take(f"{inner}.weight", (k, fan_out, fan_in))
        bias = arrays.take(f"{inner}.bias", (k, fan_out))
        if normalised:
            u, v = arrays.take(f"{name}.u", (k, fan_out)), arrays.take(f"{name}.v", (k, fan_in))
            weight = spectrally_normalised(weight, u, v)
        layers.append((np.swapaxes(weight, 1, 2), bias))
    return StackedNetworks(layers, activation)


def _bias_shapes(arrays: FileArrays, prefix: str) -> Iterator[tuple[int, ...]]:
    """The shapes of the biases, layer by layer."""
    for i in count():
        names = (f"{prefix}.layers[{i}].bias", f"{prefix}.layers[{i}].linear.bias")
        present = [name for name in names if name in arrays]
        if not present:
            return
        yield arrays.shape(present[0])
