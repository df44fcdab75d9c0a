"""True laws of Y, one for each row of inputs: probabilities, point masses, quantiles, CRPS.

Parameters have the shape (n_rows, 1). Points and levels broadcast against it, and results are
(n_rows, m).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Quantiles behind a CRPS. For a normal law its error is less than 0.01 %.
_N_LEVELS = 200

#: A value belongs to a lattice if it is within this number of steps of it.
_SAME = 1e-6


class Law(ABC):
    """The laws of Y at n inputs."""

    @abstractmethod
    def cdf(self, y: Any) -> np.ndarray:
        """P(Y <= y)."""

    @abstractmethod
    def ppf(self, q: Any) -> np.ndarray:
        """Quantiles at levels strictly between 0 and 1."""

    def pmf(self, y: Any) -> np.ndarray:
        """P(Y = y)."""
        return np.zeros_like(self.cdf(y))

    def rvs(self, n_rows: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Independent draws, (n_rows, n_draws)."""
        return self.ppf(rng.uniform(size=(n_rows, n_draws)))

    def crps(self, y: np.ndarray) -> np.ndarray:
        """The CRPS of these laws as predictions of y (n_rows,): twice the mean pinball loss."""
        levels = even_levels(_N_LEVELS)
        above = self.ppf(levels) - y[:, None]
        return 2.0 * np.mean(((above > 0) - levels) * above, axis=1)


def even_levels(n: int) -> np.ndarray:
    """The levels (i + 1/2) / n: quantiles there are the n points that represent a law best."""
    return (np.arange(n) + 0.5) / n


@dataclass(frozen=True)
class Continuous(Law):
    """A frozen law of scipy.stats, or a `Mixture`, without point masses."""

    law: Any

    def cdf(self, y: Any) -> np.ndarray:
        return self.law.cdf(y)

    def ppf(self, q: Any) -> np.ndarray:
        return self.law.ppf(q)


@dataclass(frozen=True)
class Discrete(Law):
    """A frozen law of scipy.stats on whole numbers."""

    law: Any

    def cdf(self, y: Any) -> np.ndarray:
        return self.law.cdf(y)

    def pmf(self, y: Any) -> np.ndarray:
        return self.law.pmf(y)

    def ppf(self, q: Any) -> np.ndarray:
        return self.law.ppf(q)


@dataclass(frozen=True)
class Inflated(Law):
    """A continuous law on [low, high] with additional point masses on these two ends."""

    law: Law
    low_mass: np.ndarray
    high_mass: np.ndarray | float = 0.0
    low: float = 0.0
    high: float = np.inf

    def cdf(self, y: Any) -> np.ndarray:
        inner = self.low_mass + self._rest * self.law.cdf(y)
        return np.where(np.less(y, self.low), 0.0, np.where(np.less(y, self.high), inner, 1.0))

    def pmf(self, y: Any) -> np.ndarray:
        return np.equal(y, self.low) * self.low_mass + np.equal(y, self.high) * self.high_mass

    def ppf(self, q: Any) -> np.ndarray:
        share = (q - self.low_mass) / self._rest
        inner = self.law.ppf(np.clip(share, 0.0, 1.0))
        return np.where(share <= 0, self.low, np.where(share >= 1, self.high, inner))

    @property
    def _rest(self) -> np.ndarray:
        return 1.0 - self.low_mass - self.high_mass


@dataclass(frozen=True)
class Rounded(Law):
    """A continuous law, rounded to the nearest multiple of ``step``."""

    law: Law
    step: float

    def cdf(self, y: Any) -> np.ndarray:
        k = np.floor(np.asarray(y) / self.step + _SAME)
        return self.law.cdf((k + 0.5) * self.step)

    def pmf(self, y: Any) -> np.ndarray:
        position = np.asarray(y) / self.step
        k = np.rint(position)
        mass = self.law.cdf((k + 0.5) * self.step) - self.law.cdf((k - 0.5) * self.step)
        return np.where(np.abs(position - k) < _SAME, mass, 0.0)

    def ppf(self, q: Any) -> np.ndarray:
        return multiple(np.rint(self.law.ppf(q) / self.step), self.step)


@dataclass(frozen=True)
class Clipped(Law):
    """A law whose values below ``low`` are recorded as ``low``, and those above ``high`` so too."""

    law: Law
    low: float = -np.inf
    high: float = np.inf

    def cdf(self, y: Any) -> np.ndarray:
        inner = self.law.cdf(y)
        return np.where(np.less(y, self.low), 0.0, np.where(np.less(y, self.high), inner, 1.0))

    def pmf(self, y: Any) -> np.ndarray:
        inner = self.law.pmf(y)
        below = self.law.cdf(y) - inner
        mass = np.where(np.equal(y, self.low), below + inner, inner)
        mass = np.where(np.equal(y, self.high), 1.0 - below, mass)
        return np.where(np.less(y, self.low) | np.greater(y, self.high), 0.0, mass)

    def ppf(self, q: Any) -> np.ndarray:
        return np.clip(self.law.ppf(q), self.low, self.high)


def multiple(k: np.ndarray, step: float) -> np.ndarray:
    """k times a step, as the float nearest to its decimals: 1234 cents are 12.34."""
    return np.round(k * step, 10)
