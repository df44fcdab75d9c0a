"""Atoms: the locations eta_a at which an embedding puts its weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from nkcme.kernels import DensityKernel


def toeplitz(lags: Array) -> Array:
    """The symmetric matrix with entry lags[|a - b|].

    Built by laying copies end to end and cutting: a gather, or the index arithmetic that XLA makes
    of a tile, would cost more than the kernel values it saves.
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


def fold(w: Array) -> Array:
    """Weights (n, m) on an even grid as their even and odd halves (2, n, m / 2), an orthonormal
    change of basis."""
    left, right = jnp.split(w, 2, axis=-1)
    right = right[..., ::-1]
    return math.sqrt(0.5) * jnp.stack([left + right, left - right])


def unfold(halves: Array) -> Array:
    """The reverse of `fold`."""
    even, odd = math.sqrt(0.5) * halves
    return jnp.concatenate([even + odd, (even - odd)[..., ::-1]], axis=-1)


class Atoms(eqx.Module):
    """Locations (m, d). On an even one-dimensional grid ``spacing`` is set, and Gram matrices need
    m kernel values instead of m^2. Such a grid looks the same from both ends, so that for an even m
    the Gram matrix falls into two blocks in the basis of `fold`: half the work of a product. Atoms
    of several outputs carry the covariance of y about each, (m, d, d), in ``spread``."""

    locations: Array
    spacing: Array | None
    spread: Array | None = None

    @classmethod
    def grid(cls, low: Array, high: Array, n: int) -> Atoms:
        """``n`` evenly spaced atoms on the closed interval [low, high]; one alone is its middle."""
        if n == 1:
            low = high = 0.5 * low + 0.5 * high
        locations = jnp.linspace(low, high, n)[:, None]
        return cls(locations, jnp.asarray((high - low) / max(n - 1, 1)))

    @classmethod
    def points(cls, locations: Array, spread: Array | None = None) -> Atoms:
        """Atoms anywhere."""
        return cls(jnp.asarray(locations), None, spread)

    def neighbour_distance(self) -> Array:
        """The distance between neighbouring atoms (off a grid, the median one, an atom in the same
        place being no neighbour); 0 for one atom."""
        if self.spacing is not None:
            return self.spacing
        n = self.locations.shape[0]
        if n == 1:
            return jnp.zeros(())
        gaps = jnp.linalg.norm(self.locations[:, None] - self.locations[None], axis=-1)
        nearest = jnp.min(jnp.where(gaps > 0, gaps, jnp.inf), axis=1)
        return jnp.nan_to_num(jnp.median(nearest), posinf=0.0)

    def nearest(self, y: Array) -> Array:
        """The atoms closest to targets (n, d): each stands for its cell."""
        # Output by output, as kernels do it; also so that no array is larger than (n, m).
        columns = zip(y.T, self.locations.T, strict=True)
        squares = sum(jnp.square(of_y[:, None] - of_atoms[None]) for of_y, of_atoms in columns)
        return self.locations[jnp.argmin(squares, axis=1)]

    def gram(self, kernel: DensityKernel) -> Array:
        """k(eta_a, eta_b)."""
        return self._matrix(kernel.value)

    def self_convolution_gram(self, kernel: DensityKernel) -> Array:
        """The integral of k(eta_a, y) k(y, eta_b) dy."""
        return self._matrix(kernel.self_convolution)

    def blocks(self, k: Callable[[Array], Array]) -> Array:
        """The matrix of k, a function of differences, in blocks: (2, m / 2, m / 2) where `fold`
        splits it and that pays, else one of (1, m, m)."""
        m = self.locations.shape[0]
        # An accelerator is kept waiting by launches, not by arithmetic: there one product is best.
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
