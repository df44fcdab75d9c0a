"""What values y can take: found in the training rows, or given by the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.support import Support
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.law_recipe import SupportRecipe
from nkcme.tables.sample_weights import checked_weight

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


def support_of(model: NKCME, y: np.ndarray, sample_weight: ArrayLike | None) -> Support:
    """The support that the parameters give, or the one that y (n,) suggests."""
    weight = checked_weight(sample_weight, len(y))
    y, weight = y[weight > 0], weight[weight > 0]
    given = given_support(model)
    if given is not None:
        need_inside(given, y)
        return _with_reached_bounds(given, y, weight, model._recipe.support)
    if model.support == "none":
        return Support()
    return detect(y, weight, model._recipe.support)


def need_inside(given: Support, y: np.ndarray) -> None:
    """Refuse values of y (n,) outside the support that the user gave."""
    outside = np.flatnonzero(~given.contains(y))
    if len(outside):
        raise NkcmeError(
            f"y has {len(outside)} values outside the given support ({given}), the first in "
            f"row {outside[0]} (counting from 0): {y[outside[0]]:g}; correct y or the support"
        )


class SupportParameters(Protocol):
    """The parameters of `NKCME` that give a support."""

    values: Any
    bounds: Any
    integer: Any


def given_support(model: SupportParameters) -> Support | None:
    """The support by ``bounds``, ``integer`` and ``values``; None where none of them is given."""
    if model.values is not None:
        if model.bounds is not None or model.integer:
            raise NkcmeError("values lists all that y can be; give bounds and integer without it")
        values = np.unique(_numbers("values", model.values))
        if not len(values):
            raise NkcmeError("values must list at least one number; got none")
        return Support(float(values[0]), float(values[-1]), tuple(values.tolist()))
    if model.bounds is None and not model.integer:
        return None
    bounds: Any = (None, None) if model.bounds is None else model.bounds
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        raise NkcmeError(f"bounds must be (lower, upper), each a number or None; got {bounds!r}")
    lower, upper = (
        default if bound is None else float(_numbers("bounds", [bound])[0])
        for bound, default in zip(bounds, (-np.inf, np.inf), strict=True)
    )
    return Support(lower, upper, integer=bool(model.integer))


def _numbers(name: str, given: Any) -> np.ndarray:
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.ndim != 1 or not np.all(np.isfinite(numbers)):
        raise NkcmeError(f"{name} must be finite numbers; got {given!r}")
    return numbers


def detect(y: np.ndarray, weight: np.ndarray, recipe: SupportRecipe) -> Support:
    """The support that the values y (n,) suggest.

    1. Few values, each seen often: those values. (Whole numbers only if the smallest and the
       largest are frequent too: counts go on beyond the largest one seen.)
    2. Whole numbers, many of them repeated: whole numbers, not negative if none is.
    3. Otherwise an interval: from 0 where no y is negative, up to 1 where they also fill the unit
       interval; and up to an extreme value that is far more frequent than any other, which then has
       a point mass.
    """
    values, place = np.unique(y, return_inverse=True)
    counts = np.bincount(place, weights=weight)
    n = counts.sum()
    if len(values) < 2 or n < recipe.least_rows:
        return Support()
    whole = bool(np.all(np.rint(values) == values))
    repeated = len(values) * recipe.rows_per_value <= n
    unseen = float(np.sum(counts[counts <= 1.0]) / n)  # Good and Turing's estimate
    closed = not whole or min(counts[0], counts[-1]) >= recipe.frequent_extreme * n
    if repeated and closed and unseen <= recipe.most_new_values:
        ends = (float(values[0]), float(values[-1]))
        return Support(*ends, tuple(values.tolist()), unseen=unseen)
    lower = 0.0 if values[0] >= 0 else -np.inf
    if whole and repeated:
        return Support(1.0 if values[0] == 1.0 else lower, integer=True)
    fills_unit = lower == 0.0 and values[-1] <= 1.0 and values[-1] - values[0] >= 0.5
    return _with_reached_bounds(Support(lower, 1.0 if fills_unit else np.inf), y, weight, recipe)


def _with_reached_bounds(
    support: Support, y: np.ndarray, weight: np.ndarray, recipe: SupportRecipe
) -> Support:
    """The support with the extreme values that y takes far more often than any other."""
    if support.is_discrete:
        return support
    values, place = np.unique(y, return_inverse=True)
    counts = np.bincount(place, weights=weight)
    n, others = counts.sum(), counts[1:-1].max(initial=1.0)
    enough = max(recipe.mass_share * n, recipe.mass_ratio * others, recipe.least_mass_rows)
    lower, upper = support.lower, support.upper
    reached = []
    if counts[0] >= enough:
        lower = float(values[0])
        reached.append(lower)
    if len(values) > 1 and counts[-1] >= enough:
        upper = float(values[-1])
        reached.append(upper)
    return Support(lower, upper, reached=tuple(reached))
