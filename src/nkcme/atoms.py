"""Atoms: the locations eta_a at which an embedding puts its weights."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from nkcme.kernels import DensityKernel


def toeplitz(lags: Array) -> Array:
    """The symmetric matrix with entry lags[|a - b|].

    Built by tiling and reshaping: a gather would cost more than the kernel values it saves.
    """
    m = lags.shape[0]
    if m == 1:
        return lags[None, :]
    # Rows of length 2m - 2 cut from a sequence of period 2m - 1 shift by one each time.
    row = jnp.concatenate([lags[:0:-1], lags])
    flat = jnp.tile(row, m)[m - 1 : m - 1 + m * (2 * m - 2)]
    return flat.reshape(m, 2 * m - 2)[:, :m]


class Atoms(eqx.Module):
    """Locations (m, d). On an even one-dimensional grid ``spacing`` is set, and Gram matrices need
    m kernel values instead of m^2."""

    locations: Array
    spacing: Array | None

    @classmethod
    def grid(cls, low: Array, high: Array, n: int) -> Atoms:
        """``n`` evenly spaced atoms on the closed interval [low, high]; one alone is its middle."""
        if n == 1:
            low = high = 0.5 * low + 0.5 * high
        locations = jnp.linspace(low, high, n)[:, None]
        return cls(locations, jnp.asarray((high - low) / max(n - 1, 1)))

    @classmethod
    def points(cls, locations: Array) -> Atoms:
        """Atoms anywhere."""
        return cls(jnp.asarray(locations), None)

    def neighbour_distance(self) -> Array:
        """The distance between neighbouring atoms (off a grid, the median one); 0 for one atom."""
        if self.spacing is not None:
            return self.spacing
        n = self.locations.shape[0]
        if n == 1:
            return jnp.zeros(())
        gaps = jnp.linalg.norm(self.locations[:, None] - self.locations[None], axis=-1)
        return jnp.median(jnp.min(gaps + jnp.diag(jnp.full(n, jnp.inf)), axis=1))

    def gram(self, kernel: DensityKernel) -> Array:
        """k(eta_a, eta_b)."""
        if self.spacing is None:
            return kernel.gram(self.locations, self.locations)
        return toeplitz(kernel.value(self._lags(self.spacing)))

    def self_convolution_gram(self, kernel: DensityKernel) -> Array:
        """The integral of k(eta_a, y) k(y, eta_b) dy."""
        if self.spacing is None:
            return kernel.self_convolution(self.locations[:, None] - self.locations[None, :])
        return toeplitz(kernel.self_convolution(self._lags(self.spacing)))

    def _lags(self, spacing: Array) -> Array:
        return (spacing * jnp.arange(self.locations.shape[0]))[:, None]
