"""The normal distribution and sums of exponentials, in double precision.

SciPy's compiled functions are used where SciPy is loaded, as it is wherever models are fitted.
`nkcme.runtime` works without it: there they are computed with NumPy, to a relative error of 1e-13.
"""

from __future__ import annotations

import math
import sys
from functools import cache

import numpy as np

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)

#: erfc underflows beyond.
_LARGEST = 27.0

#: The number of Chebyshev polynomials of `_scaled_erfc`, and the scale of its argument.
_DEGREE, _SCALE = 44, 4.0


def ndtr(x: np.ndarray) -> np.ndarray:
    """The normal CDF."""
    if (scipy := sys.modules.get("scipy.special")) is not None:
        return scipy.ndtr(x)
    x = np.asarray(x, np.float64)
    tail = 0.5 * _positive_erfc(np.abs(x) * math.sqrt(0.5))
    return np.where(x > 0, 1.0 - tail, tail)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function."""
    if (scipy := sys.modules.get("scipy.special")) is not None:
        return scipy.erf(x)
    x = np.asarray(x, np.float64)
    return np.copysign(1.0 - _positive_erfc(np.abs(x)), x)


def ndtri(q: np.ndarray) -> np.ndarray:
    """The inverse of `ndtr`."""
    if (scipy := sys.modules.get("scipy.special")) is not None:
        return scipy.ndtri(q)
    q = np.asarray(q, np.float64)
    tail = np.minimum(q, 1.0 - q)
    inside = tail > 0
    level = np.log(np.where(inside, tail, 0.5))
    # The logarithm of the CDF is concave, and the start lies to the left of the root: Newton's
    # method rises to it.
    x = -np.sqrt(-2.0 * level)
    for _ in range(12):
        below = ndtr(x)
        density = np.exp(-0.5 * x * x - _LOG_ROOT_TWO_PI)
        x = x - (np.log(below) - level) * below / density
    x = np.where(inside, x, -np.inf)
    return np.where((q >= 0) & (q <= 1), np.where(q > 0.5, -x, x), np.nan)


def logsumexp(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """log of the sum of ``weights`` (of one) times exp of ``values``, over the last axis."""
    highest = values.max(axis=-1, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    terms = np.exp(values - highest)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(terms if weights is None else weights * terms, axis=-1))
    return total + highest[..., 0]


def _positive_erfc(x: np.ndarray) -> np.ndarray:
    """erfc of numbers that are not negative."""
    inside = np.minimum(x, _LARGEST)
    value = np.exp(-inside * inside) * np.polynomial.chebyshev.chebval(
        (inside - _SCALE) / (inside + _SCALE), _scaled_erfc()
    )
    return np.where(x < _LARGEST, value, np.where(np.isnan(x), np.nan, 0.0))


@cache
def _scaled_erfc() -> np.ndarray:
    """Chebyshev coefficients of exp(x^2) erfc(x) as a function of (x - s) / (x + s)."""
    end = (_LARGEST - _SCALE) / (_LARGEST + _SCALE)
    # Beyond the largest x the function goes on as its asymptotic series, so that it is smooth.
    nodes = np.cos(np.pi * (np.arange(_DEGREE) + 0.5) / _DEGREE)
    x = _SCALE * (1.0 + nodes) / (1.0 - nodes)
    values = [
        math.exp(t * t) * math.erfc(t) if node < 0.5 * end else _asymptotic(t)
        for t, node in zip(x.tolist(), nodes, strict=True)
    ]
    return np.polynomial.chebyshev.chebfit(nodes, values, _DEGREE - 1)


def _asymptotic(x: float) -> float:
    """exp(x^2) erfc(x) for large x, by its continued fraction."""
    value = x
    for k in range(60, 0, -1):
        value = x + 0.5 * k / value
    return 1.0 / (value * math.sqrt(math.pi))
