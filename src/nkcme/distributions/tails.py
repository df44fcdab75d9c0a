"""Generalised Pareto tails, beyond the outermost edges of a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nkcme.distributions.elementwise import some

#: The largest index of a tail: the variance is finite below one half.
MAX_SHAPE = 0.45


class TailParameters(NamedTuple):
    """A tail in standard units, the same for every row; see `Tail`."""

    mass: float
    scale: float
    shape: float = 0.0

    def in_units(self, scale: np.ndarray) -> Tail:
        """The tail of rows with these units (n_rows,)."""
        n = len(scale)
        return Tail(np.full(n, self.mass), self.scale * scale, np.full(n, self.shape))


class Tails(NamedTuple):
    """The tails beyond the outermost edges."""

    lower: TailParameters
    upper: TailParameters


@dataclass(frozen=True, eq=False)
class Tail:
    """The distribution of the distance t >= 0 beyond an edge, and the probability to be there.

    The survival function is (1 + shape t / scale)^(-1 / shape), or exp(-t / scale) for shape 0.

    Attributes
    ----------
    mass : array (n_rows,)
        The probability of the tail.
    scale : array (n_rows,)
        Its scale, positive.
    shape : float or array (n_rows,)
        Its index, from 0 to `MAX_SHAPE`: 0 is exponential, larger is heavier. An array after
        checks.
    """

    mass: np.ndarray
    scale: np.ndarray
    shape: Any = 0.0

    def __post_init__(self) -> None:
        shape = np.asarray(self.shape, np.float64)
        if shape.shape != np.shape(self.mass):
            shape = np.broadcast_to(shape, np.shape(self.mass))
        object.__setattr__(self, "shape", shape)

    def __getitem__(self, rows: np.ndarray) -> Tail:
        return Tail(self.mass[rows], self.scale[rows], self.shape[rows])

    def relative_to(self, unit: np.ndarray) -> Tail:
        """The tail of distances in other units (n_rows,)."""
        return Tail(self.mass, self.scale / unit, self.shape)

    def survival(self, t: np.ndarray) -> np.ndarray:
        """P(distance > t | in the tail) at distances (n_rows, m)."""
        return np.exp(-self._exponent(t))

    def log_density(self, t: np.ndarray) -> np.ndarray:
        """The log density of the tail, its mass included, at distances (n_rows, m)."""
        with np.errstate(divide="ignore"):
            start = np.log(self.mass / self.scale)[:, None]
        return start - (1.0 + self.shape[:, None]) * self._exponent(t)

    def distance(self, survival: np.ndarray) -> np.ndarray:
        """The distance (n_rows, m) with this survival probability."""
        with np.errstate(divide="ignore"):
            exponent = -np.log(survival)
        xi = self.shape[:, None]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.scale[:, None] * np.where(xi > 0, np.expm1(xi * exponent) / xi, exponent)

    def integral(self, t: np.ndarray, power: int) -> np.ndarray:
        """The integral of the survival function to the power 1 or 2, from 0 to t (n_rows, m)."""
        rate = power - self.shape[:, None]
        return self.scale[:, None] / rate * -np.expm1(-rate * self._exponent(t))

    def mean(self) -> np.ndarray:
        """The mean of the distance, (n_rows,)."""
        return self.scale / (1.0 - self.shape)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the mean square of the distance, (n_rows,) each."""
        mean = self.mean()
        return mean, 2.0 * self.scale * mean / (1.0 - 2.0 * self.shape)

    def mass_beyond(self, t: np.ndarray) -> np.ndarray:
        """The probability of a distance beyond t, (n_rows,)."""
        return self.mass * self.survival(t[:, None])[:, 0]

    def beyond(self, t: np.ndarray) -> Tail:
        """The part of the tail that lies further out than t (n_rows,); again such a tail.

        Below zero t counts as zero.
        """
        if not some(t > 0):
            return self
        t = np.maximum(t, 0.0)
        return Tail(self.mass_beyond(t), self.scale + self.shape * t, self.shape)

    def squared(self) -> Tail:
        """The tail whose survival function, its mass included, is the square of this one's."""
        return Tail(self.mass * self.mass, 0.5 * self.scale, 0.5 * self.shape)

    def _exponent(self, t: np.ndarray) -> np.ndarray:
        """-log of the survival function."""
        xi = self.shape[:, None]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            relative = t / self.scale[:, None]
            if not np.count_nonzero(xi):
                return relative
            return np.where(xi > 0, np.log1p(xi * relative) / xi, relative)
