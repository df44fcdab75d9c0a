"""The functions of a kernel that a distribution needs, as NumPy arrays in double precision.

Where JAX is loaded, large arrays go through the compiled programs of `nkcme.kernels`, which are
several times faster. `nkcme.runtime` works without JAX: there NumPy computes the same functions. It
also does so for small arrays, which are not worth a compilation for each of their shapes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nkcme.distributions.special_functions import ndtr, ndtri

Function = Callable[[np.ndarray], np.ndarray]

#: Arrays up to this size are computed with NumPy.
_SMALL = 4096


class _Density(NamedTuple):
    """A symmetric density of bandwidth one."""

    variance: float
    log_density: Function
    cdf: Function
    ppf: Function


def _laplace_cdf(u: np.ndarray) -> np.ndarray:
    tail = 0.5 * np.exp(-np.abs(u))
    return np.where(u < 0, tail, 1.0 - tail)


#: The kernels of this library; further ones, which users register, need JAX.
_DENSITIES = {
    "gaussian": _Density(
        1.0, lambda u: -0.5 * np.square(u) - 0.5 * math.log(2 * math.pi), ndtr, ndtri
    ),
    "laplace": _Density(
        2.0,
        lambda u: -np.abs(u) - math.log(2.0),
        _laplace_cdf,
        lambda q: np.sign(0.5 - q) * np.log(2.0 * np.minimum(q, 1.0 - q)),
    ),
    "cauchy": _Density(
        math.inf,
        lambda u: -np.log1p(np.square(u)) - math.log(math.pi),
        lambda u: np.arctan2(1.0, -u) / math.pi,
        lambda q: np.sign(q - 0.5) / np.tan(math.pi * np.minimum(q, 1.0 - q)),
    ),
}


def need_kernel(name: str) -> None:
    """Raise unless a kernel has the name."""
    if name not in _DENSITIES:
        from nkcme.kernels import kernel_class

        kernel_class(name)


def unit_variance(name: str) -> float:
    """The variance of a kernel of bandwidth one."""
    if name in _DENSITIES:
        return _DENSITIES[name].variance
    from nkcme.kernels import kernel_class

    return kernel_class(name).unit_variance


def evaluate(name: str, method: str, bandwidth: float, argument: np.ndarray) -> np.ndarray:
    """``value``, ``cdf`` or ``ppf`` of a kernel; see `nkcme.kernels.DensityKernel`."""
    compiled = "nkcme.kernels" in sys.modules and np.size(argument) > _SMALL
    if compiled or name not in _DENSITIES:
        from nkcme.kernels import evaluate as compiled_evaluate

        return compiled_evaluate(name, method, bandwidth, argument)
    density = _DENSITIES[name]
    if method == "ppf":
        with np.errstate(divide="ignore"):
            return bandwidth * density.ppf(argument)
    with np.errstate(over="ignore"):
        u = argument / bandwidth
        if method == "cdf":
            return np.prod(density.cdf(u), axis=-1)
        logs = sum(density.log_density(u[..., j]) for j in range(u.shape[-1]))
        return np.exp(logs) / bandwidth ** u.shape[-1]
