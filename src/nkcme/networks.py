"""Network bodies: multilayer perceptrons with spectral normalisation and weight heads.

A network maps one input (p,) to one output (m,); callers batch with `jax.vmap`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.forward_passes import StackedNetworks, spectrally_normalised

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "tanh": jnp.tanh,
}

#: How the output of the last layer becomes weights: unchanged (the paper), or on the simplex.
HEADS: dict[str, Callable[[Array], Array]] = {
    "signed": lambda z: z,
    "simplex": jax.nn.softmax,
}


class SpectralLinear(eqx.Module):
    """A linear layer divided by its largest singular value (Miyato et al., 2018).

    The singular value is estimated by u' W v with one power iteration per training step; u and v
    are state of the model that is not trained. equinox.nn.SpectralNorm is not used: it iterates at
    every call, and keeps its state apart from the model that replicas and files handle.
    """

    linear: eqx.nn.Linear
    u: Array
    v: Array

    def __init__(self, linear: eqx.nn.Linear, *, key: Array):
        self.linear = linear
        # Several iterations, so that the estimate is close from the first step on.
        weight = self.linear.weight
        start = _unit(jax.random.normal(key, weight.shape[:1], weight.dtype))
        self.u, self.v = jax.lax.fori_loop(
            1, 15, lambda _, uv: _power_iteration(weight, uv[0]), _power_iteration(weight, start)
        )

    def iterate(self) -> SpectralLinear:
        """One power iteration."""
        u, v = _power_iteration(jax.lax.stop_gradient(self.linear.weight), self.u)
        return eqx.tree_at(lambda layer: (layer.u, layer.v), self, (u, v))

    def normalised(self) -> eqx.nn.Linear:
        """The layer that it stands for."""
        u, v = jax.lax.stop_gradient((self.u, self.v))
        weight = self.linear.weight / (u @ self.linear.weight @ v)
        return eqx.tree_at(lambda layer: layer.weight, self.linear, weight)


def _applied(layer: eqx.nn.Linear | SpectralLinear, x: Array) -> Array:
    """The output of a layer, for one input.

    A linear layer of Equinox computes W x. For a batch of inputs that gives columns, and a compiler
    that does not simplify (`nkcme.training.compilation.jit_literally`) transposes them at every
    layer.
    """
    linear = layer.normalised() if isinstance(layer, SpectralLinear) else layer
    assert linear.bias is not None
    return x @ linear.weight.T + linear.bias


def _power_iteration(weight: Array, u: Array) -> tuple[Array, Array]:
    v = _unit(weight.T @ u)
    return _unit(weight @ v), v


def _unit(vector: Array) -> Array:
    return vector / (jnp.linalg.norm(vector) + 1e-12)


def _linear_layers(sizes: Sequence[int], keys: Sequence[Array]) -> list[eqx.nn.Linear]:
    """Linear layers as Equinox initialises them, drawn by one call of the random generator.

    A compiler spends more time on each generator than on all the rest of an initialisation. The
    bits are those of `eqx.nn.Linear`: element i of a draw depends on its key and on i alone, so an
    array is the beginning of a longer draw.
    """
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    largest = max(n_out * n_in for n_out, n_in in shapes)
    limits = jnp.asarray([1 / math.sqrt(n_in) for _, n_in in shapes])
    array_keys = jax.vmap(jax.random.split)(jnp.stack(keys))  # of weights and of biases
    draw = lambda key, limit: jax.random.uniform(  # noqa: E731
        key, (largest,), minval=-limit, maxval=limit
    )
    drawn = jax.vmap(jax.vmap(draw, (0, None)))(array_keys, limits)
    return [
        _linear(weight[: n_out * n_in].reshape(n_out, n_in), bias[:n_out])
        for (n_out, n_in), (weight, bias) in zip(shapes, drawn, strict=True)
    ]


def _padded_layers(sizes: Sequence[int], words: Any, fan_in: Any) -> list[eqx.nn.Linear]:
    """Linear layers whose first has weights for ``fan_in`` inputs, and zeros for the rest.

    They are drawn as Equinox draws them, but by `_hashed_uniform`. From arrays of NumPy, words of
    keys (n, 2) and ``fan_in`` (n,), come the layers of n networks.
    """
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    xp = fan_in.__array_namespace__()
    layers: list[eqx.nn.Linear] = []
    first = 0
    for n_out, n_in in shapes:
        limit = 1 / math.sqrt(n_in) if layers else 1 / xp.sqrt(fan_in)[..., None]
        drawn = limit * (2.0 * _hashed_uniform(words, first, n_out * (n_in + 1)) - 1.0)
        first += n_out * (n_in + 1)
        matrix, bias = drawn[..., n_out:].reshape(*fan_in.shape, n_out, n_in), drawn[..., :n_out]
        if not layers:
            is_input = xp.arange(n_in)[None] < fan_in[..., None, None]
            matrix = xp.where(is_input, matrix, 0.0)
        layers.append(_linear(matrix, bias))
    return layers


def _hashed_uniform(words: Any, first: int, n: int) -> Any:
    """Numbers ``first`` to ``first + n`` of a sequence in [0, 1) for each key (..., 2).

    Each is a hash (the finaliser of MurmurHash3) of its place and of the key. That is enough for
    initial weights, and JAX's generator takes a compiler longer than a whole initialisation.
    """
    xp = words.__array_namespace__()
    number = xp.uint32
    hashed = xp.arange(first, first + n, dtype=number) * number(0x9E3779B9)
    for word in (words[..., :1], words[..., 1:], number(n)):
        hashed = hashed ^ word
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            hashed = (hashed ^ (hashed >> shift)) * number(factor)
        hashed = hashed ^ (hashed >> 16)
    return (hashed >> 8).astype(xp.float32) * 2.0**-24


def _linear(weight: Array, bias: Array | None) -> eqx.nn.Linear:
    """A layer with these arrays, which may have leading axes."""
    skeleton = _linear_of_size(weight.shape[-1], weight.shape[-2])
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), skeleton, (weight, bias))


@cache
def _linear_of_size(n_in: int, n_out: int) -> eqx.nn.Linear:
    key = jax.eval_shape(jax.random.key, 0)
    return eqx.filter_eval_shape(lambda key: eqx.nn.Linear(n_in, n_out, key=key), key)


def _of_size(array: Any, size: int) -> Any:
    """The array cut, or padded with zeros, at the end of its last axis.

    By NumPy: JAX would compile a program for every shape.
    """
    kept = np.asarray(array)[..., :size]
    padding = [(0, 0)] * (kept.ndim - 1) + [(0, size - kept.shape[-1])]
    return np.pad(kept, padding)


class MLP(eqx.Module):
    """Fully connected layers; those listed in ``spectral_norm`` (0 is the first) are normalised."""

    layers: tuple[eqx.nn.Linear | SpectralLinear, ...]
    activation: str = eqx.field(static=True)
    head: str = eqx.field(static=True)

    def __init__(
        self,
        n_in: int,
        n_out: int,
        hidden: Sequence[int],
        *,
        activation: str,
        head: str,
        spectral_norm: Sequence[int] = (),
        key: Any,
        fan_in: Any = None,
    ):
        """Initialise at random; with ``fan_in``, all but that many of the inputs are padding.

        Without normalised layers ``key`` can be the words (n, 2) of n keys, and ``fan_in`` (n,), as
        arrays of NumPy. Arrays of the network then have a leading axis, and nothing is compiled.
        """
        sizes = [n_in, *hidden, n_out]
        n_layers = len(sizes) - 1
        for name, value, known in (
            ("activation", activation, ACTIVATIONS),
            ("head", head, HEADS),
        ):
            if value not in known:
                raise NkcmeError(f"{name} must be one of {', '.join(sorted(known))}; got {value!r}")
        outside = [i for i in spectral_norm if not -n_layers <= i < n_layers]
        if outside:
            raise NkcmeError(
                f"spectral_norm names layers from {-n_layers} to {n_layers - 1}; got {outside[0]}"
            )
        normalised = {i % n_layers for i in spectral_norm}
        keys: Any = jax.random.split(key, n_layers) if normalised or fan_in is None else ()
        power_keys = {i: jax.random.split(keys[i]) for i in normalised}
        if fan_in is None:
            linear_keys = [power_keys[i][0] if i in normalised else k for i, k in enumerate(keys)]
            layers = _linear_layers(sizes, linear_keys)
        else:
            words = key if isinstance(key, np.ndarray) else jax.random.key_data(key)
            layers = _padded_layers(sizes, words, fan_in)
        self.layers = tuple(
            SpectralLinear(layer, key=power_keys[i][1]) if i in normalised else layer
            for i, layer in enumerate(layers)
        )
        self.activation = activation
        self.head = head

    def __call__(self, x: Array) -> Array:
        for layer in self.layers[:-1]:
            x = ACTIVATIONS[self.activation](_applied(layer, x))
        return HEADS[self.head](_applied(self.layers[-1], x))

    def stacked(self) -> StackedNetworks:
        """The same networks for NumPy, without the head; arrays have a leading axis of members."""
        layers = []
        for layer in self.layers:
            linear = layer.linear if isinstance(layer, SpectralLinear) else layer
            weight = np.asarray(linear.weight)
            if isinstance(layer, SpectralLinear):
                weight = spectrally_normalised(weight, np.asarray(layer.u), np.asarray(layer.v))
            layers.append((np.swapaxes(weight, 1, 2), np.asarray(linear.bias)))
        return StackedNetworks(layers, self.activation)

    def with_inputs(self, n_in: int) -> MLP:
        """The network without the inputs after the first ``n_in``, or with more of weight zero.

        For use outside of compiled programs. Arrays may have leading axes. The inputs that go must
        be of weight zero as well, or always zero.
        """
        first = self.layers[0]
        linear = first.linear if isinstance(first, SpectralLinear) else first
        if linear.in_features == n_in:
            return self
        resized: eqx.nn.Linear | SpectralLinear
        resized = _linear(_of_size(linear.weight, n_in), linear.bias)
        if isinstance(first, SpectralLinear):
            resized = eqx.tree_at(
                lambda layer: (layer.linear, layer.v), first, (resized, _of_size(first.v, n_in))
            )
        return eqx.tree_at(lambda mlp: mlp.layers[0], self, resized)

    def iterate(self) -> MLP:
        """The network after one power iteration in every normalised layer."""
        layers = tuple(
            layer.iterate() if isinstance(layer, SpectralLinear) else layer for layer in self.layers
        )
        return eqx.tree_at(lambda mlp: mlp.layers, self, layers)

    def trainable(self) -> MLP:
        """The same tree with True at parameters and False at state."""
        spec = jax.tree.map(eqx.is_inexact_array, self)
        states = [layer for layer in spec.layers if isinstance(layer, SpectralLinear)]
        if not states:
            return spec
        return eqx.tree_at(
            lambda mlp: [
                leaf
                for layer in mlp.layers
                if isinstance(layer, SpectralLinear)
                for leaf in (layer.u, layer.v)
            ],
            spec,
            [False] * (2 * len(states)),
        )
