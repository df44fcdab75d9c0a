"""Forward passes of multilayer perceptrons, of all members at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, pairwise

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.runtime.file_arrays import FileArrays


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0.0, out=x)


def _silu(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x / (1.0 + np.exp(-x))


def _gelu(x: np.ndarray) -> np.ndarray:
    """The approximation by tanh, as JAX has it."""
    return 0.5 * x * (1.0 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * x**3)))


def _tanh(x: np.ndarray) -> np.ndarray:
    return np.tanh(x, out=x)


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": _relu,
    "silu": _silu,
    "gelu": _gelu,
    "tanh": _tanh,
}


class StackedNetworks:
    """Networks of one shape, one per member.

    Parameters
    ----------
    layers : list of (weight (k, n_in, n_out), bias (k, n_out))
        In single precision.
    activation : str
        That of all layers but the last.
    """

    def __init__(self, layers: list[tuple[np.ndarray, np.ndarray]], activation: str):
        if activation not in ACTIVATIONS:
            raise ModelFileError(f"the model file has an unknown activation, {activation!r}")
        self._activate = ACTIVATIONS[activation]
        self.n_members = len(layers[0][0])
        weight = layers[0][0]
        # All members have the same inputs: their first layers are one matrix.
        self._first = np.ascontiguousarray(np.moveaxis(weight, 0, 1).reshape(weight.shape[1], -1))
        self._layers = [(np.ascontiguousarray(w), np.ascontiguousarray(b)) for w, b in layers]

    @classmethod
    def read(
        cls, arrays: FileArrays, prefix: str, *, n_in: int, n_out: int, activation: str
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
            if normalised:  # divided by the largest singular value, that of the vectors u and v
                u, v = arrays.take(f"{name}.u", (k, fan_out)), arrays.take(f"{name}.v", (k, fan_in))
                weight = weight / np.einsum("ko,koi,ki->k", u, weight, v)[:, None, None]
            layers.append((np.swapaxes(weight, 1, 2), bias))
        return cls(layers, activation)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The outputs (k, n, m) at inputs (n, p), in single precision."""
        weight, bias = self._layers[0]
        x = np.asarray(x, np.float32)
        one_row = len(x) == 1
        out = (x @ self._first).reshape(self.n_members, 1, -1) if one_row else x @ weight
        out += bias[:, None]
        for weight, bias in self._layers[1:]:
            out = self._activate(out) @ weight
            out += bias[:, None]
        return out


def _bias_shapes(arrays: FileArrays, prefix: str) -> Iterator[tuple[int, ...]]:
    """The shapes of the biases, layer by layer."""
    for i in count():
        names = (f"{prefix}.layers[{i}].bias", f"{prefix}.layers[{i}].linear.bias")
        present = [name for name in names if name in arrays]
        if not present:
            return
        yield arrays.shape(present[0])


def softmax(z: np.ndarray) -> np.ndarray:
    """Weights on the simplex along the last axis; ``z`` is overwritten."""
    z -= z.max(axis=-1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return z
