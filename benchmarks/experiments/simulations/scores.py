"""Scores of predicted laws against the true ones of a simulated table."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from benchmarks.experiments.simulations.design import Possible
from benchmarks.experiments.simulations.laws import Law, even_levels
from benchmarks.experiments.table_scores import INTERVALS, interval_shares
from nkcme import metrics

#: Samples of the prediction and of the truth at each input, as on the paper's toy problems.
N_DRAWS = 50

#: Mass between the possible values is looked for from the lowest of these quantiles of any row to
#: the highest: a heavy tail has no end, and reaches millions of values.
_SEARCHED = (0.001, 0.999)

#: Probabilities (rows times values) that are computed together.
_BLOCK = 2_000_000


class Predicted(Protocol):
    """The methods of a `Distribution` that are scored."""

    def cdf(self, y: np.ndarray) -> np.ndarray: ...
    def pmf(self, y: np.ndarray) -> np.ndarray: ...
    def ppf(self, q: Any) -> np.ndarray: ...
    def crps(self, y: np.ndarray) -> np.ndarray: ...


def common_scores(predicted: Predicted, law: Law, y: np.ndarray) -> dict[str, float]:
    """CRPS, that of the truth and their ratio; coverages and width of central intervals.

    A point mass on the end of an interval counts only with the part that belongs to it.
    """
    upto = predicted.cdf(y)
    crps, oracle = float(predicted.crps(y).mean()), float(law.crps(y).mean())
    low, high = predicted.ppf(np.array(INTERVALS["coverage"])).T
    return {
        "crps": crps,
        "crps_oracle": oracle,
        "crps_ratio": crps / oracle,
        **interval_shares(np.stack([upto - predicted.pmf(y), upto], axis=1)),
        "width": float(np.mean(high - low)),
    }


# --- support ----------------------------------------------------------------------------------


def mass_outside_bounds(predicted: Predicted, n_rows: int, possible: Possible) -> np.ndarray:
    """The probability (n_rows,) below the lowest and above the highest possible value."""
    outside = np.zeros(n_rows)
    if np.isfinite(possible.lower):
        at = np.full(n_rows, possible.lower)
        outside += predicted.cdf(at) - predicted.pmf(at)
    if np.isfinite(possible.upper):
        outside += 1.0 - predicted.cdf(np.full(n_rows, possible.upper))
    return np.maximum(outside, 0.0)


def mass_between_values(predicted: Predicted, n_rows: int, possible: Possible) -> np.ndarray:
    """The probability (n_rows,) that is within the bounds but not on a possible value."""
    ends = predicted.ppf(np.array(_SEARCHED))
    values = possible.between(ends[:, 0].min(), ends[:, 1].max())
    if not len(values):
        return np.ones(n_rows)
    on_values = np.zeros(n_rows)
    block = max(_BLOCK // n_rows, 1)
    for start in range(0, len(values), block):
        some = values[start : start + block]
        on_values += predicted.pmf(np.broadcast_to(some, (n_rows, len(some)))).sum(axis=1)
    first, last = np.full(n_rows, values[0]), np.full(n_rows, values[-1])
    below = predicted.cdf(first) - predicted.pmf(first)
    return np.maximum(predicted.cdf(last) - below - on_values, 0.0)


def point_mass_errors(
    predicted: Predicted, law: Law, n_rows: int, possible: Possible, n_train: int
) -> list[dict[str, float]]:
    """For each point mass: means of the true and the predicted probability, and of |difference|.

    In percentage points. ``noise`` is the standard deviation of the share of training rows with
    this value: what the mean prediction varies by if it follows the training rows.
    """
    found = []
    for value in possible.point_masses:
        true = np.broadcast_to(law.pmf(value), (n_rows, 1))[:, 0]
        mass = predicted.pmf(np.full(n_rows, value))
        found.append(
            {
                "value": value,
                "true": 100 * float(true.mean()),
                "predicted": 100 * float(mass.mean()),
                "error": 100 * float(np.abs(mass - true).mean()),
                "noise": 100 * float(np.sqrt(np.mean(true * (1 - true)) / n_train)),
            }
        )
    return found


def support_scores(
    predicted: Predicted, law: Law, n_rows: int, possible: Possible, n_train: int
) -> dict[str, Any]:
    """The ``metrics`` and ``point_masses`` of a row; None for what a design does not have.

    Masses are in percent, the largest of any test row. Errors of point masses are those of the
    worst one.
    """
    outside = mass_outside_bounds(predicted, n_rows, possible)
    between = mass_between_values(predicted, n_rows, possible) if possible.step else None
    masses = point_mass_errors(predicted, law, n_rows, possible, n_train)
    return {
        "metrics": {
            "outside_bounds_percent": 100 * float(outside.max()),
            "between_values_percent": None if between is None else 100 * float(between.max()),
            "mass_bias_points": max(
                (abs(m["predicted"] - m["true"]) for m in masses), default=None
            ),
            "mass_error_points": max((m["error"] for m in masses), default=None),
        },
        "point_masses": masses,
    }


# --- branches ---------------------------------------------------------------------------------


def distance_scores(
    predicted: Predicted, law: Law, n_rows: int, rng: np.random.Generator
) -> dict[str, float]:
    """The mean W1 distance to true samples, that of a perfect model, and their ratio.

    As on the toy problems: quantiles at (i + 1/2) / 50 against 50 true samples. Those of the truth
    have the distance that remains to the same samples (`was1_floor`).
    """
    levels = even_levels(N_DRAWS)
    truth = law.rvs(n_rows, N_DRAWS, rng).T
    ours = metrics.was1(predicted.ppf(levels).T, truth)
    oracle = metrics.was1(law.ppf(levels).T, truth)
    return {
        "was1_x100": 100 * ours,
        "was1_oracle_x100": 100 * oracle,
        "was1_ratio": ours / oracle,
    }
