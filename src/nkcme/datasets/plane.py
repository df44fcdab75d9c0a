"""Three problems of two outputs with a known true distribution: a ring, a banana, a mixture.

In each, the dependence between the two outputs varies with x more than their marginals.
"""

from dataclasses import dataclass

import numpy as np

from nkcme.datasets.mixture import FloatArray
from nkcme.datasets.problem import Problem
from nkcme.errors import NkcmeError


@dataclass(frozen=True)
class Ring:
    """(R cos T, R sin T) with R ~ N(radius, width^2) and T uniform; a hole in the middle."""

    radius: FloatArray
    width: float

    def pdf(self, y: FloatArray) -> FloatArray:
        """In polar coordinates, where -R in direction T is R in the opposite one."""
        r = np.linalg.norm(y, axis=-1)
        with np.errstate(divide="ignore"):
            return (self._radial(r) + self._radial(-r)) / (2 * np.pi * r)

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        r = self.radius + self.width * rng.standard_normal(size)
        angle = rng.uniform(0.0, 2 * np.pi, size)
        return r[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    def _radial(self, r: FloatArray) -> FloatArray:
        return _normal((r - self.radius) / self.width) / self.width


@dataclass(frozen=True)
class Banana:
    """Y1 ~ N(0, 1) and Y2 = bend (Y1^2 - 1) + N(0, width^2): uncorrelated, not independent."""

    bend: FloatArray
    width: float

    def pdf(self, y: FloatArray) -> FloatArray:
        first, second = y[..., 0], y[..., 1]
        off = (second - self.bend * (first**2 - 1)) / self.width
        return _normal(first) * _normal(off) / self.width

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        first = rng.standard_normal(size)
        second = self.bend * (first**2 - 1) + self.width * rng.standard_normal(size)
        return np.stack([first, second], axis=-1)


@dataclass(frozen=True)
class Lobes:
    """A mixture of normal laws, each of correlation rho between two outputs of equal spread.

    ``weights``, ``correlations`` (..., k) and ``means`` (..., k, 2) have the shape of x in front.
    """

    weights: FloatArray
    means: FloatArray
    correlations: FloatArray
    spread: float

    def pdf(self, y: FloatArray) -> FloatArray:
        # The sum and the difference of the outputs, by sqrt(2), are independent.
        z = (y[..., None, :] - self.means) / self.spread
        along, across = self._axes()
        sums, differences = (z[..., 0] + z[..., 1]), (z[..., 0] - z[..., 1])
        density = _normal(sums / np.sqrt(2) / along) * _normal(differences / np.sqrt(2) / across)
        return np.sum(self.weights * density / (along * across * self.spread**2), axis=-1)

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        n_lobes = self.weights.shape[-1]
        above = rng.random(size)[..., None] >= np.cumsum(self.weights, axis=-1)
        lobe = np.minimum(above.sum(axis=-1), n_lobes - 1)[..., None]
        along, across = (
            np.take_along_axis(np.broadcast_to(axis, (*size, n_lobes)), lobe, axis=-1)[..., 0]
            for axis in self._axes()
        )
        u, v = along * rng.standard_normal(size), across * rng.standard_normal(size)
        means = np.broadcast_to(self.means, (*size, n_lobes, 2))
        centre = np.take_along_axis(means, lobe[..., None], axis=-2)[..., 0, :]
        return centre + self.spread / np.sqrt(2) * np.stack([u + v, u - v], axis=-1)

    def _axes(self) -> tuple[FloatArray, FloatArray]:
        return np.sqrt(1 + self.correlations), np.sqrt(1 - self.correlations)


def _normal(z: FloatArray) -> FloatArray:
    return np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def _ring(x: FloatArray) -> Ring:
    """A circle that grows from a radius of 0.5 to one of 1.5."""
    return Ring(1 + 0.5 * x, 0.1)


def _banana(x: FloatArray) -> Banana:
    """Bent down at x = -1, a straight band at 0, bent up at 1."""
    return Banana(x, 0.3)


def _mixture(x: FloatArray) -> Lobes:
    """Three lobes that rotate by a third of a turn while their weights vary and the correlation
    of the outputs goes from -0.9 to 0.9."""
    turn = np.pi / 3 * x[..., None] + 2 * np.pi / 3 * np.arange(3)
    weights = 1 + 0.75 * np.cos(2 * turn)
    correlations = np.broadcast_to(0.9 * np.sin(np.pi / 2 * x[..., None]), weights.shape)
    return Lobes(
        weights / weights.sum(axis=-1, keepdims=True),
        1.5 * np.stack([np.cos(turn), np.sin(turn)], axis=-1),
        correlations,
        0.3,
    )


PLANE: dict[str, Problem] = {
    "ring": Problem("ring", (-1.0, 1.0), _ring),
    "banana": Problem("banana", (-1.0, 1.0), _banana),
    "mixture": Problem("mixture", (-1.0, 1.0), _mixture),
}


def load_plane(name: str) -> Problem:
    """Get a problem of two outputs by its name.

    Parameters
    ----------
    name
        ring, banana or mixture: a key of `PLANE`.

    Returns
    -------
    Problem

    Raises
    ------
    NkcmeError
        If no problem has this name.

    Examples
    --------
    >>> from nkcme.datasets import load_plane
    >>> X, Y = load_plane("ring").make(n=100, seed=0)
    >>> Y.shape
    (100, 2)
    """
    if name not in PLANE:
        raise NkcmeError(
            f"no problem of two outputs is named {name!r}; there are {', '.join(PLANE)}"
        )
    return PLANE[name]
