"""Atoms: the locations eta_a at which an embedding puts its weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from nkcme.kernels import DensityKernel


def toeplitz(lags: Array) -> Array:
    """The symmetric matrix with entry lags[|a - b|].

    Built from concatenated copies: a gather, or the index arithmetic that XLA generates for a tile,
    would cost more than the kernel values that it saves.
    """
    m = lags.shape[0]
    if m == 1:
        return lags[None, :]
    # Rows of length 2m - 2 cut from a sequence of period 2m - 1 shift by one each time.
    row = jnp.concatenate([lags[:0:-1], lags])
    flat = jnp.concatenate([row] * m)[m - 1 : m - 1 + m * (2 * m - 2)]
    return flat.reshape(m, 2 * m - 2)[:, :m]


def hankel(sums: Array, m: int) -> Array:
    """The matrix (m, m) with entry sums[a + b], built as `toeplitz` is."""
    period = sums.shape[0]
    flat = jnp.concatenate([sums] * (m + 1))[: m * (period + 1)]
    return flat.reshape(m, period + 1)[:, :m]


def even_and_odd(w: Array) -> Array:
    """The even and odd parts (2, n, m / 2) of weights (n, m), an orthonormal change of basis."""
    left, right = jnp.split(w, 2, axis=-1)
    right = right[..., ::-1]
    return math.sqrt(0.5) * jnp.stack([left + right, left - right])


def from_even_and_odd(parts: Array) -> Array:
    """The weights (n, m) with the given even and odd parts."""
    even, odd = math.sqrt(0.5) * parts
    return jnp.concatenate([even + odd, (even - odd)[..., ::-1]], axis=-1)


class Atoms(eqx.Module):
    """The locations (m, d) of atoms.

    On an evenly spaced grid of one output ``spacing`` is set, and Gram matrices need m kernel
    values instead of m^2. Such a grid is symmetric, so that for an even m the Gram matrix has two
    blocks in the basis of `even_and_odd`, which halves the work of a product. ``spread`` (its name
    in model files) holds the covariances (m, d, d) of y around atoms of several outputs.
    """

    locations: Array
    spacing: Array | None
    spread: Array | None = None

    @classmethod
    def grid(cls, low: Array, high: Array, n: int) -> Atoms:
        """``n`` evenly spaced atoms on the closed interval [low, high]; one in its middle."""
        if n == 1:
            low = high = 0.5 * low + 0.5 * high
        locations = jnp.linspace(low, high, n)[:, None]
        return cls(locations, jnp.asarray((high - low) / max(n - 1, 1)))

    @classmethod
    def points(cls, locations: Array, spread: Array | None = None) -> Atoms:
        """Atoms at any locations (m, d), with covariances (m, d, d) if given."""
        return cls(jnp.asarray(locations), None, spread)

    def neighbour_distance(self) -> Any:
        """The distance between neighbouring atoms; 0 for one atom.

        Without a grid it is the median distance to the nearest atom at another location. From
        arrays of NumPy with a leading axis come the distances (n,) of n sets of atoms.
        """
        if self.spacing is not None:
            return self.spacing
        eta: Any = self.locations
        xp = eta.__array_namespace__()
        if eta.shape[-2] == 1:
            return xp.zeros(eta.shape[:-2], eta.dtype)
        apart = xp.abs(eta[..., :, None, :] - eta[..., None, :, :])
        # The square of a tiny distance would be zero.
        gaps = apart[..., 0] if eta.shape[-1] == 1 else xp.linalg.norm(apart, axis=-1)
        nearest = xp.min(xp.where(gaps > 0, gaps, xp.inf), axis=-1)
        return xp.nan_to_num(xp.median(nearest, axis=-1), posinf=0.0)

    def nearest(self, y: Array) -> Array:
        """The locations (n, d) of the atoms closest to targets (n, d)."""
        # Output by output, so that no array is larger than (n, m).
        columns = zip(y.T, self.locations.T, strict=True)
        squares = sum(jnp.square(of_y[:, None] - of_atoms[None]) for of_y, of_atoms in columns)
        return self.locations[jnp.argmin(squares, axis=1)]

    def gram(self, kernel: DensityKernel) -> Array:
        """The matrix k(eta_a, eta_b)."""
        return self._matrix(kernel.value)

    def self_convolution_gram(self, kernel: DensityKernel) -> Array:
        """The matrix of the integrals of k(eta_a, y) k(y, eta_b) dy."""
        return self._matrix(kernel.self_convolution)

    def blocks(self, k: Callable[[Array], Array]) -> Array:
        """The matrix of k, a function of differences, in blocks.

        They are (2, m / 2, m / 2) in the basis of `even_and_odd` where that is faster, else one
        block (1, m, m).
        """
        m = self.locations.shape[0]
        # On an accelerator the number of launches matters, not the arithmetic: one product is best.
        if self.spacing is None or m % 2 or jax.default_backend() != "cpu":
            return self._matrix(k)[None]
        lags = k(self._lags(self.spacing))
        near, far = toeplitz(lags[: m // 2]), hankel(lags[:0:-1], m // 2)
        return jnp.stack([near + far, near - far])

    def _matrix(self, k: Callable[[Array], Array]) -> Array:
        if self.spacing is None:
            return k(self.locations[:, None] - self.locations[None, :])
        return toeplitz(k(self._lags(self.spacing)))

    def _lags(self, spacing: Array) -> Array:
        return (spacing * jnp.arange(self.locations.shape[0]))[:, None]
