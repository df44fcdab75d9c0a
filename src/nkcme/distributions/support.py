"""What values y can take, and laws that put no mass elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nkcme.distributions.elementwise import clipped, every, some
from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.rounded import Rounded
from nkcme.distributions.tails import Tail
from nkcme.distributions.whole_numbers import WholeNumbers
from nkcme.errors import NkcmeError


@dataclass(frozen=True)
class Support:
    """The values that y can take.

    Attributes
    ----------
    lower, upper : float
        Bounds, which belong to the support; infinite where there is none.
    values : tuple of float
        The only values of y, in increasing order; empty where y is not confined to some.
    integer : bool
        Whether y is a whole number.
    reached : tuple of float
        The bounds that y takes with positive probability, as zero-inflated or capped values do.
        What the unbounded law has beyond such a bound lies on the bound.
    odds : tuple of (float, float)
        For each bound reached, the intercept and the slope of its log odds as a function of those
        that the law gives it; empty to leave them.
    unseen : float
        The probability of a value that is not among ``values``, because they were found in a table
        that cannot have shown all of them.
    """

    lower: float = -np.inf
    upper: float = np.inf
    values: tuple[float, ...] = ()
    integer: bool = False
    reached: tuple[float, ...] = ()
    odds: tuple[tuple[float, float], ...] = ()
    unseen: float = 0.0

    def __post_init__(self) -> None:
        if not self.lower < self.upper and not self.values:
            raise NkcmeError(
                "bounds must be (lower, upper) with lower < upper; got "
                f"({self.lower:g}, {self.upper:g})"
            )

    def __str__(self) -> str:
        if self.values:
            shown = ", ".join(f"{value:g}" for value in self.values[:3])
            rest = "" if len(self.values) <= 3 else f", ... {self.values[-1]:g}"
            return f"{len(self.values)} values ({shown}{rest})"
        kind = "whole numbers" if self.integer else "numbers"
        low = "" if np.isinf(self.lower) else f" from {self.lower:g}"
        high = "" if np.isinf(self.upper) else f" up to {self.upper:g}"
        masses = ", ".join(f"{bound:g}" for bound in self.reached)
        return f"{kind}{low}{high}" + (f" with a point mass at {masses}" if masses else "")

    @property
    def is_everything(self) -> bool:
        """Whether y can be any number."""
        return np.isinf(self.lower) and np.isinf(self.upper) and not self.is_discrete

    @property
    def is_discrete(self) -> bool:
        """Whether y takes separate values only."""
        return self.integer or bool(self.values)

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether each y belongs to the support."""
        if self.values and not self.unseen:
            return np.isin(y, self.values)
        inside = (y >= self.lower) & (y <= self.upper)
        return inside & (np.rint(y) == y) if self.integer else inside

    def snapped(self, y: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        """y (n,) that was rounded, by less than ``rounding`` (n,), on the support again."""
        if self.integer:
            return clipped(np.rint(y), self.lower, self.upper)
        places = self._values if self.values else np.asarray(self.reached)
        if not len(places):
            return clipped(y, self.lower, self.upper)
        after = clipped(np.searchsorted(places, y), 1, max(len(places) - 1, 1))
        before = places[after - 1]
        after = places[np.minimum(after, len(places) - 1)]
        nearest = np.where(np.abs(y - before) <= np.abs(after - y), before, after)
        near = np.abs(y - nearest) <= rounding
        return np.where(near | bool(self.values), nearest, clipped(y, self.lower, self.upper))

    def restrict(self, law: PiecewiseUniform) -> PiecewiseUniform | Rounded | WholeNumbers:
        """The law with all of its mass on the support.

        Of separate values each gets the mass nearest to it. Mass beyond a bound that y reaches lies
        on the bound; beyond other bounds the law is cut off, and the rest of it is scaled up.
        """
        if self.is_everything:
            return law
        if self.values:
            return Rounded(law, self._values, self.unseen)
        if self.integer:
            return WholeNumbers(law, self.lower, self.upper)
        law = self._bounded(law)
        for bound, (intercept, slope) in zip(self.reached, self.odds, strict=False):
            law = _with_odds(law, bound == self.lower, intercept, slope)
        return law

    @cached_property
    def _values(self) -> np.ndarray:
        return np.asarray(self.values, np.float64)

    def _bounded(self, law: PiecewiseUniform) -> PiecewiseUniform:
        # The share of each row that is kept: everything but what lies beyond a bound that y does
        # not reach. Where that is nothing at all, the nearest bound gets it.
        start, end = np.zeros((law.n_rows, 1)), np.ones((law.n_rows, 1))
        if self._is_bounded_below and self.lower not in self.reached:
            start = self._below_lower(law)
        if self._is_bounded_above and self.upper not in self.reached:
            end = law.probability(np.full((law.n_rows, 1), self.upper), inclusive=True)
        kept = end - start
        lost = kept < _LEAST_SHARE
        if some(lost):
            start, kept = np.where(lost, 0.0, start), np.where(lost, 1.0, kept)
        upper = None if self._is_bounded_above else law.upper
        if upper is not None:
            upper = _scaled(upper.beyond(self.lower - law.edges[:, -1]), 1.0 / kept[:, 0])
        lower = None if self._is_bounded_below else law.lower
        if lower is not None:
            lower = _scaled(lower.beyond(law.edges[:, 0] - self.upper), 1.0 / kept[:, 0])
        extended = self._with_edges_at_bounds(law)
        edges, below = extended.edges, extended.below
        # Edges beyond a bound that y reaches move onto it, with what the law has up to there.
        if self.lower in self.reached:
            upto = law.probability(np.full((law.n_rows, 1), self.lower), inclusive=True)
            below = np.where(edges < self.lower, upto, below)
        if self.upper in self.reached:
            upto = law.probability(np.full((law.n_rows, 1), self.upper), inclusive=False)
            below = np.where(edges > self.upper, upto, below)
        return PiecewiseUniform(
            clipped(edges, self.lower, self.upper),
            clipped((below - start) / kept, 0.0, 1.0),
            lower,
            upper,
        )

    @cached_property
    def _is_bounded_below(self) -> bool:
        return self.lower > -np.inf

    @cached_property
    def _is_bounded_above(self) -> bool:
        return self.upper < np.inf

    def _below_lower(self, law: PiecewiseUniform) -> np.ndarray:
        """P(Y < lower), (n_rows, 1)."""
        bound = np.full((law.n_rows, 1), self.lower)
        if every(law.edges[:, :1] >= bound):
            return law.mass_before(bound)
        return law.probability(bound, inclusive=False)

    def _with_edges_at_bounds(self, law: PiecewiseUniform) -> PiecewiseUniform:
        """The law with an edge at each bound in the tail of a row, uniform up to there."""
        edges, below = [law.edges], [law.below]
        for bound, first in ((self.lower, True), (self.upper, False)):
            place = law.edges[:, :1] if first else law.edges[:, -1:]
            in_tail = place > bound if first else place < bound
            if np.isinf(bound) or not some(in_tail):
                continue
            place = np.minimum(place, bound) if first else np.maximum(place, bound)
            position = 0 if first else len(edges)
            edges.insert(position, place)
            upto = law.mass_before(place) if first else 1.0 - law.mass_after(place)
            below.insert(position, upto)
        if len(edges) == 1:
            return law
        return PiecewiseUniform(np.concatenate(edges, axis=1), np.concatenate(below, axis=1))


#: The support of an unbounded, continuous y.
EVERYTHING = Support()


def _with_odds(
    law: PiecewiseUniform, at_lower: bool, intercept: float, slope: float
) -> PiecewiseUniform:
    """The law with other odds of the point mass on its lower or upper bound."""
    edge = law.edges[:, :1] if at_lower else law.edges[:, -1:]
    beside = law.probability(edge, inclusive=at_lower)
    mass = clipped(beside if at_lower else 1.0 - beside, 1e-9, 1.0 - 1e-9)
    with np.errstate(over="ignore"):
        wanted = 1.0 / (1.0 + np.exp(-intercept - slope * (np.log(mass) - np.log1p(-mass))))
    rest = (1.0 - wanted) / (1.0 - mass)
    if at_lower:
        below = np.where(law.edges <= edge, wanted, 1.0 - rest * (1.0 - law.below))
        return replace(law, below=below, upper=_scaled(law.upper, rest[:, 0]))
    below = np.where(law.edges >= edge, 1.0 - wanted, rest * law.below)
    return replace(law, below=below, lower=_scaled(law.lower, rest[:, 0]))


def _scaled(tail: Tail | None, factor: np.ndarray) -> Tail | None:
    """The tail with its mass multiplied."""
    return None if tail is None else replace(tail, mass=factor * tail.mass)


#: A smaller share of a law within the bounds counts as none.
_LEAST_SHARE = 1e-12
