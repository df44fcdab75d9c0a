"""Forward passes of trained networks in NumPy, of all members at once: nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nkcme.errors import ModelFileError


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

#: Rows that are multiplied together, where their number allows it.
ROWS_OF_PRODUCT = 8


def product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x (n, p) or (k, n, p) times weight (p, m), or (k, p, m) of k members.

    Where n is a multiple of eight, the bits of a row do not depend on its place or on n: of more
    rows BLAS adds the terms of some in another order (seen with OpenBLAS).
    """
    n, p = x.shape[-2:]
    if n % ROWS_OF_PRODUCT:
        return x @ weight
    groups = x.reshape(*x.shape[:-2], n // ROWS_OF_PRODUCT, ROWS_OF_PRODUCT, p)
    out = groups @ (weight if weight.ndim == 2 else weight[:, None])
    return out.reshape(*out.shape[:-3], n, weight.shape[-1])


def in_whole_products(x: np.ndarray) -> np.ndarray:
    """The rows of x, the last of them repeated up to a multiple of `ROWS_OF_PRODUCT`."""
    return np.concatenate([x, np.repeat(x[-1:], -len(x) % ROWS_OF_PRODUCT, axis=0)])


#: Layers (weight (k, n_in, n_out), bias (k, n_out)) of k members.
Layers = list[tuple[np.ndarray, np.ndarray]]


class StackedNetworks:
    """Networks of one shape, one per member.

    Parameters
    ----------
    layers : list of (weight (k, n_in, n_out), bias (k, n_out))
        In single precision.
    activation : str
        That of all layers but the last.
    """

    def __init__(self, layers: Layers, activation: str):
        if activation not in ACTIVATIONS:
            raise ModelFileError(f"the model file has an unknown activation, {activation!r}")
        self._activate = ACTIVATIONS[activation]
        self.n_members = len(layers[0][0])
        weight = layers[0][0]
        # All members have the same inputs: their first layers are one matrix.
        self._first = np.ascontiguousarray(np.moveaxis(weight, 0, 1).reshape(weight.shape[1], -1))
        self._layers = [
            (np.ascontiguousarray(w), np.ascontiguousarray(b)[:, None]) for w, b in layers
        ]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The outputs (k, n, m) at inputs (n, p), in single precision."""
        weight, bias = self._layers[0]
        x = np.asarray(x, np.float32)
        one_row = len(x) == 1
        out = (x @ self._first).reshape(self.n_members, 1, -1) if one_row else product(x, weight)
        out += bias
        for weight, bias in self._layers[1:]:
            out = product(self._activate(out), weight)
            out += bias
        return out

    def of_member(self, number: int, x: np.ndarray) -> np.ndarray:
        """The outputs (n, m) of one member at inputs (n, p), in single precision."""
        weight, bias = self._layers[0]
        out = np.asarray(x, np.float32) @ weight[number] + bias[number]
        for weight, bias in self._layers[1:]:
            out = self._activate(out) @ weight[number]
            out += bias[number]
        return out


def spectrally_normalised(weight: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Weights (k, n_out, n_in) divided by their largest singular values, those of the vectors u
    (k, n_out) and v (k, n_in)."""
    return weight / np.einsum("ko,koi,ki->k", u, weight, v)[:, None, None]


def softmax(z: np.ndarray) -> np.ndarray:
    """Weights on the simplex along the last axis; ``z`` is overwritten."""
    z -= np.maximum.reduce(z, axis=-1, keepdims=True)
    np.exp(z, out=z)
    z /= np.add.reduce(z, axis=-1, keepdims=True)
    return z
