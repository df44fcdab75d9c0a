"""Density kernels: positive definite, non-negative and integrating to one (paper, section 3.2).

Such a kernel is at the same time the reproducing kernel in which a distribution is embedded, and
the smoothing kernel through which the embedding is read as a density. A subclass implements the
one-dimensional mathematics at bandwidth one, for a single difference ``u``. The base adds the
bandwidth, several outputs and Gram matrices. With several outputs every kernel is the product of
one-dimensional ones (for the Gaussian this is the isotropic kernel), which keeps all closed forms.
docs/add-a-kernel.md shows how to add a kernel in one file.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError


class DensityKernel(eqx.Module):
    """The kernel k(a, b) = prod_j p((a_j - b_j) / bandwidth) / bandwidth of a symmetric density p.

    Attributes
    ----------
    bandwidth : Array
        A positive number, the only argument of the constructor.
    name : str
        The name by which estimators choose the kernel.
    unit_variance : float
        The variance of p; infinite if p has none.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from nkcme.kernels import Gaussian
    >>> kernel = Gaussian(jnp.asarray(2.0))
    >>> round(float(kernel.value(jnp.array([0.0]))), 4)
    0.1995
    """

    bandwidth: Array
    name: ClassVar[str]
    unit_variance: ClassVar[float]

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
        """The Fourier transform of p; in [0, 1], as Theorem 3.1 requires (docs/theory.md)."""

    def value(self, difference: Array) -> Array:
        """The kernel k(a, b).

        Parameters
        ----------
        difference : Array of shape (..., d)
            a - b; the last axis is the outputs.

        Returns
        -------
        Array of shape (...)
        """
        return self._product(self._log_density, difference)

    def self_convolution(self, difference: Array) -> Array:
        """The integral of k(a, y) k(y, b) dy; ``difference`` is a - b, as in `value`."""
        return self._product(self._log_self_convolution, difference)

    def cdf(self, difference: Array) -> Array:
        """The mass of k(a, .) below b in every output; ``difference`` is b - a, as in `value`."""
        return jnp.prod(self._cdf(difference / self.bandwidth), axis=-1)

    def ppf(self, q: Array) -> Array:
        """Quantiles of k(0, .) for one output.

        Parameters
        ----------
        q : Array
            Levels from 0 to 1, of any shape.

        Returns
        -------
        Array of the same shape
        """
        return self.bandwidth * self._ppf(q)

    def characteristic(self, omega: Array) -> Array:
        """The Fourier transform of k(0, .).

        Parameters
        ----------
        omega : Array of shape (..., d)
            Frequencies; the last axis is the outputs.

        Returns
        -------
        Array of shape (...)
        """
        return jnp.prod(self._characteristic(self.bandwidth * omega), axis=-1)

    def gram(self, a: Array, b: Array) -> Array:
        """The matrix k(a_i, b_j).

        Parameters
        ----------
        a : Array of shape (n, d)
        b : Array of shape (m, d)

        Returns
        -------
        Array of shape (n, m)
        """
        return self.value(a[:, None, :] - b[None, :, :])

    def _product(self, log_factor: Callable[[Array], Array], difference: Array) -> Array:
        """The product over outputs of one-dimensional factors, at this bandwidth."""
        n_outputs = difference.shape[-1]
        # Output by output: on a CPU, a sum over so short an axis takes forty times as long.
        logs = sum(log_factor(difference[..., j] / self.bandwidth) for j in range(n_outputs))
        return jnp.exp(logs) / self.bandwidth**n_outputs


#: All kernels by name.
KERNELS: dict[str, type[DensityKernel]] = {}

_Kernel = TypeVar("_Kernel", bound=type[DensityKernel])


def register_kernel(kernel: _Kernel) -> _Kernel:
    """Add a kernel to `KERNELS`, so that estimators accept its name. Use it as a class decorator.

    Parameters
    ----------
    kernel : subclass of DensityKernel
        With a new ``name``.

    Returns
    -------
    type
        The same class.

    Raises
    ------
    NkcmeError
        If another kernel has the name.
    """
    other = KERNELS.get(kernel.name, kernel)
    if (other.__module__, other.__qualname__) != (kernel.__module__, kernel.__qualname__):
        raise NkcmeError(f"a kernel named {kernel.name!r} exists already; choose another name")
    KERNELS[kernel.name] = kernel  # the same class again, where a notebook's cell runs twice
    return kernel


def kernel_class(name: str) -> type[DensityKernel]:
    """The kernel with a given name.

    Parameters
    ----------
    name : str
        A key of `KERNELS`.

    Returns
    -------
    subclass of DensityKernel

    Raises
    ------
    NkcmeError
        If no kernel has the name.
    """
    if name not in KERNELS:
        raise NkcmeError(f"kernel must be one of {', '.join(sorted(KERNELS))}; got {name!r}")
    return KERNELS[name]


@register_kernel
class Gaussian(DensityKernel):
    """The normal density; convolved with itself it is the same kernel at sqrt(2) bandwidth."""

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


@register_kernel
class Laplace(DensityKernel):
    """exp(-|u|) / 2; convolved with itself (1 + |u|) exp(-|u|) / 4."""

    name = "laplace"
    unit_variance = 2.0

    @staticmethod
    def _log_density(u: Array) -> Array:
        return -jnp.abs(u) - math.log(2.0)

    @staticmethod
    def _log_self_convolution(u: Array) -> Array:
        a = jnp.minimum(jnp.abs(u), jnp.finfo(u.dtype).max)  # log(inf) - inf is NaN
        return jnp.log1p(a) - a - math.log(4.0)

    @staticmethod
    def _cdf(u: Array) -> Array:
        tail = 0.5 * jnp.exp(-jnp.abs(u))
        return jnp.where(u < 0, tail, 1.0 - tail)

    @staticmethod
    def _ppf(q: Array) -> Array:
        # log(2q) below the median and its mirror image above.
        return jnp.sign(0.5 - q) * jnp.log(2.0 * jnp.minimum(q, 1.0 - q))

    @staticmethod
    def _characteristic(omega: Array) -> Array:
        return 1.0 / (1.0 + jnp.square(omega))


@register_kernel
class Cauchy(DensityKernel):
    """1 / (pi (1 + u^2)); convolved with itself it is the same kernel at twice the bandwidth."""

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
        # arctan(1 / -u) rather than 1/2 + arctan(u), which cancels in the lower tail.
        return jnp.arctan2(1.0, -u) / math.pi

    @staticmethod
    def _ppf(q: Array) -> Array:
        # The cotangent of the smaller tail, with the sign of its side.
        return jnp.sign(q - 0.5) / jnp.tan(math.pi * jnp.minimum(q, 1.0 - q))

    @staticmethod
    def _characteristic(omega: Array) -> Array:
        return jnp.exp(-jnp.abs(omega))


def evaluate(name: str, method: str, bandwidth: float, argument: np.ndarray) -> np.ndarray:
    """A method of a kernel in double precision, as NumPy's array."""
    with jax.enable_x64(True):
        return np.asarray(_evaluate(kernel_class(name), method, float(bandwidth), argument))


@partial(jax.jit, static_argnums=(0, 1))
def _evaluate(kernel: type[DensityKernel], method: str, bandwidth: Array, argument: Array) -> Array:
    """One compiled program: several times faster, and without temporary arrays."""
    return getattr(kernel(bandwidth), method)(argument)
