"""Density kernels: positive definite, non-negative and integrating to one (paper, section 3.2).

Such a kernel is two things at once: the reproducing kernel in which a distribution is embedded, and
the smoothing kernel through which the embedding is read as a density. A subclass gives the
one-dimensional, unit-bandwidth mathematics of a single difference ``u``; bandwidth, several output
dimensions and Gram matrices are handled once, in the base. In several dimensions every kernel is
the product of its one-dimensional self (for the Gaussian that is the usual isotropic one), which
keeps all the closed forms.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError


class DensityKernel(eqx.Module):
    """k(a, b) = prod_j p((a_j - b_j) / bandwidth) / bandwidth, with p a symmetric density."""

    bandwidth: Array
    name: ClassVar[str]

    @staticmethod
    @abstractmethod
    def _log_density(u: Array) -> Array:
        """log p(u)."""

    @staticmethod
    @abstractmethod
    def _log_self_convolution(u: Array) -> Array:
        """log of the integral of p(u - v) p(v) dv."""

    @staticmethod
    @abstractmethod
    def _cdf(u: Array) -> Array:
        """The integral of p up to u."""

    @staticmethod
    @abstractmethod
    def _ppf(q: Array) -> Array:
        """The inverse of `_cdf`."""

    @staticmethod
    @abstractmethod
    def _characteristic(omega: Array) -> Array:
        """The Fourier transform of p; in [0, 1], which is what Theorem 3.1 needs (docs/theory)."""

    #: The variance of p, infinite where p has none.
    unit_variance: ClassVar[float]

    def value(self, difference: Array) -> Array:
        """k(a, b) from a - b, whose last axis runs over the output dimensions."""
        return self._product(self._log_density, difference)

    def self_convolution(self, difference: Array) -> Array:
        """The integral of k(a, y) k(y, b) dy from a - b; last axis as in `value`."""
        return self._product(self._log_self_convolution, difference)

    def cdf(self, difference: Array) -> Array:
        """The mass of k(a, .) in the orthant below b, from b - a; last axis as in `value`."""
        return jnp.prod(self._cdf(difference / self.bandwidth), axis=-1)

    def ppf(self, q: Array) -> Array:
        """Quantiles of k(0, .) in one dimension."""
        return self.bandwidth * self._ppf(q)

    def characteristic(self, omega: Array) -> Array:
        """The Fourier transform of k(0, .), a product over the last axis of ``omega``."""
        return jnp.prod(self._characteristic(self.bandwidth * omega), axis=-1)

    def gram(self, a: Array, b: Array) -> Array:
        """The matrix k(a_i, b_j) of points ``a`` (n, d) and ``b`` (m, d)."""
        return self.value(a[:, None, :] - b[None, :, :])

    def _product(self, log_factor: Callable[[Array], Array], difference: Array) -> Array:
        """The product over dimensions of one-dimensional factors, at this bandwidth."""
        n_outputs = difference.shape[-1]
        # Output by output: on a CPU, a sum over so short an axis takes forty times as long.
        logs = sum(log_factor(difference[..., j] / self.bandwidth) for j in range(n_outputs))
        return jnp.exp(logs) / self.bandwidth**n_outputs


class Gaussian(DensityKernel):
    """The paper's kernel; convolved with itself it is the same kernel at sqrt(2) bandwidth."""

    name = "gaussian"
    unit_variance = 1.0

    @staticmethod
    def _log_density(u: Array) -> Array:
        return -0.5 * jnp.square(u) - 0.5 * math.log(2 * math.pi)

    @staticmethod
    def _log_self_convolution(u: Array) -> Array:
        return -0.25 * jnp.square(u) - 0.5 * math.log(4 * math.pi)

    @staticmethod
    def _cdf(u: Array) -> Array:
        return jax.scipy.special.ndtr(u)

    @staticmethod
    def _ppf(q: Array) -> Array:
        return jax.scipy.special.ndtri(q)

    @staticmethod
    def _characteristic(omega: Array) -> Array:
        return jnp.exp(-0.5 * jnp.square(omega))


class Laplace(DensityKernel):
    """exp(-|u|) / 2; convolved with itself (1 + |u|) exp(-|u|) / 4."""

    name = "laplace"
    unit_variance = 2.0

    @staticmethod
    def _log_density(u: Array) -> Array:
        return -jnp.abs(u) - math.log(2.0)

    @staticmethod
    def _log_self_convolution(u: Array) -> Array:
        a = jnp.minimum(jnp.abs(u), jnp.finfo(u.dtype).max)  # log(inf) - inf would be no number
        return jnp.log1p(a) - a - math.log(4.0)

    @staticmethod
    def _cdf(u: Array) -> Array:
        tail = 0.5 * jnp.exp(-jnp.abs(u))
        return jnp.where(u < 0, tail, 1.0 - tail)

    @staticmethod
    def _ppf(q: Array) -> Array:
        # log(2q) below the median and its mirror image above; the sign carries the side.
        return jnp.sign(0.5 - q) * jnp.log(2.0 * jnp.minimum(q, 1.0 - q))

    @staticmethod
    def _characteristic(omega: Array) -> Array:
        return 1.0 / (1.0 + jnp.square(omega))


class Cauchy(DensityKernel):
    """1 / (pi (1 + u^2)), the Student kernel with one degree of freedom; stable: convolved with
    itself it is the same kernel at twice the bandwidth."""

    name = "cauchy"
    unit_variance = math.inf

    @staticmethod
    def _log_density(u: Array) -> Array:
        return -jnp.log1p(jnp.square(u)) - math.log(math.pi)

    @staticmethod
    def _log_self_convolution(u: Array) -> Array:
        return -jnp.log1p(jnp.square(0.5 * u)) - math.log(2 * math.pi)

    @staticmethod
    def _cdf(u: Array) -> Array:
        # arctan(1 / -u) rather than 1/2 + arctan(u), which has no digits left in the lower tail.
        return jnp.arctan2(1.0, -u) / math.pi

    @staticmethod
    def _ppf(q: Array) -> Array:
        # The cotangent of the smaller tail; the sign carries the side.
        return jnp.sign(q - 0.5) / jnp.tan(math.pi * jnp.minimum(q, 1.0 - q))

    @staticmethod
    def _characteristic(omega: Array) -> Array:
        return jnp.exp(-jnp.abs(omega))


KERNELS: dict[str, type[DensityKernel]] = {k.name: k for k in (Gaussian, Laplace, Cauchy)}


def kernel_class(name: str) -> type[DensityKernel]:
    """The kernel called ``name``."""
    if name not in KERNELS:
        raise NkcmeError(f"kernel must be one of {', '.join(sorted(KERNELS))}; got {name!r}")
    return KERNELS[name]


def evaluate(name: str, method: str, bandwidth: float, argument: np.ndarray) -> np.ndarray:
    """A method of a kernel in double precision, as NumPy's array."""
    with jax.enable_x64(True):
        return np.asarray(_evaluate(name, method, float(bandwidth), argument))


@partial(jax.jit, static_argnums=(0, 1))
def _evaluate(name: str, method: str, bandwidth: Array, argument: Array) -> Array:
    """One compiled program: several times faster, and without temporary arrays."""
    return getattr(kernel_class(name)(bandwidth), method)(argument)
