"""A density kernel for nkcme: fill in every TODO. docs/add-a-kernel.md explains them."""

from __future__ import annotations

import math

from jax import Array

from nkcme.kernels import DensityKernel, register_kernel


@register_kernel
class MyKernel(DensityKernel):
    """TODO: p(u), a symmetric density with a characteristic function in [0, 1]."""

    name = "my-kernel"  # TODO: the name for NKCME(kernel="...")
    unit_variance = math.inf  # TODO: the variance of p

    @staticmethod
    def _log_density(u: Array) -> Array:
        """log p(u)."""
        raise NotImplementedError("TODO")

    @staticmethod
    def _log_self_convolution(u: Array) -> Array:
        """log of the integral of p(u - v) p(v) dv."""
        raise NotImplementedError("TODO")

    @staticmethod
    def _cdf(u: Array) -> Array:
        """The integral of p up to u."""
        raise NotImplementedError("TODO")

    @staticmethod
    def _ppf(q: Array) -> Array:
        """The inverse of _cdf."""
        raise NotImplementedError("TODO")

    @staticmethod
    def _characteristic(omega: Array) -> Array:
        """The integral of p(u) cos(omega u) du."""
        raise NotImplementedError("TODO")
