"""Mixtures of known laws with arrays as parameters: the true distributions of toy problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

FloatArray = npt.NDArray[np.float64]

# Halvings of a quantile's bracket: it is a few units wide, so 60 take it below float64's spacing.
_BISECTIONS = 60


class Component(Protocol):
    """A univariate law with array parameters that broadcast, such as a frozen law of scipy."""

    def pdf(self, y: FloatArray) -> FloatArray: ...
    def cdf(self, y: FloatArray) -> FloatArray: ...
    def ppf(self, q: FloatArray) -> FloatArray: ...
    def rvs(self, size: tuple[int, ...], random_state: np.random.Generator) -> FloatArray: ...


@dataclass(frozen=True)
class Gaussian:
    """N(loc, scale^2), where a scale of zero gives a point mass at ``loc``.

    scipy's normal gives NaN there. The `pdf` of a point mass is infinite at ``loc`` and zero
    elsewhere.

    Parameters
    ----------
    loc, scale
        Arrays of the shape of x.
    """

    loc: FloatArray
    scale: FloatArray

    def pdf(self, y: FloatArray) -> FloatArray:
        is_point, scale = self._split_scale()
        with np.errstate(over="ignore"):
            z = (y - self.loc) / scale
            density = np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * scale)
        return np.where(is_point, np.where(y == self.loc, np.inf, 0.0), density)

    def cdf(self, y: FloatArray) -> FloatArray:
        is_point, scale = self._split_scale()
        with np.errstate(over="ignore"):
            z = (y - self.loc) / scale
        return np.where(is_point, np.where(y >= self.loc, 1.0, 0.0), ndtr(z))

    def ppf(self, q: FloatArray) -> FloatArray:
        is_point, scale = self._split_scale()
        return np.where(is_point, self.loc, self.loc + scale * ndtri(q))

    def rvs(self, size: tuple[int, ...], random_state: np.random.Generator) -> FloatArray:
        return self.loc + self.scale * random_state.standard_normal(size)

    def _split_scale(self) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        """Where the law is a point mass, and a scale that is safe to divide by everywhere."""
        is_point = self.scale == 0
        return is_point, np.where(is_point, 1.0, self.scale)


@dataclass(frozen=True)
class Mixture:
    """The mixture Σ_k weights_k · components_k.

    Parameters
    ----------
    weights
        One array of the shape of x per component; they sum to one.
    components
        Laws with `pdf`, `cdf`, `ppf` and `rvs` and parameters of the shape of x: `Gaussian`, or any
        frozen law of scipy.stats.
    """

    weights: tuple[FloatArray, ...]
    components: tuple[Component, ...]

    def pdf(self, y: FloatArray) -> FloatArray:
        return self._average([component.pdf(y) for component in self.components])

    def cdf(self, y: FloatArray) -> FloatArray:
        return self._average([component.cdf(y) for component in self.components])

    def ppf(self, q: FloatArray) -> FloatArray:
        """The smallest y at which the floating-point cdf(y) reaches q, by bisection.

        The quantile of a mixture lies between the smallest and the largest quantile of its
        components; for a single component these are equal and there is nothing to search.
        """
        quantiles = np.stack(np.broadcast_arrays(*(law.ppf(q) for law in self.components)))
        present = np.stack(np.broadcast_arrays(*self.weights)) > 0
        low = np.min(quantiles, axis=0, where=present, initial=np.inf)
        high = np.max(quantiles, axis=0, where=present, initial=-np.inf)
        # The ends of the support, which may be infinite, need no search; nor does an atom at low.
        low = np.where(q == 1, high, low)
        high = np.where((q == 0) | (self.cdf(low) >= q), low, high)
        for _ in range(_BISECTIONS):
            if not np.any(low < high):
                break
            middle = low / 2 + high / 2
            reaches_q = self.cdf(middle) >= q
            low = np.where(reaches_q, low, middle)
            high = np.where(reaches_q, middle, high)
        return high

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Independent draws; the last axes of size are the shape of the weights."""
        chooser = rng.random(size)
        draws = self.components[0].rvs(size=size, random_state=rng)
        below = self.weights[0]
        for weight, law in zip(self.weights[1:], self.components[1:], strict=True):
            draws = np.where(chooser >= below, law.rvs(size=size, random_state=rng), draws)
            below = below + weight
        return draws

    def _average(self, values: list[FloatArray]) -> FloatArray:
        return sum(
            (weight * value for weight, value in zip(self.weights, values, strict=True)),
            start=np.zeros(()),
        )
