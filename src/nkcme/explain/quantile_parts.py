"""Scores of predicted quantiles, and what becomes of them if only a part of each law changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkcme.distributions.base import Distribution

#: Even levels whose mean pinball loss is half the CRPS. The ends of the central 90 % interval and
#: the outer 1 % are among them.
_EVEN = (np.arange(50) + 0.5) / 50
_OUTER = np.array([0.002, 0.005, 0.995, 0.998])
_MEDIAN = np.array([0.5])

LEVELS = np.concatenate([_EVEN, _OUTER, _MEDIAN])
_BODY = slice(0, len(_EVEN))
_LOWER_END, _UPPER_END = int(np.argmin(abs(_EVEN - 0.05))), int(np.argmin(abs(_EVEN - 0.95)))
#: Levels beyond the central 90 % interval.
_TAILS = np.flatnonzero((LEVELS < 0.049) | (LEVELS > 0.951))


def pinball(y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The pinball loss (n, k) of quantiles (n, k) at levels (k,) for y (n,)."""
    above = y[:, None] - quantiles
    return np.maximum(levels * above, (levels - 1.0) * above)


class QuantileParts(NamedTuple):
    """Quantiles (n, k) at `LEVELS`, of which a part can be taken from other predictions."""

    quantiles: np.ndarray

    @classmethod
    def of(cls, dist: Distribution) -> QuantileParts:
        """The quantiles of predicted distributions."""
        return cls(dist.ppf(LEVELS))

    @property
    def median(self) -> np.ndarray:
        """The medians (n, 1)."""
        return self.quantiles[:, -1:]

    def with_centre_of(self, other: QuantileParts) -> QuantileParts:
        """The median of the other predictions; all distances from the median stay."""
        return QuantileParts(self.quantiles + (other.median - self.median))

    def with_spread_of(self, other: QuantileParts) -> QuantileParts:
        """All distances from the median are those of the other predictions; the median stays."""
        return other.with_centre_of(self)

    def with_tails_of(self, other: QuantileParts) -> QuantileParts:
        """Distances from the ends of the 90 % interval outwards are those of the others."""
        changed = self.quantiles.copy()
        for end, own in ((_LOWER_END, _TAILS[LEVELS[_TAILS] < 0.5]),
                         (_UPPER_END, _TAILS[LEVELS[_TAILS] > 0.5])):  # fmt: skip
            beyond = other.quantiles[:, own] - other.quantiles[:, [end]]
            changed[:, own] = self.quantiles[:, [end]] + beyond
        return QuantileParts(changed)

    def crps(self, y: np.ndarray) -> float:
        """The mean CRPS, from the losses at even levels."""
        return float(2.0 * pinball(y, self.quantiles[:, _BODY], _EVEN).mean())

    def tail_loss(self, y: np.ndarray) -> float:
        """Twice the mean pinball loss of the levels beyond the central 90 % interval."""
        return float(2.0 * pinball(y, self.quantiles[:, _TAILS], LEVELS[_TAILS]).mean())
